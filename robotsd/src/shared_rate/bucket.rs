//! Defines a rate-limit bucket that replicas share: its rate, its key, and the script that updates
//! it in the store.
//!
//! The store contains a TAT (theoretical arrival time) per bucket. **If a TAT is further in the
//! future than the bucket allows, it was written with another clock** (such as the clock of a
//! former primary), or for a bucket with another rate. The script treats this bucket as unused, so
//! that a wrong clock causes no refusals. No request waits longer than one interval. The buckets in
//! the process have the same limit.

use std::time::Duration;

use data_encoding::HEXLOWER;

/// A rate: one request per interval on average, and up to `burst` requests at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedBucket {
    interval: Duration,
    burst: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedVerdict {
    Allow,
    /// The request must be refused, because earlier requests to any replica have used up the
    /// bucket.
    Deny {
        /// Time until the next request is allowed; at most one interval.
        wait: Duration,
    },
    /// The store did not reply, so the bucket of this process decides.
    Unknown,
}

/// The script that updates a bucket. The script uses only one key, so it also works in a cluster.
pub(super) const SCRIPT: &str = include_str!("gcra.lua");

impl SharedBucket {
    /// Maximum interval. [`new`](Self::new) reduces longer intervals to this value.
    pub const MAX_INTERVAL: Duration = Duration::from_secs(3600);
    /// Maximum burst. [`new`](Self::new) reduces larger bursts to this value.
    pub const MAX_BURST: u32 = 10_000;

    /// Creates a bucket for one request per interval on average, and up to `burst` requests at
    /// once.
    pub fn new(interval: Duration, burst: u32) -> Self {
        let interval = interval.clamp(Duration::from_micros(1), Self::MAX_INTERVAL);
        Self { interval, burst: burst.clamp(1, Self::MAX_BURST) }
    }

    /// Returns the arguments of [`SCRIPT`] for taking one request from the bucket.
    pub(super) fn arguments(self) -> [String; 2] {
        let interval = self.interval.as_micros();
        [interval, interval * u128::from(self.burst)].map(|micros| micros.to_string())
    }

    /// Converts the reply of [`SCRIPT`] to a verdict. Returns `None` if the wait is longer than one
    /// interval, because such a reply is invalid.
    pub(super) fn verdict(self, micros: u64) -> Option<SharedVerdict> {
        match Duration::from_micros(micros) {
            Duration::ZERO => Some(SharedVerdict::Allow),
            wait if wait <= self.interval => Some(SharedVerdict::Deny { wait }),
            _ => None,
        }
    }
}

/// Key of a bucket in the store. The key is a hash, so that the store contains no site names and no
/// addresses in plain text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharedKey([u8; 16]);

impl SharedKey {
    /// Creates a key from the strings that identify a bucket, such as the site, the crawler and the
    /// client's network.
    pub fn new(parts: &[&[u8]]) -> Self {
        let mut hash = hmac_sha256::Hash::new();
        for part in parts {
            // The lengths are hashed as well, so that `["ab", "c"]` and `["a", "bc"]` have
            // different keys.
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let digest = hash.finalize();
        let mut hash = [0; 16];
        hash.iter_mut().zip(digest).for_each(|(byte, hashed)| *byte = hashed);
        Self(hash)
    }

    pub fn name(self, prefix: &str) -> String {
        let mut name = String::with_capacity(prefix.len() + 32);
        name.push_str(prefix);
        HEXLOWER.encode_append(&self.0, &mut name);
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_keys_differ_if_their_parts_differ() {
        let key = SharedKey::new;
        assert_eq!(key(&[b"shop", b"gptbot"]), key(&[b"shop", b"gptbot"]));
        assert_ne!(key(&[b"shop", b"gptbot"]), key(&[b"shopg", b"ptbot"]));
        assert_ne!(key(&[b"shop", b"gptbot"]), key(&[b"shop", b"gptbot", b""]));
        let name = key(&[b"shop", b"gptbot", b"192.0.2.7"]).name("robotsd:rate:");
        assert!(name.starts_with("robotsd:rate:") && name.len() == 13 + 32 && !name.contains("192"), "{name}");
    }

    #[test]
    fn extreme_rates_are_bounded_and_numbers_are_written_without_rounding() {
        let arguments = |interval, burst| SharedBucket::new(interval, burst).arguments();
        assert_eq!(arguments(Duration::MAX, u32::MAX), ["3600000000", "36000000000000"]);
        assert_eq!(arguments(Duration::ZERO, 0), ["1", "1"]);
        assert_eq!(arguments(Duration::from_micros(3_599_999_999), 10_000), ["3599999999", "35999999990000"]);
    }

    #[test]
    fn a_wait_that_exceeds_the_interval_is_not_a_valid_verdict() {
        let bucket = SharedBucket::new(Duration::from_secs(10), 5);
        let denied = |micros| Some(SharedVerdict::Deny { wait: Duration::from_micros(micros) });
        assert_eq!(bucket.verdict(0), Some(SharedVerdict::Allow));
        assert_eq!([1, 10_000_000].map(|micros| bucket.verdict(micros)), [denied(1), denied(10_000_000)]);
        // The script cannot return these values for this bucket.
        assert_eq!([10_000_001, 3_600_000_000, u64::MAX].map(|micros| bucket.verdict(micros)), [None; 3]);
    }
}
