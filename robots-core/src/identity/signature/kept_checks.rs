//! Cached results of checking the signatures of a request, for later requests with the same
//! signatures.

use std::hash::BuildHasher;
use std::ptr;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use super::check::{FoundKeys, SignatureCandidate, SignatureCheck};
use super::components::{CoveredValues, RequiredComponent, SIGNATURE_FIELDS};
use super::directory_url::DirectoryUrl;
use super::key_set::KeySet;
use super::message_head::MessageHead;
use super::parameters::ValidityWindow;
use crate::agent::{Refutation, UndecidedReason};
use crate::identity::MethodOutcome;

/// Maximum total size of a request's signature fields, in bytes. If the fields are larger, the
/// results are not cached. Real signers send about 500 bytes.
const MAX_BYTES: usize = 4 * 1024;

/// The results of checking a request's signatures, and all values that the results depend on.
#[derive(Debug)]
pub struct KeptChecks {
    lines: Vec<u8>,
    signatures: Vec<KeptSignature>,
    checks: Arc<[SignatureCheck]>,
}

#[derive(Debug)]
struct KeptSignature {
    covered: CoveredValues,
    window: ValidityWindow,
    directory: DirectoryUrl,
    keyid: String,
    /// The key set that was used to check the signature. The next fetch of the directory replaces
    /// the key set, so the cached result is then no longer used.
    keys: Weak<KeySet>,
}

impl KeptChecks {
    /// Returns the lines of the signature fields of a request, as received; `None` if the request
    /// has no `Signature-Input` and is therefore not signed.
    pub fn lines(message: &MessageHead<'_>) -> Option<Vec<u8>> {
        const END: [u8; 2] = u16::MAX.to_le_bytes();
        let mut bytes = Vec::new();
        for name in SIGNATURE_FIELDS {
            message.for_each_line(name, &mut |line| {
                // If a line is longer than `MAX_BYTES`, the results are not cached, so the rest of
                // the line need not be copied.
                let line = &line[..line.len().min(MAX_BYTES)];
                if bytes.len() <= MAX_BYTES {
                    if bytes.is_empty() {
                        bytes.reserve(1024);
                    }
                    bytes.extend_from_slice(&(line.len() as u16).to_le_bytes());
                    bytes.extend_from_slice(line);
                }
            });
            if bytes.is_empty() {
                return None;
            }
            bytes.extend_from_slice(&END);
        }
        Some(bytes)
    }

    /// Returns the cache key of a request. Requests have the same key if their signature fields
    /// (`lines`), method, scheme, authority and target are equal.
    pub fn key_for_target(lines: &[u8], message: &MessageHead<'_>, hasher: &impl BuildHasher) -> u64 {
        let target = (message.method, message.scheme, message.authority, message.target);
        hasher.hash_one((lines, target))
    }

    /// Checks the signatures of a request. A signature that does not cover all `required`
    /// components is left undecided. Returns the results, and an entry for the cache. Both are
    /// `None` if the request is not signed. The entry is also `None` if the signature fields are
    /// too long, or if the results depend on more than the request and the loaded keys.
    pub fn check(
        lines: Vec<u8>,
        message: &MessageHead<'_>,
        now: SystemTime,
        required: &[RequiredComponent],
        keys: impl Fn(&DirectoryUrl, &str) -> FoundKeys,
        is_busy: impl Fn() -> bool,
    ) -> (Option<Arc<[SignatureCheck]>>, Option<Self>) {
        let mut signatures = Vec::new();
        let candidates = SignatureCandidate::all(message, now);
        if candidates.is_empty() {
            return (None, None);
        }
        let mut check = |candidate: SignatureCandidate| {
            let keys = if required.iter().all(|component| candidate.covers(component)) {
                keys(&candidate.directory, &candidate.keyid)
            } else {
                Err(UndecidedReason::ComponentNotCovered)
            };
            let check = candidate.check(&keys, &is_busy);
            let is_final =
                matches!(check.outcome, MethodOutcome::Verified | MethodOutcome::Failed(Refutation::BadSignature));
            if let (Ok(keys), true) = (&keys, is_final) {
                signatures.extend(KeptSignature::of(&candidate, keys));
            }
            check
        };
        let checks =
            candidates.into_iter().map(|candidate| candidate.map_or_else(SignatureCheck::of_request, &mut check));
        let checks: Arc<[SignatureCheck]> = checks.collect();
        let is_whole = signatures.len() == checks.len();
        let kept = (is_whole && lines.len() <= MAX_BYTES).then(|| Self { lines, signatures, checks: checks.clone() });
        (Some(checks), kept)
    }

    /// Returns the cached results if they apply to `message` at the time `now`. The results apply
    /// if `message` has the cached signatures and covered values, the signatures are still valid,
    /// and the keys that were used are still loaded.
    pub fn of_request(
        &self,
        lines: &[u8],
        message: &MessageHead<'_>,
        now: SystemTime,
        keys: impl Fn(&DirectoryUrl, &str) -> FoundKeys,
    ) -> Option<Arc<[SignatureCheck]>> {
        let holds = |kept: &KeptSignature| {
            kept.window.check(now).is_ok()
                && kept.covered.match_request(message)
                && keys(&kept.directory, &kept.keyid).is_ok_and(|keys| ptr::eq(&*keys, kept.keys.as_ptr()))
        };
        (self.lines == lines && self.signatures.iter().all(holds)).then(|| self.checks.clone())
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
