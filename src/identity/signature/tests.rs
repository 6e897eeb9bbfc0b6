use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use ring::signature::Ed25519KeyPair;

use super::components::Components;
use super::fuzzing::written;
use super::structured_value::{Dictionary, Item, Member};
use super::*;
use crate::agent::Refutation::{self, *};
use crate::agent::UndecidedReason;
use crate::identity::method_outcome::MethodOutcome;

/// RFC 9421, appendix B.1.4.
const X: &str = "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs";
const D: &str = "n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU";
const KEYID: &str = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";

const CREATED: u64 = 1_735_689_600;
const AGENT: &str = r#"sig1="https://signature-agent.test""#;
const COVERED: &str = r#"("@authority" "signature-agent";key="sig1")"#;

fn key_pair() -> Ed25519KeyPair {
    let seed = URL_SAFE_NO_PAD.decode(D).expect("base64");
    Ed25519KeyPair::from_seed_unchecked(&seed).expect("a key")
}

fn keys() -> KeySet {
    KeySet::parse(format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{X}"}}"#).as_bytes()).expect("a key")
}

fn parameters() -> String {
    format!(r#"created={CREATED};expires={};keyid="{KEYID}";tag="web-bot-auth""#, CREATED + 120)
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn failed(refutation: Refutation) -> Option<MethodOutcome> {
    Some(MethodOutcome::Failed(refutation))
}

fn undecided(reason: UndecidedReason) -> Option<MethodOutcome> {
    Some(MethodOutcome::Undecided(reason))
}

const VERIFIED: Option<MethodOutcome> = Some(MethodOutcome::Verified);

/// A request to `https://example.com/path?x=1` that can be signed.
#[derive(Clone)]
struct Signed {
    fields: Vec<(String, Vec<u8>)>,
    authority: String,
    now: u64,
}

impl Signed {
    fn new(agent: &str) -> Self {
        let fields = vec![("Signature-Agent".to_owned(), agent.as_bytes().to_vec())];
        Self { fields, authority: "example.com".to_owned(), now: CREATED + 60 }
    }

    fn field(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.fields.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    fn now(self, now: u64) -> Self {
        Self { now, ..self }
    }

    /// Adds a signature of this label over this base; the base of the standard components where none is given.
    fn sign(self, label: &str, list: &str, base: Option<&str>) -> Self {
        let standard = format!(
            "\"@authority\": example.com\n\"signature-agent\";key=\"sig1\": \"https://signature-agent.test\"\n\
             \"@signature-params\": {list}"
        );
        let signature = key_pair().sign(base.unwrap_or(&standard).as_bytes());
        let signature = STANDARD.encode(signature.as_ref());
        self.field("Signature-Input", format!("{label}={list}")).field("Signature", format!("{label}=:{signature}:"))
    }

    /// The check that says most.
    fn check(&self) -> Option<SignatureCheck> {
        let fields = self.fields.as_slice();
        let message = MessageHead::new("GET", "https", Some(&self.authority), "/path?x=1", &fields);
        let home = DirectoryUrl::parse("https://signature-agent.test").expect("a URL");
        let other = DirectoryUrl::parse("https://other.example").expect("a URL");
        let checks = check_signatures(&message, at(self.now), TestKeys::Allow, |url, _| match url {
            url if *url == home => DirectoryKeys::Loaded(keys().into()),
            url if *url == other => DirectoryKeys::Loaded(KeySet::default().into()),
            _ => DirectoryKeys::NotConfigured,
        });
        checks.iter().cloned().min_by_key(|check| match check.outcome() {
            MethodOutcome::Verified => 0,
            MethodOutcome::Undecided(_) => 1,
            MethodOutcome::Failed(_) => 2,
        })
    }

    fn outcome(&self) -> Option<MethodOutcome> {
        self.check().map(|check| check.outcome())
    }
}

/// The outcome of a request with one signature, made over the standard base.
fn outcome(list: &str) -> Option<MethodOutcome> {
    Signed::new(AGENT).sign("sig1", list, None).outcome()
}

fn with_parameters(parameters: &str) -> Option<MethodOutcome> {
    outcome(&format!("{COVERED};{parameters}"))
}

#[test]
fn a_signature_verifies_until_it_expires() {
    let check = Signed::new(AGENT).sign("sig1", &format!("{COVERED};{}", parameters()), None).check().expect("signed");
    assert_eq!(check.outcome(), MethodOutcome::Verified);
    assert_eq!(check.until(), Some(at(CREATED + 120 + 60)));
    let directory = check.directory().map(DirectoryUrl::as_str);
    assert_eq!(directory, Some("https://signature-agent.test/.well-known/http-message-signatures-directory"));
}

#[test]
fn a_signature_verifies_the_claim_of_its_own_operator_only() {
    let url = |text: &str| DirectoryUrl::parse(text).expect(text);
    let (own, others) =
        ([url("https://signature-agent.test")], [url("https://chatgpt.com"), url("https://other.example")]);
    let list = format!("{COVERED};{}", parameters());
    let check = |request: &Signed| request.check().expect("signed");
    let valid = check(&Signed::new(AGENT).sign("sig1", &list, None));
    assert_eq!(valid.outcome_for(ClaimedDirectories::Of(&own)), VERIFIED);
    assert_eq!(valid.outcome_for(ClaimedDirectories::Any), VERIFIED);
    assert_eq!(valid.outcome_for(ClaimedDirectories::Of(&others)), None);
    assert_eq!(valid.outcome_for(ClaimedDirectories::Of(&[])), None);
    // One that does not hold is false evidence, whoever it names.
    let forged = check(&Signed::new(AGENT).sign("sig1", &list, Some("another base")));
    assert_eq!(forged.outcome_for(ClaimedDirectories::Of(&others)), failed(BadSignature));
    let unavailable = SignatureCheck::of_unavailable(own[0].clone());
    for (claimed, reason) in [
        (ClaimedDirectories::Of(&own), UndecidedReason::DirectoryUnavailable),
        (ClaimedDirectories::Any, UndecidedReason::DirectoryUnavailable),
        (ClaimedDirectories::Of(&others), UndecidedReason::DirectoryNotConfigured),
    ] {
        assert_eq!(unavailable.outcome_for(claimed), undecided(reason));
    }
}

/// The base and the signature of each; their windows are those of the drafts.
#[test]
fn published_vectors_verify() {
    let cases: serde_json::Value =
        serde_json::from_str(include_str!("../../../tests/cases/web_bot_auth.json")).expect("JSON");
    let published = cases["published"].as_array().expect("vectors");
    assert_eq!(published.len(), 3);
    for vector in published {
        let text = |key: &str| vector[key].as_str().expect(key);
        let input = Dictionary::parse(text("input")).expect("a dictionary");
        let Some(Member::InnerList(list)) = input.get("sig2") else { panic!("{vector}") };
        let fields = [("signature-agent", text("agent"))];
        let fields = fields.as_slice();
        let message = MessageHead::new("GET", "https", Some(text("authority")), "/", &fields);
        let components = Components::of(list).expect("components");
        let base = components.base(&message).expect("a base");
        let directory = signature_agent::directory(&message, "sig2", &components).expect("a directory");
        assert!(directory.as_str().starts_with("https://signature-agent.test/"));
        let signature = text("signature").strip_prefix("sig2=:").and_then(|text| text.strip_suffix(':'));
        let signature = STANDARD.decode(signature.expect("a byte sequence")).expect("base64");
        assert!(keys().key(KEYID).expect("the key").verifies(&signature, base.as_bytes()), "{base}");
        assert!(!keys().key(KEYID).expect("the key").verifies(&signature, format!("{base} ").as_bytes()));
    }
}

#[test]
fn windows_are_as_long_as_they_may_be_and_no_longer() {
    let window = |created: i64, expires: i64, now: u64| {
        let list = format!(r#"{COVERED};created={created};expires={expires};keyid="{KEYID}";tag="web-bot-auth""#);
        Signed::new(AGENT).now(now).sign("sig1", &list, None).outcome()
    };
    let created = CREATED as i64;
    assert_eq!(window(created, created + 86_400, CREATED), VERIFIED);
    assert_eq!(window(created, created + 86_401, CREATED), failed(WindowTooLong));
    assert_eq!(window(created, created, CREATED), VERIFIED);
    assert_eq!(window(created, created - 1, CREATED), failed(WindowNegative));
    assert_eq!(window(created + 60, created + 100, CREATED), VERIFIED);
    assert_eq!(window(created + 61, created + 100, CREATED), failed(CreatedInFuture));
    assert_eq!(window(created - 100, created - 60, CREATED), VERIFIED);
    assert_eq!(window(created - 100, created - 61, CREATED), failed(Expired));
    // Numbers as large as they get.
    assert_eq!(window(-999_999_999_999_999, 999_999_999_999_999, CREATED), failed(WindowTooLong));
    assert_eq!(window(999_999_999_999_999, 999_999_999_999_999, CREATED), failed(CreatedInFuture));
    assert_eq!(window(-999_999_999_999_999, -999_999_999_999_999, CREATED), failed(Expired));
    assert_eq!(window(created, created + 1, u64::MAX / 4), failed(Expired));
    assert_eq!(window(0, 1, 0), VERIFIED);
}

#[test]
fn parameters_are_required_and_of_their_kind() {
    let all = parameters();
    let without = |name: &str| {
        let kept: Vec<_> = all.split(';').filter(|parameter| !parameter.starts_with(name)).collect();
        with_parameters(&kept.join(";"))
    };
    assert_eq!(with_parameters(&all), VERIFIED);
    for name in ["created", "expires", "keyid"] {
        assert_eq!(without(name), failed(MissingParameter), "{name}");
    }
    // Without the tag it is a signature for somebody else.
    assert_eq!(without("tag"), None);
    for (change, outcome) in [
        ("tag=web-bot-auth", None),
        ("tag=\"Web-Bot-Auth\"", None),
        ("tag=\"web-bot-auth \"", None),
        ("tag=:d2ViLWJvdC1hdXRo:", None),
        ("created=1735689600.0", failed(Unparsable)),
        ("created=\"1735689600\"", failed(Unparsable)),
        ("created=@1735689600", failed(Unparsable)),
        ("created", failed(Unparsable)),
        ("created=1735689600000000", failed(Unparsable)),
        ("created=+1735689600", failed(Unparsable)),
        ("expires=9999999999999999999999", failed(Unparsable)),
        ("keyid=abc", failed(Unparsable)),
        ("alg=ed25519", failed(Unparsable)),
        ("alg=\"Ed25519\"", failed(AlgMismatch)),
        ("alg=\"hmac-sha256\"", failed(AlgMismatch)),
        ("alg=\"rsa-pss-sha512\"", failed(AlgMismatch)),
        ("alg=\"ed25519\"", VERIFIED),
        ("nonce=\"\\\"; created=0\"", VERIFIED),
        ("unknown;other=(1)", failed(Unparsable)),
        ("unknown;other=1.5", VERIFIED),
        // Of a repeated parameter the last counts (RFC 9651, section 4.2.3.2); the base has all, as received.
        ("created=1735689601", VERIFIED),
        ("created=9999999999", failed(WindowNegative)),
        (" created=1735689601", VERIFIED),
        ("keyid=\"POQKLGIYMH_W0UP6PZFW-DVEZ3QJT5SOLQXBCW38R0U\"", undecided(UndecidedReason::KeyUnknownThere)),
        ("keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U=\"", undecided(UndecidedReason::KeyUnknownThere)),
    ] {
        assert_eq!(with_parameters(&format!("{all};{change}")), outcome, "{change}");
    }
}

#[test]
fn the_site_and_the_signer_have_to_be_covered() {
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
fn the_base_has_the_parameters_exactly_as_received() {
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
fn components_are_what_the_request_has() {
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
fn targets_have_their_standard_form() {
    let check = |target: &str, component: &str, value: &str| {
        let fields: &[(&str, &str)] = &[];
        let message = MessageHead::new("GET", "https", Some("Example.COM:443"), target, &fields);
        let list = format!("a=(\"{component}\")");
        let input = Dictionary::parse(&list).expect("a dictionary");
        let Some(Member::InnerList(list)) = input.get("a") else { panic!("{component}") };
        let base = Components::of(list).and_then(|components| components.base(&message)).expect("a base");
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
fn nothing_that_a_client_sends_adds_a_line_to_the_base() {
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

#[test]
fn a_request_is_signed_only_by_what_is_meant_for_this() {
    let unsigned = |fields: &[(&str, &str)]| {
        let message = MessageHead::new("GET", "https", Some("example.com"), "/", &fields);
        signature_candidates(&message, at(CREATED)).is_empty()
    };
    assert!(unsigned(&[]));
    assert!(unsigned(&[("signature-agent", AGENT)]));
    // The older drafts of HTTP signatures, which servers of the fediverse use.
    assert!(unsigned(&[("signature", r#"keyId="https://a.example/#key",headers="date",signature="x""#)]));
    assert!(unsigned(&[("signature-input", "not a dictionary"), ("signature", "x")]));
    assert!(unsigned(&[("signature-input", ""), ("signature-agent", AGENT)]));
    assert!(unsigned(&[("signature-input", "sig1=(\"@method\");tag=\"x\""), ("signature-agent", AGENT)]));
    assert!(!unsigned(&[("signature-input", "not a dictionary"), ("signature-agent", AGENT)]));
    assert!(!unsigned(&[("signature-input", "sig1;tag=\"web-bot-auth\"")]));
}

#[test]
fn of_several_signatures_two_are_tried() {
    let list = format!("{COVERED};{}", parameters());
    let wrong = |request: Signed, label: &str| request.sign(label, &list, Some("something else"));
    let foreign = |request: Signed| request.sign("app", "(\"@method\");created=1;tag=\"app\"", Some("x"));
    let new = || Signed::new(AGENT);
    assert_eq!(foreign(foreign(foreign(new()))).outcome(), None);
    assert_eq!(foreign(new()).sign("sig1", &list, None).outcome(), VERIFIED);
    assert_eq!(wrong(new(), "a").sign("sig1", &list, None).outcome(), VERIFIED);
    assert_eq!(wrong(new(), "sig1").outcome(), failed(BadSignature));
    assert_eq!(wrong(wrong(new(), "a"), "b").sign("sig1", &list, None).outcome(), failed(BadSignature));
    // Of a repeated label the last.
    assert_eq!(wrong(new(), "sig1").sign("sig1", &list, None).outcome(), VERIFIED);
    assert_eq!(wrong(new().sign("sig1", &list, None), "sig1").outcome(), failed(BadSignature));
    // One that cannot be judged keeps the other from refuting.
    let unknown = list.replace(KEYID, "unknown");
    let doubtful = wrong(new(), "a").sign("b", &unknown, None);
    assert_eq!(doubtful.outcome(), undecided(UndecidedReason::KeyUnknownThere));
    let doubtful = wrong(new().sign("b", &unknown, None), "a");
    assert_eq!(doubtful.outcome(), undecided(UndecidedReason::KeyUnknownThere));
}

#[test]
fn a_signature_has_one_form() {
    let request = Signed::new(AGENT).sign("sig1", &format!("{COVERED};{}", parameters()), None);
    let change = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut request = request.clone();
        let (_, value) = request.fields.last_mut().expect("the signature");
        let text = String::from_utf8(std::mem::take(value)).expect("text");
        let mut octets = STANDARD.decode(text.trim_start_matches("sig1=:").trim_end_matches(':')).expect("base64");
        change(&mut octets);
        *value = format!("sig1=:{}:", STANDARD.encode(octets)).into_bytes();
        request.outcome()
    };
    assert_eq!(change(&|_| {}), VERIFIED);
    assert_eq!(change(&|octets| octets.push(0)), failed(BadSignature));
    assert_eq!(change(&|octets| octets.truncate(63)), failed(BadSignature));
    assert_eq!(change(&Vec::clear), failed(BadSignature));
    assert_eq!(change(&|octets| octets[0] ^= 1), failed(BadSignature));
    // The order of the group added to the second half: the same number, written another way (RFC 8032, section 5.1.7).
    assert_eq!(
        change(&|octets| {
            let order: [u8; 32] = [
                0xED, 0xD3, 0xF5, 0x5C, 0x1A, 0x63, 0x12, 0x58, 0xD6, 0x9C, 0xF7, 0xA2, 0xDE, 0xF9, 0xDE, 0x14, 0, 0,
                0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
            ];
            let mut carry = 0_u16;
            for (octet, more) in octets[32..].iter_mut().zip(order) {
                carry += u16::from(*octet) + u16::from(more);
                *octet = carry as u8;
                carry >>= 8;
            }
        }),
        failed(BadSignature)
    );
    for value in ["sig1=abc", "sig1=(:AAAA:)", "sig1", "sig1=:A*:", "x", "sig2=:AAAA:", ""] {
        let mut request = request.clone();
        request.fields.last_mut().expect("the signature").1 = value.as_bytes().to_vec();
        let refutation = if ["x", "sig2=:AAAA:", ""].contains(&value) { NoSignatureForLabel } else { Unparsable };
        assert_eq!(request.outcome(), failed(refutation), "{value}");
    }
}

#[test]
fn keys_are_looked_up_in_the_directory_that_is_named() {
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
    // Of a repeated member the last.
    let repeated = r#"sig1="https://other.example", sig1="https://signature-agent.test""#;
    assert_eq!(named(repeated, "https://signature-agent.test"), VERIFIED);
}

#[test]
fn a_string_or_a_whole_dictionary_can_name_the_signer() {
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
    // Two strings are no string.
    assert_eq!(named(r#""https://signature-agent.test", "https://other.example""#, "sig1"), failed(Unparsable));
    // A string has no members.
    let member = Signed::new(r#""https://signature-agent.test""#).sign("sig1", &format!("{COVERED};{all}"), None);
    assert_eq!(member.outcome(), failed(Unparsable));
}

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
    let piece = prop::sample::select(vec![
        "a",
        "b=",
        "*c=",
        "=",
        ";",
        "; ",
        ",",
        ", ",
        " ,\t",
        " ",
        "\t",
        "(",
        ")",
        "( ",
        " )",
        "\"",
        "\"x\"",
        "\"\\\"\"",
        "\\",
        ":",
        ":AQI=:",
        ":AQI:",
        ":AQJ=:",
        "::",
        "?1",
        "?0",
        "?",
        "@",
        "@1",
        "@-5",
        "-",
        "-0",
        "0",
        "007",
        "1.5",
        "1.",
        ".5",
        "-0.0",
        "1.230",
        "999999999999999",
        "1234567890123456",
        "123456789012.123",
        "1234567890123.1",
        "1.1234",
        "%\"",
        "%\"%c3%a9\"",
        "%\"%C3\"",
        "%\"%ff\"",
        "tok",
        "T/:*",
        "Z",
        "A",
        "_",
        "/",
        "é",
        "\n",
        "\0",
        "~",
    ]);
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
            let mut form = String::new();
            ours.write(&mut form);
            prop_assert_eq!(form, other.serialize(), "{:?}", text);
        }
    }

    #[test]
    fn the_fuzzed_properties_hold(octets in prop::collection::vec(any::<u8>(), 0..200), text in field_text()) {
        fuzzing::structured_field(&octets);
        fuzzing::structured_field(text.as_bytes());
        fuzzing::signature_base(&octets);
        let all = parameters();
        let request = format!("sig1=(\"@authority\" \"x\" \"signature-agent\";key=\"sig1\" {text});{all}\nsig1=:AQI=:\n{AGENT}\nexample.com\n/\n{text}");
        fuzzing::signature_base(request.as_bytes());
    }
}
