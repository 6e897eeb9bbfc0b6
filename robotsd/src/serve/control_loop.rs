//! Runs the loop of the control thread. The loop handles signals, requests for a reload or upgrade,
//! changes of watched files, and timers.
//!
//! The loop never waits for a file: files are read on blocking threads, which send their results to
//! the loop.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Interval, timeout};
use tower_robots::live::StateDir;

use super::board_keeper::{BoardKeeper, next_tick, ticks};
use super::reconfigure::ActiveConfig;
use super::supervisor::{Signal, Signals, Supervisor};
use super::upgrade_keeper::{AfterStep, UpgradeKeeper, UpgradeStep};
use super::watched_files;
use crate::admin::{ControlRequests, Phase, ServerState, WatchGuard};
use crate::log::{AccessLog, Log, LogEvent, LogLevel};

/// Maximum time that shutdown waits for the state directory, because a file system may hang.
const FLUSH: Duration = Duration::from_secs(5);

/// Maximum time that shutdown waits for responses of the admin interface to reach their clients.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum time that shutdown waits for the removal of the heartbeat from the fleet's store. If the
/// heartbeat stays there, the replica is reported as missing for a day.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Interval between checks for sites whose pages must be read again.
const PAGES: Duration = Duration::from_secs(2);

/// Interval between checks for notices to send to the hooks in `[[notify]]`.
const NOTICES: Duration = Duration::from_secs(2);

/// Interval between checks that the state directory is writable.
const STATE: Duration = Duration::from_secs(10);

pub(super) struct ControlLoop<'a> {
    // Must be dropped first: when the process ends, the event loops end, and the watchdog must not
    // report their end.
    _watch: WatchGuard,
    // Writes the state directory when dropped, which must happen before the sites are dropped.
    _flush: FlushOnDrop,
    active: ActiveConfig,
    signals: Signals,
    requests: ControlRequests,
    upgrade: UpgradeKeeper,
    supervisor: Supervisor,
    access: Option<&'a AccessLog>,
    heartbeat: Option<Interval>,
    board: Option<BoardKeeper>,
    pages: Interval,
    reading_pages: Option<AbortHandle>,
    state: Interval,
    notices: Interval,
    notifying: Option<AbortHandle>,
    background: JoinSet<()>,
    is_stopped: bool,
    is_drained: bool,
}

impl<'a> ControlLoop<'a> {
    pub(super) fn new(
        active: ActiveConfig,
        signals: Signals,
        requests: ControlRequests,
        supervisor: Supervisor,
        access: Option<&'a AccessLog>,
        board: Option<BoardKeeper>,
        watch: WatchGuard,
    ) -> Self {
        let mut background = JoinSet::new();
        background.spawn(active.certificates.clone().watch());
        let flush = FlushOnDrop { state: active.sites.state.directory.clone(), log: active.log.clone() };
        Self {
            _watch: watch,
            _flush: flush,
            active,
            signals,
            requests,
            upgrade: UpgradeKeeper::default(),
            supervisor,
            access,
            heartbeat: Supervisor::watchdog_interval().map(ticks),
            board,
            pages: ticks(PAGES),
            reading_pages: None,
            state: ticks(STATE),
            notices: ticks(NOTICES),
            notifying: None,
            background,
            is_stopped: false,
            is_drained: false,
        }
    }

    /// Runs until the process must end. After a signal to stop, the process ends when all
    /// connections are closed, or at a second signal to stop.
    pub(super) async fn run(mut self) -> Result<(), String> {
        let outcome = self.serve().await;
        self.upgrade.finish().await;
        if let Some(board) = self.board.take() {
            board.finish(&self.active.sites).await;
        }
        self.active.sites.finish_hooks().await;
        self.active.state.audit.finish().await;
        // After an upgrade, the heartbeat must not be removed: the new process has the same name,
        // so the heartbeat now belongs to the new process.
        if let Some(fleet) = self.active.sites.state.fleet.as_ref().filter(|_| self.upgrade.successor.is_none()) {
            let _ = timeout(LEAVE_TIMEOUT, fleet.leave()).await;
        }
        // Clients may still wait for a response, for example to the request for an upgrade.
        let _ = timeout(RESPONSE_TIMEOUT, self.active.admin.wait_for_responses()).await;
        self.active.admin.remove_socket_file();
        outcome
    }

