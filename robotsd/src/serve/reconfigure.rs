//! Replaces the served config without a restart, and responds to the requests that wait for the
//! outcome.
//!
//! A [`Preparation`] reads and checks the config, binds new listeners and opens new sources, on a
//! blocking thread. If the preparation succeeds, all sites and listeners are replaced. If the
//! preparation fails, the error is logged, and nothing changes.
//!
//! **A reload that is requested during another reload joins that reload** if the config file has
//! not been opened yet. If the file has already been opened, it is read again after the current
//! reload. In both cases, the outcome includes every change that was made before the request.

use std::collections::BTreeSet;
use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::time::Instant;
use tower_robots::check::Severity;

use super::admin_places::AdminSockets;
use super::descriptors::Descriptors;
use super::listeners::{ListenerPlan, Listeners};
use super::preparation::{Preparation, PreparedConfig, RejectedConfig};
use super::upgrade::{HandedSockets, Successor};
use super::watched_files::{CertificateWatch, WatchedFiles};
use super::workers::Workers;
use crate::admin::{CONFIG_RELOAD_TIMEOUT, ReloadWaiter, ServerState, Serving};
use crate::config::{Config, RefusedFile, SettingChange, setting_changes};
use crate::date::rfc3339;
use crate::edge::{Edge, EdgeLimits};
use crate::log::{Log, LogEntry, LogEvent};
use crate::report::ReloadOutcome;
use crate::sites::{Renewal, Sites, UnusableSource};

/// Delay before a rejected config, an unusable source, or a listener that cannot be opened is tried
/// again.
const RETRY_DELAY: Duration = Duration::from_secs(10);

pub(super) struct ActiveConfig {
    pub(super) path: PathBuf,
    pub(super) config: Arc<Config>,
    pub(super) sites: Arc<Sites>,
    pub(super) listeners: Arc<Mutex<Listeners>>,
    pub(super) workers: Workers,
    pub(super) edge: Edge,
    pub(super) descriptors: Descriptors,
    pub(super) certificates: CertificateWatch,
    pub(super) watches: WatchedFiles,
    pub(super) state: Arc<ServerState>,
    pub(super) admin: AdminSockets,
    /// Text of the config at the start of the process. Some settings keep their values from this
    /// text until the next start.
    pub(super) started: Arc<str>,
    pub(super) log: Log,
    pub(super) change: PendingChange,
}

#[derive(Debug, Default)]
pub(super) struct PendingChange {
    preparing: Option<Preparation>,
    waiters: ConfigWaiters,
    /// Time of the next attempt to use a rejected config or unusable sources, or to open a
    /// listener.
    retry_at: Option<Instant>,
    logged: Vec<UnusableSource>,
    /// Time and description of the last reload that changed something.
    last: Option<String>,
}

pub(super) enum ChangeStep {
    Swap(Result<Box<PreparedConfig>, RejectedConfig>),
    /// The preparation hangs, and a newer request is waiting.
    Abandon,
    /// Try a rejected config, unusable sources, or the opening of a listener again.
    TryAgain,
}

impl PendingChange {
    pub(super) async fn next(&mut self) -> ChangeStep {
        match (&mut self.preparing, self.retry_at) {
            (Some(preparing), _) => {
                let limit = self.waiters.next.is_some().then_some(CONFIG_RELOAD_TIMEOUT);
                let end = preparing.end_within(limit).await;
                end.map_or(ChangeStep::Abandon, |prepared| ChangeStep::Swap(prepared.map(Box::new)))
            }
            (None, Some(retry_at)) => {
                tokio::time::sleep_until(retry_at).await;
                ChangeStep::TryAgain
            }
            (None, None) => pending().await,
        }
    }
}

impl ActiveConfig {
    /// Starts to read the config file, or joins a preparation that has not opened the file yet. The
    /// outcome is sent to `waiter`.
    pub(super) fn request(&mut self, waiter: Option<ReloadWaiter>) {
        match &self.change.preparing {
            None => {
                self.change.waiters.join(waiter);
                self.prepare();
            }
            Some(preparing) if preparing.is_reading() => self.change.waiters.queue(waiter),
            Some(_) => self.change.waiters.join(waiter),
        }
    }

