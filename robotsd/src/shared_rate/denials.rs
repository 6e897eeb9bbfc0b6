//! Remembers each denial by the store until the next request is allowed, and repeats the denial
//! without asking the store. A crawler that exceeds its rate therefore does not cause a call to the
//! store for each request.
//!
//! A full table is cleared, because forgetting a denial costs only one more call.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::bucket::{SharedBucket, SharedKey};

/// Maximum number of denials, about 1 MB of memory. A limit is necessary, because clients can use
/// any number of addresses.
const MAX_DENIALS: usize = 16_384;

#[derive(Debug, Default)]
pub(super) struct StoreDenials(Mutex<HashMap<SharedKey, Denial>>);

#[derive(Debug)]
struct Denial {
    /// The bucket that was denied. If the config changes the bucket's rate, the denial no longer
    /// applies.
    bucket: SharedBucket,
    until: Instant,
}

impl StoreDenials {
    /// Returns how long a request must wait because of an earlier denial.
    pub(super) fn wait(&self, key: SharedKey, bucket: SharedBucket, now: Instant) -> Option<Duration> {
        let denials = self.0.lock();
        let denial = denials.get(&key).filter(|denial| denial.bucket == bucket && denial.until > now)?;
        Some(denial.until - now)
    }

    pub(super) fn add(&self, key: SharedKey, bucket: SharedBucket, until: Instant) {
        let mut denials = self.0.lock();
        if denials.len() >= MAX_DENIALS && !denials.contains_key(&key) {
            denials.clear();
        }
        denials.insert(key, Denial { bucket, until });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const INTERVAL: Duration = Duration::from_secs(10);

    fn key(name: &str) -> SharedKey {
        SharedKey::new(&[name.as_bytes()])
    }

    #[test]
    fn a_denial_applies_until_its_wait_ends_or_the_rate_changes() {
        let (denials, bucket, now) = (StoreDenials::default(), SharedBucket::new(INTERVAL, 5), Instant::now());
        denials.add(key("a"), bucket, now + INTERVAL);
        let wait = |name, bucket, after| denials.wait(key(name), bucket, now + after);
        assert_eq!(wait("a", bucket, INTERVAL / 4), Some(INTERVAL * 3 / 4));
        assert_eq!(wait("a", bucket, INTERVAL), None);
        assert_eq!(wait("b", bucket, Duration::ZERO), None);
        let faster = SharedBucket::new(INTERVAL / 2, 5);
        assert_eq!(wait("a", faster, Duration::ZERO), None);
    }

    #[test]
    fn the_number_of_remembered_denials_is_bounded() {
        let (denials, bucket, now) = (StoreDenials::default(), SharedBucket::new(INTERVAL, 5), Instant::now());
        for number in 0..3 * MAX_DENIALS {
            denials.add(key(&number.to_string()), bucket, now + INTERVAL);
            assert!(denials.wait(key(&number.to_string()), bucket, now).is_some());
        }
        assert!(denials.0.lock().len() <= MAX_DENIALS);
    }

    /// Imitates the script in the store. Returns the time that a request must wait.
    fn ask(tat: &mut u64, now: u64, interval: u64, burst: u64) -> u64 {
        let next = now.max(*tat) + interval;
        let wait = next.saturating_sub(now + interval * burst);
        if wait == 0 {
            *tat = next;
        }
        wait
    }

    proptest! {
        /// A repeated denial must not last longer than a new denial by the store.
        #[test]
        fn a_repeated_denial_lasts_at_most_as_long_as_a_new_denial_by_the_store(
            gaps in prop::collection::vec((0u64..400_000, 0usize..3), 1..600),
            interval in 50_000u64..2_000_000,
            burst in 1u32..8,
        ) {
            let bucket = SharedBucket::new(Duration::from_micros(interval), burst);
            let replicas: [StoreDenials; 3] = Default::default();
            let (start, mut tat, mut now) = (Instant::now(), 0, 0);
            for (gap, replica) in gaps {
                now += gap;
                let at = start + Duration::from_micros(now);
                let repeated = replicas[replica].wait(key("a"), bucket, at);
                // A denied request does not change the bucket in the store.
                let mut after = tat;
                let wait = Duration::from_micros(ask(&mut after, now, interval, burst.into()));
                if let Some(repeated) = repeated {
                    prop_assert!(repeated <= wait, "{:?} for {:?}", repeated, wait);
                } else if wait > Duration::ZERO {
                    replicas[replica].add(key("a"), bucket, at + wait);
                }
                tat = after;
            }
        }
    }
}