    async fn serve(&mut self) -> Result<(), String> {
        let (config_changed, others_changed) =
            (Arc::clone(&self.active.watches.config), Arc::clone(&self.active.watches.watch.notify));
        let registry_changed = self.active.sites.registry_changed();
        loop {
            if self.is_drained {
                self.active.log.write_message(LogEvent::Stopped, "every connection is closed");
                return Ok(());
            }
            // While another process may take over, this process must not open or close a listener
            // or site.
            let is_serving = self.active.state.phase() == Phase::Serving && !self.upgrade.is_under_way();
            tokio::select! {
                signal = self.signals.next() => match signal {
                    Signal::Reload => self.reload(),
                    Signal::Upgrade => self.upgrade.begin(&self.active, None),
                    Signal::Stop if self.is_stopped => {
                        self.active.log.write_message(LogEvent::Stopped, "a second signal was received, so requests in \
                            progress are aborted");
                        return Ok(());
                    }
                    Signal::Stop => {
                        self.is_stopped = true;
                        // After an upgrade, this process is already draining.
                        let is_serving = self.active.state.phase() != Phase::Draining;
                        self.upgrade.abandon(&mut self.active);
                        if is_serving {
                            self.drain();
                        }
                    }
                },
                Some(waiter) = self.requests.upgrades.recv() => self.upgrade.begin(&self.active, Some(waiter)),
                step = self.upgrade.next() => self.apply_upgrade_step(step),
                // No config is read while the process drains. Dropping the waiter makes its request
                // fail.
                Some(waiter) = self.requests.reloads.recv() => {
                    self.reopen_log();
                    if !self.upgrade.postpone_reload() && is_serving {
                        self.active.request(Some(waiter));
                    }
                },
                () = config_changed.notified() => if !self.upgrade.postpone_reload() && is_serving {
                    self.active.request(None);
                },
                step = self.active.change.next(), if is_serving => {
                    self.active.step(step);
                    self.upgrade.resume(&self.active);
                }
                () = registry_changed.notified() => {
                    let sites = Arc::clone(&self.active.sites);
                    self.background.spawn(async { drop(sites.reload_registry().await) });
                }
                () = others_changed.notified() => {
                    let changed = self.active.watches.changed();
                    let is_of_config = watched_files::has_content_file(&changed, &self.active.config);
                    if is_of_config && !self.upgrade.postpone_reload() && is_serving {
                        self.active.request(None);
                    }
                    self.background.spawn(Arc::clone(&self.active.sites).follow(changed));
                }
                () = next_tick(self.heartbeat.as_mut()) => self.report_alive(),
                () = next_tick(self.board.as_mut().map(|board| &mut board.ticks)) => if let Some(board) = &mut self.board {
                    // During and after an upgrade, only the new process may write the board.
                    if !self.upgrade.is_under_way() && self.upgrade.successor.is_none() {
                        board.tick(&self.active.sites).await;
                    }
                },
                _ = self.pages.tick() => self.refresh_pages(),
                // The probe does nothing while another process owns the state directory.
                _ = self.state.tick() => self.active.sites.state.directory.iter().for_each(StateDir::probe),
                _ = self.notices.tick(), if is_serving => self.notify(),
                Some(_) = self.background.join_next() => {}
                ended = self.active.workers.ended(), if !self.is_drained => match ended {
                    None => self.is_drained = true,
                    Some(Ok(())) => {}
                    Some(Err(error)) => {
                        let why = self.active.state.watchdog.last_panic().unwrap_or_else(|| error.to_string());
                        return Err(format!("a worker thread has ended and its connections would get no answers, \
                            so robotsd stops: {why}"));
                    }
                },
            }
        }
    }

