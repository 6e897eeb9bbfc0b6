//! The generic cell rate algorithm, on one word.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How many requests pass: one in each interval, and so many at once after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Nanoseconds, above zero.
    interval: u64,
    /// How far ahead of now the bucket may be: the intervals of a burst, one after the other.
    depth: u64,
}

/// A request that comes too soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooSoon {
    wait: Duration,
}

/// The state of one sender: the time at which it has paid for all that passed, in nanoseconds.
#[derive(Debug, Default)]
pub struct Bucket(AtomicU64);

impl Quota {
    /// One request in each interval; after a pause `burst` requests pass at once. An interval of zero counts as one
    /// nanosecond; times of more than a hundred years are cut.
    #[must_use]
    pub fn new(interval: Duration, burst: NonZeroU32) -> Self {
        let interval = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX).clamp(1, u64::MAX >> 2);
        let depth = interval.saturating_mul(burst.get().into()).min(u64::MAX >> 2);
        Self { interval, depth }
    }

    /// One request passes in this time.
    #[must_use]
    pub const fn interval(self) -> Duration {
        Duration::from_nanos(self.interval)
    }

    /// So many pass at once after a pause.
    #[must_use]
    pub fn burst(self) -> NonZeroU32 {
        let burst = u32::try_from(self.depth / self.interval).unwrap_or(u32::MAX);
        NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN)
    }

    /// What a request at this time makes of a bucket: the next state where it passes; else the state to keep, and how long to
    /// wait.
    pub(super) fn take(self, paid: u64, now: u64) -> Result<u64, (u64, TooSoon)> {
        // Further ahead than a full burst is none of this quota's doing: the interval was shortened, or the clock set back.
        let full = now.saturating_add(self.depth);
        let paid = paid.clamp(now, full);
        let next = paid.saturating_add(self.interval);
        if next <= full { Ok(next) } else { Err((paid, TooSoon { wait: Duration::from_nanos(next - full) })) }
    }
}

impl Quota {
    /// Whether a request at this time would pass.
    pub(super) fn look(self, paid: u64, now: u64) -> Result<(), TooSoon> {
        self.take(paid, now).map(|_| ()).map_err(|(_, too_soon)| too_soon)
    }
}

impl TooSoon {
    /// How long to wait until a request passes, above zero, unless another one takes its place.
    #[must_use]
    pub const fn wait(&self) -> Duration {
        self.wait
    }
}

impl Bucket {
    /// Takes one request from the bucket.
    ///
    /// Any number of threads take exactly what the quota allows: there is one word, and it is compared and swapped.
    ///
    /// # Errors
    ///
    /// If it comes too soon. Nothing is taken then.
    pub fn take(&self, quota: Quota, now: Duration) -> Result<(), TooSoon> {
        let now = nanoseconds(now);
        let mut paid = self.0.load(Ordering::Relaxed);
        loop {
            let (next, taken) = match quota.take(paid, now) {
                Ok(next) => (next, Ok(())),
                Err((kept, too_soon)) => (kept, Err(too_soon)),
            };
            // A refused request writes only where the clock or the interval has changed.
            if next == paid {
                return taken;
            }
            match self.0.compare_exchange_weak(paid, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return taken,
                Err(other) => paid = other,
            }
        }
    }

    /// Whether a request would pass. Nothing is taken.
    ///
    /// # Errors
    ///
    /// If it would come too soon.
    pub fn look(&self, quota: Quota, now: Duration) -> Result<(), TooSoon> {
        quota.look(self.0.load(Ordering::Relaxed), nanoseconds(now))
    }
}

/// Times of more than a hundred years are cut.
pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).min(u64::MAX >> 2)
}
