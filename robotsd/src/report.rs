//! Reports about a running robotsd. They are the response bodies of the admin interface, which the
//! commands parse.
//!
//! This module contains only types: `sites` and `admin` create the reports, and `commands` prints
//! them. Fields may be added, but not removed. Missing fields have defaults, because a command and
//! the process that it queries may have different versions.

mod served_versions;
mod site;

use serde::{Deserialize, Serialize};

pub(crate) use self::served_versions::ServedVersions;
pub(crate) use self::site::{
    AppendReport, FetchReport, Findings, KindCount, LastReload, ListenerReport, OverrideReport, PendingReport,
    PublishHookReport, ReloadCount, RequestsReport, SiteReport, SiteTraffic, TrafficReport, UpstreamReport,
    WatchedPagesReport, is_of,
};
use crate::word_enum::word_enum;

/// Response to `GET /status`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StatusReport {
    pub(crate) version: String,
    pub(crate) pid: u32,
    /// `starting`, `serving` or `draining`.
    pub(crate) state: String,
    pub(crate) started: String,
    pub(crate) uptime_seconds: u64,
    /// The config file, and whether it is in force.
    pub(crate) config: ConfigReport,
    /// The last upgrade in place, if it is in progress or has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upgrade: Option<UpgradeReport>,
    /// The registry of crawlers; `None` during start-up.
    pub(crate) registry: Option<RegistryReport>,
    /// The evidence for verifying the senders of requests; `None` if senders are not verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) identity: Option<IdentityReport>,
    /// The store that processes use to count crawlers together; `None` if each process counts for
    /// itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate_store: Option<RateStoreReport>,
    /// The webhooks of `[[notify]]`, each with the last event that it has sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) notify: Vec<PublishHookReport>,
    /// The fleet of this process, as it was last read from the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fleet: Option<FleetReport>,
    /// Traffic of the listeners; `None` during start-up.
    pub(crate) traffic: Option<TrafficReport>,
    /// Maximum number of open connections.
    pub(crate) connections: Option<usize>,
    /// `off` if nothing is enforced for any site, otherwise `on`; empty during start-up.
    pub(crate) enforcement: String,
    /// The switch for all sites: `off` if the switch of the process or an off switch of the fleet
    /// is in force. Single sites may be off even if this is `on`.
    pub(crate) switch: String,
    /// Next steps that concern all sites.
    pub(crate) next: Vec<NextStep>,
    /// Why the switch for all sites counts as `off` although nobody turned it off.
    pub(crate) switch_problem: Option<String>,
    /// Whether the state directory is writable, including the parts of all sites and of the board;
    /// `None` if no state directory is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state_writable: Option<bool>,
    /// Names of the threads that have stopped making progress.
    pub(crate) stalled: Vec<String>,
    /// Problems that concern all sites, such as problems with the state directory or with
    /// certificates.
    pub(crate) problems: Vec<String>,
    /// Whether the client may not see any of the sites. This is reported as a problem.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_blind: bool,
    pub(crate) listeners: Vec<ListenerReport>,
    pub(crate) sites: Vec<SiteReport>,
}

impl StatusReport {
    /// Describes the robots.txt that other proxies may serve while robotsd does not answer: they
    /// may show the pending version although it is held. Returns `None` unless other proxies ask
    /// robotsd for decisions.
    pub(crate) fn shown_meanwhile(&self, site: &SiteReport) -> Option<String> {
        let pending = site.pending.as_ref()?;
        let is_asked = self.listeners.iter().any(|listener| listener.kind == "decision");
        let (while_away, origin) = ("while robotsd does not answer, the proxy shows its own file", &pending.origin);
        let which = pending.instead.as_ref().map_or("this version", |_| "not this version");
        let without = if site.append.is_empty() { "" } else { ", without the lists that are appended" };
        is_asked.then(|| format!("{while_away}: {which}, if that is {origin}{without}"))
    }
}

