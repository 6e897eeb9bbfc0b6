//! Tests of key directories that are fetched over HTTPS.

use super::played_http::{PlayedHttp, answer};
use super::played_signer::{KEY, THUMBPRINT, keys, signed};
use super::*;
use crate::agent::{Identity, IdentityMethod, Refutation, UndecidedReason};
use crate::identity::{DirectoryUrl, IdentityRequest, MessageHead};
use crate::source::fetch::Fetcher;
use crate::source::follow::DocumentStatus;

/// The key of RFC 9421, and its thumbprint.
const OTHER_KEY: &str = "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs";
const OTHER_THUMBPRINT: &str = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";

struct Followed {
    server: PlayedHttp,
    clock: TestClock,
    directory: DirectoryUrl,
    verifier: Verifier,
}

impl Followed {
    fn start(answer: impl Into<Vec<u8>>) -> Self {
        let (server, pem) = PlayedHttp::start_tls(answer);
        let fetcher = Fetcher::builder().trust_only(pem.as_bytes()).expect("a certificate").start().expect("a thread");
        let clock = TestClock::new();
        let registry = registry(|row| Crawler { signature: Some(server.url.clone()), ..row });
        let builder = Verifier::builder(&registry).clock(clock.read()).without_names().fetcher(&fetcher);
        let verifier = builder.start().expect("a verifier");
        let directory = DirectoryUrl::parse(&server.url).expect("a directory");
        Self { server, clock, directory, verifier }
    }

    /// Reports whether the directory contains the key; `None` if there are no keys.
    fn has(&self, thumbprint: &str) -> Option<bool> {
        match self.verifier.keys(&self.directory, thumbprint, self.clock.now()) {
            Ok(keys) => Some(keys.thumbprints().any(|found| found == thumbprint)),
            Err(UndecidedReason::DirectoryUnavailable) => None,
            Err(reason) => panic!("the row names it: {reason}"),
        }
    }

    /// Returns the identity of a request that is signed with the first key. The request names no
    /// crawler.
    fn identity(&self, fields: &[(&str, String)]) -> Identity {
        self.identity_at("example.com", fields)
    }

    fn identity_at(&self, authority: &str, fields: &[(&str, String)]) -> Identity {
        let message = MessageHead::new("GET", "https", Some(authority), "/", &fields);
        let signers = self.verifier.signers();
        let request = IdentityRequest::new(&[], None).signed(&message, &signers);
        let path = ClaimPath { site: "example.com", listener: "0.0.0.0:443" };
        self.verifier.identify(&request, path, self.clock.now()).identity
    }

    fn signed(&self) -> Vec<(&'static str, String)> {
        signed(&self.server.url, self.clock.now())
    }

    fn status(&self) -> DocumentStatus {
        self.verifier.status().directories.remove(0)
    }
}

#[test]
fn keys_are_fetched_only_when_a_request_needs_them() {
    let followed = Followed::start(keys(&[KEY]));
    assert_eq!(followed.status().entries, None);
    assert_eq!(followed.has(THUMBPRINT), None, "nothing was fetched before it was needed");
    assert!(until("keys", || followed.has(THUMBPRINT)));
    let head = &followed.server.heads()[0];
    assert!(head.starts_with("GET /.well-known/http-message-signatures-directory HTTP/1.1\r\n"), "{head}");
    let elsewhere = DirectoryUrl::parse("https://elsewhere.example").expect("a directory");
    let asked = followed.verifier.keys(&elsewhere, THUMBPRINT, followed.clock.now());
    assert!(matches!(asked, Err(UndecidedReason::DirectoryNotConfigured)));
}

