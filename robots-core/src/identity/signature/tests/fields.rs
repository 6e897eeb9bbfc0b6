//! Tests the limits of structured fields, and the received bytes of dictionary members.

use super::*;

#[test]
fn structured_fields_are_parsed_only_up_to_a_size_limit() {
    let numbered =
        |count: usize, between: &str| (0..count).map(|number| format!("a{number}")).collect::<Vec<_>>().join(between);
    for (count, is_read) in [(256, true), (258, false), (20_000, false)] {
        assert_eq!(read::<Dictionary>(&numbered(count, ",")).is_some(), is_read, "{count} members");
        assert_eq!(read::<Dictionary>(&numbered(count, ", ")).is_some(), is_read, "{count} members");
        assert_eq!(read::<Item>(&format!("x;{}", numbered(count, ";"))).is_some(), is_read, "{count} parameters");
        assert_eq!(read::<Dictionary>(&format!("x=({})", numbered(count, " "))).is_some(), is_read, "{count} items");
    }
    let all = parameters();
    let members: String = (0..30).map(|number| format!("\"x\";key=\"k{number}\" ")).collect();
    let list = format!(r#"("@authority" {members}"signature-agent";key="sig1");{all}"#);
    let values = |length: usize| {
        let value: String = (0..30).map(|number| format!("k{number}={}, ", "a".repeat(length))).collect();
        Signed::new(AGENT).field("x", format!("{value}z")).sign("sig1", &list, None).outcome()
    };
    assert_eq!(values(10), failed(BadSignature));
    assert_eq!(values(100), failed(ComponentUnsupported));
}

#[test]
fn a_dictionary_member_has_the_bytes_that_it_was_read_from() {
    let field =
        r#" a="x, \"y\", z=1\\";  p="," ,b=%"\",	c=( "p, q"  r );s=1 , d;e=2, ab=1, a=%",%22", f=:AQI=:, ab, ab;c"#;
    assert!(read::<Dictionary>(field).is_some(), "{field}");
    for (key, want) in [
        ("a", Some(r#"%",%22""#)),
        ("ab", None),
        ("b", Some(r#"%"\""#)),
        ("c", Some(r#"( "p, q"  r );s=1"#)),
        ("d", None),
        ("e", None),
        ("f", Some(":AQI=:")),
        ("z", None),
    ] {
        assert_eq!(as_received(field, key), want, "{key}");
    }
    let field = r#"a="x, \"y\", z=1\\";  p=",""#;
    assert_eq!(as_received(field, "a"), Some(&field[2..]));
}

/// Generates strings from pieces of structured fields, so that they are often almost valid.
fn field_text() -> impl Strategy<Value = String> {
    let pieces: [&[&str]; 5] = [
        &["a", "b=", "*c=", "=", ";", "; ", ",", ", ", " ,\t", " ", "\t", "(", ")", "( ", " )", "\""],
        &["\"x\"", "\"\\\"\"", "\\", ":", ":AQI=:", ":AQI:", ":AQJ=:", "::", "?1", "?0", "?", "@", "@1"],
        &["@-5", "-", "-0", "0", "007", "1.5", "1.", ".5", "-0.0", "1.230", "999999999999999"],
        &["1234567890123456", "123456789012.123", "1234567890123.1", "1.1234", "%\"", "%\"%c3%a9\""],
        &["%\"%C3\"", "%\"%ff\"", "tok", "T/:*", "Z", "A", "_", "/", "é", "\n", "\0", "~"],
    ];
    let piece = prop::sample::select(pieces.concat());
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn dictionary_members_are_separated_whatever_their_strings_contain(texts in prop::collection::vec("[ -~]{0,8}", 1..6)) {
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let values: Vec<_> = texts.iter().enumerate().map(|(at, text)| match at % 2 {
            0 => format!("\"{}\"", escaped(text)),
            _ => format!("(%\"{}\" \"{}\");p", text.replace('%', "%25").replace('"', "%22"), escaped(text)),
        }).collect();
        let field: Vec<_> = values.iter().enumerate().map(|(at, value)| format!("k{at}={value}")).collect();
        let field = field.join(" ,\t");
        prop_assert!(read::<Dictionary>(&field).is_some(), "{field}");
        for (at, value) in values.iter().enumerate() {
            prop_assert_eq!(as_received(&field, &format!("k{at}")), Some(&**value), "{}", field);
        }
    }

    #[test]
    fn the_fuzzed_properties_hold_for_generated_input(bytes in prop::collection::vec(any::<u8>(), 0..200), text in field_text()) {
        test_any_input::structured_field(&bytes);
        test_any_input::structured_field(text.as_bytes());
        test_any_input::signature_base(&bytes);
        let all = parameters();
        let request = format!("sig1=(\"@authority\" \"x\" \"signature-agent\";key=\"sig1\" {text});{all}\nsig1=:AQI=:\n{AGENT}\nexample.com\n/\n{text}");
        test_any_input::signature_base(request.as_bytes());
    }
}
