//! Another config takes the place of the one that is served, while everything runs.
//!
//! A [`Preparation`] reads and checks it, binds new listeners and opens new sources, on a blocking thread. Only when all of
//! that works are sites and listeners swapped, at once. Otherwise there is one line in the log, and everything stays as it
//! was.

use std::future::pending;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tower_robots::check::Severity;

use super::admin_places::AdminPlaces;
use super::certificate_watch::CertificateWatch;
use super::config_log;
use super::config_waiters::ConfigWaiters;
use super::descriptors::Descriptors;
use super::listeners::Listeners;
use super::preparation::{Preparation, PreparedConfig, RejectedConfig};
#[cfg(target_os = "linux")]
use super::upgrade::HandedSockets;
use super::upgrade::Successor;
use super::watched_files::WatchedFiles;
use super::workers::Workers;
use crate::admin::{CONFIG_PATIENCE, ReloadWaiter, ServerState, Serving};
use crate::config::{Config, SettingChange, setting_changes};
use crate::edge::{Edge, EdgeLimits};
use crate::log::{Log, LogEvent};
use crate::sites::{Renewal, Sites, UnusableSource};

/// How long until what could not be used or opened is tried again.
const AGAIN: Duration = Duration::from_secs(10);

/// The config that is served, and everything needed to serve another.
pub(super) struct ActiveConfig {
    pub(super) path: PathBuf,
    pub(super) config: Arc<Config>,
    pub(super) sites: Arc<Sites>,
    pub(super) listeners: Arc<Mutex<Listeners>>,
    pub(super) edge: Edge,
    pub(super) descriptors: Descriptors,
    pub(super) certificates: CertificateWatch,
    pub(super) watches: WatchedFiles,
    pub(super) state: Arc<ServerState>,
    pub(super) admin: AdminPlaces,
    /// The config of the start, which some settings stay those of.
    pub(super) started: Arc<str>,
    pub(super) log: Log,
    pub(super) change: PendingChange,
}

/// A change that is being prepared, and the requests that wait for it.
#[derive(Debug, Default)]
pub(super) struct PendingChange {
    preparing: Option<Preparation>,
    waiters: ConfigWaiters,
    /// When sources that could not be used, and places that could not be opened, are tried again.
    again: Option<Instant>,
    /// The sources that were last logged as unusable.
    logged: Vec<UnusableSource>,
}

/// What the change needs next.
pub(super) enum ChangeStep {
    Swap(Result<Box<PreparedConfig>, RejectedConfig>),
    /// The preparation hangs, and a newer request waits.
    Abandon,
    /// What could not be used or opened is tried again.
    TryAgain,
}

impl PendingChange {
    async fn next(&mut self) -> ChangeStep {
        match (&mut self.preparing, self.again) {
            (Some(preparing), _) => {
                let limit = self.waiters.has_next().then_some(CONFIG_PATIENCE);
                let end = preparing.end_within(limit).await;
                end.map_or(ChangeStep::Abandon, |prepared| ChangeStep::Swap(prepared.map(Box::new)))
            }
            (None, Some(again)) => {
                tokio::time::sleep_until(again).await;
                ChangeStep::TryAgain
            }
            (None, None) => pending().await,
        }
    }
}

impl ActiveConfig {
    /// Begins to read the config file; a waiter gets the outcome.
    pub(super) fn request(&mut self, waiter: Option<ReloadWaiter>, workers: &Workers) {
        match &self.change.preparing {
            None => {
                self.change.waiters.join(waiter);
                self.prepare(workers);
            }
            Some(preparing) if preparing.is_reading() => self.change.waiters.queue(waiter),
            Some(_) => self.change.waiters.join(waiter),
        }
    }

    /// Waits until the change needs something.
    pub(super) async fn changed(&mut self) -> ChangeStep {
        self.change.next().await
    }

