//! The state of the process, for the responses of the admin interface.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf, absolute};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use tokio::sync::{RwLock, mpsc, oneshot};
use tokio::time::timeout;
use tower_robots::internals::AgentLookups;

use super::audit_writer::AuditWriter;
use super::watchdog::Watchdog;
use crate::board::Board;
use crate::config::{AdminRights, ListenerConfig, RefusedFile, uncovered};
use crate::date::rfc3339;
use crate::decision::QuestionErrors;
use crate::edge::{Edge, EdgeTraffic, ListenerTraffic, LiveCertificates};
use crate::log::{Log, LostLines};
use crate::metrics::{Exposition, family};
use crate::render::plural;
use crate::report::{
    ConfigReport, KindCount, ListenerReport, NextStep, RefusedFileReport, RejectedConfigReport, ReloadOutcome,
    SettingChange, StatusReport, TrafficReport, UpgradeReport,
};
use crate::sites::{ServedSite, Sites, write_responses};
use crate::word_enum::word_enum;

/// State of the process. The control thread sets the sites and the phase, and the handlers of
/// routes read them.
#[derive(Debug)]
pub(crate) struct ServerState {
    pub(super) started: (SystemTime, Instant),
    phase: Mutex<Phase>,
    serving: ArcSwapOption<Serving>,
    /// Sites that had no robots.txt when the process began to serve, and included files whose sites
    /// were not served then.
    missing_at_start: OnceLock<BTreeSet<String>>,
    requests: mpsc::Sender<ReloadWaiter>,
    upgrades: mpsc::Sender<UpgradeWaiter>,
    /// The last upgrade, and the identities of the files that it used.
    last_upgrade: Mutex<Option<(UpgradeReport, UpgradeFiles)>>,
    /// Lock that prevents changes during an upgrade. An operator's change holds a read lock. An
    /// upgrade holds a write lock while the new process may take over.
    pub(crate) changes: Arc<RwLock<()>>,
    /// Lock that is held while all replicas of the fleet are queried, because only one such query
    /// may run at a time.
    pub(super) asking: Arc<RwLock<()>>,
    pub(crate) config: ConfigState,
    /// The board, set together with the first sites. Not set if the board is disabled.
    pub(crate) board: OnceLock<Arc<Board>>,
    pub(crate) log: Log,
    /// Users and tokens of the admin interface, from the config in force.
    pub(crate) rights: ArcSwap<AdminRights>,
    pub(crate) audit: AuditWriter,
    pub(crate) watchdog: Arc<Watchdog>,
    /// Number of lost lines of the access log; `None` if there is no access log.
    lost: Option<Arc<LostLines>>,
}

/// Device, inode and modification time of the program file and of the config file, to detect that a
/// file has changed. `None` if the file does not exist.
#[derive(Debug, PartialEq, Eq)]
struct UpgradeFiles {
    program: Option<(u64, u64, SystemTime)>,
    config: Option<(u64, u64, SystemTime)>,
}

#[derive(Debug)]
pub(crate) struct Serving {
    pub(crate) sites: Arc<Sites>,
    pub(crate) listeners: Vec<ListenerReport>,
    pub(crate) listener_configs: Vec<ListenerConfig>,
    /// Counts of errors in decision requests, one entry per decision listener.
    pub(crate) question_errors: Vec<Arc<QuestionErrors>>,
    pub(crate) certificates: Vec<LiveCertificates>,
    pub(crate) agent_lookups: Vec<Arc<AgentLookups>>,
    pub(crate) edge: Edge,
}

word_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Phase {
        /// The process is reading robots.txt files and opening listeners.
        Starting = "starting",
        Serving = "serving",
        /// Listeners are closed, and open requests are being finished.
        Draining = "draining",
    }
}