/// A step that an operator can take, with the command for it if there is one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NextStep {
    pub(crate) what: String,
    /// The program and its arguments, not quoted for a shell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) command: Vec<String>,
}

impl NextStep {
    pub(crate) fn say(what: impl Into<String>) -> Self {
        Self { what: what.into(), command: Vec::new() }
    }

    /// Reports whether the command is sent to the running robotsd. Other commands read a file,
    /// whose path is in the arguments.
    pub(crate) fn is_for_running(&self) -> bool {
        let words = self.command.iter().map(String::as_str).take(2);
        matches!(*words.collect::<Vec<_>>(), ["robotsd", command] if !matches!(command, "check" | "config"))
    }

    /// Returns the step that creates the document of a fleet.
    pub(crate) fn make_document() -> Self {
        let what = "the fleet has no document yet, so nothing is enforced; to create it, once for all replicas";
        Self::command(what, ["robotsd", "fleet", "init"])
    }

    pub(crate) fn command<'a>(what: &str, command: impl IntoIterator<Item = &'a str>) -> Self {
        Self { what: what.to_owned(), command: command.into_iter().map(str::to_owned).collect() }
    }
}

/// The state of the config file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ConfigReport {
    pub(crate) path: String,
    /// `accepted`: the file is in force; `rejected`: it cannot be used, and the previous config
    /// stays in force.
    pub(crate) state: String,
    /// Time when the config in force was accepted.
    pub(crate) accepted: String,
    pub(crate) rejected: Option<RejectedConfigReport>,
    /// Settings that have been changed in the config in force, but take effect only at the next
    /// start.
    pub(crate) next_start: Vec<SettingChange>,
    /// Included files that are rejected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) refused: Vec<RefusedFileReport>,
}

/// An included file that is rejected.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RefusedFileReport {
    pub(crate) path: String,
    pub(crate) since: String,
    /// The first error (with path, line and column), the number of further errors, and whether an
    /// earlier copy of the file is in force.
    pub(crate) why: String,
    /// Whether the last good copy of the file is in force. If it is not, the sites of the file are
    /// not served.
    pub(crate) is_kept: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RejectedConfigReport {
    /// Time since when the file is rejected. `tried` is the time of the last attempt to read it.
    pub(crate) since: String,
    pub(crate) tried: String,
    /// The first error (with path, line and column), and the number of further errors.
    pub(crate) why: String,
    /// Settings that the file would change; `None` if the file cannot be parsed.
    pub(crate) held_back: Option<Vec<SettingChange>>,
    /// Next steps for the operator.
    pub(crate) next: Vec<NextStep>,
}

/// A setting that differs between two configs, such as the file and the running process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SettingChange {
    /// Site of the setting; `None` if it does not belong to a site.
    pub(crate) site: Option<String>,
    /// Key with its table, for example `limits.drain` or `modes[agent:GPTBot].mode`.
    pub(crate) setting: String,
    /// Value in the config in force; `None` if the key is not set and has no default.
    #[serde(rename = "running")]
    pub(crate) before: Option<String>,
    /// Value in the file; `None` if the key is not set and has no default.
    #[serde(rename = "file")]
    pub(crate) after: Option<String>,
}

/// The rate store, which processes use to count the requests of crawlers together.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RateStoreReport {
    /// URL of the store, without user and password.
    pub(crate) place: String,
    /// `used`, or `out` if the store is unavailable and each process counts for itself.
    pub(crate) state: String,
    /// Why the store is not used for any request; `None` if it is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unasked: Option<String>,
    /// The last failure of the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem_at: Option<String>,
    /// Number of times that the store became unavailable.
    pub(crate) outages: u64,
    /// Queries to the store, by result: `answered`, `late` or `failed`.
    pub(crate) calls: Vec<KindCount>,
    /// Rate-limited requests, by result: `allowed` or `denied` by the store, `known-denied` because
    /// of an earlier denial, or counted `alone` by this process.
    pub(crate) requests: Vec<KindCount>,
}