    pub(super) fn step(&mut self, step: ChangeStep) {
        let prepared = match step {
            ChangeStep::TryAgain => return self.prepare(),
            ChangeStep::Swap(prepared) => prepared,
            ChangeStep::Abandon => {
                let (path, limit) = (self.path.display(), CONFIG_RELOAD_TIMEOUT.as_secs());
                let why = format!(
                    "{path}: a file of the config could not be read within {limit} s, so robotsd reads the config \
                     again"
                );
                Err(RejectedConfig { why, changes: None })
            }
        };
        self.change.preparing = None;
        let was_rejected = self.state.config.problem().is_some();
        let mut is_known = false;
        let (outcome, message) = match prepared {
            Ok(prepared) => match self.swap(*prepared) {
                ("unchanged", _) if was_rejected => {
                    let path = self.path.display();
                    (
                        "unchanged",
                        format!("{path}: the config is valid again, and does not differ from the config in use"),
                    )
                }
                swapped => swapped,
            },
            Err(RejectedConfig { why, changes }) => {
                // The config is tried again automatically, because the cause of the rejection may
                // be outside the file. For example, a key file may not exist yet, or another
                // program may use a port.
                self.change.retry_at = Some(Instant::now() + RETRY_DELAY);
                is_known = !self.state.config.reject(&why, changes);
                ("kept", format!("{why}; the previous config stays in use"))
            }
        };
        match outcome {
            // If nobody requested the reload, two outcomes are not logged: a config that is
            // rejected for the same reason as before, and a valid config that has not changed.
            "kept" if self.change.waiters.now.is_empty() && is_known => {}
            "kept" => self.log.write_message(LogEvent::ConfigRejected, message.clone()),
            "unchanged" if self.change.waiters.now.is_empty() && !was_rejected => {}
            _ => self.log.write_message(LogEvent::Config, message.clone()),
        }
        let refused = &self.config.included.refused;
        let (outcome, message) = match outcome {
            // If somebody requested the reload, the outcome also contains the included files that
            // are still rejected.
            "published" | "unchanged" if !refused.is_empty() => {
                ("partly", refused.iter().fold(message, |message, refused| format!("{message}\n{refused}")))
            }
            whole => (whole, message),
        };
        if self.change.waiters.answer(outcome, &message) {
            self.prepare();
        }
    }

    pub(super) fn is_changing(&self) -> bool {
        self.change.preparing.is_some()
    }

    /// Starts a new process of the program, and hands it every listening socket.
    pub(super) fn start_successor(&self) -> Result<Successor, String> {
        Successor::start(self.sockets()?, self.config.upgrade)
    }

    fn sockets(&self) -> Result<HandedSockets, String> {
        let listeners = self.listeners.lock().sockets();
        let sockets = listeners.and_then(|mut sockets| {
            sockets.extend(self.admin.sockets()?);
            Ok(sockets)
        });
        sockets.map_err(|error| format!("the sockets cannot be handed over: {error}"))
    }

    /// Hands over to the process that has replaced this process: makes clients reconnect, closes
    /// the sockets, and stops announcing versions and sending heartbeats.
    pub(super) fn leave_to_successor(&mut self) {
        self.edge.set_successor();
        self.sites.stop_announcing();
        self.sites.state.fleet.iter().for_each(|fleet| fleet.is_replaced.store(true, Ordering::Relaxed));
        self.release_sockets();
        self.admin.leave();
    }

    /// Writes the place files again and accepts commands again, after a failed upgrade.
    pub(super) fn resume_admin(&mut self) {
        // The error of a place file was already logged at the start.
        let _ = self.admin.write_place_files(&self.path, self.sites.state.directory.as_ref());
        self.admin.resume();
    }

    /// Drops the duplicates of the sockets and the pending change, because the process is about to
    /// end. All requests that wait for the change then fail.
    pub(super) fn release_sockets(&mut self) {
        self.change = PendingChange::default();
        self.listeners.lock().release_sockets();
    }

    fn prepare(&mut self) {
        self.change.retry_at = None;
        let (sites, listeners) = (Arc::clone(&self.sites), Arc::clone(&self.listeners));
        let (path, before) = (self.path.clone(), Arc::clone(&self.config));
        self.change.preparing =
            Some(Preparation::begin(path, before, sites, listeners, &self.watches, self.workers.count()));
    }