impl ServerState {
    pub(crate) fn new(path: &Path, log: Log, lost: Option<Arc<LostLines>>) -> (Self, ControlRequests) {
        let (requests, reloads) = mpsc::channel(16);
        let (upgrades, upgrades_requested) = mpsc::channel(4);
        let state = Self {
            started: (SystemTime::now(), Instant::now()),
            phase: Mutex::new(Phase::Starting),
            serving: ArcSwapOption::empty(),
            missing_at_start: OnceLock::new(),
            requests,
            upgrades,
            last_upgrade: Mutex::default(),
            changes: Arc::default(),
            asking: Arc::default(),
            config: ConfigState::new(path),
            board: OnceLock::new(),
            rights: ArcSwap::default(),
            audit: AuditWriter::new(log.clone()),
            log,
            watchdog: Arc::default(),
            lost,
        };
        (state, ControlRequests { reloads, upgrades: upgrades_requested })
    }

    /// Records the sites and listeners that are in service from now on. Also called after a reload
    /// has replaced the sites.
    pub(crate) fn set_serving(&self, serving: Serving) {
        self.missing_at_start.get_or_init(|| {
            let refused = self.config.report().refused.into_iter();
            let refused = refused.filter(|refused| !refused.is_kept).map(|refused| refused.path);
            serving.sites.without_robots().into_iter().map(|site| site.name).chain(refused).collect()
        });
        self.serving.store(Some(Arc::new(serving)));
        let mut phase = self.phase.lock();
        if *phase == Phase::Starting {
            *phase = Phase::Serving;
        }
    }

    /// Reports whether this site had no robots.txt when the process began to serve. `site` may also
    /// be the path of an included file whose sites were not served.
    pub(super) fn missing_at_start(&self, site: &str) -> bool {
        self.missing_at_start.get().is_some_and(|names| names.contains(site))
    }

    pub(crate) fn set_phase(&self, phase: Phase) {
        *self.phase.lock() = phase;
    }

    pub(crate) fn phase(&self) -> Phase {
        *self.phase.lock()
    }

    /// Returns the sites and listeners in service; `None` if the process is starting.
    pub(crate) fn serving(&self) -> Option<Arc<Serving>> {
        self.serving.load_full()
    }

    pub(super) fn successor(&self) -> Option<u32> {
        self.last_upgrade.lock().as_ref().filter(|(upgrade, _)| upgrade.state == "done")?.0.process
    }

    /// Returns the name of each log, and the number of its lost lines.
    pub(super) fn lost_lines(&self) -> impl Iterator<Item = (&'static str, &LostLines)> {
        [("events", self.log.lost())].into_iter().chain(self.lost.iter().map(|lost| ("access", &**lost)))
    }

    /// Asks the control thread to read and apply the config again. Returns `None` if the process is
    /// starting or ending.
    pub(crate) async fn reconfigure(&self) -> Option<ReloadOutcome> {
        let (waiter, outcome) = oneshot::channel();
        let requesting = async {
            self.requests.send(waiter).await.ok()?;
            outcome.await.ok()
        };
        timeout(CONFIG_RELOAD_TIMEOUT, requesting).await.unwrap_or_else(|_| {
            let message = format!(
                "the config is still being read after {seconds} s: see the log for the outcome",
                seconds = CONFIG_RELOAD_TIMEOUT.as_secs()
            );
            Some(ReloadOutcome { outcome: "kept".to_owned(), message })
        })
    }

    /// Asks the control thread for an upgrade, and waits for the outcome. Returns `None` if the
    /// process is starting or ending.
    pub(super) async fn upgrade(&self) -> Option<UpgradeReport> {
        let (waiter, outcome) = oneshot::channel();
        self.upgrades.send(waiter).await.ok()?;
        outcome.await.ok()
    }

    /// Records the state of an upgrade. The identities of the files are recorded only when the
    /// upgrade begins, because the files may change later.
    pub(crate) fn note_upgrade(&self, report: UpgradeReport) {
        let mut last = self.last_upgrade.lock();
        let files = match last.take() {
            Some((before, files)) if before.state == "under-way" => files,
            _ => self.upgrade_files(),
        };
        *last = Some((report, files));
    }

