//! How long to wait.

use std::time::{Duration, SystemTime};

/// Twice as long after every failure, from `first` up to `most`; `failures` counts from one.
pub(super) fn after(failures: u32, first: Duration, most: Duration) -> Duration {
    first.saturating_mul(2u32.saturating_pow(failures.saturating_sub(1))).min(most)
}

/// Somewhere in the second half of a pause, so that those who failed together do not come back together.
pub(super) fn jittered(pause: Duration, roll: u32) -> Duration {
    let half = pause / 2;
    half.saturating_add(half.mul_f64(f64::from(roll) / f64::from(u32::MAX))).min(pause)
}

/// A pause from now, or a hundred years where that is beyond what a date can hold: never now, or it would be no pause.
pub(in crate::source) fn later(now: SystemTime, pause: Duration) -> SystemTime {
    let century = Duration::from_secs(100 * 365 * 24 * 3600);
    now.checked_add(pause.min(century)).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pause_is_too_long() {
        let now = SystemTime::now();
        assert!(later(now, Duration::MAX) > now + Duration::from_secs(1 << 31));
        assert_eq!(later(now, Duration::from_secs(5)), now + Duration::from_secs(5));
    }

    #[test]
    fn pauses_double_up_to_a_bound() {
        let (first, most) = (Duration::from_secs(5), Duration::from_secs(60));
        let pauses: Vec<_> = (1..=6).map(|failures| after(failures, first, most).as_secs()).collect();
        assert_eq!(pauses, [5, 10, 20, 40, 60, 60]);
        assert_eq!(after(u32::MAX, first, most), most);
        assert_eq!(after(u32::MAX, Duration::MAX, Duration::MAX), Duration::MAX);
    }

    #[test]
    fn jitter_stays_in_the_second_half() {
        let pause = Duration::from_secs(10);
        assert_eq!(jittered(pause, 0), pause / 2);
        assert_eq!(jittered(pause, u32::MAX), pause);
        assert!((pause / 2..pause).contains(&jittered(pause, u32::MAX / 3)));
    }
}
