//! Another config takes the place of the one that is served, while everything runs; and the requests that wait for the
//! outcome.
//!
//! A [`Preparation`] reads and checks it, binds new listeners and opens new sources, on a blocking thread. Only when all of
//! that works are sites and listeners swapped, at once. Otherwise there is one line in the log, and everything stays as it
//! was.
//!
//! **A reload that comes while a config is read joins that reading** if the file has not been opened, else it waits for
//! another; either way its outcome is whatever was published since it came.

use std::collections::BTreeSet;
use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::time::Instant;
use tower_robots::check::Severity;

use super::admin_places::AdminPlaces;
use super::descriptors::Descriptors;
use super::listeners::{ListenerPlan, Listeners};
use super::preparation::{Preparation, PreparedConfig, RejectedConfig};
use super::upgrade::{HandedSockets, Successor};
use super::watched_files::{CertificateWatch, WatchedFiles};
use super::workers::Workers;
use crate::admin::{CONFIG_PATIENCE, ReloadWaiter, ServerState, Serving};
use crate::config::{Config, RefusedFile, SettingChange, setting_changes};
use crate::date::rfc3339;
use crate::edge::{Edge, EdgeLimits};
use crate::log::{Log, LogEntry, LogEvent};
use crate::report::ReloadOutcome;
use crate::sites::{Renewal, Sites, UnusableSource};

/// How long until what could not be used is tried again: a source, or the whole config.
const AGAIN: Duration = Duration::from_secs(10);

/// The config that is served, and everything needed to serve another.
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
    /// When a rejected config, or sources that could not be used, are tried again.
    again: Option<Instant>,
    /// The sources that were last logged as unusable.
    logged: Vec<UnusableSource>,
    /// The changes of the last config that took the place of another, and when.
    last: Option<String>,
}

/// The next step of the change.
pub(super) enum ChangeStep {
    Swap(Result<Box<PreparedConfig>, RejectedConfig>),
    /// The preparation hangs, and a newer request waits.
    Abandon,
    /// What could not be used is tried again.
    TryAgain,
}

impl PendingChange {
    /// Waits until the change needs something.
    pub(super) async fn next(&mut self) -> ChangeStep {
        match (&mut self.preparing, self.again) {
            (Some(preparing), _) => {
                let limit = self.waiters.next.is_some().then_some(CONFIG_PATIENCE);
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
                let (path, limit) = (self.path.display(), CONFIG_PATIENCE.as_secs());
                let why = format!("{path}: a file of it was still being read after {limit} s, and it is read anew");
                Err(RejectedConfig { why, changes: None })
            }
        };
        self.change.preparing = None;
        let was_rejected = self.state.config.trouble().is_some();
        let mut is_known = false;
        let (outcome, message) = match prepared {
            Ok(prepared) => match self.swap(*prepared) {
                ("unchanged", _) if was_rejected => {
                    let path = self.path.display();
                    ("unchanged", format!("{path}: the file is accepted again: it says what is served"))
                }
                swapped => swapped,
            },
            Err(RejectedConfig { why, changes }) => {
                // What is in its way may be outside the file: a key that is still to come, a port that another program has.
                self.change.again = Some(Instant::now() + AGAIN);
                is_known = !self.state.config.reject(&why, changes);
                ("kept", format!("{why}; the config before stays in force"))
            }
        };
        match outcome {
            // Only a request, or the end of a rejection, is worth a line that says that nothing is different.
            "kept" if self.change.waiters.now.is_empty() && is_known => {}
            "kept" => self.log.say(LogEvent::ConfigRejected, message.clone()),
            "unchanged" if self.change.waiters.now.is_empty() && !was_rejected => {}
            _ => self.log.say(LogEvent::Config, message.clone()),
        }
        let refused = &self.config.included.refused;
        let (outcome, message) = match outcome {
            // A reload that was requested reports what is still refused.
            "published" | "unchanged" if !refused.is_empty() => {
                ("partly", refused.iter().fold(message, |message, refused| format!("{message}\n{refused}")))
            }
            whole => (whole, message),
        };
        if self.change.waiters.answer(outcome, &message) {
            self.prepare();
        }
    }

    /// Whether another config is being prepared.
    pub(super) fn is_changing(&self) -> bool {
        self.change.preparing.is_some()
    }