    /// Reopens the access log, because a log rotation may have moved its file.
    fn reopen_log(&self) {
        self.access.iter().for_each(|access| access.reopen());
    }

    fn reload(&mut self) {
        self.reopen_log();
        if self.upgrade.postpone_reload() || self.active.state.phase() == Phase::Draining {
            return;
        }
        self.active.log.write_message(LogEvent::Reload, "requested by a signal");
        self.active.certificates.reload();
        self.background.spawn(reload(Arc::clone(&self.active.state), self.supervisor.clone()));
    }

    fn refresh_pages(&mut self) {
        let is_over = self.reading_pages.as_ref().is_none_or(AbortHandle::is_finished);
        if is_over && self.active.state.phase() == Phase::Serving {
            let board = self.board.as_ref().map(|board| Arc::clone(&board.board));
            self.reading_pages = Some(self.background.spawn(Arc::clone(&self.active.sites).refresh_pages(board)));
        }
    }

    /// Sends notices to the hooks in `[[notify]]`, on another thread, because files must be read.
    fn notify(&mut self) {
        let (sites, state) = (Arc::clone(&self.active.sites), Arc::clone(&self.active.state));
        if !self.active.config.notify.is_empty() && self.notifying.as_ref().is_none_or(AbortHandle::is_finished) {
            self.notifying = Some(self.background.spawn_blocking(move || sites.notify(&state.config.report())));
        }
    }

    fn apply_upgrade_step(&mut self, step: UpgradeStep) {
        match self.upgrade.step(step, &mut self.active, self.board.as_mut()) {
            AfterStep::Nothing => {}
            AfterStep::Reload => self.reload(),
            AfterStep::Leave(process, summary) => {
                self.supervisor.succeeded_by(process, &summary);
                self.active.state.set_phase(Phase::Draining);
                self.active.listeners.lock().drain();
            }
        }
    }

    /// Closes the listeners. Requests in progress may finish.
    fn drain(&mut self) {
        const DRAINING: &str = "robotsd accepts no new connections, and finishes the requests in progress";
        self.active.log.write_message(LogEvent::Stopping, DRAINING);
        self.active.state.set_phase(Phase::Draining);
        self.supervisor.stopping(DRAINING);
        self.active.release_sockets();
        self.active.listeners.lock().drain();
    }

    /// Sends a task to every worker. When all workers have run this task, a background task
    /// notifies the watchdog of the supervisor. This function does not wait for the workers.
    fn report_alive(&mut self) {
        // After an upgrade, only the new process may notify the watchdog.
        if self.upgrade.successor.is_some() {
            return;
        }
        let answered = self.active.workers.answer();
        let supervisor = self.supervisor.clone();
        self.background.spawn(async move {
            answered.await;
            supervisor.alive();
        });
    }
}

/// Writes the state directory when dropped, so that the directory is written even after an error.
struct FlushOnDrop {
    state: Option<StateDir>,
    log: Log,
}

impl Drop for FlushOnDrop {
    fn drop(&mut self) {
        if self.state.as_ref().is_some_and(|state| !state.flush_within(FLUSH)) {
            self.log.write_message_at(
                LogLevel::Error,
                LogEvent::State,
                "changes that could not be written to the state directory are lost",
            );
        }
    }
}

/// Performs a complete reload, and notifies the supervisor when the reload begins and ends.
async fn reload(state: Arc<ServerState>, supervisor: Supervisor) {
    supervisor.reloading();
    // `reconfigure` has already logged the outcome. If the change succeeded, the sites of the new
    // config are now served.
    let _ = state.reconfigure().await;
    let Some(serving) = state.serving() else { return };
    // The result is ignored, because the only possible error is an unknown site name.
    let _ = serving.sites.reload(None).await;
    if let Some(serving) = state.serving().filter(|_| state.phase() == Phase::Serving) {
        supervisor.ready(&serving.summary());
    }
}