    /// Returns the report of the last upgrade. The report of a failed upgrade is dropped if the
    /// program file or the config file has changed since the upgrade.
    fn upgrade_report(&self) -> Option<UpgradeReport> {
        let mut last = self.last_upgrade.lock();
        last.take_if(|(report, files)| report.state == "failed" && *files != self.upgrade_files());
        last.as_ref().map(|(report, _)| report.clone())
    }

    /// Returns the identities of the files that a new process would use.
    fn upgrade_files(&self) -> UpgradeFiles {
        let version = |path: &Path| {
            let found = fs::metadata(path).ok()?;
            Some((found.dev(), found.ino(), found.modified().ok()?))
        };
        let program = std::env::args_os().next().and_then(|program| version(Path::new(&program)));
        UpgradeFiles { program, config: version(Path::new(&self.config.report().path)) }
    }

    /// Returns the status. `can_read_all` is true if the client may read all sites. If it is false,
    /// problems whose messages contain site names are left out.
    pub(crate) fn report(&self, can_read_all: bool) -> StatusReport {
        let serving = self.serving();
        let (notify, unnotified) = serving.as_ref().map(|serving| serving.sites.notify_report()).unwrap_or_default();
        let (since, clock) = self.started;
        StatusReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            state: self.phase().as_str().to_owned(),
            started: rfc3339(since),
            uptime_seconds: clock.elapsed().as_secs(),
            config: self.config.report(),
            upgrade: self.upgrade_report(),
            registry: serving.as_ref().map(|serving| serving.sites.registry_report()),
            identity: serving.as_ref().and_then(|serving| serving.sites.identity_report()),
            rate_store: serving.as_ref().and_then(|serving| serving.sites.rate_store_report()),
            fleet: serving.as_ref().and_then(|serving| serving.sites.state.fleet.as_ref()).map(|fleet| fleet.report()),
            traffic: serving.as_ref().map(|serving| serving.traffic()),
            connections: serving.as_ref().map(|serving| serving.edge.connections()),
            enforcement: serving.as_ref().map_or("", |serving| serving.sites.enforcement().as_str()).to_owned(),
            switch: serving.as_ref().map_or("", |serving| serving.sites.switch().as_str()).to_owned(),
            switch_problem: serving.as_ref().and_then(|serving| serving.sites.switch_problem()),
            next: serving.as_ref().map(|serving| serving.sites.advice()).unwrap_or_default(),
            state_writable: self.is_state_writable(),
            stalled: self.watchdog.stalled(),
            notify,
            problems: [
                self.problems(serving.as_deref()),
                self.problems_of_sites(serving.as_deref().filter(|_| can_read_all)),
                unnotified,
            ]
            .concat(),
            is_blind: false,
            listeners: serving.as_ref().map(|serving| serving.listeners.clone()).unwrap_or_default(),
            sites: serving.as_ref().map(|serving| serving.sites.report()).unwrap_or_default(),
        }
    }

    /// Reports whether the state directory and the files of the board are writable. Returns `None`
    /// if the process is starting, or if there is no state directory.
    pub(super) fn is_state_writable(&self) -> Option<bool> {
        let is_writable = self.serving()?.sites.is_state_writable()?;
        Some(is_writable && self.board.get().is_none_or(|board| board.last_write_succeeded()))
    }

    /// Returns the problems whose messages contain no site names.
    fn problems(&self, serving: Option<&Serving>) -> Vec<String> {
        let state = serving.map(|serving| serving.sites.problems()).unwrap_or_default();
        let board = self.board.get().map(|board| board.problems()).unwrap_or_default();
        let questions =
            serving.iter().flat_map(|serving| &serving.question_errors).flat_map(|errors| errors.problems());
        let (logs, now) = (self.lost_lines().filter_map(|(_, lost)| lost.problem()), SystemTime::now());
        let pairs = || serving.iter().flat_map(|serving| &serving.certificates);
        let dates = pairs().flat_map(LiveCertificates::dates);
        let dates = dates.filter_map(|(path, dates)| Some(format!("{}: {}", path.display(), dates.warning(now)?)));
        let rejected = pairs().flat_map(LiveCertificates::rejections).filter_map(|(_, why)| why);
        // A set removes duplicates, because several listeners may use the same certificate file.
        let certificates: BTreeSet<_> = rejected.chain(dates).collect();
        // The local token is created after the state directory is opened, so problems with the
        // token are known only after the start.
        let token = serving.and_then(|_| self.rights.load().problem());
        let of_process = self.watchdog.problems().chain(questions).chain(certificates);
        let of_process = of_process.chain(token).chain(self.audit.problem());
        of_process.chain(state).chain(board).chain(logs).collect()
    }

    /// Returns the problems whose messages contain site names: problems with the fleet, hosts that
    /// no certificate covers, and ignored files in folders of robots.txt files.
    fn problems_of_sites(&self, serving: Option<&Serving>) -> Vec<String> {
        let Some(Serving { sites, listener_configs, .. }) = serving else { return Vec::new() };
        let of_names = uncovered(listener_configs, sites.iter().flat_map(ServedSite::host_patterns));
        let of_fleet = sites.state.fleet.as_ref().and_then(|fleet| fleet.problem());
        of_names.into_iter().chain(of_fleet).chain(sites.ignored_files()).collect()
    }
}

