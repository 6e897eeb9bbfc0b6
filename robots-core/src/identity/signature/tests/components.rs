//! Tests the components that signatures cover, and the signature base.

use super::*;

#[test]
fn a_signature_must_cover_the_site_and_the_signature_agent() {
    let all = parameters();
    for (list, refutation) in [
        (r#"()"#, TargetNotCovered),
        (r#"("signature-agent";key="sig1")"#, TargetNotCovered),
        (r#"("@Authority" "signature-agent";key="sig1")"#, TargetNotCovered),
        (r#"("@path" "@method" "signature-agent";key="sig1")"#, TargetNotCovered),
        (r#"("host" "signature-agent";key="sig1")"#, TargetNotCovered),
        (r#"("@authority";req "signature-agent";key="sig1")"#, TargetNotCovered),
        (r#"("@authority")"#, AgentNotCovered),
        (r#"("@authority" "Signature-Agent";key="sig1")"#, AgentNotCovered),
        (r#"("@authority" "signature-agent";key="other")"#, ComponentMissing),
        (r#"("@authority" "signature-agent";key="a" "signature-agent";key="b")"#, AgentNotCovered),
        (r#"("@authority" "@authority" "signature-agent";key="sig1")"#, ComponentRepeated),
        (r#"("@authority" "signature-agent";key="sig1" "signature-agent"; key="sig1")"#, ComponentRepeated),
        (r#"(@authority "signature-agent";key="sig1")"#, Unparsable),
        (r#"("@authority" signature-agent;key="sig1")"#, Unparsable),
        (r#"("@authority" 7 "signature-agent";key="sig1")"#, Unparsable),
        (r#"("@authority""signature-agent";key="sig1")"#, Unparsable),
        (r#"("@authority" "signature-agent";key="sig1";sf)"#, ComponentUnsupported),
        (r#"("@authority" "signature-agent";key="sig1";bs)"#, ComponentUnsupported),
        (r#"("@authority" "signature-agent";key="sig1";tr)"#, ComponentUnsupported),
        (r#"("@authority" "signature-agent";key="sig1";req)"#, ComponentUnsupported),
        (r#"("@authority" "signature-agent";key="sig1" "@path";req)"#, ComponentUnsupported),
        (r#"("@authority" "signature-agent";key="sig1" "@query-param";name="x")"#, ComponentUnsupported),
        (r#"("@authority" "signature-agent";key="sig1" "@status")"#, ComponentUnsupported),
        (r#"("@authority" "signature-agent";key="sig1" "@signature-params")"#, ComponentUnsupported),
        (r#"("@authority" "signature-agent";key="sig1" "x\"y")"#, ComponentMissing),
        (r#"("@authority" "signature-agent";key="sig1" "")"#, ComponentUnsupported),
        (r#"("@authority" "signature-agent";key="sig1" "X-None")"#, ComponentUnsupported),
    ] {
        assert_eq!(outcome(&format!("{list};{all}")), failed(refutation), "{list}");
    }
    let many: String = (0..33).map(|number| format!("\"x{number}\" ")).collect();
    assert_eq!(outcome(&format!(r#"("@authority" {many}"signature-agent";key="sig1");{all}"#)), failed(Unparsable));
}

#[test]
fn the_signature_base_contains_the_parameters_exactly_as_received() {
    let all = parameters();
    for list in [
        format!(r#"( "@authority"   "signature-agent";key="sig1"  );{all}"#),
        format!(r#"("@authority" "signature-agent"; key="sig1"); {all}"#),
        format!("{COVERED};{all};z=1.50"),
        format!("{COVERED};{all};created=01735689600"),
    ] {
        assert_eq!(outcome(&list), VERIFIED, "{list}");
    }
}

#[test]
fn covered_components_have_the_values_of_the_request() {
    let all = parameters();
    let list = format!(
        r#"("@authority" "@method" "@scheme" "@target-uri" "@request-target" "@path" "@query" "x" "x-empty" "dict";key="b" "signature-agent";key="sig1");{all}"#
    );
    let base = format!(
        "\"@authority\": example.com\n\"@method\": GET\n\"@scheme\": https\n\"@target-uri\": https://example.com/path?x=1\n\
         \"@request-target\": /path?x=1\n\"@path\": /path\n\"@query\": ?x=1\n\"x\": one, \"two, three\", four\n\"x-empty\": \n\
         \"dict\";key=\"b\": (\"x, y\" 1.5);p=:AQI=:\n\
         \"signature-agent\";key=\"sig1\": \"https://signature-agent.test\";type=directory\n\"@signature-params\": {list}"
    );
    let request = Signed::new(r#"other="https://other.example", sig1="https://signature-agent.test";  type=directory"#)
        .field("X", "  one\t")
        .field("x", r#""two, three""#)
        .field("X", "four")
        .field("x-empty", " ")
        .field("dict", "a=1, b=?0")
        .field("Dict", r#"b=("x, y"   1.500);  p=:AQI:"#)
        .sign("sig1", &list, Some(&base));
    assert_eq!(request.outcome(), VERIFIED);
}

#[test]
fn components_of_the_request_target_have_their_standard_form() {
    let check = |target: &str, component: &str, value: &str| {
        let fields: &[(&str, &str)] = &[];
        let message = MessageHead::new("GET", "https", Some("Example.COM:443"), target, &fields);
        let raw = format!("(\"{component}\")");
        let input: Dictionary = read(&format!("a={raw}")).expect("a dictionary");
        let Some(ListEntry::InnerList(list)) = input.get("a") else { panic!("{component}") };
        let base = Components::of(list, &raw).and_then(|components| components.base(&message)).expect("a base");
        assert_eq!(base, format!("\"{component}\": {value}\n\"@signature-params\": (\"{component}\")"), "{target}");
    };
    check("/", "@query", "?");
    check("/?", "@query", "?");
    check("?x", "@path", "/");
    check("", "@path", "/");
    check("/a?b?c", "@query", "?b?c");
    check("http://other.example:80?x", "@path", "/");
    check("http://other.example/p?x", "@path", "/p");
    check("/?u=http://a.example/p", "@path", "/");
    check("/a%2Fb//../c", "@path", "/a%2Fb//../c");
    check("/a", "@target-uri", "https://example.com/a");
    check("", "@target-uri", "https://example.com/");
    check("/", "@authority", "example.com");
    check("*", "@request-target", "*");
}

#[test]
fn client_input_cannot_add_a_line_to_the_signature_base() {
    let all = parameters();
    let list = format!(r#"("@authority" "x" "signature-agent";key="sig1");{all}"#);
    for value in [&b"a\nb"[..], b"a\r\nb", b"a\0b", b"\xC3\xA4", b"a\x7Fb"] {
        let request = Signed::new(AGENT).field("x", value).sign("sig1", &list, None);
        assert_eq!(request.outcome(), failed(ComponentUnsupported), "{value:?}");
    }
    for authority in ["example.com\n\"x\": y", "ex\u{E4}mple.com", "a\0b"] {
        let mut request = Signed::new(AGENT).sign("sig1", &format!("{COVERED};{all}"), None);
        request.authority = authority.to_owned();
        assert_eq!(request.outcome(), failed(ComponentUnsupported), "{authority:?}");
    }
    let mut request = Signed::new(AGENT).sign("sig1", &format!("{COVERED};{all}"), None);
    request.authority = String::new();
    assert_eq!(request.outcome(), failed(ComponentMissing));
}
