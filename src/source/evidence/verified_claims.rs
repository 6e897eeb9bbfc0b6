//! A lock-free cache of clients that were verified within the current minute.

use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::SystemTime;

use foldhash::fast::RandomState;
use robots_core::internals::bits;

use crate::agent::IdentityMethod;

/// Number of entries in the cache, a power of two.
const SLOTS: usize = 2_048;

/// Version number of the current evidence. It changes when new evidence could make a verified claim
/// invalid. Clones share the version number.
#[derive(Clone, Debug, Default)]
pub struct EvidenceVersion(Arc<AtomicU64>);

/// Stores which clients were verified by their address, so that their next requests are not checked
/// again.
///
/// Address, minute and evidence version are compared in full, so a client is never verified because
/// of another client's address. For the claim path and the crawler, a 64-bit hash is sufficient,
/// because clients cannot invent sites, listeners or crawlers. An entry expires at the end of the
/// minute, so that the circuit breakers count each client once per minute, and expired DNS records
/// are looked up again. A change of the evidence makes all entries invalid.
#[derive(Debug)]
pub(super) struct VerifiedClaims {
    slots: Box<[Slot]>,
    /// The hasher has a random seed, so that clients cannot predict which addresses share a slot.
    hasher: RandomState,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ClaimKey {
    /// Hash of the claim path (site and listener) and the crawler.
    path: u64,
    client: u128,
    minute: u64,
    version: u64,
}

/// A verified claim, stored as several words that cannot be written together atomically. The
/// sequence number is odd during a write, and has a new value after the write. A reader compares
/// the sequence number before and after reading, to detect that it has read words of different
/// claims.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Slot {
    sequence: AtomicU64,
    words: [AtomicU64; 5],
}

impl EvidenceVersion {
    /// Returns the current version number. Call this function before you read the evidence.
    pub(super) fn current(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Changes the version number. Call this function after you change the evidence.
    pub(super) fn change(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

impl ClaimKey {
    pub(super) fn new(path: u64, client: IpAddr, now: SystemTime, version: u64) -> Self {
        Self { path, client: bits(client), minute: minute(now), version }
    }

    const fn words(&self, method: IdentityMethod) -> [u64; 5] {
        [self.path, (self.client >> 64) as u64, self.client as u64, self.minute << 2 | method as u64, self.version]
    }
}

impl Default for VerifiedClaims {
    fn default() -> Self {
        Self { slots: std::iter::repeat_with(Slot::default).take(SLOTS).collect(), hasher: RandomState::default() }
    }
}

impl VerifiedClaims {
    pub(super) fn find(&self, key: &ClaimKey) -> Option<IdentityMethod> {
        let found = self.slot(key)?.read()?;
        [IdentityMethod::Range, IdentityMethod::Rdns].into_iter().find(|method| found == key.words(*method))
    }

    /// Stores a claim that was verified by its address. A claim that was verified by a signature is
    /// not stored, because a signature applies only to one request.
    pub(super) fn note(&self, key: &ClaimKey, method: IdentityMethod) {
        if method != IdentityMethod::Signature
            && let Some(slot) = self.slot(key)
        {
            slot.write(key.words(method));
        }
    }

    fn slot(&self, key: &ClaimKey) -> Option<&Slot> {
        self.slots.get(self.hasher.hash_one((key.path, key.client)) as usize % SLOTS)
    }
}

impl Slot {
    /// Returns the words of the claim; `None` if another thread is writing the words.
    fn read(&self) -> Option<[u64; 5]> {
        let before = self.sequence.load(Ordering::Acquire);
        let words = self.words.each_ref().map(|word| word.load(Ordering::Relaxed));
        // If a word of a concurrent write was read before this fence, the next load returns the
        // sequence number of that write or a later one.
        fence(Ordering::Acquire);
        (before.is_multiple_of(2) && self.sequence.load(Ordering::Relaxed) == before).then_some(words)
    }

    /// Writes the words, unless another thread is writing to this slot. If a claim is not written,
    /// the next request with this claim is checked again.
    fn write(&self, words: [u64; 5]) {
        let before = self.sequence.load(Ordering::Relaxed);
        let (relaxed, acquire) = (Ordering::Relaxed, Ordering::Acquire);
        if !before.is_multiple_of(2) || self.sequence.compare_exchange(before, before + 1, acquire, relaxed).is_err() {
            return;
        }
        fence(Ordering::Release);
        for (slot, word) in self.words.iter().zip(words) {
            slot.store(word, Ordering::Relaxed);
        }
        self.sequence.store(before + 2, Ordering::Release);
    }
}

/// Returns the seconds since 1970.
pub(super) fn second(now: SystemTime) -> u64 {
    now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Returns the minutes since 1970.
pub(super) fn minute(now: SystemTime) -> u64 {
    second(now) / 60
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key(path: u64, client: [u8; 4], minute: u64, version: u64) -> ClaimKey {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(60 * minute + 59);
        ClaimKey::new(path, client.into(), now, version)
    }

    #[test]
    fn a_verified_claim_is_found_only_if_every_part_of_its_key_matches() {
        let claims = VerifiedClaims::default();
        let noted = key(7, [9, 9, 9, 9], 100, 3);
        assert_eq!(claims.find(&noted), None);
        for method in [IdentityMethod::Range, IdentityMethod::Rdns] {
            claims.note(&noted, method);
            assert_eq!(claims.find(&noted), Some(method));
        }
        claims.note(&noted, IdentityMethod::Signature);
        assert_eq!(claims.find(&noted), Some(IdentityMethod::Rdns));
        for other in [
            key(8, [9, 9, 9, 9], 100, 3),
            key(7, [9, 9, 9, 8], 100, 3),
            key(7, [9, 9, 9, 9], 101, 3),
            key(7, [9, 9, 9, 9], 100, 4),
        ] {
            assert_eq!(claims.find(&other), None, "{other:?}");
        }
        let mapped = ClaimKey { client: "::ffff:9.9.9.9".parse::<std::net::Ipv6Addr>().expect("").to_bits(), ..noted };
        assert_eq!(claims.find(&mapped), Some(IdentityMethod::Rdns));
        // A slot that was never written does not match any key.
        let nothing = ClaimKey { path: 0, client: 0, minute: 0, version: 0 };
        assert_eq!(VerifiedClaims::default().find(&nothing), None);
    }

    #[test]
    fn no_reader_sees_a_partly_written_claim() {
        let slot = Slot::default();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for writer in 1..=2 {
                let (slot, is_over) = (&slot, &is_over);
                scope.spawn(move || {
                    let mut number = writer;
                    while !is_over.load(Ordering::Relaxed) {
                        slot.write([number; 5]);
                        number += 2;
                    }
                });
            }
            let mut seen = 0_u64;
            while seen < 20_000 {
                let Some(words) = slot.read() else { continue };
                assert!(words.iter().all(|word| *word == words[0]), "{words:?}");
                seen += 1;
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}