    fn swap(&mut self, prepared: PreparedConfig) -> (&'static str, String) {
        let PreparedConfig { config, watched, plan, renewal, changes: settings } = prepared;
        let Renewal { sites, added_and_removed, altered, unusable, .. } = renewal;
        log_changes(&self.log, &settings, &unusable);
        self.state.audit_modes(&settings);
        let mut changes = summary(&settings);
        if settings.is_empty() {
            changes.extend(altered);
        }
        changes.extend(added_and_removed);
        changes.extend(plan.changes.iter().cloned());
        self.replace_sites(sites, &settings);
        let unopened = self.replace_listeners(plan, &config);
        let is_unopened = unopened.is_some();
        changes.extend(unopened);
        changes.extend(self.limit(&config));
        self.admin.follow(config.admin.as_ref());
        let serving = serving(&self.sites, &self.listeners.lock(), &self.admin, &self.workers, &self.edge);
        self.certificates.follow(serving.certificates.clone());
        // New included files are watched only after they were read, so a change between reading and
        // watching would be missed. For this reason, the config is read again.
        let is_watched_late = watched.iter().any(|(path, _)| config.included.paths.contains(path));
        self.watches.follow(&config, watched);
        self.state.set_serving(serving);
        self.replace_config(config);
        let needs_retry = is_watched_late || is_unopened || !unusable.is_empty();
        self.change.retry_at = needs_retry.then(|| Instant::now() + RETRY_DELAY);
        self.outcome(changes, &settings, unusable)
    }

    fn replace_sites(&mut self, sites: Arc<Sites>, settings: &[SettingChange]) {
        let before = std::mem::replace(&mut self.sites, sites);
        self.workers.replace(&self.sites);
        // The board must know which sites have changed hosts before it collects counts again. This
        // is recorded after the replacement, because until then the old sites answer requests.
        self.sites.note_moved_hosts(&before);
        let sites = Arc::clone(&self.sites);
        tokio::task::spawn_blocking(move || sites.announce());
        // A pending version may now pass the gate, because the gate has new settings.
        if settings.iter().any(|change| change.setting.starts_with("gate.")) {
            tokio::spawn(Arc::clone(&self.sites).follow(BTreeSet::new()));
        }
        if let Some(engines) = self.sites.spared_engines().filter(|now| before.spared_engines().as_ref() != Some(now)) {
            self.log.write_message(LogEvent::SearchEngines, engines);
        }
    }

    /// Opens and closes listeners. Returns the error if a listener cannot be opened.
    fn replace_listeners(&mut self, plan: ListenerPlan, config: &Config) -> Option<String> {
        let opened = self.listeners.lock().apply(plan, &mut self.workers, &self.edge, &self.log);
        self.listeners.lock().set_limits(&config.edge);
        match opened {
            Ok(addresses) => addresses.iter().for_each(|address| self.log.write_message(LogEvent::Listening, address)),
            // The socket is already bound, so opening the listener fails only if the process has no
            // free file descriptors.
            Err(error) => return Some(format!("{error}; until it can be opened, the previous listeners stay open")),
        }
        None
    }

    fn replace_config(&mut self, config: Arc<Config>) {
        let before = std::mem::replace(&mut self.config, config);
        follow_included(&before.included.refused, &self.config, &self.log);
        if before.text != self.config.text {
            log_warnings(&self.config, &self.log);
        }
    }

    /// Returns the outcome of a change, as a keyword and as a sentence.
    fn outcome(
        &mut self,
        mut changes: Vec<String>,
        settings: &[SettingChange],
        unusable: Vec<UnusableSource>,
    ) -> (&'static str, String) {
        let is_deferred = settings.iter().any(SettingChange::is_applied_at_start);
        let is_news = self.change.logged != unusable;
        let outcome = if changes.is_empty() && !is_deferred && !is_news { "unchanged" } else { "published" };
        changes.extend(unusable.iter().map(ToString::to_string));
        self.change.logged = unusable;
        let message = match &self.change.last {
            _ if !changes.is_empty() => changes.join("; "),
            _ if is_deferred => "the changes take effect only at the next start".to_owned(),
            // The watcher may have applied the operator's change before the operator requested the
            // reload. For this reason, the last change is mentioned.
            Some(last) => format!("the config has not changed since it was last applied; last change: {last}"),
            None => "the config has not changed".to_owned(),
        };
        if outcome == "published" {
            self.change.last = Some(format!("{}: {message}", rfc3339(SystemTime::now())));
        }
        let mut message = format!("{}: {message}", self.path.display());
        // Settings that take effect only at the next start are reported at every reload, not just
        // once.
        let mut next_start = setting_changes(&self.started, &self.config.text).unwrap_or_default();
        next_start.retain(SettingChange::is_applied_at_start);
        if !next_start.is_empty() {
            let mut tables: Vec<_> = next_start.iter().map(SettingChange::table).collect();
            tables.dedup();
            message += &format!(
                "; changes in these tables take effect only after `robotsd upgrade` or a restart: {tables}",
                tables = tables.join(", ")
            );
        }
        self.state.config.accept(outcome == "published", next_start, &self.config.included.refused);
        (outcome, message)
    }

