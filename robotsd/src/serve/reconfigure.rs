//! Another config takes the place of the one that is served, while everything runs.
//!
//! All of it is known to work before anything is touched: it is read and checked, new listeners are bound, new sources
//! are opened, on a thread that nobody waits for. Then sites and listeners are swapped at once. Whatever is wrong, there is
//! one line in the log and everything stays as it was.

use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;

use super::certificate_watch::CertificateWatch;
use super::config_requests::ReloadWaiter;
use super::descriptors::Descriptors;
use super::listeners::{ListenerPlan, Listeners};
use super::renewal::Renewal;
use super::sites::Sites;
use super::watched_files::WatchedFiles;
use super::workers::Workers;
use crate::admin::{ConfigReload, ServerState, Serving};
use crate::config::Config;
use crate::edge::{Edge, EdgeLimits};
use crate::log::Log;

/// Who asks may do so in the middle of writing: the file must have been left alone for so long.
const QUIET: Duration = Duration::from_millis(400);

/// How long until a source that could not be used is tried again.
const AGAIN: Duration = Duration::from_secs(10);

/// The config that is served, and what is needed to serve another.
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
    pub(super) log: Log,
    pub(super) change: PendingChange,
}

/// A change that is being prepared.
#[derive(Debug, Default)]
pub(super) struct PendingChange {
    preparing: Option<JoinHandle<Result<PreparedConfig, String>>>,
    /// Who asked for it.
    askers: Vec<ReloadWaiter>,
    /// Who has asked since it began, for another.
    next: Option<Vec<ReloadWaiter>>,
    /// When sources that could not be used are tried again.
    again: Option<Instant>,
    /// What was last said of them.
    said: Vec<String>,
}

/// A config that makes sense, with all that is new of it open.
#[derive(Debug)]
struct PreparedConfig {
    config: Config,
    plan: ListenerPlan,
    renewal: Renewal,
}

impl PendingChange {
    /// Completes when a change is prepared, or when it is time to try again what could not be used.
    async fn next(&mut self) -> Option<Result<Result<PreparedConfig, String>, JoinError>> {
        match (&mut self.preparing, self.again) {
            (Some(preparing), _) => Some(preparing.await),
            (None, Some(again)) => {
                tokio::time::sleep_until(again).await;
                None
            }
            (None, None) => pending().await,
        }
    }
}

impl ActiveConfig {
    /// Begins to read the config file; an asker is told what comes of it.
    pub(super) fn ask(&mut self, asker: Option<ReloadWaiter>, workers: &Workers) {
        let askers = asker.into_iter();
        if self.change.preparing.is_some() {
            // What is being read may be older than the asking.
            self.change.next.get_or_insert_default().extend(askers);
            return;
        }
        self.change.askers.extend(askers);
        self.change.again = None;
        let (path, sites, listeners) = (self.path.clone(), Arc::clone(&self.sites), Arc::clone(&self.listeners));
        let count = workers.count();
        self.change.preparing = Some(tokio::task::spawn_blocking(move || {
            wait_until_quiet(&path);
            let config = Config::load(&path).map_err(|error| error.to_string())?;
            let plan = listeners.lock().unwrap_or_else(PoisonError::into_inner).plan(&config, count)?;
            let renewal = sites.renew(&config)?;
            renewal.apply_settings();
            Ok(PreparedConfig { config, plan, renewal })
        }));
    }

    /// Waits for a change to be ready, and makes it.
    pub(super) async fn changed(&mut self) -> PreparationEnd {
        PreparationEnd(self.change.next().await)
    }

