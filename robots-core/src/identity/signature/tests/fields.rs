//! Structured fields, as another reader has them and up to a bound.

use super::*;

/// The work for a request is bounded, whatever its fields hold.
#[test]
fn fields_are_read_up_to_a_bound() {
    let numbered =
        |count: usize, between: &str| (0..count).map(|number| format!("a{number}")).collect::<Vec<_>>().join(between);
    for (count, is_read) in [(256, true), (257, false), (20_000, false)] {
        assert_eq!(Dictionary::parse(&numbered(count, ",")).is_ok(), is_read, "{count} members");
        assert_eq!(Item::parse(&format!("x;{}", numbered(count, ";"))).is_ok(), is_read, "{count} parameters");
        assert_eq!(Dictionary::parse(&format!("x=({})", numbered(count, " "))).is_ok(), is_read, "{count} items");
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

/// Pieces of structured fields, so that random texts are often nearly right.
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
    fn fields_are_read_as_another_reader_reads_them(text in field_text()) {
        use sfv::{FieldType, Parser};

        let other = Parser::new(&text).parse::<sfv::Dictionary>();
        let ours = Dictionary::parse(&text);
        prop_assert_eq!(ours.is_ok(), other.is_ok(), "{:?}", text);
        if let (Ok(ours), Ok(other)) = (ours, other) {
            prop_assert_eq!(written(&ours), other.serialize().unwrap_or_default(), "{:?}", text);
        }
        let other = Parser::new(&text).parse::<sfv::Item>();
        let ours = Item::parse(&text);
        prop_assert_eq!(ours.is_ok(), other.is_ok(), "{:?}", text);
        if let (Ok(ours), Ok(other)) = (ours, other) {
            prop_assert_eq!(ours.to_string(), other.serialize(), "{:?}", text);
        }
    }

    #[test]
    fn the_fuzzed_properties_hold(octets in prop::collection::vec(any::<u8>(), 0..200), text in field_text()) {
        test_octets::structured_field(&octets);
        test_octets::structured_field(text.as_bytes());
        test_octets::signature_base(&octets);
        let all = parameters();
        let request = format!("sig1=(\"@authority\" \"x\" \"signature-agent\";key=\"sig1\" {text});{all}\nsig1=:AQI=:\n{AGENT}\nexample.com\n/\n{text}");
        test_octets::signature_base(request.as_bytes());
    }
}
