//! A bucket that replicas share: its rate, the key it has in the store, and the script that the store runs for it, with its arguments and
//! its answer.
//!
//! **The wait of the store is cut to one interval**, the longest wait of a bucket in the process; a request that was
//! denied for longer is asked again after ten seconds, because something else than requests may have made it so.
//!
//! **A TAT further ahead than any bucket is of another clock**, or of another delay: the script takes the bucket for
//! full, because to clamp it to empty would refuse requests for a clock that jumped.

use std::time::Duration;

use data_encoding::HEXLOWER;

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

/// The owner of a bucket. A process forgets those of networks without regard to those of crawlers.
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
        let mut hash = hmac_sha256::Hash::new();
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
        HEXLOWER.encode_append(&self.hash, &mut name);
        name
    }
}

/// The script. One key, so that it runs on any node of a cluster.
pub(super) const SCRIPT: &str = include_str!("gcra.lua");

/// A report of requests for one bucket to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoreQuestion {
    pub(super) kind: QuestionKind,
    /// Requests.
    pub(super) count: i64,
    /// The earliest TAT, ahead of now: microseconds, negative if the requests were before.
    pub(super) earliest: i64,
    pub(super) bucket: SharedBucket,
    /// How far the TAT may be ahead of now without being taken for that of another clock, in microseconds.
    pub(super) horizon: i64,
    /// How long the store keeps a bucket that is full, in microseconds.
    pub(super) keep: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuestionKind {
    /// May the request pass?
    Ask,
    /// These have passed.
    Report,
}

impl StoreQuestion {
    /// Whether one request may pass.
    pub(super) const fn one(bucket: SharedBucket, horizon: i64, keep: i64) -> Self {
        Self { kind: QuestionKind::Ask, count: 1, earliest: bucket.interval, bucket, horizon, keep }
    }

    /// The arguments of the script.
    pub(super) fn arguments(&self) -> [String; 7] {
        let Self { kind, count, earliest, bucket, horizon, keep } = self;
        let kind = match kind {
            QuestionKind::Ask => "ask",
            QuestionKind::Report => "report",
        };
        let numbers = [*count, bucket.interval, bucket.limit(), *earliest, *horizon, *keep];
        let numbers = numbers.map(|number| number.to_string());
        let [count, interval, limit, earliest, horizon, keep] = numbers;
        [count, interval, limit, earliest, horizon, keep, kind.to_owned()]
    }

    /// Reads an answer; none where no bucket gives such an answer.
    pub(super) fn answer(&self, (allowed, ahead): (i64, i64)) -> Option<StoreAnswer> {
        let denied = self.bucket.wait(ahead.saturating_add(self.bucket.interval));
        // A denial that names no time to wait, or one that the script would have taken for another clock's.
        let wait = match (self.kind, allowed) {
            (_, 1) if ahead <= self.horizon.saturating_add(self.count.saturating_mul(self.bucket.interval)) => None,
            (QuestionKind::Ask, 0) if ahead <= self.horizon => Some(denied?),
            _ => return None,
        };
        Some(StoreAnswer { wait, ahead })
    }
}

/// The answer of the store about a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoreAnswer {
    /// Microseconds that a request has to wait that was denied.
    pub(super) wait: Option<i64>,
    /// How far the TAT is ahead of now, in microseconds.
    pub(super) ahead: i64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

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

    #[test]
    fn numbers_are_written_without_rounding() {
        let bucket = SharedBucket::new(Duration::from_micros(3_599_999_999), 10_000);
        let question = StoreQuestion::one(bucket, i64::MAX, 0);
        let arguments = question.arguments();
        assert_eq!(
            arguments,
            ["1", "3599999999", "35999999990000", "3599999999", "9223372036854775807", "0", "ask"].map(str::to_owned)
        );
    }

    #[test]
    fn an_answer_that_no_bucket_gives_is_none() {
        let bucket = SharedBucket::new(Duration::from_secs(10), 5);
        let question = StoreQuestion::one(bucket, bucket.limit(), 0);
        let allowed = |answer| question.answer(answer).map(|answer| answer.wait);
        assert_eq!(allowed((1, 10_000_000)), Some(None));
        assert_eq!(allowed((0, 45_000_000)), Some(Some(5_000_000)));
        // Nothing to wait for, an hour to wait for, no answer of the script.
        for impossible in [(0, 0), (0, 40_000_000), (0, 3_600_000_000), (0, i64::MIN), (2, 0), (-1, 0), (1, i64::MAX)] {
            assert_eq!(allowed(impossible), None, "{impossible:?}");
        }
        let report = StoreQuestion { kind: QuestionKind::Report, ..question };
        assert_eq!(report.answer((0, 45_000_000)), None);
    }
}
