//! Stores the results of checking signatures until they expire, and limits the rate of failing
//! checks.

use std::hash::BuildHasher;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::SystemTime;

use foldhash::fast::RandomState;

use robots_core::internals::KeptChecks;

use super::claimants::Generations;
use super::verified_claims::second;
use crate::agent::{Network, Refutation, UndecidedReason};
use crate::identity::{
    DirectoryUrl, KeySet, MessageHead, MethodOutcome, PublicAddress, RequiredComponent, SignatureCheck,
};

/// Maximum number of stored results for valid signatures. The results are looked up by the
/// signature fields of a request. A stored result usually takes about 1 KiB, and at most about 10
/// KiB.
const MAX_VALID: usize = 4_096;

/// Maximum number of stored results for failed signatures. The results are looked up by the
/// signature fields and the target of a request.
const MAX_FAILED: usize = 1_024;

/// Maximum number of failing signature checks per client and second. When a client has reached this
/// number, its further checks in this second are skipped.
const MAX_PER_SECOND: u32 = 10;

/// Maximum number of clients whose failing checks are counted.
const MAX_ADDRESSES: usize = 16_384;

/// The results of checking signatures. One check takes about 50 µs.
///
/// A stored result is used for a request with the same lines of `Signature`, `Signature-Input` and
/// `Signature-Agent`, and with the same values for all covered components. The result is used as
/// long as the signature is valid and the keys in the signer's directory do not change. If a
/// signature is replayed for a request with another value of a covered component, such as another
/// site, the stored result is not used.
#[derive(Debug)]
pub(super) struct SignatureResults {
    /// The components that a signature must cover in order to verify who sent the request.
    required: Vec<RequiredComponent>,
    valid: Generations<u64, Arc<KeptChecks>>,
    failed: Generations<u64, Arc<KeptChecks>>,
    /// Number of failed checks in the current second, for each IPv4 address and each IPv6 /64. All
    /// requests whose address does not identify a client count as requests of one client.
    failing: Generations<IpAddr, (u64, u32)>,
    hasher: RandomState,
}

impl SignatureResults {
    pub(super) fn requiring(required: Vec<RequiredComponent>) -> Self {
        Self {
            required,
            valid: Generations::new(MAX_VALID),
            failed: Generations::new(MAX_FAILED),
            failing: Generations::new(MAX_ADDRESSES),
            hasher: RandomState::default(),
        }
    }

    pub(super) fn check(
        &self,
        message: &MessageHead<'_>,
        address: Option<PublicAddress>,
        now: SystemTime,
        keys: impl Fn(&DirectoryUrl, &str) -> Result<Arc<KeySet>, UndecidedReason>,
    ) -> Option<Arc<[SignatureCheck]>> {
        let lines = KeptChecks::lines(message)?;
        let find = |kept: &Generations<u64, Arc<KeptChecks>>, key: u64| {
            kept.get(&key)?.of_request(&lines, message, now, &keys)
        };
        let key = self.hasher.hash_one(&lines);
        if let Some(checks) = find(&self.valid, key) {
            return Some(checks);
        }
        // If a client sends a valid signature again for another target, the check fails. The key of
        // the failed result contains the target, so the failed result does not replace the result
        // of the valid signature.
        let key_for_target = KeptChecks::key_for_target(&lines, message, &self.hasher);
        if let Some(checks) = find(&self.failed, key_for_target) {
            return Some(checks);
        }
        let client =
            address.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |address| Network::around(address.get(), 32, 64).first());
        let is_busy = || self.failed(client, now) >= MAX_PER_SECOND;
        let (checks, kept) = KeptChecks::check(lines, message, now, &self.required, &keys, is_busy);
        let failed = MethodOutcome::Failed(Refutation::BadSignature);
        let failures = checks.iter().flat_map(|checks| &**checks).filter(|check| check.outcome == failed).count();
        if failures > 0 {
            let failed = self.failed(client, now).saturating_add(u32::try_from(failures).unwrap_or(u32::MAX));
            self.failing.insert(client, (second(now), failed));
        }
        let (kept_in, key) = if failures == 0 { (&self.valid, key) } else { (&self.failed, key_for_target) };
        if let Some(kept) = kept {
            kept_in.insert(key, Arc::new(kept));
        }
        checks
    }

    /// Returns how many checks of a client have failed in this second.
    fn failed(&self, client: IpAddr, now: SystemTime) -> u32 {
        let counted = self.failing.get(&client).filter(|(counted, _)| *counted == second(now));
        counted.map_or(0, |(_, failed)| failed)
    }

    pub(super) fn known(&self) -> usize {
        self.valid.len() + self.failed.len()
    }
}