    /// Makes a change that is ready.
    pub(super) fn make(&mut self, ready: PreparationEnd, workers: &mut Workers) {
        let PreparationEnd(Some(prepared)) = ready else {
            return self.ask(None, workers);
        };
        self.change.preparing = None;
        let was_asked = !self.change.askers.is_empty();
        let prepared = prepared.unwrap_or_else(|error| Err(format!("it could not be looked at: {error}")));
        let (outcome, message) = match prepared {
            Ok(prepared) => self.swap(prepared, workers),
            Err(error) => ("kept", format!("{error}; the config before stays in force")),
        };
        match outcome {
            "kept" => self.log.say("config-rejected", message.clone()),
            // Nobody needs to hear that nothing has changed, unless they asked.
            "unchanged" if !was_asked => {}
            _ => self.log.say("config", message.clone()),
        }
        for asker in self.change.askers.drain(..) {
            // Who does not wait any more need not be told.
            let _ = asker.send(ConfigReload { outcome: outcome.to_owned(), message: message.clone() });
        }
        if let Some(next) = self.change.next.take() {
            self.change.askers = next;
            self.ask(None, workers);
        }
    }

    /// Lets go of what would keep ports open, because the end has begun; who waits for a change waits for nothing.
    pub(super) fn let_go(&mut self) {
        self.change = PendingChange::default();
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).let_go();
    }

    fn swap(&mut self, prepared: PreparedConfig, workers: &mut Workers) -> (&'static str, String) {
        let PreparedConfig { config, plan, renewal } = prepared;
        let Renewal { sites, mut changes, unusable, .. } = renewal;
        changes.extend(plan.changes.iter().cloned());
        self.sites = Arc::new(sites);
        workers.replace(&self.sites);
        let (opened, reports, certificates) = {
            let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
            let opened = listeners.apply(plan, workers, &self.edge, &self.log);
            listeners.set_limits(&config.edge);
            (opened, listeners.reports(), listeners.certificates())
        };
        match opened {
            Ok(places) => places.iter().for_each(|place| self.log.say("listening", place)),
            // It was bound: only a process without descriptors gets here.
            Err(error) => changes.push(error),
        }
        changes.extend(self.limit(&config));
        changes.extend(later(&self.config, &config));
        self.certificates.follow(certificates);
        self.watches.follow(&self.sites);
        self.state.is_serving(Serving::new(&self.sites, reports, &self.edge));
        self.config = Arc::new(config);

        self.change.again = (!unusable.is_empty()).then(|| Instant::now() + AGAIN);
        let is_news = self.change.said != unusable;
        let shown = self.path.display();
        let outcome = if changes.is_empty() && !is_news { "unchanged" } else { "published" };
        changes.extend(unusable.iter().cloned());
        self.change.said = unusable;
        let message = if changes.is_empty() { "nothing is different".to_owned() } else { changes.join("; ") };
        (outcome, format!("{shown}: {message}"))
    }

    /// Grants what a config says to connections that are yet to come.
    fn limit(&self, config: &Config) -> Option<String> {
        let before = self.edge.connections();
        let connections = match self.descriptors.bound(config) {
            Ok(places) => places.connections,
            Err(_) => before,
        };
        if connections != before {
            self.edge.set_places(before, connections);
        }
        self.edge.set_limits(EdgeLimits { connections, ..config.edge.clone() });
        let is_same = self.config.edge == config.edge && self.config.connections == config.connections;
        (!is_same || connections != before).then(|| "other limits for new connections".to_owned())
    }
}

/// What came of waiting for a change.
pub(super) struct PreparationEnd(Option<Result<Result<PreparedConfig, String>, JoinError>>);

/// What cannot change while the process runs.
fn later(before: &Config, config: &Config) -> Option<String> {
    let keys = [
        ("workers", before.workers == config.workers),
        ("state_dir", before.state_dir == config.state_dir),
        ("admin", before.admin == config.admin),
        ("log", before.log == config.log),
    ];
    let keys: Vec<_> = keys.into_iter().filter(|(_, is_same)| !is_same).map(|(key, _)| key).collect();
    (!keys.is_empty()).then(|| format!("from the next start on: {}", keys.join(", ")))
}

fn wait_until_quiet(path: &Path) {
    let age = |path: &Path| std::fs::metadata(path).ok()?.modified().ok()?.elapsed().ok();
    // Bounded, for a file that is written to without end.
    let end = SystemTime::now() + 5 * QUIET;
    while let Some(rest) = age(path).and_then(|age| QUIET.checked_sub(age)).filter(|_| SystemTime::now() < end) {
        std::thread::sleep(rest);
    }
}