    pub(super) fn step(&mut self, step: ChangeStep, workers: &mut Workers) {
        let prepared = match step {
            ChangeStep::TryAgain => return self.prepare(workers),
            ChangeStep::Swap(prepared) => prepared,
            ChangeStep::Abandon => {
                let (path, limit) = (self.path.display(), CONFIG_PATIENCE.as_secs());
                let why = format!("{path}: a file of it was still being read after {limit} s, and it is read anew");
                Err(RejectedConfig { why, changes: None })
            }
        };
        self.change.preparing = None;
        let was_rejected = self.state.config().is_rejected();
        let (outcome, message) = match prepared {
            Ok(prepared) => match self.swap(*prepared, workers) {
                ("unchanged", _) if was_rejected => {
                    let path = self.path.display();
                    ("unchanged", format!("{path}: the file is accepted again: it says what is served"))
                }
                swapped => swapped,
            },
            Err(rejected) => ("kept", self.keep(rejected)),
        };
        match outcome {
            "kept" => self.log.say(LogEvent::ConfigRejected, message.clone()),
            // Only a request, or the end of a rejection, is worth a line that says that nothing is different.
            "unchanged" if self.change.waiters.is_empty() && !was_rejected => {}
            _ => self.log.say(LogEvent::Config, message.clone()),
        }
        if self.change.waiters.answer(outcome, &message) {
            self.prepare(workers);
        }
    }

    /// Whether another config is being prepared.
    pub(super) fn is_changing(&self) -> bool {
        self.change.preparing.is_some()
    }

    /// Starts a new process of the program, which gets every listening socket.
    pub(super) fn start_successor(&self) -> Result<Successor, String> {
        #[cfg(target_os = "linux")]
        return Successor::start(self.sockets()?, self.config.upgrade);
        #[cfg(not(target_os = "linux"))]
        return Err("an upgrade in place needs Linux: restart instead".to_owned());
    }

