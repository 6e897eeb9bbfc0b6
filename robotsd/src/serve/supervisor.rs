//! Receives signals, and sends notifications to a supervisor such as systemd (`sd_notify(3)`).

use std::io;
use std::time::Duration;

use crate::log::{Log, LogEvent};

#[derive(Clone, Debug)]
pub(super) struct Supervisor {
    log: Log,
}

impl Supervisor {
    pub(super) fn new(log: Log) -> Self {
        Self { log }
    }

    pub(super) fn ready(&self, status: &str) {
        self.notify(&[sd_notify::NotifyState::Ready, sd_notify::NotifyState::Status(status)]);
    }

    /// Notifies the supervisor that a reload has begun. [`Supervisor::ready`] reports the end of
    /// the reload.
    pub(super) fn reloading(&self) {
        use sd_notify::NotifyState::{Reloading, Status};
        match sd_notify::NotifyState::monotonic_usec_now() {
            Ok(now) => self.notify(&[Reloading, now, Status("reloading")]),
            Err(error) => {
                self.log.write_message(LogEvent::Supervisor, format!("the monotonic clock cannot be read: {error}"))
            }
        }
    }

    pub(super) fn succeeded_by(&self, process: u32, status: &str) {
        use sd_notify::NotifyState::{MainPid, Ready, Status, Watchdog};
        // systemd has ignored the watchdog notifications of the new process until now, so this
        // process sends a notification for the new process.
        self.notify(&[MainPid(process), Ready, Status(status), Watchdog]);
    }

    pub(super) fn stopping(&self, status: &str) {
        self.notify(&[sd_notify::NotifyState::Stopping, sd_notify::NotifyState::Status(status)]);
    }

    pub(super) fn alive(&self) {
        self.notify(&[sd_notify::NotifyState::Watchdog]);
    }

    /// Returns the interval between watchdog notifications; `None` if the supervisor has no
    /// watchdog. The interval is half of the watchdog's timeout, so that one late notification does
    /// not end the process.
    pub(super) fn watchdog_interval() -> Option<Duration> {
        sd_notify::watchdog_enabled().map(|most| most / 2).filter(|most| !most.is_zero())
    }

    fn notify(&self, states: &[sd_notify::NotifyState<'_>]) {
        if let Err(error) = sd_notify::notify(states) {
            self.log.write_message(LogEvent::Supervisor, format!("the supervisor cannot be notified: {error}"));
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// SIGTERM or SIGINT: stop when the requests in progress have finished. A second signal stops
    /// the process immediately.
    Stop,
    /// SIGHUP: read every robots.txt and certificate again.
    Reload,
    /// SIGUSR2: start a new process of the program, which replaces this process.
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
