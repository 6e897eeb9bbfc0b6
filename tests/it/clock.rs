//! The cost of something, whatever else the machine does meanwhile.

use std::time::Duration;

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
