//! The loop of the control thread: signals, requests to read the config again, changes of watched
//! files, the watchdog.
//!
//! It never waits for a file: files are read on blocking threads, which send back their results.

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

/// Maximum time that the end waits for the state directory: a file system may hang.
const FLUSH: Duration = Duration::from_secs(5);

/// Maximum time that the end waits for clients of the admin interface to receive their answers.
const ANSWERED: Duration = Duration::from_secs(1);

/// Maximum time that the end waits for the removal of this replica from the fleet's store. A
/// replica left in it is reported missing for a day.
const LEFT: Duration = Duration::from_secs(5);

/// Interval between checks for sites whose pages are due to be read again.
const PAGES: Duration = Duration::from_secs(2);

/// Interval between collections of events for notifications.
const NOTICES: Duration = Duration::from_secs(2);

/// Interval between tests whether the state directory can be written.
const STATE: Duration = Duration::from_secs(10);

/// The state that the control thread owns while the process serves.
pub(super) struct ControlLoop<'a> {
    // Dropped first, because the event loops that it watches end with the process.
    _watch: WatchGuard,
    // Dropped before the sites.
    _flush: FlushOnDrop,
    active: ActiveConfig,
    signals: Signals,
    requests: ControlRequests,
    upgrade: UpgradeKeeper,
    supervisor: Supervisor,
    access: Option<&'a AccessLog>,
    heartbeat: Option<Interval>,
    board: Option<BoardKeeper>,
    /// When pages that gates watch are checked, and the current reading of pages.
    pages: Interval,
    reading_pages: Option<AbortHandle>,
    state: Interval,
    /// When notifications are collected, and the task that sends them.
    notices: Interval,
    notifying: Option<AbortHandle>,
    /// Tasks that end with the process.
    background: JoinSet<()>,
    /// Whether a signal to stop was received.
    is_stopped: bool,
    /// Whether every listener and every connection is closed.
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
            heartbeat: Supervisor::pulse().map(ticks),
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

    /// Runs until every connection is closed after a signal to stop, or until a second such signal.
    pub(super) async fn run(mut self) -> Result<(), String> {
        let outcome = self.serve().await;
        self.upgrade.finish().await;
        if let Some(board) = self.board.take() {
            board.finish(&self.active.sites).await;
        }
        self.active.sites.finish_hooks().await;
        self.active.state.audit.finish().await;
        // A process that replaces this one has the same name in the fleet.
        if let Some(fleet) = self.active.sites.state.fleet.as_ref().filter(|_| self.upgrade.successor.is_none()) {
            let _ = timeout(LEFT, fleet.leave()).await;
        }
        // For example, the answer that an upgrade is done.
        let _ = timeout(ANSWERED, self.active.admin.answered()).await;
        self.active.admin.remove_socket_file();
        outcome
    }

    async fn serve(&mut self) -> Result<(), String> {
        let (config_changed, others_changed) =
            (Arc::clone(&self.active.watches.config), Arc::clone(&self.active.watches.watch.notify));
        let registry_changed = self.active.sites.registry_changed();
        loop {
            if self.is_drained {
                self.active.log.say(LogEvent::Stopped, "every connection is closed");
                return Ok(());
            }
            // While another process may take over, nothing is opened or closed.
            let is_serving = self.active.state.phase() == Phase::Serving && !self.upgrade.is_under_way();
            tokio::select! {
                signal = self.signals.next() => match signal {
                    Signal::Reload => self.reload(),
                    Signal::Upgrade => self.upgrade.begin(&self.active, None),
                    Signal::Stop if self.is_stopped => {
                        self.active.log.say(LogEvent::Stopped, "a second signal: requests under way are cut off");
                        return Ok(());
                    }
                    Signal::Stop => {
                        self.is_stopped = true;
                        // After an upgrade, this process is draining already.
                        let is_serving = self.active.state.phase() != Phase::Draining;
                        self.upgrade.abandon(&mut self.active);
                        if is_serving {
                            self.drain();
                        }
                    }
                },
                // While draining, no config is read: dropping the waiter ends its request.
                Some(waiter) = self.requests.upgrades.recv() => self.upgrade.begin(&self.active, Some(waiter)),
                step = self.upgrade.next() => self.step_of_upgrade(step),
                Some(waiter) = self.requests.reloads.recv() => {
                    self.reopen_log();
                    if !self.upgrade.puts_reload_off() && is_serving {
                        self.active.request(Some(waiter));
                    }
                },
                () = config_changed.notified() => if !self.upgrade.puts_reload_off() && is_serving {
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
                    let is_of_config = watched_files::are_of_config(&changed, &self.active.config);
                    if is_of_config && !self.upgrade.puts_reload_off() && is_serving {
                        self.active.request(None);
                    }
                    self.background.spawn(Arc::clone(&self.active.sites).follow(changed));
                }
                () = next_tick(self.heartbeat.as_mut()) => self.report_alive(),
                () = next_tick(self.board.as_mut().map(|board| &mut board.ticks)) => if let Some(board) = &mut self.board {
                    // During and after an upgrade, the other process may write.
                    if !self.upgrade.is_under_way() && self.upgrade.successor.is_none() {
                        board.tick(&self.active.sites).await;
                    }
                },
                _ = self.pages.tick() => self.refresh_pages(),
                // Does nothing while another process has the directory.
                _ = self.state.tick() => self.active.sites.state.directory.iter().for_each(StateDir::probe),
                _ = self.notices.tick(), if is_serving => self.notify(),
                Some(_) = self.background.join_next() => {}
                ended = self.active.workers.ended(), if !self.is_drained => match ended {
                    None => self.is_drained = true,
                    Some(Ok(())) => {}
                    Some(Err(error)) => {
                        let why = self.active.state.watchdog.last_panic().unwrap_or_else(|| error.to_string());
                        return Err(format!("a worker has ended, and its connections would get no answer: {why}"));
                    }
                },
            }
        }
    }

    /// Opens the access log again, because its file may have been moved away.
    fn reopen_log(&self) {
        self.access.iter().for_each(|access| access.reopen());
    }

    /// Reads everything again, on other threads.
    fn reload(&mut self) {
        self.reopen_log();
        if self.upgrade.puts_reload_off() || self.active.state.phase() == Phase::Draining {
            return;
        }
        self.active.log.say(LogEvent::Reload, "requested by a signal");
        self.active.certificates.reload();
        self.background.spawn(reload(Arc::clone(&self.active.state), self.supervisor.clone()));
    }

    /// Reads the pages that gates watch, if they are due. The reading is limited, and does not
    /// start again before it has ended.
    fn refresh_pages(&mut self) {
        let is_over = self.reading_pages.as_ref().is_none_or(AbortHandle::is_finished);
        if is_over && self.active.state.phase() == Phase::Serving {
            let board = self.board.as_ref().map(|board| Arc::clone(&board.board));
            self.reading_pages = Some(self.background.spawn(Arc::clone(&self.active.sites).refresh_pages(board)));
        }
    }

    /// Sends the notifications that `[[notify]]` requests. This reads files, so it runs on another
    /// thread.
    fn notify(&mut self) {
        let (sites, state) = (Arc::clone(&self.active.sites), Arc::clone(&self.active.state));
        if !self.active.config.notify.is_empty() && self.notifying.as_ref().is_none_or(AbortHandle::is_finished) {
            self.notifying = Some(self.background.spawn_blocking(move || sites.notify(&state.config.report())));
        }
    }

    fn step_of_upgrade(&mut self, step: UpgradeStep) {
        match self.upgrade.step(step, &mut self.active, self.board.as_mut()) {
            AfterStep::Nothing => {}
            AfterStep::Reload => self.reload(),
            AfterStep::Leave(process, summary) => {
                self.supervisor.succeeded_by(process, &summary);
                self.active.state.enter(Phase::Draining);
                self.active.listeners.lock().drain();
            }
        }
    }

    /// Closes the listeners; requests in progress are finished.
    fn drain(&mut self) {
        const DRAINING: &str = "no new connections; requests under way are finished";
        self.active.log.say(LogEvent::Stopping, DRAINING);
        self.active.state.enter(Phase::Draining);
        self.supervisor.stopping(DRAINING);
        self.active.let_go();
        self.active.listeners.lock().drain();
    }

    /// Tells the watchdog that the process is alive, once every worker has run a task.
    fn report_alive(&mut self) {
        // Reporting after an upgrade would hide that the new process is not alive.
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

/// Writes the state directory when the process ends, for whatever reason.
struct FlushOnDrop {
    state: Option<StateDir>,
    log: Log,
}

impl Drop for FlushOnDrop {
    fn drop(&mut self) {
        if self.state.as_ref().is_some_and(|state| !state.flush_within(FLUSH)) {
            self.log.say_at(
                LogLevel::Error,
                LogEvent::State,
                "changes that could not be written to the state directory are lost",
            );
        }
    }
}

/// Reads everything again, and notifies the supervisor when that is done, because it waits for
/// that.
async fn reload(state: Arc<ServerState>, supervisor: Supervisor) {
    supervisor.reloading();
    // The outcome is logged. The sites read again below are those of the config at that time.
    let _ = state.reconfigure().await;
    let Some(serving) = state.serving() else { return };
    // No site is named, so no name can be unknown.
    let _ = serving.sites.reload(None).await;
    if let Some(serving) = state.serving().filter(|_| state.phase() == Phase::Serving) {
        supervisor.ready(&serving.summary());
    }
}
