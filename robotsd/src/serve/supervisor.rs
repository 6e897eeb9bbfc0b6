//! Signals to the process, and notifications to a supervisor such as systemd in the protocol of
//! `sd_notify(3)`. Without a supervisor none are sent.

use std::io;
use std::time::Duration;

use crate::log::{Log, LogEvent};

/// Notifies the supervisor. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Supervisor {
    log: Log,
}

impl Supervisor {
    pub(super) fn new(log: Log) -> Self {
        Self { log }
    }

    /// Notifies that the process serves, with a summary.
    pub(super) fn ready(&self, status: &str) {
        self.notify(&[sd_notify::NotifyState::Ready, sd_notify::NotifyState::Status(status)]);
    }

    /// Notifies that a reload has begun; [`Supervisor::ready`] ends it. The time distinguishes this
    /// reload from an earlier one.
    pub(super) fn reloading(&self) {
        use sd_notify::NotifyState::{Reloading, Status};
        match sd_notify::NotifyState::monotonic_usec_now() {
            Ok(now) => self.notify(&[Reloading, now, Status("reloading")]),
            Err(error) => self.log.say(LogEvent::Supervisor, format!("the clock cannot be read: {error}")),
        }
    }

    /// Notifies that another process is the service from now on.
    pub(super) fn succeeded_by(&self, process: u32, status: &str) {
        use sd_notify::NotifyState::{MainPid, Ready, Status, Watchdog};
        // Includes a sign of life, because earlier ones of the new process did not come from the
        // main process.
        self.notify(&[MainPid(process), Ready, Status(status), Watchdog]);
    }

    pub(super) fn stopping(&self, status: &str) {
        self.notify(&[sd_notify::NotifyState::Stopping, sd_notify::NotifyState::Status(status)]);
    }

    /// Notifies that the process is alive.
    pub(super) fn alive(&self) {
        self.notify(&[sd_notify::NotifyState::Watchdog]);
    }

    /// Returns half of the supervisor's interval, so that one late notification does not end the
    /// process.
    pub(super) fn pulse() -> Option<Duration> {
        sd_notify::watchdog_enabled().map(|most| most / 2).filter(|most| !most.is_zero())
    }

    fn notify(&self, states: &[sd_notify::NotifyState<'_>]) {
        if let Err(error) = sd_notify::notify(states) {
            self.log.say(LogEvent::Supervisor, format!("it cannot be notified: {error}"));
        }
    }
}

/// The meaning of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// SIGTERM or SIGINT: stop; the second signal stops at once.
    Stop,
    /// SIGHUP: read every robots.txt and certificate again.
    Reload,
    /// SIGUSR2: let a new process of the program replace this one.
    Upgrade,
}

#[derive(Debug)]
pub(super) struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    second_user: tokio::signal::unix::Signal,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            second_user: signal(SignalKind::user_defined2())?,
        })
    }

    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::Stop,
            _ = self.interrupt.recv() => Signal::Stop,
            _ = self.hangup.recv() => Signal::Reload,
            _ = self.second_user.recv() => Signal::Upgrade,
        }
    }
}