impl Serving {
    fn traffic(&self) -> TrafficReport {
        let EdgeTraffic { open, accepted, responses, errors } = self.edge.traffic();
        let errors = errors.into_iter().filter(|(_, count)| *count > 0);
        let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"].into_iter().zip(responses.by_class);
        TrafficReport {
            open_connections: open,
            accepted_connections: accepted,
            responses: classes.map(|(class, count)| KindCount::new(class, count)).collect(),
            unanswered: responses.unanswered,
            connection_errors: errors.map(|(kind, count)| KindCount::new(kind.as_str(), count)).collect(),
            sites: self.sites.traffic(),
        }
    }

    pub(super) fn write_metrics(&self, exposition: &mut Exposition) {
        exposition.sample(&family::CONNECTIONS_LIMIT, &[], self.edge.connections());
        let ListenerTraffic { labels, connections, siteless } = self.edge.listeners();
        exposition.samples_by_label(&family::CONNECTIONS, &[], "listener", labels.iter().zip(connections));
        let errors = self.edge.traffic().errors.into_iter().map(|(kind, count)| (kind.as_str(), count));
        exposition.samples_by_label(&family::CONNECTION_ERRORS, &[], "reason", errors);
        write_responses(exposition, "", &siteless, &labels);
        let mut undecided = BTreeMap::<_, u64>::new();
        for (reason, count) in self.question_errors.iter().flat_map(|errors| errors.totals()) {
            *undecided.entry(reason).or_default() += count;
        }
        exposition.samples_by_label(&family::QUESTIONS_UNDECIDED, &[], "reason", undecided);
        // If listeners have read different versions of the same certificate file, the earliest end
        // date counts.
        let mut ends = BTreeMap::<PathBuf, SystemTime>::new();
        for (path, dates) in self.certificates.iter().flat_map(LiveCertificates::dates) {
            ends.entry(path).and_modify(|first| *first = dates.end.min(*first)).or_insert(dates.end);
        }
        for (path, end) in ends {
            exposition.timestamp(&family::CERTIFICATE_EXPIRY, &[("path", &path.to_string_lossy())], end);
        }
        let mut rejected = BTreeMap::<PathBuf, bool>::new();
        for (path, why) in self.certificates.iter().flat_map(LiveCertificates::rejections) {
            *rejected.entry(path).or_default() |= why.is_some();
        }
        for (path, is_rejected) in rejected {
            exposition.flag(&family::CERTIFICATE_REJECTED, &[("path", &path.to_string_lossy())], is_rejected);
        }
        let sum =
            |count: fn(&AgentLookups) -> u64| self.agent_lookups.iter().map(|lookups| count(lookups)).sum::<u64>();
        let lookups = [("hit", sum(AgentLookups::hits)), ("miss", sum(AgentLookups::misses))];
        exposition.samples_by_label(&family::AGENT_CACHE_LOOKUPS, &[], "result", lookups);
        self.sites.write_metrics(exposition, &labels);
    }