    /// Starts a new process of the program, which gets every listening socket.
    pub(super) fn start_successor(&self) -> Result<Successor, String> {
        Successor::start(self.sockets()?, self.config.upgrade)
    }

    /// Every listening socket once more, with what it is for.
    fn sockets(&self) -> Result<HandedSockets, String> {
        let listeners = self.listeners.lock().sockets();
        let sockets = listeners.and_then(|mut sockets| {
            sockets.extend(self.admin.sockets()?);
            Ok(sockets)
        });
        sockets.map_err(|error| format!("the sockets cannot be handed over: {error}"))
    }

    /// Another process has every socket: clients are sent there, and this one lets go of its own.
    pub(super) fn leave_to_successor(&mut self) {
        self.edge.set_successor();
        self.sites.stop_announcing();
        self.sites.state.fleet.iter().for_each(|fleet| fleet.is_replaced.store(true, Ordering::Relaxed));
        self.let_go();
        self.admin.leave();
    }

    /// Accepts commands again, and leaves its place for them, because the new process of an upgrade is gone.
    pub(super) fn go_on(&mut self) {
        // An error was logged at the start.
        let _ = self.admin.leave_place(&self.path, self.sites.state.directory.as_ref());
        self.admin.resume();
    }

    /// Gives up the sockets that would keep ports open, because the end has begun. Requests that wait get no outcome.
    pub(super) fn let_go(&mut self) {
        self.change = PendingChange::default();
        self.listeners.lock().let_go();
    }

    fn prepare(&mut self) {
        self.change.again = None;
        let (sites, listeners) = (Arc::clone(&self.sites), Arc::clone(&self.listeners));
        let (path, before) = (self.path.clone(), Arc::clone(&self.config));
        self.change.preparing =
            Some(Preparation::begin(path, before, sites, listeners, &self.watches, self.workers.count()));
    }

    fn swap(&mut self, prepared: PreparedConfig) -> (&'static str, String) {
        let PreparedConfig { config, watched, plan, renewal, changes: settings } = prepared;
        let Renewal { sites, come_and_gone, altered, unusable, .. } = renewal;
        changed(&self.log, &settings, &unusable);
        self.state.audit_modes(&settings);
        let mut changes = summary(&settings);
        if settings.is_empty() {
            changes.extend(altered);
        }
        changes.extend(come_and_gone);
        changes.extend(plan.changes.iter().cloned());
        self.replace_sites(sites, &settings);
        changes.extend(self.replace_listeners(plan, &config));
        changes.extend(self.limit(&config));
        self.admin.follow(config.admin.as_ref());
        let serving = serving(&self.sites, &self.listeners.lock(), &self.admin, &self.workers, &self.edge);
        self.certificates.follow(serving.certificates.clone());
        // An included file may have changed after it was read, and before it was watched.
        let is_watched_late = watched.iter().any(|(path, _)| config.included.paths.contains(path));
        self.watches.follow(&config, watched);
        self.state.is_serving(serving);
        self.replace_config(config);
        let is_again = is_watched_late || !unusable.is_empty();
        self.change.again = is_again.then(|| Instant::now() + AGAIN);
        self.outcome(changes, &settings, unusable)
    }

    fn replace_sites(&mut self, sites: Arc<Sites>, settings: &[SettingChange]) {
        let before = std::mem::replace(&mut self.sites, sites);
        self.workers.replace(&self.sites);
        // Once requests are answered by them, and before the board asks what was counted.
        self.sites.note_moved_hosts(&before);
        let sites = Arc::clone(&self.sites);
        tokio::task::spawn_blocking(move || sites.announce());
        // The gate may now accept the version that waits.
        if settings.iter().any(|change| change.setting.starts_with("gate.")) {
            tokio::spawn(Arc::clone(&self.sites).follow(BTreeSet::new()));
        }
        if let Some(engines) = self.sites.spared_engines().filter(|now| before.spared_engines().as_ref() != Some(now)) {
            self.log.say(LogEvent::SearchEngines, engines);
        }
    }