    /// Every listening socket once more, with what it is for.
    #[cfg(target_os = "linux")]
    fn sockets(&self) -> Result<HandedSockets, String> {
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner).sockets();
        let sockets = listeners.and_then(|mut sockets| {
            sockets.extend(self.admin.sockets()?);
            Ok(sockets)
        });
        sockets.map_err(|error| format!("the sockets cannot be handed over: {error}"))
    }

    /// Another process has every socket: clients are told to connect there.
    pub(super) fn leave_to_successor(&mut self) {
        self.edge.set_successor();
        #[cfg(unix)]
        self.admin.leave();
        self.let_go();
    }

    /// Gives up the sockets that would keep ports open, because the end has begun. Requests that wait get no outcome.
    pub(super) fn let_go(&mut self) {
        self.change = PendingChange::default();
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).let_go();
    }

    fn prepare(&mut self, workers: &Workers) {
        self.change.again = None;
        let (sites, listeners) = (Arc::clone(&self.sites), Arc::clone(&self.listeners));
        let (path, before) = (self.path.clone(), Arc::clone(&self.config.text));
        self.change.preparing =
            Some(Preparation::begin(path, before, sites, listeners, &self.watches, workers.count()));
    }

    /// Keeps the config that is served, and returns the message about the one that cannot be.
    fn keep(&self, rejected: RejectedConfig) -> String {
        let RejectedConfig { why, changes } = rejected;
        self.state.config().reject(&why, changes);
        format!("{why}; the config before stays in force")
    }

    fn swap(&mut self, prepared: PreparedConfig, workers: &mut Workers) -> (&'static str, String) {
        let PreparedConfig { config, watched, plan, renewal, changes: settings } = prepared;
        let Renewal { sites, come_and_gone, altered, unusable, .. } = renewal;
        config_log::changed(&self.log, &settings, &unusable);
        let mut changes = config_log::summary(&settings);
        if settings.is_empty() {
            changes.extend(altered);
        }
        changes.extend(come_and_gone);
        changes.extend(plan.changes.iter().cloned());
        let before = std::mem::replace(&mut self.sites, sites);
        workers.replace(&self.sites);
        // Once requests are answered by them, and before the board asks what was counted.
        self.sites.note_moved_hosts(&before);
        let sites = Arc::clone(&self.sites);
        tokio::task::spawn_blocking(move || sites.announce());
        if let Some(engines) = self.sites.spared_engines().filter(|now| before.spared_engines().as_ref() != Some(now)) {
            self.log.say(LogEvent::SearchEngines, engines);
        }
        drop(before);
        let (opened, reports, certificates) = {
            let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
            let opened = listeners.apply(plan, workers, &self.edge, &self.log);
            listeners.set_limits(&config.edge);
            (opened, listeners.reports(), listeners.certificates())
        };
        match opened {
            Ok(addresses) => addresses.iter().for_each(|address| self.log.say(LogEvent::Listening, address)),
            // It was bound: only a process without descriptors gets here.
            Err(error) => changes.push(error),
        }
        changes.extend(self.limit(&config));
        let admin = self.admin.follow(config.admin.as_ref(), &self.state, &self.log);
        changes.extend(admin.changes);
        changes.extend(deferred(&settings));
        let mut next_start = setting_changes(&self.started, &config.text).unwrap_or_default();
        next_start.retain(SettingChange::is_for_start);
        self.certificates.follow(certificates.clone());
        self.watches.follow(&config, watched);
        let lookups = workers.agent_lookups();
        self.state.is_serving(Serving::new(&self.sites, reports, certificates, lookups, &self.edge));
        let is_other = self.config.text != config.text;
        self.config = Arc::new(config);
        if is_other {
            log_warnings(&self.config, &self.log);
        }

        self.change.again = (!unusable.is_empty() || !admin.failures.is_empty()).then(|| Instant::now() + AGAIN);
        let is_news = self.change.logged != unusable || admin.is_news;
        let path = self.path.display();
        let outcome = if changes.is_empty() && !is_news { "unchanged" } else { "published" };
        changes.extend(unusable.iter().map(ToString::to_string));
        changes.extend(admin.failures);
        self.change.logged = unusable;
        let message = if changes.is_empty() { "nothing is different".to_owned() } else { changes.join("; ") };
        self.state.config().accept(outcome == "published", next_start);
        (outcome, format!("{path}: {message}"))
    }

    /// Grants the limits of a config to new connections.
    fn limit(&self, config: &Config) -> Option<String> {
        let before = self.edge.connections();
        let connections = self.descriptors.bound(config).map_or(before, |bound| bound.connections);
        if connections != before {
            self.edge.set_places(before, connections);
        }
        self.edge.set_limits(EdgeLimits { connections, ..config.edge.clone() });
        let is_same = self.config.edge == config.edge && self.config.connections == config.connections;
        (!is_same || connections != before).then(|| "other limits for new connections".to_owned())
    }
}

/// One line for every value of the config that probably is not meant as it is. It waits for no file: they are read on a
/// blocking thread.
pub(super) fn log_warnings(config: &Arc<Config>, log: &Log) {
    let (config, log) = (Arc::clone(config), log.clone());
    tokio::task::spawn_blocking(move || {
        for warning in config.review().iter().filter(|found| found.severity() == Severity::Warning) {
            log.say(LogEvent::ConfigWarning, warning.to_string());
        }
    });
}

/// The tables and keys whose differences take effect only when the process starts again.
fn deferred(changes: &[SettingChange]) -> Option<String> {
    let is_deferred = |key: &&str| {
        let is_of = |change: &SettingChange| change.setting.split('.').next() == Some(key);
        changes.iter().any(|change| change.is_for_start() && is_of(change))
    };
    let keys: Vec<_> = ["workers", "state_dir", "admin", "board", "log"].into_iter().filter(is_deferred).collect();
    (!keys.is_empty()).then(|| format!("from the next start on: {}", keys.join(", ")))
}