    pub(crate) fn summary(&self) -> String {
        let (sites, listeners) = (self.sites.iter().len(), self.listeners.len());
        format!("serving {} on {}", plural(sites, "site"), plural(listeners, "listener"))
    }
}

/// Maximum time that a request waits for a reload of the config. After this time, the next reload
/// starts even if the previous reload has not ended.
pub(crate) const CONFIG_RELOAD_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) type ReloadWaiter = oneshot::Sender<ReloadOutcome>;

pub(crate) type UpgradeWaiter = oneshot::Sender<UpgradeReport>;

#[derive(Debug)]
pub(crate) struct ControlRequests {
    pub(crate) reloads: mpsc::Receiver<ReloadWaiter>,
    pub(crate) upgrades: mpsc::Receiver<UpgradeWaiter>,
}

/// Time when the config in force was accepted, and the report about the config file.
#[derive(Debug)]
pub(crate) struct ConfigState(Mutex<(SystemTime, ConfigReport)>);

impl ConfigState {
    pub(crate) fn new(path: &Path) -> Self {
        let now = SystemTime::now();
        let report = ConfigReport {
            // The path is absolute, so that printed commands with this path work in any folder.
            path: absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string(),
            state: "accepted".to_owned(),
            accepted: rfc3339(now),
            ..ConfigReport::default()
        };
        Self(Mutex::new((now, report)))
    }

    /// Records that the config file is in force. The settings in `next_start` take effect at the
    /// next start. `is_new` is true if the file differs from the previous config.
    pub(crate) fn accept(&self, is_new: bool, next_start: Vec<SettingChange>, refused: &[RefusedFile]) {
        let mut state = self.0.lock();
        let (accepted, report) = &mut *state;
        let now = SystemTime::now();
        if is_new {
            (*accepted, report.accepted) = (now, rfc3339(now));
        }
        let before = std::mem::take(&mut report.refused);
        let since = |path: &str| {
            let known = before.iter().find(|before| before.path == path);
            known.map_or_else(|| rfc3339(now), |before| before.since.clone())
        };
        let of_file = |file: &RefusedFile| {
            let (path, why) = (file.path.clone(), file.to_string());
            RefusedFileReport { since: since(&path), path, why, is_kept: file.is_kept }
        };
        report.refused = refused.iter().map(of_file).collect();
        (report.state, report.rejected, report.next_start) = ("accepted".to_owned(), None, next_start);
    }

    /// Records that the config file is rejected. `changes` contains the settings that the file
    /// would change; `None` if the file cannot be parsed. Returns whether `why` differs from the
    /// reason of the previous rejection.
    pub(crate) fn reject(&self, why: &str, changes: Option<Vec<SettingChange>>) -> bool {
        let report = &mut self.0.lock().1;
        let is_news = report.rejected.as_ref().is_none_or(|before| before.why != why);
        let tried = rfc3339(SystemTime::now());
        report.state = "rejected".to_owned();
        report.rejected = Some(RejectedConfigReport {
            since: report.rejected.take().map_or_else(|| tried.clone(), |rejected| rejected.since),
            tried,
            why: why.to_owned(),
            held_back: changes,
            next: vec![NextStep::command(
                "to see all errors of the config",
                ["robotsd", "config", "check", &report.path],
            )],
        });
        is_news
    }

    /// Describes why the config file is rejected; `None` if it is in force.
    pub(crate) fn problem(&self) -> Option<String> {
        let state = self.0.lock();
        let RejectedConfigReport { since, why, .. } = state.1.rejected.as_ref()?;
        Some(format!("the config has been rejected since {since}: {why}"))
    }

    pub(super) fn accepted(&self) -> SystemTime {
        self.0.lock().0
    }

    pub(crate) fn report(&self) -> ConfigReport {
        self.0.lock().1.clone()
    }
}
