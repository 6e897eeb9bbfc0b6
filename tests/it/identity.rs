//! Tests the outcomes of the signed requests in `tests/cases/web_bot_auth.json`, through the public
//! API.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tower_robots::agent::{Crawler, Identity, IdentityMethod, Refutation, UndecidedReason};
use tower_robots::identity::{
    ClaimEvidence, DirectoryUrl, IdentityRequest, KeySet, MessageHead, MethodOutcome, PublicAddress,
    SignatureCandidate, Signers,
};

const CASES: &str = include_str!("../cases/web_bot_auth.json");

fn cases() -> Value {
    serde_json::from_str(CASES).expect("JSON")
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_else(|| panic!("{key}: {value}"))
}

fn headers(case: &Value) -> Vec<(&str, &str)> {
    let headers = case["request"]["headers"].as_array().expect("headers");
    headers.iter().map(|header| (header[0].as_str().expect("a name"), header[1].as_str().expect("a value"))).collect()
}

fn now(case: &Value) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(case["now"].as_u64().expect("seconds"))
}

fn keys(situation: &str, key: &Value, url: &DirectoryUrl) -> Result<Arc<KeySet>, UndecidedReason> {
    let mut key = KeySet::parse(key.to_string().as_bytes()).expect("a key");
    key.accepts_test_key = !situation.contains("production");
    let only_at = |known: &str| {
        let is_there = *url == DirectoryUrl::parse(known).expect(known);
        Ok(if is_there { key.clone() } else { KeySet::default() }.into())
    };
    match situation {
        "known" | "known, production mode" => only_at("https://signature-agent.test"),
        "known-at-jwks" => only_at("https://signature-agent.test/jwks.json"),
        "known-at-agent.bot.goog" => only_at("https://agent.bot.goog"),
        "empty" => Ok(KeySet::default().into()),
        "unreachable" => Err(UndecidedReason::DirectoryUnavailable),
        "not-configured" => Err(UndecidedReason::DirectoryNotConfigured),
        other => panic!("{other}"),
    }
}

fn with_message<R>(case: &Value, run: impl FnOnce(&MessageHead<'_>) -> R) -> R {
    let (request, headers) = (&case["request"], headers(case));
    let fields = headers.as_slice();
    let authority = Some(text(request, "authority"));
    run(&MessageHead::new(
        text(request, "method"),
        text(request, "scheme"),
        authority,
        text(request, "target"),
        &fields,
    ))
}

/// The keys that are available in a situation.
struct KeysAtHand<'a> {
    situation: &'a str,
    key: &'a Value,
}

impl ClaimEvidence for KeysAtHand<'_> {
    fn range(&self, _: &Crawler, _: PublicAddress, _: SystemTime) -> Option<MethodOutcome> {
        None
    }

    fn rdns(&self, _: &Crawler, _: PublicAddress, _: SystemTime) -> Option<MethodOutcome> {
        None
    }

    fn keys(&self, directory: &DirectoryUrl, _: &str, _: SystemTime) -> Result<Arc<KeySet>, UndecidedReason> {
        keys(self.situation, self.key, directory)
    }
}

/// Returns the identity based on signatures only.
fn identity(message: &MessageHead<'_>, situation: &str, key: &Value, now: SystemTime) -> Identity {
    let signers = Signers::default();
    IdentityRequest::new(&[], None).signed(message, &signers).identify(&KeysAtHand { situation, key }, now).identity
}

#[test]
fn signed_requests_have_the_outcome_of_their_case() {
    let cases = cases();
    let vectors = cases["vectors"].as_array().expect("vectors");
    assert_eq!(vectors.len(), 33);
    for case in vectors {
        let id = text(case, "id");
        let expected = match (text(case, "outcome"), case["reason"].as_str()) {
            ("verified", None) => Identity::Verified(IdentityMethod::Signature),
            ("invalid", Some(reason)) => {
                Identity::Refuted(reason.parse().unwrap_or_else(|error| panic!("{id}: {error}")))
            }
            ("unverified", Some(reason)) => {
                Identity::Undecided(reason.parse().unwrap_or_else(|error| panic!("{id}: {error}")))
            }
            ("unsigned", Some(_)) => Identity::Unclaimed,
            other => panic!("{id}: {other:?}"),
        };
        let found = with_message(case, |message| identity(message, text(case, "directory"), &cases["key"], now(case)));
        assert_eq!(found, expected, "{id}");
        assert!(
            matches!(found, Identity::Unclaimed | Identity::Undecided(_))
                || found.method() == Some(IdentityMethod::Signature)
        );
    }
}

#[test]
fn the_signature_base_equals_the_base_in_the_case() {
    let cases = cases();
    let mut compared = 0;
    for case in cases["vectors"].as_array().expect("vectors") {
        // In this case, the signature base is that of the signer, who signed a request to another
        // site.
        if text(case, "id") == "other-authority" {
            continue;
        }
        let candidates = with_message(case, |message| SignatureCandidate::all(message, now(case)));
        for candidate in candidates.into_iter().flatten() {
            assert_eq!(candidate.base, text(case, "base"), "{}", text(case, "id"));
            compared += 1;
        }
    }
    assert!(compared >= 16, "{compared}");
}

/// The vectors of the drafts are valid for a hundred years, which a verifier does not accept; the
/// vector of the oldest form is valid for an hour.
#[test]
fn published_vectors_with_a_long_window_are_refused_and_the_short_one_is_valid() {
    let cases = cases();
    let outcomes = cases["published"].as_array().expect("vectors").iter().map(|vector| {
        let fields = [
            ("Signature-Agent", text(vector, "agent")),
            ("Signature-Input", text(vector, "input")),
            ("Signature", text(vector, "signature")),
        ];
        let fields = fields.as_slice();
        let message = MessageHead::new("GET", "https", Some(text(vector, "authority")), "/", &fields);
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_735_689_660);
        identity(&message, "known", &cases["key"], now)
    });
    let long = Identity::Refuted(Refutation::WindowTooLong);
    assert_eq!(outcomes.collect::<Vec<_>>(), [long, long, Identity::Verified(IdentityMethod::Signature)]);
}

/// The copy in the repository equals the shared file, if that file exists next to the project.
#[test]
fn the_cases_equal_the_shared_file() {
    let path = format!("{}/identity/web_bot_auth.json", crate::SHARED);
    let Ok(shared) = std::fs::read_to_string(&path) else {
        assert!(std::env::var_os("CI").is_none(), "{path} is missing, and CI has to run it");
        return;
    };
    assert_eq!(serde_json::from_str::<Value>(&shared).expect("JSON"), cases());
}