#[test]
fn a_new_key_is_found_after_five_minutes_and_a_removed_key_is_forgotten() {
    let followed = Followed::start(keys(&[KEY]));
    until("keys", || followed.has(THUMBPRINT));
    followed.server.answers(keys(&[OTHER_KEY]));
    assert_eq!(followed.has(OTHER_THUMBPRINT), Some(false));
    followed.clock.pass(Duration::from_secs(299));
    assert_eq!((followed.has(OTHER_THUMBPRINT), followed.server.heads().len()), (Some(false), 1));
    followed.clock.pass(Duration::from_secs(301));
    assert!(until("the new key", || { followed.has(OTHER_THUMBPRINT).filter(|found| *found) }));
    assert_eq!(followed.has(THUMBPRINT), Some(false));
}

#[test]
fn a_directory_that_fails_keeps_its_keys() {
    for wrong in [
        answer("503 Oh", "", ""),
        answer("302 Found", "Location: https://elsewhere.example/\r\n", ""),
        answer("200 OK", "", "no keys"),
        answer("200 OK", "", &" ".repeat(70 << 10)),
    ] {
        let followed = Followed::start(keys(&[KEY]));
        until("keys", || followed.has(THUMBPRINT));
        followed.server.answers(wrong.clone());
        followed.clock.pass(Duration::from_secs(601));
        assert_eq!(followed.has(THUMBPRINT), Some(true));
        until("problem", || followed.status().problem);
        assert_eq!(followed.has(THUMBPRINT), Some(true), "{wrong}");
    }
    let followed = Followed::start(answer("503 Oh", "", ""));
    assert_eq!(followed.has(THUMBPRINT), None);
    until("problem", || followed.status().problem);
    assert_eq!(followed.has(THUMBPRINT), None);
}

#[test]
fn a_stored_verified_signature_ends_when_its_key_leaves_the_directory() {
    let followed = Followed::start(keys(&[KEY]));
    let signed = followed.signed();
    let unavailable = Identity::Undecided(UndecidedReason::DirectoryUnavailable);
    assert_eq!(followed.identity(&signed), unavailable, "it is asked for keys that are not there yet");
    until("the signature", || {
        (followed.identity(&signed) == Identity::Verified(IdentityMethod::Signature)).then_some(())
    });
    assert_eq!(followed.verifier.status().known_signatures, 1);
    assert_eq!(followed.server.heads().len(), 1);
    // Even if a stored result is used, a stale directory is fetched again.
    followed.server.answers(keys(&[OTHER_KEY]));
    followed.clock.pass(Duration::from_secs(601));
    until("the end of the key", || {
        let identity = followed.identity(&signed);
        (identity == Identity::Undecided(UndecidedReason::KeyUnknownThere)).then_some(())
    });
}

#[test]
fn a_signature_for_another_host_is_refuted_only_after_a_valid_one_on_the_same_path() {
    let followed = Followed::start(keys(&[KEY]));
    let signed = followed.signed();
    let is = |authority, meant: Identity| {
        until("an identity", || (followed.identity_at(authority, &signed) == meant).then_some(()));
    };
    let suspect = Identity::Undecided(UndecidedReason::SuspectPath);
    is("inner.example", suspect);
    for _ in 0..50 {
        assert_eq!(followed.identity_at("inner.example", &signed), suspect);
    }
    let suspects = followed.verifier.status().suspects;
    assert_eq!((suspects.len(), suspects[0].method), (1, IdentityMethod::Signature));
    assert_eq!(suspects[0].crawler, "", "the requests name no crawler");
    // A valid signature is now seen on this path. So invalid signatures are from impostors.
    is("example.com", Identity::Verified(IdentityMethod::Signature));
    is("inner.example", Identity::Refuted(Refutation::BadSignature));
    assert_eq!(followed.verifier.status().suspects, []);
    // With a wrong clock, every signature has expired or is not valid yet.
    for is_ahead in [true, false] {
        if is_ahead {
            followed.clock.pass(48 * HOUR)
        } else {
            followed.clock.go_back(96 * HOUR)
        }
        assert_eq!(followed.identity_at("example.com", &signed), suspect);
    }
}