/// An upgrade in place. It is the response to `POST /upgrade`, and part of the status.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct UpgradeReport {
    /// `under-way`, `done` (the new process serves) or `failed` (the old process continues).
    pub(crate) state: String,
    /// Time when this state was reached.
    pub(crate) at: String,
    /// Process id of the new process; `None` if none was started.
    pub(crate) process: Option<u32>,
    pub(crate) message: String,
}

/// The registry of crawlers, which may include rows from a published registry and from an
/// additional file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RegistryReport {
    pub(crate) crawlers: usize,
    /// Number of crawlers whose rows were checked against the documentation of their operators.
    pub(crate) checked: usize,
    /// Day of the latest such check.
    pub(crate) last_checked: Option<String>,
    /// The published registry that is followed, if one is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) published: Option<PublishedRegistryReport>,
}

/// A registry that is published at a URL.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PublishedRegistryReport {
    pub(crate) url: String,
    /// `fetched` or `saved`; `None` if no registry has been fetched yet.
    pub(crate) origin: Option<String>,
    pub(crate) hash: Option<String>,
    /// Time of the last response that confirmed this registry.
    pub(crate) confirmed: Option<String>,
    /// The pending version, if there is one.
    pub(crate) waiting: Option<WaitingRegistryReport>,
    /// Why the last fetch failed.
    pub(crate) problem: Option<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WaitingRegistryReport {
    pub(crate) hash: String,
    pub(crate) why: String,
}

/// Evidence about the senders of requests.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct IdentityReport {
    pub(crate) lists: Vec<ListReport>,
    pub(crate) directories: Vec<DirectoryReport>,
    /// Number of addresses whose host names are known. `names_waiting` is the number of addresses
    /// that are not looked up yet.
    pub(crate) names_known: usize,
    pub(crate) names_waiting: usize,
    /// Network paths whose failed claims do not count as refuted.
    pub(crate) suspects: Vec<SuspectReport>,
    /// Messages about missing evidence, one per cause. The log contains the same messages.
    pub(crate) problems: Vec<String>,
    /// Why the knowledge about network paths is lost at a restart.
    pub(crate) paths_problem: Option<String>,
}

impl IdentityReport {
    /// Returns the number of lists that were confirmed within a day. Only these lists can refute a
    /// claim.
    pub(crate) fn confirmed_lists(&self) -> usize {
        self.lists.iter().filter(|list| list.age_seconds.is_some_and(|age| age <= 24 * 3600)).count()
    }

    pub(crate) fn loaded_directories(&self) -> usize {
        self.directories.iter().filter(|directory| directory.keys.is_some()).count()
    }
}

/// A published list of addresses.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ListReport {
    pub(crate) url: String,
    /// `fetched`, `saved`, `file` or `embedded`; `None` if there is no copy of the list.
    pub(crate) origin: Option<String>,
    pub(crate) prefixes: usize,
    /// Creation time, according to the list.
    pub(crate) created: Option<String>,
    /// Time of the last response that confirmed the list. `age_seconds` is the time since then.
    pub(crate) confirmed: Option<String>,
    pub(crate) age_seconds: Option<u64>,
    /// Why the last fetch failed.
    pub(crate) problem: Option<String>,
}

/// A directory of keys for signatures. `keys` and `problem` are `None` until a request needs the
/// directory.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DirectoryReport {
    pub(crate) url: String,
    pub(crate) keys: Option<usize>,
    pub(crate) confirmed: Option<String>,
    pub(crate) problem: Option<String>,
}

/// A network path whose failed claims do not count as refuted, because its addresses may be those
/// of a proxy.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SuspectReport {
    pub(crate) site: String,
    pub(crate) listener: String,
    /// Name of the crawler; empty for signatures that do not belong to a registered crawler.
    pub(crate) crawler: String,
    /// Method of verification that fails: `range`, `rdns` or `signature`.
    pub(crate) method: String,
    /// The networks that contain most addresses of the path. They may be networks of proxies that
    /// are missing in `trusted_proxies`.
    pub(crate) networks: Vec<String>,
    /// Time when the crawler was last verified on this path.
    pub(crate) last_verified: Option<String>,
}

