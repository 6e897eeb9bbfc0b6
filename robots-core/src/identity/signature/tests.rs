//! Tests that sign requests and check the outcomes of the signatures.

mod candidates;
mod components;
mod fields;
mod parameters;

use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use ring::signature::Ed25519KeyPair;
use sfv::{Dictionary, Item, ListEntry};

use super::components::Components;
use super::structured_field::{as_received, read};
use super::*;
use crate::agent::Refutation::{self, *};
use crate::agent::UndecidedReason;
use crate::identity::MethodOutcome;

/// The test key of RFC 9421, appendix B.1.4.
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
    let mut keys = KeySet::parse(format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{X}"}}"#).as_bytes()).expect("a key");
    keys.accepts_test_key = true;
    keys
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

/// A request to `https://example.com/path?x=1`, to which signatures can be added.
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

    /// Adds a signature with this label over `base`. If `base` is `None`, uses the base of the
    /// standard components.
    fn sign(self, label: &str, list: &str, base: Option<&str>) -> Self {
        let standard = format!(
            "\"@authority\": example.com\n\"signature-agent\";key=\"sig1\": \"https://signature-agent.test\"\n\
             \"@signature-params\": {list}"
        );
        let signature = key_pair().sign(base.unwrap_or(&standard).as_bytes());
        let signature = STANDARD.encode(signature.as_ref());
        self.field("Signature-Input", format!("{label}={list}")).field("Signature", format!("{label}=:{signature}:"))
    }

    /// Returns the result of the best signature: verified is better than undecided, and undecided
    /// is better than failed.
    fn check(&self) -> Option<SignatureCheck> {
        let fields = self.fields.as_slice();
        let message = MessageHead::new("GET", "https", Some(&self.authority), "/path?x=1", &fields);
        let home = DirectoryUrl::parse("https://signature-agent.test").expect("a URL");
        let other = DirectoryUrl::parse("https://other.example").expect("a URL");
        let checks = SignatureCheck::all(&message, at(self.now), |url, _| match url {
            url if *url == home => Ok(keys().into()),
            url if *url == other => Ok(KeySet::default().into()),
            _ => Err(UndecidedReason::DirectoryNotConfigured),
        });
        checks.iter().flat_map(|checks| &**checks).cloned().min_by_key(|check| match check.outcome {
            MethodOutcome::Verified => 0,
            MethodOutcome::Undecided(_) => 1,
            MethodOutcome::Failed(_) => 2,
        })
    }

    fn outcome(&self) -> Option<MethodOutcome> {
        self.check().map(|check| check.outcome)
    }
}

/// Returns the outcome of a request with one signature over the standard base.
fn outcome(list: &str) -> Option<MethodOutcome> {
    Signed::new(AGENT).sign("sig1", list, None).outcome()
}

fn with_parameters(parameters: &str) -> Option<MethodOutcome> {
    outcome(&format!("{COVERED};{parameters}"))
}

#[test]
fn a_valid_signature_is_verified_with_its_expiry_and_its_directory() {
    let check = Signed::new(AGENT).sign("sig1", &format!("{COVERED};{}", parameters()), None).check().expect("signed");
    assert_eq!(check.outcome, MethodOutcome::Verified);
    assert_eq!(check.until, Some(at(CREATED + 120 + 60)));
    let directory = check.directory.as_ref().map(DirectoryUrl::as_str);
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
    assert_eq!(valid.outcome_for(Some(&own[..])), VERIFIED);
    assert_eq!(valid.outcome_for(None), VERIFIED);
    assert_eq!(valid.outcome_for(Some(&others)), None);
    assert_eq!(valid.outcome_for(Some(&[])), None);
    // An invalid signature refutes a claim, whichever crawler the request claims to be from.
    let forged = check(&Signed::new(AGENT).sign("sig1", &list, Some("another base")));
    assert_eq!(forged.outcome_for(Some(&others)), failed(BadSignature));
    let outcome = MethodOutcome::Undecided(UndecidedReason::DirectoryUnavailable);
    let unavailable = SignatureCheck { outcome, directory: Some(own[0].clone()), until: None };
    for (claimed, reason) in [
        (Some(&own[..]), UndecidedReason::DirectoryUnavailable),
        (None, UndecidedReason::DirectoryUnavailable),
        (Some(&others), UndecidedReason::DirectoryNotConfigured),
    ] {
        assert_eq!(unavailable.outcome_for(claimed), undecided(reason));
    }
}

/// Checks the base and the signature of each published test vector, at a time within its validity
/// window.
#[test]
fn published_vectors_verify() {
    let cases: serde_json::Value =
        serde_json::from_str(include_str!("../../../../tests/cases/web_bot_auth.json")).expect("JSON");
    let published = cases["published"].as_array().expect("vectors");
    assert_eq!(published.len(), 3);
    for vector in published {
        let text = |key: &str| vector[key].as_str().expect(key);
        let input: Dictionary = read(text("input")).expect("a dictionary");
        let Some(ListEntry::InnerList(list)) = input.get("sig2") else { panic!("{vector}") };
        let fields = [("signature-agent", text("agent"))];
        let fields = fields.as_slice();
        let message = MessageHead::new("GET", "https", Some(text("authority")), "/", &fields);
        let raw = as_received(text("input"), "sig2").expect("its bytes");
        let components = Components::of(list, raw).expect("components");
        let base = components.base(&message).expect("a base");
        let directory = super::parameters::directory(&message, "sig2", &components).expect("a directory");
        assert!(directory.as_str().starts_with("https://signature-agent.test/"));
        let signature = text("signature").strip_prefix("sig2=:").and_then(|text| text.strip_suffix(':'));
        let signature = STANDARD.decode(signature.expect("a byte sequence")).expect("base64");
        assert!(keys().key(KEYID).expect("the key").verifies(&signature, base.as_bytes()), "{base}");
        assert!(!keys().key(KEYID).expect("the key").verifies(&signature, format!("{base} ").as_bytes()));
    }
}
