//! The cost of something, whatever else the machine does meanwhile.

use std::time::Duration;

/// How often work is done again that took too long. Another program may have emptied the caches, or taken half of a processor.
const TRIES: usize = 10;

/// Does some work until it takes less than `limit`. Fails if it never does.
#[track_caller]
pub(super) fn within<T>(limit: Duration, what: &str, mut work: impl FnMut() -> T) -> T {
    let mut least = Duration::MAX;
    for _ in 0..TRIES {
        let start = spent();
        let done = work();
        least = least.min(spent() - start);
        if least < limit {
            return done;
        }
    }
    panic!("{what} took {least:?} at least, and not less than {limit:?}");
}

/// Whether something holds in one of a few measurements.
pub(super) fn is_measured(mut measure: impl FnMut() -> bool) -> bool {
    (0..TRIES).any(|_| measure())
}

/// The time this thread has spent on a processor; where the kernel does not say, the time that has passed.
pub(super) fn spent() -> Duration {
    // The kernel adds up when a thread gives way.
    std::thread::yield_now();
    #[cfg(target_os = "linux")]
    if let Ok(stat) = std::fs::read_to_string("/proc/thread-self/schedstat")
        && let Some(spent) = stat.split(' ').next().and_then(|nanoseconds| nanoseconds.parse().ok())
    {
        return Duration::from_nanos(spent);
    }
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}