    /// Opens and closes listeners. Returns the error if one cannot be opened.
    fn replace_listeners(&mut self, plan: ListenerPlan, config: &Config) -> Option<String> {
        let opened = self.listeners.lock().apply(plan, &mut self.workers, &self.edge, &self.log);
        self.listeners.lock().set_limits(&config.edge);
        match opened {
            Ok(addresses) => addresses.iter().for_each(|address| self.log.say(LogEvent::Listening, address)),
            // It was bound: only a process without descriptors gets here.
            Err(error) => return Some(error),
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

    /// What a swap has changed, in one word and in a sentence.
    fn outcome(
        &mut self,
        mut changes: Vec<String>,
        settings: &[SettingChange],
        unusable: Vec<UnusableSource>,
    ) -> (&'static str, String) {
        let is_deferred = settings.iter().any(SettingChange::is_for_start);
        let is_news = self.change.logged != unusable;
        let outcome = if changes.is_empty() && !is_deferred && !is_news { "unchanged" } else { "published" };
        changes.extend(unusable.iter().map(ToString::to_string));
        self.change.logged = unusable;
        let message = match &self.change.last {
            _ if !changes.is_empty() => changes.join("; "),
            _ if is_deferred => "nothing is different now".to_owned(),
            // The operator may have changed the file before the request, and the watcher was quicker.
            Some(last) => format!("nothing is different; in force since {last}"),
            None => "nothing is different".to_owned(),
        };
        if outcome == "published" {
            self.change.last = Some(format!("{}: {message}", rfc3339(SystemTime::now())));
        }
        let mut message = format!("{}: {message}", self.path.display());
        // Said at each reload until the next start, not only when it was written.
        let mut next_start = setting_changes(&self.started, &self.config.text).unwrap_or_default();
        next_start.retain(SettingChange::is_for_start);
        if !next_start.is_empty() {
            let mut tables: Vec<_> = next_start.iter().map(SettingChange::table).collect();
            tables.dedup();
            message += &format!("; with `robotsd upgrade` or a restart: {}", tables.join(", "));
        }
        self.state.config.accept(outcome == "published", next_start, &self.config.included.refused);
        (outcome, message)
    }

    /// Grants the limits of a config to new connections.
    fn limit(&self, config: &Config) -> Option<String> {
        let (before, bound) = (self.edge.connections(), self.descriptors.bound(config));
        let short = bound.as_ref().ok().filter(|bound| bound.is_short && self.config.connections != config.connections);
        short.into_iter().for_each(|bound| self.log.say(LogEvent::ConnectionsBounded, &*bound.reason));
        let connections = bound.map_or(before, |bound| bound.connections);
        if connections != before {
            self.edge.set_places(before, connections);
        }
        self.edge.set_limits(EdgeLimits { connections, ..config.edge.clone() });
        // A listener more or fewer takes some descriptors, which is no news.
        let is_other = self.config.edge != config.edge || self.config.connections != config.connections;
        is_other.then(|| "other limits for new connections".to_owned())
    }
}

/// What is served by these listeners, for the answers of the admin interface, which no hook reaches.
pub(super) fn serving(
    sites: &Arc<Sites>,
    listeners: &Listeners,
    admin: &AdminPlaces,
    workers: &Workers,
    edge: &Edge,
) -> Serving {
    let listener_configs = listeners.configs();
    sites.keep_hooks_from(admin.addresses());
    Serving {
        sites: Arc::clone(sites),
        listeners: listeners.reports(),
        question_errors: listeners.question_errors(),
        certificates: admin.certificates_beside(&listener_configs),
        listener_configs,
        agent_lookups: workers.agent_lookups(),
        edge: edge.clone(),
    }
}

/// One line for every value of the config that probably is not meant as it is. It waits for no file: they are read on a
/// blocking thread.
pub(super) fn log_warnings(config: &Arc<Config>, log: &Log) {
    let (config, log) = (Arc::clone(config), log.clone());
    tokio::task::spawn_blocking(move || {
        for warning in config.review().iter().filter(|found| found.severity == Severity::Warning) {
            log.say(LogEvent::ConfigWarning, warning.to_string());
        }
    });
}

/// Logs the included files that are refused now and were not before, and those that are not any more; and keeps what is in force of all,
/// on a blocking thread.
pub(super) fn follow_included(before: &[RefusedFile], config: &Arc<Config>, log: &Log) {
    let refused = &config.included.refused;
    let words = |refused: &[RefusedFile]| refused.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (were, are) = (words(before), words(refused));
    are.iter().filter(|now| !were.contains(now)).for_each(|now| log.say(LogEvent::ConfigRejected, now));
    for file in before.iter().filter(|file| refused.iter().all(|now| now.path != file.path)) {
        log.say(LogEvent::Config, format!("{}: the file is not refused any more", file.path));
    }
    let (config, log) = (Arc::clone(config), log.clone());
    tokio::task::spawn_blocking(move || {
        let kept = config.state_dir.as_ref().map_or(Ok(()), |state| config.included.keep(state));
        if let Err(error) = kept {
            log.say(LogEvent::State, format!("the last good copies of included files cannot be written: {error}"));
        }
    });
}

/// Settings that the summary of a config names; the others have a line each all the same.
const NAMED: usize = 8;

/// One line for every setting that has another value.
pub(super) fn changed(log: &Log, changes: &[SettingChange], unusable: &[UnusableSource]) {
    for change in changes {
        let is_unusable = || unusable.iter().any(|source| change.site.as_ref() == Some(&source.site));
        let applies = if change.is_for_start() {
            "next-start"
        } else if change.is_of_source() && is_unusable() {
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

/// The settings for a line about all of the config. Tables that come and go as a whole, and settings that wait for the next
/// start, stand in it in other words.
pub(super) fn summary(changes: &[SettingChange]) -> Vec<String> {
    let is_named = |change: &&SettingChange| !change.is_of_whole_table() && !change.is_for_start();
    let mut named: Vec<_> = changes.iter().filter(is_named).map(ToString::to_string).collect();
    let more = named.len().saturating_sub(NAMED);
    if more > 0 {
        named.truncate(NAMED);
        named.push(format!("and {more} settings more, each in a line `config-changed`"));
    }
    named
}

/// Those that wait for the reading under way, and those that came too late for it. The file may have been read before they
/// came, so they wait for another reading.
#[derive(Debug, Default)]
pub(super) struct ConfigWaiters {
    now: Vec<ReloadWaiter>,
    /// Some, even if empty, where another reading is required.
    next: Option<Vec<ReloadWaiter>>,
    /// The last change that was published since those that wait now came.
    published: Option<String>,
}

impl ConfigWaiters {
    /// Waits for the reading under way. The watcher, which waits for no outcome, has no waiter.
    pub(super) fn join(&mut self, waiter: Option<ReloadWaiter>) {
        self.now.extend(waiter);
    }

    /// Requires another reading after the one under way.
    pub(super) fn queue(&mut self, waiter: Option<ReloadWaiter>) {
        self.next.get_or_insert_default().extend(waiter);
    }

    /// Sends the outcome of the reading under way. If it found nothing new, but the one before it published a change that
    /// those that wait came too late for, that change is the outcome. Returns whether another reading is required.
    pub(super) fn answer(&mut self, outcome: &'static str, message: &str) -> bool {
        let (sent, text) = match self.published.take() {
            Some(published) if outcome == "unchanged" => ("published", published),
            _ => (outcome, message.to_owned()),
        };
        for waiter in self.now.drain(..) {
            // The client may have gone.
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
    fn a_request_that_comes_while_the_watcher_publishes_its_change_hears_of_it() {
        let mut waiters = ConfigWaiters::default();
        waiters.join(None);
        let (waiter, waiting) = oneshot::channel();
        waiters.queue(Some(waiter));
        assert!(waiters.answer("published", "site \"a\" is new"));
        assert!(!waiters.answer("unchanged", "nothing is different"));
        assert_eq!(outcome(waiting), ("published".to_owned(), "site \"a\" is new".to_owned()));
        // A later one does not.
        let (waiter, waiting) = oneshot::channel();
        waiters.join(Some(waiter));
        assert!(!waiters.answer("unchanged", "nothing is different"));
        assert_eq!(outcome(waiting).0, "unchanged");
    }

    #[test]
    fn a_fault_is_the_outcome_whatever_was_published_before() {
        let mut waiters = ConfigWaiters::default();
        let (waiter, waiting) = oneshot::channel();
        waiters.queue(Some(waiter));
        assert!(waiters.answer("published", "site \"a\" is new"));
        assert!(!waiters.answer("kept", "no site"));
        assert_eq!(outcome(waiting).0, "kept");
    }
}
