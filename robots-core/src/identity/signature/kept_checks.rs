//! What the signatures of one request said, to be used for requests that bear the same ones.

use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use super::check::{DirectoryKeys, SignatureCandidate, SignatureCheck, SignatureChecks, TestKeys};
use super::components::{CoveredValues, SIGNATURE_FIELDS};
use super::directory_url::DirectoryUrl;
use super::key_set::KeySet;
use super::message_head::MessageHead;
use super::parameters::ValidityWindow;
use crate::agent::Refutation;
use crate::identity::method_outcome::MethodOutcome;

/// Requests with longer signature fields are checked each time. Signers send some 500 octets.
const LONGEST: usize = 4 * 1024;

/// The lines of the signature fields of one request, as received.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SignatureLines(Vec<u8>);

/// The checks of a request, and all that they depend on.
#[derive(Debug)]
pub struct KeptChecks {
    lines: SignatureLines,
    signatures: Vec<KeptSignature>,
    checks: SignatureChecks,
}

#[derive(Debug)]
struct KeptSignature {
    covered: CoveredValues,
    window: ValidityWindow,
    directory: DirectoryUrl,
    keyid: String,
    /// The keys that it was checked with. Others are loaded once the directory was fetched again.
    keys: Weak<KeySet>,
}

impl SignatureLines {
    /// The lines of a request; `None` if it has no `Signature-Input`, and so is not signed.
    pub fn of(message: &MessageHead<'_>) -> Option<Self> {
        const END: [u8; 2] = u16::MAX.to_le_bytes();
        let mut octets = Vec::new();
        for name in SIGNATURE_FIELDS {
            message.for_each_line(name, &mut |line| {
                // What is too long is not copied.
                let line = &line[..line.len().min(LONGEST)];
                if octets.len() <= LONGEST {
                    if octets.is_empty() {
                        octets.reserve(1024);
                    }
                    octets.extend_from_slice(&(line.len() as u16).to_le_bytes());
                    octets.extend_from_slice(line);
                }
            });
            if octets.is_empty() {
                return None;
            }
            octets.extend_from_slice(&END);
        }
        Some(Self(octets))
    }

    /// Whether results are kept by these lines.
    fn are_kept(&self) -> bool {
        self.0.len() <= LONGEST
    }

    /// The key by which checks of requests with these lines are kept.
    pub fn key(&self, hasher: &impl BuildHasher) -> u64 {
        hasher.hash_one(self)
    }

    /// The same, of requests for the same target only.
    pub fn key_for_target(&self, message: &MessageHead<'_>, hasher: &impl BuildHasher) -> u64 {
        let target = (message.method, message.scheme, message.authority, message.target);
        hasher.hash_one((self, target))
    }
}

impl KeptChecks {
    /// Checks the signatures of a request. What depends on nothing but the request and keys that are loaded can be kept.
    pub fn check(
        lines: SignatureLines,
        message: &MessageHead<'_>,
        now: SystemTime,
        test_keys: TestKeys,
        keys: impl Fn(&DirectoryUrl, &str) -> DirectoryKeys,
        is_busy: impl Fn() -> bool,
    ) -> (SignatureChecks, Option<Self>) {
        let mut signatures = Vec::new();
        let candidates = SignatureCandidate::all(message, now);
        let signed = candidates.len();
        let checks: SignatureChecks = candidates
            .into_iter()
            .map(|candidate| {
                let candidate = match candidate {
                    Ok(candidate) => candidate,
                    Err(outcome) => return SignatureCheck::of_request(outcome),
                };
                let keys = keys(&candidate.directory, &candidate.keyid);
                let check = candidate.check_unless(&keys, test_keys, &is_busy);
                let is_final =
                    matches!(check.outcome, MethodOutcome::Verified | MethodOutcome::Failed(Refutation::BadSignature));
                if let (DirectoryKeys::Loaded(keys), true) = (&keys, is_final) {
                    signatures.extend(KeptSignature::of(&candidate, keys));
                }
                check
            })
            .collect();
        let is_whole = signed > 0 && signatures.len() == signed;
        let kept = (is_whole && lines.are_kept()).then(|| Self { lines, signatures, checks: checks.clone() });
        (checks, kept)
    }

    /// The checks, if they are those of another request at this time: it bears the same signatures, has the same values for
    /// what they cover, and finds the same keys.
    pub fn of_request(
        &self,
        lines: &SignatureLines,
        message: &MessageHead<'_>,
        now: SystemTime,
        keys: impl Fn(&DirectoryUrl, &str) -> DirectoryKeys,
    ) -> Option<SignatureChecks> {
        let holds = |kept: &KeptSignature| {
            kept.window.check(now).is_ok()
                && kept.covered.are_those_of(message)
                && match keys(&kept.directory, &kept.keyid) {
                    DirectoryKeys::Loaded(keys) => std::ptr::eq(Arc::as_ptr(&keys), kept.keys.as_ptr()),
                    DirectoryKeys::NotConfigured | DirectoryKeys::Unavailable => false,
                }
        };
        (self.lines == *lines && self.signatures.iter().all(holds)).then(|| self.checks.clone())
    }
}

impl KeptSignature {
    fn of(candidate: &SignatureCandidate, keys: &Arc<KeySet>) -> Option<Self> {
        Some(Self {
            covered: candidate.covered.clone()?,
            window: candidate.window,
            directory: candidate.directory.clone(),
            keyid: candidate.keyid.clone(),
            keys: Arc::downgrade(keys),
        })
    }
}
