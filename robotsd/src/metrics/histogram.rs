//! A histogram of durations.

use std::sync::LazyLock;
use std::time::Duration;

/// The upper bounds of a histogram's buckets. Each bound is stored twice: as a number of
/// nanoseconds, and as a string with the number of seconds. Both formats of a scrape contain the
/// string.
pub(crate) type Buckets = [(u64, &'static str)];

/// Buckets for decisions. Most decisions take a few hundred nanoseconds.
pub(crate) static DECISION_BUCKETS: LazyLock<Box<Buckets>> =
    LazyLock::new(|| of_seconds("1e-07 2.5e-07 5e-07 1e-06 2.5e-06 5e-06 1e-05 2.5e-05 0.0001 0.001"));

/// The buckets that OpenTelemetry recommends for HTTP, with two smaller buckets for responses that
/// need no upstream.
pub(crate) static HTTP_BUCKETS: LazyLock<Box<Buckets>> =
    LazyLock::new(|| of_seconds("0.001 0.0025 0.005 0.01 0.025 0.05 0.075 0.1 0.25 0.5 0.75 1.0 2.5 5.0 7.5 10.0"));

fn of_seconds(bounds: &'static str) -> Box<Buckets> {
    let nanoseconds = |bound: &str| bound.parse().map_or(0, |seconds: f64| (seconds * 1e9).round() as u64);
    bounds.split(' ').map(|bound| (nanoseconds(bound), bound)).collect()
}

#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    buckets: &'static Buckets,
    /// Number of durations in each bucket. The last element is for durations above all bounds.
    counts: Box<[u64]>,
    nanoseconds: u64,
}

impl Histogram {
    pub(crate) fn new(buckets: &'static Buckets) -> Self {
        Self { buckets, counts: vec![0; buckets.len() + 1].into(), nanoseconds: 0 }
    }

    pub(crate) fn observe(&mut self, took: Duration) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = self.buckets.partition_point(|(bound, _)| *bound < nanoseconds);
        self.counts[bucket] += 1;
        self.nanoseconds = self.nanoseconds.wrapping_add(nanoseconds);
    }

    /// Adds the durations of another histogram with the same buckets.
    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, count) in self.counts.iter_mut().zip(&other.counts) {
            *sum += count;
        }
        self.nanoseconds = self.nanoseconds.wrapping_add(other.nanoseconds);
    }

    /// Returns each bound as text, with the number of durations that are greater than the previous
    /// bound and at most this bound.
    pub(super) fn buckets(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let bounds = self.buckets.iter().map(|(_, bound)| *bound).chain(["+Inf"]);
        bounds.zip(self.counts.iter().copied())
    }

    /// Returns a quantile in seconds, for example the median if `share` is 0.5. Returns `None` if
    /// no duration was counted. Interpolates linearly within a bucket, as Prometheus does. If the
    /// quantile is above all bounds, returns the last bound.
    pub(crate) fn quantile(&self, share: f64) -> Option<f64> {
        let total: u64 = self.counts.iter().sum();
        let wanted = total as f64 * share;
        let (mut below, mut from) = (0.0, 0.0);
        for ((bound, _), count) in self.buckets.iter().zip(&self.counts) {
            let (bound, count) = (*bound as f64 / 1e9, *count as f64);
            if count > 0.0 && below + count >= wanted {
                return Some(from + (bound - from) * (wanted - below) / count);
            }
            (below, from) = (below + count, bound);
        }
        (total > 0).then_some(from)
    }

    /// Returns the sum of all durations, in seconds.
    pub(super) fn sum(&self) -> f64 {
        self.nanoseconds as f64 / 1e9
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.counts.iter().all(|count| *count == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_includes_its_bound_and_longer_durations_are_in_the_last_bucket() {
        let mut histogram = Histogram::new(&DECISION_BUCKETS);
        for nanoseconds in [0, 100, 101, 1_000_000, 1_000_001] {
            histogram.observe(Duration::from_nanos(nanoseconds));
        }
        let mut totals = histogram.clone();
        totals.add(&histogram);
        let found: Vec<_> = totals.buckets().filter(|(_, count)| *count > 0).collect();
        assert_eq!(found, [("1e-07", 4), ("2.5e-07", 2), ("0.001", 2), ("+Inf", 2)]);
        assert_eq!(totals.sum(), 2.0 * 0.002_000_202);
    }

    #[test]
    fn a_quantile_lies_within_its_bucket() {
        let mut histogram = Histogram::new(&DECISION_BUCKETS);
        assert_eq!(histogram.quantile(0.99), None);
        (0..99).for_each(|_| histogram.observe(Duration::from_nanos(50)));
        histogram.observe(Duration::from_nanos(300));
        assert_eq!((histogram.quantile(0.99), histogram.quantile(1.0)), (Some(1e-7), Some(5e-7)));
        assert_eq!(histogram.quantile(0.495), Some(5e-8));
        histogram.observe(Duration::from_secs(9));
        assert_eq!(histogram.quantile(1.0), Some(1e-3), "the last bound");
    }

    #[test]
    fn the_written_form_of_a_bound_equals_its_value() {
        for (nanoseconds, written) in DECISION_BUCKETS.iter().chain(HTTP_BUCKETS.iter()) {
            let seconds: f64 = written.parse().unwrap();
            assert_eq!((seconds * 1e9).round() as u64, *nanoseconds, "{written}");
        }
    }
}
