//! Tests which signatures of a request are checked, and which directory provides the keys.

use super::*;

#[test]
fn a_request_counts_as_signed_only_if_its_fields_are_for_web_bot_auth() {
    let unsigned = |fields: &[(&str, &str)]| {
        let message = MessageHead::new("GET", "https", Some("example.com"), "/", &fields);
        SignatureCandidate::all(&message, at(CREATED)).is_empty()
    };
    assert!(unsigned(&[]));
    assert!(unsigned(&[("signature-agent", AGENT)]));
    // Servers of the Fediverse use older drafts of HTTP signatures.
    assert!(unsigned(&[("signature", r#"keyId="https://a.example/#key",headers="date",signature="x""#)]));
    assert!(unsigned(&[("signature-input", "not a dictionary"), ("signature", "x")]));
    assert!(unsigned(&[("signature-input", ""), ("signature-agent", AGENT)]));
    assert!(unsigned(&[("signature-input", "sig1=(\"@method\");tag=\"x\""), ("signature-agent", AGENT)]));
    assert!(!unsigned(&[("signature-input", "not a dictionary"), ("signature-agent", AGENT)]));
    assert!(!unsigned(&[("signature-input", "sig1;tag=\"web-bot-auth\"")]));
}

#[test]
fn two_signatures_verify_if_one_is_valid_and_refute_only_if_both_fail() {
    let list = format!("{COVERED};{}", parameters());
    let wrong = |request: Signed, label: &str| request.sign(label, &list, Some("something else"));
    let foreign = |request: Signed| request.sign("app", "(\"@method\");created=1;tag=\"app\"", Some("x"));
    let new = || Signed::new(AGENT);
    assert_eq!(foreign(foreign(foreign(new()))).outcome(), None);
    assert_eq!(foreign(new()).sign("sig1", &list, None).outcome(), VERIFIED);
    assert_eq!(wrong(new(), "a").sign("sig1", &list, None).outcome(), VERIFIED);
    assert_eq!(wrong(new(), "sig1").outcome(), failed(BadSignature));
    assert_eq!(wrong(wrong(new(), "a"), "b").sign("sig1", &list, None).outcome(), failed(BadSignature));
    // If a label is repeated, the last member with the label counts.
    assert_eq!(wrong(new(), "sig1").sign("sig1", &list, None).outcome(), VERIFIED);
    assert_eq!(wrong(new().sign("sig1", &list, None), "sig1").outcome(), failed(BadSignature));
    // If one signature is undecided, another signature that failed does not refute the claim.
    let unknown = list.replace(KEYID, "unknown");
    let doubtful = wrong(new(), "a").sign("b", &unknown, None);
    assert_eq!(doubtful.outcome(), undecided(UndecidedReason::KeyUnknownThere));
    let doubtful = wrong(new().sign("b", &unknown, None), "a");
    assert_eq!(doubtful.outcome(), undecided(UndecidedReason::KeyUnknownThere));
}

#[test]
fn keys_are_looked_up_in_the_directory_that_signature_agent_names() {
    let list = format!("{COVERED};{}", parameters());
    let named = |agent: &str, url: &str| {
        let base = format!(
            "\"@authority\": example.com\n\"signature-agent\";key=\"sig1\": \"{url}\"\n\"@signature-params\": {list}"
        );
        Signed::new(agent).sign("sig1", &list, Some(&base)).outcome()
    };
    let of = |url: &str| named(&format!("sig1=\"{url}\""), url);
    assert_eq!(of("https://signature-agent.test"), VERIFIED);
    assert_eq!(of("HTTPS://Signature-Agent.TEST:443/"), VERIFIED);
    assert_eq!(of("https://other.example"), undecided(UndecidedReason::KeyUnknownThere));
    assert_eq!(of("https://signature-agent.test/jwks.json"), undecided(UndecidedReason::DirectoryNotConfigured));
    assert_eq!(of("https://signature-agent.test?x"), undecided(UndecidedReason::DirectoryNotConfigured));
    assert_eq!(of("https://signature-agent.test.evil.example"), undecided(UndecidedReason::DirectoryNotConfigured));
    assert_eq!(of("http://signature-agent.test"), failed(AgentNotHttps));
    assert_eq!(of("https://signature-agent.test@evil.example"), failed(Unparsable));
    assert_eq!(of("https://evil.example, signature-agent.test"), failed(Unparsable));
    for agent in
        ["sig1=https://signature-agent.test", "sig1=(\"https://signature-agent.test\")", "sig1", "sig1=7", "\"x"]
    {
        assert_eq!(named(agent, "x"), failed(Unparsable), "{agent}");
    }
    // If a member is repeated, the last value counts.
    let repeated = r#"sig1="https://other.example", sig1="https://signature-agent.test""#;
    assert_eq!(named(repeated, "https://signature-agent.test"), VERIFIED);
}

#[test]
fn signature_agent_may_be_a_string_or_a_whole_covered_dictionary() {
    let all = parameters();
    let list = format!(r#"("@authority" "signature-agent");{all}"#);
    let named = |agent: &str, label: &str| {
        let base = format!("\"@authority\": example.com\n\"signature-agent\": {agent}\n\"@signature-params\": {list}");
        Signed::new(agent).sign(label, &list, Some(&base)).outcome()
    };
    assert_eq!(named(r#""https://signature-agent.test""#, "sig1"), VERIFIED);
    assert_eq!(named(AGENT, "sig1"), VERIFIED);
    assert_eq!(named(AGENT, "sig2"), VERIFIED);
    let two = r#"a="https://signature-agent.test", b="https://other.example""#;
    assert_eq!(named(two, "a"), VERIFIED);
    assert_eq!(named(two, "c"), failed(AgentNotCovered));
    // Two quoted strings are not a valid String.
    assert_eq!(named(r#""https://signature-agent.test", "https://other.example""#, "sig1"), failed(Unparsable));
    // A String has no members that a signature can cover.
    let member = Signed::new(r#""https://signature-agent.test""#).sign("sig1", &format!("{COVERED};{all}"), None);
    assert_eq!(member.outcome(), failed(Unparsable));
}