/// Response to `POST /reload`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReloadReport {
    /// Result for the config, if it was read again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<ReloadOutcome>,
    /// Result for the additional registry, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) registry: Option<ReloadOutcome>,
    pub(crate) sites: Vec<SiteReload>,
}

/// Result of reading the config or the registry again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ReloadOutcome {
    /// `published` or `kept`; for a config also `unchanged` or `partly`.
    pub(crate) outcome: String,
    /// A line about the outcome, and one for each included file that is rejected.
    pub(crate) message: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SiteReload {
    pub(crate) name: String,
    /// End of the grace period, during which new rules are only observed.
    pub(crate) grace_end: Option<String>,
    /// Number of rules that are only observed until then.
    #[serde(default)]
    pub(crate) grace_rules: usize,
    /// `published`, `unchanged`, `kept` (the new file was rejected) or `gated` (the new version is
    /// held until accepted).
    pub(crate) outcome: String,
    /// The version that is live now.
    pub(crate) hash: Option<String>,
    pub(crate) message: String,
    /// The appended parts, after they were read again. For a site with a folder, they are reported
    /// with the first file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) append: Vec<AppendReport>,
}

/// The change made by `POST /accept`, `POST /rollback` or `POST /enforce`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ChangeReport {
    /// The changed site; `None` if the change was for all sites.
    pub(crate) site: Option<String>,
    /// The change in one sentence.
    pub(crate) message: String,
    /// The version that is live now.
    pub(crate) hash: Option<String>,
    /// The version that was live before.
    pub(crate) before: Option<String>,
    /// The pending version after the change.
    pub(crate) waiting: Option<String>,
    /// New position of the switch: `on` or `off`.
    pub(crate) enforcement: Option<String>,
    /// Previous position of the switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) enforcement_before: Option<String>,
    /// Whether a running robotsd made the change; otherwise it takes effect at the next start.
    pub(crate) running: bool,
    /// Whether the change survives a restart.
    pub(crate) kept: bool,
    /// Why the change does not survive a restart although it should, or which replicas have not
    /// received it.
    pub(crate) problem: Option<String>,
    /// Next steps for the operator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) next: Vec<NextStep>,
}

/// Response to `GET /fleet`: the document of a fleet and its replicas, as one replica sees them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FleetReport {
    pub(crate) name: String,
    /// Name of the reporting replica.
    pub(crate) replica: String,
    pub(crate) store: String,
    /// State of the reporting replica, as determined by itself.
    pub(crate) state: ReplicaState,
    pub(crate) epoch: Option<String>,
    /// Revision of the document in the store; `None` if the store has no document.
    pub(crate) rev: Option<u64>,
    /// Time when the document was last read.
    pub(crate) read: Option<String>,
    #[serde(default)]
    pub(crate) problems: Vec<String>,
    #[serde(default)]
    pub(crate) marks: Vec<FleetEntry>,
    #[serde(default)]
    pub(crate) accepts: Vec<FleetEntry>,
    #[serde(default)]
    pub(crate) replicas: Vec<FleetReplica>,
}

/// A fleet-wide off switch (`what` is its id), or an accepted version (`what` is its hash).
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FleetEntry {
    /// `*`, or the name of a site.
    pub(crate) scope: String,
    pub(crate) what: String,
    /// Revision of the write that added the entry; 0 if the entry is not in the store yet.
    pub(crate) rev: u64,
    pub(crate) by: String,
    pub(crate) at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
}

/// A replica of a fleet.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FleetReplica {
    pub(crate) replica: String,
    pub(crate) state: ReplicaState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    pub(crate) version: String,
    pub(crate) silent_seconds: u64,
    /// The version that the replica serves for each site.
    #[serde(default)]
    pub(crate) sites: ServedVersions,
}

