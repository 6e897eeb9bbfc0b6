//! When a site's robots.txt is fetched again.

use std::time::Duration;

use super::backoff;
use super::freshness::Freshness;

/// When a site's robots.txt is fetched again, and how long it must be gone before that is believed.
///
/// ```
/// use std::time::Duration;
/// use tower_robots::source::fetch::Schedule;
///
/// let often = Schedule::new().every(Duration::from_secs(300)).hold(Duration::from_secs(3600));
/// # let _ = often;
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Schedule {
    every: Duration,
    least: Duration,
    most: Duration,
    retry_first: Duration,
    retry_most: Duration,
    hold: Duration,
}

impl Schedule {
    /// How often to fetch by default where `Cache-Control` says nothing.
    pub const DEFAULT_EVERY: Duration = Duration::from_secs(3600);

    /// How long a file that is missing at its source stays in force by default.
    pub const DEFAULT_HOLD: Duration = Duration::from_secs(24 * 3600);

    /// The defaults.
    pub const fn new() -> Self {
        Self {
            every: Self::DEFAULT_EVERY,
            least: Duration::from_secs(60),
            most: Duration::from_secs(24 * 3600),
            retry_first: Duration::from_secs(5),
            retry_most: Duration::from_secs(15 * 60),
            hold: Self::DEFAULT_HOLD,
        }
    }

    /// How often to fetch where `Cache-Control` says nothing. Default: one hour.
    pub const fn every(mut self, every: Duration) -> Self {
        self.every = every;
        self
    }

    /// The bounds for `Cache-Control`: `s-maxage`, or else `max-age`, less `Age`. Default: one minute,
    /// which is also what `no-cache` and `no-store` mean, to 24 hours.
    pub const fn between(mut self, least: Duration, most: Duration) -> Self {
        self.least = least;
        self.most = most;
        self
    }

    /// How soon to fetch again after a failure: after `first`, then after twice as long each time up to `most`, less up to
    /// half of it at random. `Retry-After` may demand more, up to four times `most`. Default: five seconds to 15 minutes.
    pub const fn retry(mut self, first: Duration, most: Duration) -> Self {
        self.retry_first = first;
        self.retry_most = most;
        self
    }

    /// How long a robots.txt that was there stays in force once it is answered with 404 or another 4xx. Default: 24
    /// hours.
    pub const fn hold(mut self, hold: Duration) -> Self {
        self.hold = hold;
        self
    }

    pub(super) const fn held(&self) -> Duration {
        self.hold
    }

    /// How long until the next fetch after an answer that was taken.
    pub(in crate::source) fn interval(&self, freshness: Freshness) -> Duration {
        let wanted = freshness.shared().unwrap_or(self.every);
        wanted.clamp(self.least.min(self.most), self.most).max(FLOOR)
    }

    /// How long until the next fetch after the so-many-th failure in a row.
    pub(in crate::source) fn pause(&self, failures: u32, retry_after: Option<Duration>, roll: u32) -> Duration {
        let pause = backoff::jittered(backoff::after(failures, self.retry_first, self.retry_most), roll);
        let asked_for = retry_after.unwrap_or_default().min(self.retry_most.saturating_mul(4));
        pause.max(asked_for).max(FLOOR)
    }
}

/// The shortest pause, whatever is set.
const FLOOR: Duration = Duration::from_millis(10);

impl Default for Schedule {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use http::header::CACHE_CONTROL;
    use http::{HeaderMap, HeaderValue};

    use super::*;

    fn interval(schedule: &Schedule, cache_control: &'static str) -> u64 {
        let mut headers = HeaderMap::new();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache_control));
        schedule.interval(Freshness::of(&headers)).as_secs()
    }

    #[test]
    fn cache_control_sets_the_interval_within_bounds() {
        let schedule = Schedule::new();
        assert_eq!(interval(&schedule, ""), 3600);
        assert_eq!(interval(&schedule, "max-age=600"), 600);
        assert_eq!(interval(&schedule, "max-age=600, s-maxage=120"), 120);
        assert_eq!(interval(&schedule, "max-age=1"), 60);
        assert_eq!(interval(&schedule, "no-store"), 60);
        assert_eq!(interval(&schedule, "no-cache, max-age=600"), 60);
        assert_eq!(interval(&schedule, "max-age=31536000"), 86_400);
    }

    #[test]
    fn retry_after_is_honoured_within_bounds() {
        let schedule = Schedule::new();
        let pause = |seconds| schedule.pause(1, Some(Duration::from_secs(seconds)), 0).as_secs_f64();
        assert_eq!(pause(0), 2.5);
        assert_eq!(pause(120), 120.0);
        assert_eq!(pause(1 << 31), 3600.0);
        assert_eq!(schedule.pause(1, None, u32::MAX), Duration::from_secs(5));
        assert_eq!(schedule.pause(99, None, u32::MAX), Duration::from_secs(900));
    }

    #[test]
    fn no_setting_makes_it_ask_without_end_or_panics() {
        let zero = Duration::ZERO;
        let schedule = Schedule::new().every(zero).between(zero, zero).retry(zero, zero);
        assert_eq!(schedule.interval(Freshness::default()), FLOOR);
        assert_eq!(schedule.pause(1, None, 0), FLOOR);
        let crossed = Schedule::new().between(Duration::MAX, zero);
        assert_eq!(crossed.interval(Freshness::default()), FLOOR);
        let huge = Schedule::new().retry(Duration::MAX, Duration::MAX);
        assert_eq!(huge.pause(9, Some(Duration::MAX), u32::MAX), Duration::MAX);
    }
}