    /// Applies the limits of a config to new connections. Returns a description if the limits have
    /// changed.
    fn limit(&self, config: &Config) -> Option<String> {
        let (before, bound) = (self.edge.connections(), self.descriptors.bound(config));
        let short =
            bound.as_ref().ok().filter(|bound| bound.is_reduced && self.config.connections != config.connections);
        short.into_iter().for_each(|bound| self.log.write_message(LogEvent::ConnectionsBounded, &*bound.reason));
        let connections = bound.map_or(before, |bound| bound.connections);
        if connections != before {
            self.edge.set_connection_slots(before, connections);
        }
        self.edge.set_limits(EdgeLimits { connections, ..config.edge.clone() });
        // The limit also changes slightly when a listener is added or removed, because the number
        // of free descriptors then changes. Only a change of the config is reported.
        let is_other = self.config.edge != config.edge || self.config.connections != config.connections;
        is_other.then(|| "the limits for new connections have changed".to_owned())
    }
}

/// Returns the served sites and listeners, for the admin interface. Also passes the addresses of
/// the admin interface to the webhooks, so that no webhook sends requests to these addresses.
pub(super) fn serving(
    sites: &Arc<Sites>,
    listeners: &Listeners,
    admin: &AdminSockets,
    workers: &Workers,
    edge: &Edge,
) -> Serving {
    let listener_configs = listeners.configs();
    sites.forbid_hook_addresses(admin.addresses());
    Serving {
        sites: Arc::clone(sites),
        listeners: listeners.reports(),
        question_errors: listeners.question_errors(),
        certificates: admin.certificates_including(&listener_configs),
        listener_configs,
        agent_lookups: workers.agent_lookups(),
        edge: edge.clone(),
    }
}

/// Logs each value of the config that is probably a mistake. Files are read on a blocking thread,
/// and the caller does not wait for this thread.
pub(super) fn log_warnings(config: &Arc<Config>, log: &Log) {
    let (config, log) = (Arc::clone(config), log.clone());
    tokio::task::spawn_blocking(move || {
        for warning in config.review().iter().filter(|found| found.severity == Severity::Warning) {
            log.write_message(LogEvent::ConfigWarning, warning.to_string());
        }
    });
}

/// Logs which included files are newly rejected, and which are no longer rejected. Saves the
/// contents of the included files in use. Blocks.
pub(super) fn follow_included(before: &[RefusedFile], config: &Arc<Config>, log: &Log) {
    let refused = &config.included.refused;
    let words = |refused: &[RefusedFile]| refused.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (were, are) = (words(before), words(refused));
    are.iter().filter(|now| !were.contains(now)).for_each(|now| log.write_message(LogEvent::ConfigRejected, now));
    for file in before.iter().filter(|file| refused.iter().all(|now| now.path != file.path)) {
        log.write_message(LogEvent::Config, format!("{}: the included file is valid again", file.path));
    }
    let (config, log) = (Arc::clone(config), log.clone());
    tokio::task::spawn_blocking(move || {
        let kept = config.state_dir.as_ref().map_or(Ok(()), |state| config.included.save(state));
        if let Err(error) = kept {
            log.write_message(
                LogEvent::State,
                format!("the last good copies of included files cannot be written: {error}"),
            );
        }
    });
}

/// Maximum number of changed settings in a summary; each setting also has its own log line.
const MAX_NAMED_SETTINGS: usize = 8;

