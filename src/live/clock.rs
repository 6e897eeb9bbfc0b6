//! The clock of a site, which tests can replace, and functions that format times. The clock and the
//! dates of files may have any value, for example a time in 1969 or in the year 10000.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[cfg(test)]
pub(crate) use self::tests::TestClock;

#[derive(Clone)]
pub(crate) struct Clock {
    read: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    /// When the steady clock started; `None` if the clock returns the wall time as its steady time.
    since: Option<Instant>,
    /// A test's steady clock, whose time does not change when the test sets the wall time back.
    #[cfg(test)]
    pub(super) steady: Option<TestClock>,
}

impl Clock {
    pub(crate) fn new(read: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        let read = Arc::new(read);
        #[cfg(test)]
        return Self { read, since: None, steady: None };
        #[cfg(not(test))]
        Self { read, since: None }
    }

    /// Creates a clock that returns the time of the system's last clock tick, which may be some
    /// milliseconds ago. Reading the time of the last tick takes only a fifth as long as reading
    /// the exact time.
    pub(crate) fn coarse() -> Self {
        Self::new(coarse_time)
    }

    pub(crate) fn now(&self) -> SystemTime {
        (self.read)()
    }

    /// Returns the steady time for rate limits and grace periods, which is unaffected if the
    /// system's clock is set. Clocks that begin at the same instant
    /// ([`beginning`](Self::beginning)) return the same steady time.
    pub(crate) fn elapsed(&self) -> Duration {
        #[cfg(test)]
        if let Some(steady) = &self.steady {
            return steady.elapsed();
        }
        match self.since {
            Some(since) => since.elapsed(),
            None => self.now().duration_since(UNIX_EPOCH).unwrap_or_default(),
        }
    }

    /// Returns a clock whose steady time ([`elapsed`](Self::elapsed)) begins at `since`, unless it
    /// is the wall time.
    pub(super) fn beginning(self, since: Instant) -> Self {
        Self { since: self.since.map(|_| since), ..self }
    }

    pub(crate) fn as_fn(&self) -> &(dyn Fn() -> SystemTime + Send + Sync) {
        &*self.read
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self { since: Some(Instant::now()), ..Self::new(SystemTime::now) }
    }
}

#[cfg(target_os = "linux")]
fn coarse_time() -> SystemTime {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    let since = u64::try_from(time.tv_sec).ok().zip(u32::try_from(time.tv_nsec).ok());
    let since = since.map(|(seconds, nanoseconds)| Duration::new(seconds, nanoseconds));
    since.and_then(|since| UNIX_EPOCH.checked_add(since)).unwrap_or_else(SystemTime::now)
}

#[cfg(not(target_os = "linux"))]
fn coarse_time() -> SystemTime {
    SystemTime::now()
}

robots_core::debug_as!(|it| Clock { now: it.now() });

/// The start of the year 10000, in seconds since 1970. HTTP dates can express only earlier times.
const END: u64 = 253_402_300_800;

/// Formats an HTTP date; `None` if the time is before 1970 or after 9999, because HTTP dates cannot
/// express such times.
pub(super) fn http(time: SystemTime) -> Option<String> {
    let age = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    (age.as_secs() < END).then(|| httpdate::fmt_http_date(time))
}

pub(super) fn format_time(time: SystemTime) -> String {
    http(time).unwrap_or_else(|| {
        let is_early = time < SystemTime::UNIX_EPOCH;
        if is_early { "at a time before 1970".to_owned() } else { "at a time after 9999".to_owned() }
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::live::Mutex;

    #[derive(Clone)]
    pub(crate) struct TestClock(Arc<Mutex<(SystemTime, Duration)>>);

    impl TestClock {
        pub(crate) fn new() -> Self {
            let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
            Self(Arc::new(Mutex::new((now, Duration::ZERO))))
        }

        pub(crate) fn now(&self) -> SystemTime {
            self.0.lock().0
        }

        pub(crate) fn elapsed(&self) -> Duration {
            self.0.lock().1
        }

        pub(crate) fn pass(&self, time: Duration) {
            let (now, elapsed) = &mut *self.0.lock();
            *now += time;
            *elapsed += time;
        }

        pub(crate) fn go_back(&self, time: Duration) {
            self.0.lock().0 -= time;
        }

        pub(crate) fn steady(&self) -> Clock {
            Clock { steady: Some(self.clone()), ..Clock::new(self.read()) }
        }

        pub(crate) fn read(&self) -> impl Fn() -> SystemTime + Send + Sync + 'static {
            let clock = self.clone();
            move || clock.now()
        }
    }

    #[test]
    fn times_before_1970_or_after_9999_have_no_http_date() {
        let epoch = SystemTime::UNIX_EPOCH;
        assert_eq!(http(epoch).as_deref(), Some("Thu, 01 Jan 1970 00:00:00 GMT"));
        let last = epoch + Duration::from_secs(END - 1);
        assert_eq!(http(last).as_deref(), Some("Fri, 31 Dec 9999 23:59:59 GMT"));
        assert_eq!(http(epoch + Duration::from_secs(END)), None);
        assert_eq!(http(epoch - Duration::from_nanos(1)), None);
        assert_eq!(format_time(epoch - Duration::from_secs(86400)), "at a time before 1970");
        assert_eq!(format_time(epoch + Duration::from_secs(END)), "at a time after 9999");
    }
}
