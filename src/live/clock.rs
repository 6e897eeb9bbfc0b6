//! The clock of a site: the system's, unless a test sets another.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

/// A source of the current time. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    pub(crate) fn new(read: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// The system's time as of its last tick, some milliseconds ago: it costs a fifth of reading the clock, where the system has
    /// it.
    #[cfg(feature = "verify")]
    pub(crate) fn coarse() -> Self {
        Self::new(coarse_time)
    }

    pub(crate) fn now(&self) -> SystemTime {
        (self.0)()
    }

    pub(crate) fn as_fn(&self) -> &(dyn Fn() -> SystemTime + Send + Sync) {
        &*self.0
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(SystemTime::now)
    }
}

#[cfg(all(feature = "verify", target_os = "linux"))]
fn coarse_time() -> SystemTime {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    let since = u64::try_from(time.tv_sec).ok().zip(u32::try_from(time.tv_nsec).ok());
    let since = since.map(|(seconds, nanoseconds)| std::time::Duration::new(seconds, nanoseconds));
    since.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since)).unwrap_or_else(SystemTime::now)
}

#[cfg(all(feature = "verify", not(target_os = "linux")))]
fn coarse_time() -> SystemTime {
    SystemTime::now()
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}