pub(super) fn log_changes(log: &Log, changes: &[SettingChange], unusable: &[UnusableSource]) {
    for change in changes {
        let is_unusable = || unusable.iter().any(|source| change.site.as_ref() == Some(&source.site));
        let applies = if change.is_applied_at_start() {
            "next-start"
        } else if change.changes_robots_source() && is_unusable() {
            "when-usable"
        } else {
            "now"
        };
        log.write(&LogEntry {
            site: change.site.as_deref(),
            setting: Some(&change.setting),
            before: change.before.as_deref(),
            after: change.after.as_deref(),
            applies: Some(applies),
            message: Some(change.to_string()),
            ..LogEntry::now(LogEvent::ConfigChanged)
        });
    }
}

/// Returns the changed settings for the summary. Omits added and removed tables, and settings that
/// take effect at the next start: the message describes these changes separately.
pub(super) fn summary(changes: &[SettingChange]) -> Vec<String> {
    let is_named = |change: &&SettingChange| !change.affects_whole_table() && !change.is_applied_at_start();
    let mut named: Vec<_> = changes.iter().filter(is_named).map(ToString::to_string).collect();
    let more = named.len().saturating_sub(MAX_NAMED_SETTINGS);
    if more > 0 {
        named.truncate(MAX_NAMED_SETTINGS);
        named.push(format!("and {more} more settings (see the log lines `config-changed`)"));
    }
    named
}

/// The requests that wait for the outcome of reading the config. If the file may already have been
/// read when a request arrives, the request waits for the next read.
#[derive(Debug, Default)]
pub(super) struct ConfigWaiters {
    now: Vec<ReloadWaiter>,
    /// The requests that wait for the next read. `Some` (possibly with no requests) if another read
    /// is required.
    next: Option<Vec<ReloadWaiter>>,
    /// A change that the previous read published while the requests in `now` were waiting.
    published: Option<String>,
}

impl ConfigWaiters {
    /// Adds a request that waits for the current read. If the file watcher started the read, no
    /// request waits, and `waiter` is `None`.
    pub(super) fn join(&mut self, waiter: Option<ReloadWaiter>) {
        self.now.extend(waiter);
    }

    pub(super) fn queue(&mut self, waiter: Option<ReloadWaiter>) {
        self.next.get_or_insert_default().extend(waiter);
    }

    /// Sends the outcome of the current read to the requests that wait for it. If the read found no
    /// change, because the previous read had already published the change, sends the published
    /// change instead. Returns whether another read is required.
    pub(super) fn answer(&mut self, outcome: &'static str, message: &str) -> bool {
        let (sent, text) = match self.published.take() {
            Some(published) if outcome == "unchanged" => ("published", published),
            _ => (outcome, message.to_owned()),
        };
        for waiter in self.now.drain(..) {
            // Sending fails if the client has disconnected.
            let _ = waiter.send(ReloadOutcome { outcome: sent.to_owned(), message: text.clone() });
        }
        let Some(next) = self.next.take() else { return false };
        self.now = next;
        self.published = (sent == "published").then_some(text);
        true
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    fn outcome(mut waiting: oneshot::Receiver<ReloadOutcome>) -> (String, String) {
        let ReloadOutcome { outcome, message } = waiting.try_recv().unwrap();
        (outcome, message)
    }

    #[test]
    fn a_reload_request_queued_during_the_watchers_change_reports_that_change() {
        let mut waiters = ConfigWaiters::default();
        waiters.join(None);
        let (waiter, waiting) = oneshot::channel();
        waiters.queue(Some(waiter));
        assert!(waiters.answer("published", "site \"a\" is new"));
        assert!(!waiters.answer("unchanged", "the config has not changed"));
        assert_eq!(outcome(waiting), ("published".to_owned(), "site \"a\" is new".to_owned()));
        // A later request must not receive the earlier change as its outcome.
        let (waiter, waiting) = oneshot::channel();
        waiters.join(Some(waiter));
        assert!(!waiters.answer("unchanged", "the config has not changed"));
        assert_eq!(outcome(waiting).0, "unchanged");
    }

    #[test]
    fn a_queued_request_reports_a_failed_reload_even_after_a_published_change() {
        let mut waiters = ConfigWaiters::default();
        let (waiter, waiting) = oneshot::channel();
        waiters.queue(Some(waiter));
        assert!(waiters.answer("published", "site \"a\" is new"));
        assert!(!waiters.answer("kept", "no site"));
        assert_eq!(outcome(waiting).0, "kept");
    }
}
