//! Notifies a supervisor such as systemd, in the protocol of `sd_notify(3)`. Without one it does nothing.

use std::time::Duration;

use crate::log::{Log, LogEvent};

/// Notifies the supervisor. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Supervisor {
    log: Log,
}

#[cfg(unix)]
impl Supervisor {
    pub(super) fn new(log: Log) -> Self {
        Self { log }
    }

    /// It serves, and what it serves.
    pub(super) fn ready(&self, status: &str) {
        self.notify(&[sd_notify::NotifyState::Ready, sd_notify::NotifyState::Status(status)]);
    }

    /// It has begun to reload; [`Supervisor::ready`] ends that. The time distinguishes this reload from one before.
    pub(super) fn reloading(&self) {
        use sd_notify::NotifyState::{Reloading, Status};
        match sd_notify::NotifyState::monotonic_usec_now() {
            Ok(now) => self.notify(&[Reloading, now, Status("reloading")]),
            Err(error) => self.log.say(LogEvent::Supervisor, format!("the clock cannot be read: {error}")),
        }
    }

    /// Another process is the service from now on.
    pub(super) fn succeeded_by(&self, process: u32, status: &str) {
        use sd_notify::NotifyState::{MainPid, Ready, Status, Watchdog};
        // With a sign of life: what the new process sent until now was not from the main one.
        self.notify(&[MainPid(process), Ready, Status(status), Watchdog]);
    }

    pub(super) fn stopping(&self, status: &str) {
        self.notify(&[sd_notify::NotifyState::Stopping, sd_notify::NotifyState::Status(status)]);
    }

    /// It is alive.
    pub(super) fn alive(&self) {
        self.notify(&[sd_notify::NotifyState::Watchdog]);
    }

    /// Half of the supervisor's interval, so that one late notification is not the end.
    pub(super) fn pulse() -> Option<Duration> {
        sd_notify::watchdog_enabled().map(|most| most / 2).filter(|most| !most.is_zero())
    }

    fn notify(&self, states: &[sd_notify::NotifyState<'_>]) {
        if let Err(error) = sd_notify::notify(states) {
            self.log.say(LogEvent::Supervisor, format!("it cannot be notified: {error}"));
        }
    }
}

#[cfg(not(unix))]
impl Supervisor {
    pub(super) fn new(log: Log) -> Self {
        Self { log }
    }

    pub(super) fn ready(&self, _: &str) {}

    pub(super) fn reloading(&self) {}

    pub(super) fn succeeded_by(&self, _: u32, _: &str) {}

    pub(super) fn stopping(&self, _: &str) {}

    pub(super) fn alive(&self) {}

    pub(super) fn pulse() -> Option<Duration> {
        None
    }
}
