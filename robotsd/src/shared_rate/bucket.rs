//! A bucket that replicas share: its rate, and the key it has in the store.
//!
//! **What the store says to wait is cut to one interval**, the longest wait of a bucket in the process; what was denied
//! for longer is asked again after ten seconds, because something else than requests may have made it so.

use std::fmt::Write as _;
use std::time::Duration;

use sha2::{Digest, Sha256};

/// A rate: one request an interval, and so many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedBucket {
    /// Microseconds.
    pub(super) interval: i64,
    burst: i64,
}

impl SharedBucket {
    /// The longest interval; a longer one is taken for it.
    pub const LONGEST: Duration = Duration::from_secs(3600);
    /// The largest burst; a larger one is taken for it.
    pub const MOST: u32 = 10_000;

    /// One request an interval, of which `burst` may come at once.
    pub fn new(interval: Duration, burst: u32) -> Self {
        Self { interval: micros(interval.min(Self::LONGEST)).max(1), burst: i64::from(burst.clamp(1, Self::MOST)) }
    }

    /// How far the TAT may be ahead of now, this request included, in microseconds.
    pub(super) const fn limit(self) -> i64 {
        self.interval * self.burst
    }

    /// Microseconds until a request may pass, the TAT so far ahead with it; none where it may pass now. Never longer than an interval,
    /// which is the longest that a bucket in this process makes anyone wait: more is of requests that were reported too late, of a
    /// clock that jumped, or of a value that something else wrote.
    pub(super) fn wait(self, ahead: i64) -> Option<i64> {
        let wait = ahead.saturating_sub(self.limit());
        (wait > 0).then_some(wait.min(self.interval))
    }
}

/// Microseconds of a duration.
pub(super) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// A duration of so many microseconds; none of a negative number.
pub(super) fn duration(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

/// The key of a bucket: a hash, so that names of sites and addresses are not spelled out in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharedKey {
    hash: [u8; 16],
    pub(super) owner: BucketOwner,
}

/// Whose bucket it is. A process forgets those of networks without regard to those of crawlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BucketOwner {
    /// A crawler's own: there are as many as a robots.txt makes.
    Crawler,
    /// That of one network: there are as many as clients have addresses.
    Network,
}

impl SharedKey {
    /// The key for what tells buckets apart: the site, the crawler, and the network of its address where there is one.
    pub fn new(owner: BucketOwner, parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            // With lengths, so that no two lists of parts are one text.
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let digest = hash.finalize();
        let mut hash = [0; 16];
        hash.iter_mut().zip(digest).for_each(|(octet, hashed)| *octet = hashed);
        Self { hash, owner }
    }

    /// One of so many shards.
    pub(super) fn shard(self, of: usize) -> usize {
        usize::from(self.hash[0]) % of
    }

    /// The key as the store has it.
    pub fn name(self, prefix: &str) -> String {
        let mut name = String::with_capacity(prefix.len() + 32);
        name.push_str(prefix);
        for octet in self.hash {
            // Writing to a string never fails.
            let _ = write!(name, "{octet:02x}");
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_where_parts_do() {
        let key = |parts: &[&[u8]]| SharedKey::new(BucketOwner::Crawler, parts);
        assert_eq!(key(&[b"shop", b"gptbot"]), key(&[b"shop", b"gptbot"]));
        assert_ne!(key(&[b"shop", b"gptbot"]), key(&[b"shopg", b"ptbot"]));
        assert_ne!(key(&[b"shop", b"gptbot"]), key(&[b"shop", b"gptbot", b""]));
        let name = key(&[b"shop", b"gptbot", b"192.0.2.7"]).name("robotsd:rate:");
        assert!(name.starts_with("robotsd:rate:") && name.len() == 13 + 32 && !name.contains("192"), "{name}");
    }

    #[test]
    fn nobody_waits_for_longer_than_an_interval() {
        let bucket = SharedBucket::new(Duration::from_secs(10), 5);
        let waits = [i64::MIN, 0, 50_000_000, 50_000_001, 60_000_000, 60_000_001, i64::MAX];
        let expected = [None, None, None, Some(1), Some(10_000_000), Some(10_000_000), Some(10_000_000)];
        assert_eq!(waits.map(|ahead| bucket.wait(ahead)), expected);
    }

    #[test]
    fn extreme_rates_are_bounded() {
        let slowest = SharedBucket::new(Duration::MAX, u32::MAX);
        assert_eq!(slowest.limit(), 3_600_000_000 * 10_000);
        let fastest = SharedBucket::new(Duration::ZERO, 0);
        assert_eq!((fastest.interval, fastest.limit()), (1, 1));
    }
}