word_enum! {
    /// State of a replica, compared with the document of its fleet.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub(crate) enum ReplicaState {
        /// The replica has the same off switches and accepted versions as the store.
        Synced = "synced",
        /// The off switches or accepted versions of the replica differ from those in the store.
        Behind = "behind",
        /// The source of the replica does not have an accepted version yet.
        Lacks = "lacks",
        Missing = "missing",
        /// The replica cannot read the store, or has not read it since its start.
        Stale = "stale",
        /// Entries in the store are missing, or are older than those of the replica.
        WentBack = "went-back",
        /// The document belongs to another fleet.
        Foreign = "foreign",
        /// The document has a newer format.
        Rejected = "rejected",
        /// Some fields of the document cannot be parsed.
        Damaged = "damaged",
        /// Another process uses the name of the replica.
        Doubled = "doubled",
        /// The replica reports this state itself if it has applied the document. Other replicas
        /// compare it with the document, and show it as `Synced`, `Behind` or `Lacks`.
        Current = "current",
        /// The replica has not read a document, or its version of robotsd reports a state that this
        /// version does not know.
        #[default]
        #[serde(other)]
        Unknown = "unknown",
    }
}

impl ReplicaState {
    /// Reports whether replicas report this state about themselves.
    pub(crate) const fn is_own(self) -> bool {
        matches!(
            self,
            Self::WentBack
                | Self::Foreign
                | Self::Rejected
                | Self::Damaged
                | Self::Doubled
                | Self::Stale
                | Self::Unknown
                | Self::Current
        )
    }
}

impl FleetReport {
    pub(crate) fn synced(&self) -> usize {
        self.replicas.iter().filter(|replica| replica.state == ReplicaState::Synced).count()
    }

    /// Reports whether every replica is synced, and there are no problems.
    pub(crate) fn is_synced(&self) -> bool {
        self.problems.is_empty() && self.rev.is_some() && self.synced() == self.replicas.len()
    }
}

/// The response of a replica, or the reason why there is none.
#[derive(Debug, Serialize)]
pub(crate) struct ReplicaAnswer<T> {
    pub(crate) replica: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) answer: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// Response to `GET /history`: the reloads of a site, the newest last.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HistoryReport {
    pub(crate) site: String,
    pub(crate) entries: Vec<RecordedReload>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RecordedReload {
    pub(crate) when: String,
    /// A cause as in [`LastReload`], or `accept`, `rollback` or `switch`.
    pub(crate) cause: String,
    /// An outcome as in [`LastReload`], or `absent`, `switched-on` or `switched-off`.
    pub(crate) outcome: String,
    pub(crate) origin: String,
    pub(crate) hash: Option<String>,
    pub(crate) findings: Findings,
    /// Effect on crawlers, in one sentence.
    pub(crate) effect: Option<String>,
    pub(crate) message: String,
    /// Who made the decision, if known. `reason` is the reason that was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) who: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

impl RecordedReload {
    /// Returns, for example, ` by alice: "the sale"`. A missing name or reason is left out.
    pub(crate) fn attribution(&self) -> String {
        let who = self.who.iter().map(|who| format!(" by {who}"));
        who.chain(self.reason.iter().map(|reason| format!(": {reason:?}"))).collect()
    }
}

impl ChangeReport {
    pub(crate) fn new(message: String) -> Self {
        Self { message, ..Self::default() }
    }

    /// Returns a message if the change is lost when the process ends, or if replicas have not
    /// received it; `None` otherwise.
    pub(crate) fn end(&self) -> Option<String> {
        let why = match (&self.problem, self.kept) {
            (Some(problem), true) => {
                return Some(format!("the change is in effect on this replica and survives restarts, but {problem}"));
            }
            (Some(problem), false) => problem,
            (None, false) => "the config has no state_dir",
            (None, true) => return None,
        };
        Some(format!("the change is lost when robotsd ends: {why}"))
    }
}
