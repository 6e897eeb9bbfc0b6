//! Tests of the stored results of checking signatures, and of the limit for failing checks.

use std::cell::RefCell;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::Value;

use super::super::signature_results::SignatureResults;
use super::*;
use crate::agent::Refutation::{BadSignature, CreatedInFuture, Expired};
use crate::agent::{Refutation, UndecidedReason};
use crate::identity::{DirectoryUrl, KeySet, MessageHead, RequiredComponent, SignatureCandidate, SignatureCheck};

const CREATED: u64 = 1_735_689_600;
const EXPIRES: u64 = CREATED + 120;
const PLAIN: &str = r#""@authority" "signature-agent";key="sig1""#;

const BUSY: MethodOutcome = MethodOutcome::Undecided(UndecidedReason::Busy);
const VERIFIED: MethodOutcome = MethodOutcome::Verified;

fn failed(refutation: Refutation) -> MethodOutcome {
    MethodOutcome::Failed(refutation)
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

type FoundKeys = Result<Arc<KeySet>, UndecidedReason>;

/// A signer, and the verifier's copy of its key directory.
struct Signer {
    pair: Ed25519KeyPair,
    keyid: String,
    keys: RefCell<FoundKeys>,
    results: SignatureResults,
}

/// A request to `https://example.com/path?x=1`.
#[derive(Clone)]
struct Request {
    method: &'static str,
    authority: &'static str,
    target: &'static str,
    fields: Vec<(&'static str, String)>,
}

type Change = fn(Request) -> Request;

impl Signer {
    fn new() -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a key");
        let x = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
        let jwk = format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{x}"}}"#);
        let keys = KeySet::parse(jwk.as_bytes()).expect("a key");
        let keyid = keys.thumbprints().next().expect("a key").to_owned();
        let keys = RefCell::new(Ok(Arc::new(keys)));
        Self { pair, keyid, keys, results: SignatureResults::requiring(Vec::new()) }
    }

    /// Signs a request; `nonce` makes it unique.
    fn sign(&self, covered: &str, nonce: u32) -> Request {
        let parameters =
            format!(r#"created={CREATED};expires={EXPIRES};keyid="{}";nonce="{nonce}";tag="web-bot-auth""#, self.keyid);
        let fields = vec![
            ("signature-agent", r#"sig1="https://signer.example""#.to_owned()),
            ("signature-input", format!("sig1=({covered});{parameters}")),
            ("signature", "sig1=:AAAA:".to_owned()),
            ("x", "one".to_owned()),
            ("x", " two".to_owned()),
        ];
        let mut request = Request { method: "GET", authority: "example.com", target: "/path?x=1", fields };
        let base = request.with_message(|message| {
            let candidate = SignatureCandidate::all(message, at(CREATED)).remove(0);
            candidate.expect("a signature").base
        });
        let signature = STANDARD.encode(self.pair.sign(base.as_bytes()));
        request.fields[2].1 = format!("sig1=:{signature}:");
        request
    }

    fn checks(&self, request: &Request, from: Option<&str>, now: SystemTime) -> Option<Arc<[SignatureCheck]>> {
        let keys = |_: &DirectoryUrl, _: &str| self.keys.borrow().clone();
        request.with_message(|message| self.results.check(message, from.map(public), now, keys))
    }

    fn check(&self, request: &Request, from: &str, now: u64) -> MethodOutcome {
        let checks = self.checks(request, Some(from), at(now)).expect("signed");
        assert_eq!(checks.len(), 1);
        checks[0].outcome
    }

    /// Sends invalid signatures from an address until the limit for this second is reached.
    fn exhaust(&self, address: &str, now: u64) {
        for nonce in 1_000.. {
            match self.check(&self.sign(PLAIN, nonce).altered(), address, now) {
                BUSY => return,
                outcome => assert_eq!(outcome, failed(BadSignature)),
            }
        }
    }
}

impl Request {
    fn with_message<R>(&self, run: impl FnOnce(&MessageHead<'_>) -> R) -> R {
        let fields = self.fields.as_slice();
        run(&MessageHead::new(self.method, "https", Some(self.authority), self.target, &fields))
    }

    /// Replaces the signature by an invalid one.
    fn altered(mut self) -> Self {
        self.fields[2].1 = format!("sig1=:{}:", STANDARD.encode([1; 64]));
        self
    }

    fn line(mut self, at: usize, value: &str) -> Self {
        self.fields[at].1 = value.to_owned();
        self
    }
}

#[test]
fn a_valid_signature_is_checked_once() {
    let signer = Signer::new();
    let request = signer.sign(PLAIN, 1);
    assert_eq!(signer.check(&request, "8.8.8.8", CREATED), VERIFIED);
    assert_eq!(signer.results.known(), 1);
    signer.exhaust("8.8.8.8", CREATED);
    // No more signatures are checked in this second, so the result comes from the store. The result
    // also applies to other paths, because the signature does not cover the path.
    assert_eq!(signer.check(&request, "8.8.8.8", CREATED), VERIFIED);
    assert_eq!(signer.check(&Request { target: "/other", ..request }, "8.8.8.8", CREATED), VERIFIED);
    assert_eq!(signer.check(&signer.sign(PLAIN, 2), "8.8.8.8", CREATED), BUSY);
    assert_eq!(signer.check(&signer.sign(PLAIN, 2), "8.8.8.8", CREATED + 1), VERIFIED);
}

#[test]
fn a_stored_result_is_used_only_while_the_signature_is_valid() {
    let signer = Signer::new();
    let request = signer.sign(PLAIN, 1);
    for (now, outcome) in [
        (CREATED, VERIFIED),
        (EXPIRES + 60, VERIFIED),
        (EXPIRES + 61, failed(Expired)),
        (CREATED - 60, VERIFIED),
        (CREATED - 61, failed(CreatedInFuture)),
        (CREATED, VERIFIED),
    ] {
        assert_eq!(signer.check(&request, "8.8.8.8", now), outcome, "{now}");
    }
    // The expiry is exact to the nanosecond.
    let checks = signer.checks(&request, None, at(EXPIRES + 61) - Duration::from_nanos(1));
    assert_eq!(checks.expect("signed")[0].outcome, VERIFIED);
}

#[test]
fn a_signature_replayed_for_another_request_does_not_get_the_stored_result() {
    let all = r#""@authority" "@method" "@scheme" "@target-uri" "@request-target" "@path" "@query" "x" "signature-agent";key="sig1""#;
    let cases: [(&str, &[Change]); 5] = [
        (PLAIN, &[|request| Request { authority: "other.example", ..request }]),
        (
            all,
            &[
                |request| Request { authority: "other.example", ..request },
                |request| Request { method: "POST", ..request },
                |request| Request { target: "/other?x=1", ..request },
                |request| Request { target: "/path?x=2", ..request },
                |request| Request { target: "/path", ..request },
                |request| request.line(4, "three"),
                |request| request.line(3, "one, one"),
            ],
        ),
        (
            r#""@authority" "@path" "signature-agent";key="sig1""#,
            &[|request| Request { target: "/other?x=1", ..request }],
        ),
        (r#""@target-uri" "signature-agent""#, &[|request| Request { target: "/path?x=1&y", ..request }]),
        (r#""@authority" "x" "signature-agent""#, &[|request| request.line(3, "")]),
    ];
    for (covered, others) in cases {
        let signer = Signer::new();
        let request = signer.sign(covered, 1);
        assert_eq!(signer.check(&request, "8.8.8.8", CREATED), VERIFIED, "{covered}");
        for (number, other) in others.iter().enumerate() {
            let other = other(request.clone());
            for _ in 0..2 {
                assert_eq!(signer.check(&other, "9.9.9.9", CREATED + number as u64), failed(BadSignature), "{covered}");
                assert_eq!(signer.check(&request, "9.9.9.9", CREATED), VERIFIED);
            }
        }
        // The failed replay has not displaced the stored result.
        signer.exhaust("8.8.8.8", CREATED);
        assert_eq!(signer.check(&request, "8.8.8.8", CREATED), VERIFIED, "{covered}");
        let moved = Request { fields: request.fields.iter().rev().cloned().collect(), ..request.clone() };
        let is_same = !covered.contains("\"x\"");
        assert_eq!(signer.check(&moved, "8.8.8.8", CREATED) == VERIFIED, is_same, "{covered}");
        let joined = request.clone().line(3, "one, two");
        let joined = Request { fields: joined.fields[..4].to_vec(), ..joined };
        assert_eq!(signer.check(&joined, "8.8.8.8", CREATED), VERIFIED, "the same value in one line");
    }
}

#[test]
fn a_stored_result_is_not_used_after_its_key_is_gone() {
    let signer = Signer::new();
    let (valid, invalid) = (signer.sign(PLAIN, 1), signer.sign(PLAIN, 2).altered());
    let check = || (signer.check(&valid, "8.8.8.8", CREATED), signer.check(&invalid, "8.8.8.8", CREATED));
    let all = (VERIFIED, failed(BadSignature));
    assert_eq!((check(), check()), (all, all));
    let keys = signer.keys.replace(Ok(Arc::default()));
    let unknown = MethodOutcome::Undecided(UndecidedReason::KeyUnknownThere);
    assert_eq!(check(), (unknown, unknown), "the key was evicted");
    *signer.keys.borrow_mut() = Err(UndecidedReason::DirectoryUnavailable);
    let unavailable = MethodOutcome::Undecided(UndecidedReason::DirectoryUnavailable);
    assert_eq!(check(), (unavailable, unavailable));
    *signer.keys.borrow_mut() = Err(UndecidedReason::DirectoryNotConfigured);
    let gone = MethodOutcome::Undecided(UndecidedReason::DirectoryNotConfigured);
    assert_eq!(check(), (gone, gone), "the registry names the directory no more");
    // The directory is fetched again, with the same key.
    *signer.keys.borrow_mut() = Ok(Arc::new(KeySet::clone(&keys.expect("keys"))));
    assert_eq!((check(), check()), (all, all));
}

#[test]
fn a_signature_must_cover_only_the_required_components() {
    const LACKING: MethodOutcome = MethodOutcome::Undecided(UndecidedReason::ComponentNotCovered);
    let mut signer = Signer::new();
    let replayed = Request { method: "POST", target: "/private/?y", ..signer.sign(PLAIN, 1) };
    assert_eq!(signer.check(&replayed, "8.8.8.8", CREATED), VERIFIED);
    for (required, covered, outcome) in [
        (&["@path"][..], r#""@authority""#, LACKING),
        (&["@path"], r#""@authority" "@path""#, VERIFIED),
        (&["@path"], r#""@target-uri""#, VERIFIED),
        (&["@path", "@query"], r#""@authority" "@request-target""#, VERIFIED),
        (&["@path", "@query"], r#""@authority" "@path""#, LACKING),
        (&["@authority", "@scheme"], r#""@target-uri""#, VERIFIED),
        (&["@target-uri"], r#""@authority" "@scheme" "@path" "@query""#, LACKING),
        (&["@request-target"], r#""@target-uri""#, LACKING),
        (&["@method"], r#""@target-uri" "@request-target""#, LACKING),
        (&["@method", "x"], r#""@authority" "@method" "x""#, VERIFIED),
        (&["x"], r#""@authority""#, LACKING),
        (&["signature-agent"], r#""@authority""#, VERIFIED),
    ] {
        let components = required.iter().map(|text| text.parse().expect("a component"));
        signer.results = SignatureResults::requiring(components.collect());
        let request = signer.sign(&format!(r#"{covered} "signature-agent";key="sig1""#), 1);
        for _ in 0..2 {
            assert_eq!(signer.check(&request, "8.8.8.8", CREATED), outcome, "{required:?} {covered}");
        }
        // A signature without the required components is not checked, so it does not count towards
        // the limit.
        assert_eq!(signer.check(&request.altered(), "8.8.8.8", CREATED) == LACKING, outcome == LACKING);
    }
    for text in ["", "path", "@status", "@query-param", "@signature-params", "\"@path\"", "X", "@PATH", "a b"] {
        assert!(text.parse::<RequiredComponent>().is_err(), "{text}");
    }
}

#[test]
fn a_sender_is_limited_to_ten_failing_signature_checks_per_second() {
    let signer = Signer::new();
    let mut outcomes = Vec::new();
    for nonce in 0..30 {
        outcomes.push(signer.check(&signer.sign(PLAIN, nonce).altered(), "8.8.8.8", CREATED));
    }
    assert!(outcomes[..10].iter().all(|outcome| *outcome == failed(BadSignature)), "{outcomes:?}");
    assert!(outcomes[10..].iter().all(|outcome| *outcome == BUSY), "{outcomes:?}");
    // The results of the first ten signatures are kept.
    for nonce in 0..10 {
        let outcome = signer.check(&signer.sign(PLAIN, nonce).altered(), "8.8.8.8", CREATED);
        assert_eq!(outcome, failed(BadSignature));
    }
    // Some signatures need no check. They have their usual result even if the limit is reached.
    let expired = signer.sign(PLAIN, 99).altered();
    assert_eq!(signer.check(&expired, "8.8.8.8", CREATED), BUSY);
    let other_key = expired.fields[1].1.replace(&signer.keyid, "other");
    let unknown = MethodOutcome::Undecided(UndecidedReason::KeyUnknownThere);
    assert_eq!(signer.check(&expired.clone().line(1, &other_key), "8.8.8.8", CREATED), unknown);
    // The limit does not apply to another address, to another IPv6 network, or in the next second.
    let new = |nonce| signer.sign(PLAIN, nonce).altered();
    assert_eq!(signer.check(&new(100), "8.8.8.9", CREATED), failed(BadSignature));
    assert_eq!(signer.check(&new(101), "8.8.8.8", CREATED + 1), failed(BadSignature));
    signer.exhaust("2600:0:0:1::1", CREATED);
    assert_eq!(signer.check(&new(102), "2600:0:0:1::2", CREATED), BUSY);
    assert_eq!(signer.check(&new(103), "2600:0:0:2::1", CREATED), failed(BadSignature));
    // All requests whose address does not identify the client are counted as one client.
    let outcomes = (200..230).map(|nonce| signer.checks(&new(nonce), None, at(CREATED)).expect("signed")[0].outcome);
    assert_eq!(outcomes.filter(|outcome| *outcome == BUSY).count(), 20);
}

#[test]
fn the_number_and_the_size_of_stored_signature_results_are_limited() {
    let signer = Signer::new();
    let valid = signer.sign(PLAIN, 1);
    for number in 0..3_000_u32 {
        // The signature is the same, but the field also contains another signature.
        let input = format!("{}, other=();nonce=\"{number}\"", valid.fields[1].1);
        assert_eq!(signer.check(&valid.clone().line(1, &input), "8.8.8.8", CREATED), VERIFIED);
        let from = std::net::Ipv4Addr::from(0x0B00_0000 + number).to_string();
        let other = Request { authority: "other.example", ..valid.clone().line(1, &input) };
        assert_eq!(signer.check(&other, &from, CREATED), failed(BadSignature));
        assert!(signer.results.known() <= 5_120);
    }
    assert!(signer.results.known() > 2_048);
    // Results for longer fields are not stored.
    let known = signer.results.known();
    let long = valid.clone().line(1, &format!("{}, other=();nonce=\"{}\"", valid.fields[1].1, "x".repeat(4_096)));
    for _ in 0..2 {
        assert_eq!(signer.check(&long, "8.8.8.8", CREATED), VERIFIED);
    }
    assert_eq!(signer.results.known(), known);
}

/// Checks every case of the shared test set several times with the same cache.
#[test]
fn stored_results_equal_a_fresh_check_for_every_signed_test_case() {
    let cases: Value = serde_json::from_str(include_str!("../../../../tests/cases/web_bot_auth.json")).expect("JSON");
    let refused = KeySet::parse(cases["key"].to_string().as_bytes()).expect("a key");
    let mut key = refused.clone();
    key.accepts_test_key = true;
    let (key, refused) = (Arc::new(key), Arc::new(refused));
    let empty = Arc::new(KeySet::default());
    let only_at = |known: &str, url: &DirectoryUrl, key: &Arc<KeySet>| {
        let is_there = *url == DirectoryUrl::parse(known).expect(known);
        Ok(if is_there { key } else { &empty }.clone())
    };
    let keys = |situation: &str, url: &DirectoryUrl| match situation {
        "known-at-jwks" => only_at("https://signature-agent.test/jwks.json", url, &key),
        "known-at-agent.bot.goog" => only_at("https://agent.bot.goog", url, &key),
        "empty" => Ok(empty.clone()),
        "unreachable" => Err(UndecidedReason::DirectoryUnavailable),
        "not-configured" => Err(UndecidedReason::DirectoryNotConfigured),
        "known, production mode" => only_at("https://signature-agent.test", url, &refused),
        _ => only_at("https://signature-agent.test", url, &key),
    };
    let results = SignatureResults::requiring(Vec::new());
    let vectors = cases["vectors"].as_array().expect("vectors");
    // Each case runs twice in a row. Then all cases run in reverse order, and once more in order.
    let mut seen_verified = 0;
    for case in vectors.iter().flat_map(|case| [case, case]).chain(vectors.iter().rev()).chain(vectors) {
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let fields: Vec<(String, String)> = case["request"]["headers"]
            .as_array()
            .expect("headers")
            .iter()
            .map(|header| (text(&header[0]), text(&header[1])))
            .collect();
        let fields = fields.as_slice();
        let request = &case["request"];
        let (method, scheme) = (text(&request["method"]), text(&request["scheme"]));
        let (authority, target) = (text(&request["authority"]), text(&request["target"]));
        let message = MessageHead::new(&method, &scheme, Some(&authority), &target, &fields);
        let situation = text(&case["directory"]);
        let now = at(case["now"].as_u64().expect("seconds"));
        let find = |url: &DirectoryUrl, _: &str| keys(&situation, url);
        let found = results.check(&message, None, now, find);
        assert_eq!(found, SignatureCheck::all(&message, now, find), "{}", case["id"]);
        seen_verified += usize::from(found.iter().flat_map(|checks| &**checks).any(|check| check.outcome == VERIFIED));
    }
    assert!(seen_verified > 4 && results.known() > 2, "{seen_verified}, {}", results.known());
}
