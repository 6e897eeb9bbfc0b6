//! Measures the cost of work, independent of what else the machine does.

use std::time::Duration;

/// Maximum number of attempts, if the work takes too long. Another program may have emptied the
/// caches or used half of a processor.
const TRIES: usize = 10;

/// Repeats the work until it takes less than `limit`. Fails if that never happens.
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

/// Reports whether one of a few measurements succeeds.
pub(super) fn is_measured(mut measure: impl FnMut() -> bool) -> bool {
    (0..TRIES).any(|_| measure())
}

/// Returns the processor time of this thread, or the elapsed time if the kernel does not report it.
pub(super) fn spent() -> Duration {
    // The kernel updates the processor time of a thread when the thread yields.
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
