//! The script that the store runs: its arguments and its answer.
//!
//! **A TAT further ahead than any bucket is of another clock**, or of another delay: the script takes the bucket for
//! full, because to clamp it to empty would refuse requests for a clock that jumped.

use super::bucket::SharedBucket;

/// The script. One key, so that it runs on any node of a cluster.
pub(super) const SCRIPT: &str = include_str!("gcra.lua");

/// A report of requests for one bucket to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoreQuestion {
    pub(super) kind: QuestionKind,
    /// Requests.
    pub(super) count: i64,
    /// Where the TAT is at least, ahead of now: microseconds, negative where the requests were before.
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

/// What the store says about a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoreAnswer {
    /// Microseconds that a request has to wait that was denied.
    pub(super) wait: Option<i64>,
    /// How far the TAT is ahead of now, in microseconds.
    pub(super) ahead: i64,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

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
        // Nothing to wait for, an hour to wait for, no word of the script.
        for impossible in [(0, 0), (0, 40_000_000), (0, 3_600_000_000), (0, i64::MIN), (2, 0), (-1, 0), (1, i64::MAX)] {
            assert_eq!(allowed(impossible), None, "{impossible:?}");
        }
        let report = StoreQuestion { kind: QuestionKind::Report, ..question };
        assert_eq!(report.answer((0, 45_000_000)), None);
    }
}
