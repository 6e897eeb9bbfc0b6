//! Reports about a running robotsd: the responses of the admin interface, which the commands read.
//!
//! This module contains only types. A command and the process that it queries may be different
//! versions of robotsd. New versions may add fields, but never remove fields. Readers use defaults
//! for missing fields.

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

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StatusReport {
    pub(crate) version: String,
    pub(crate) pid: u32,
    /// `starting`, `serving` or `draining`.
    pub(crate) state: String,
    pub(crate) started: String,
    pub(crate) uptime_seconds: u64,
    pub(crate) config: ConfigReport,
    /// The last upgrade of the running process, if it is in progress or has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upgrade: Option<UpgradeReport>,
    /// The registry of crawlers; `None` before the sites are opened.
    pub(crate) registry: Option<RegistryReport>,
    /// Evidence about the senders of requests; `None` if senders are not verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) identity: Option<IdentityReport>,
    /// The store that several processes share to count the requests of crawlers; `None` if each
    /// process counts separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate_store: Option<RateStoreReport>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) notify: Vec<PublishHookReport>,
    /// State of the fleet, as last read from the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fleet: Option<FleetReport>,
    /// Traffic of the listeners; `None` before the sites are opened.
    pub(crate) traffic: Option<TrafficReport>,
    /// Maximum number of connections; `None` before the sites are opened.
    pub(crate) connections: Option<usize>,
    /// `off` if nothing is enforced for any site, otherwise `on`. Empty while robotsd starts.
    pub(crate) enforcement: String,
    /// State of the kill switch for all sites, including the fleet-wide switch: `on` or `off`. If
    /// this switch is `on`, enforcement of single sites may still be off.
    pub(crate) switch: String,
    /// Next steps for the operator, except steps for a single site.
    pub(crate) next: Vec<NextStep>,
    /// Why the kill switch for all sites counts as `off` although nobody has set it to `off`.
    pub(crate) switch_problem: Option<String>,
    /// Whether the state directory is writable, including the folders of all sites and of the
    /// board; `None` if no state directory is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state_writable: Option<bool>,
    /// Names of the threads that have stopped making progress.
    pub(crate) stalled: Vec<String>,
    pub(crate) problems: Vec<String>,
    /// `true` if sites exist, but the client has no permission to see any of them. `robotsd status`
    /// reports this as a problem.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_blind: bool,
    pub(crate) listeners: Vec<ListenerReport>,
    pub(crate) sites: Vec<SiteReport>,
}

impl StatusReport {
    /// Warns that crawlers may see the pending version before it is accepted: a proxy that asks
    /// robotsd for decisions may serve its own copy of the robots.txt while robotsd does not
    /// respond. Returns `None` if no version is pending, or if no listener accepts decision
    /// requests.
    pub(crate) fn pending_version_warning(&self, site: &SiteReport) -> Option<String> {
        let pending = site.pending.as_ref()?;
        let is_asked = self.listeners.iter().any(|listener| listener.kind == "decision");
        let proxy_note = "while robotsd does not answer, the proxy serves its own copy of robots.txt";
        let which = pending.instead.as_ref().map_or("the pending version", |_| "not the pending version");
        let without = if site.append.is_empty() { "" } else { ", and lacks the appended lists" };
        let origin = &pending.origin;
        is_asked.then(|| format!("{proxy_note}; if the proxy reads {origin}, its copy is {which}{without}"))
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NextStep {
    pub(crate) what: String,
    /// Program and arguments, unquoted; empty if no command performs the step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) command: Vec<String>,
}

impl NextStep {
    pub(crate) fn without_command(what: impl Into<String>) -> Self {
        Self { what: what.into(), command: Vec::new() }
    }

    /// Reports whether the command acts on the running robotsd. The commands `check` and `config`
    /// do not: they read a file whose path is in the command.
    pub(crate) fn is_for_running(&self) -> bool {
        let words = self.command.iter().map(String::as_str).take(2);
        matches!(*words.collect::<Vec<_>>(), ["robotsd", command] if !matches!(command, "check" | "config"))
    }

    pub(crate) fn create_fleet_document() -> Self {
        let what =
            "the fleet has no document yet, so nothing is enforced; to create the document, once for all replicas";
        Self::command(what, ["robotsd", "fleet", "init"])
    }

    pub(crate) fn command<'a>(what: &str, command: impl IntoIterator<Item = &'a str>) -> Self {
        Self { what: what.to_owned(), command: command.into_iter().map(str::to_owned).collect() }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ConfigReport {
    pub(crate) path: String,
    /// `accepted` if the file is in force. `rejected` if the file cannot be used; the previous
    /// config then stays in force.
    pub(crate) state: String,
    pub(crate) accepted: String,
    pub(crate) rejected: Option<RejectedConfigReport>,
    /// Settings in the accepted config that take effect only at the next start.
    pub(crate) next_start: Vec<SettingChange>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) refused: Vec<RefusedFileReport>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RefusedFileReport {
    pub(crate) path: String,
    pub(crate) since: String,
    /// The first error (with path, line and column), the number of further errors, and what is
    /// served instead of the file.
    pub(crate) why: String,
    /// Whether the last good copy of the file is in force. If `false`, the sites in the file are
    /// not served.
    pub(crate) is_kept: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RejectedConfigReport {
    /// Time when the file became unusable.
    pub(crate) since: String,
    /// Time when the file was last read.
    pub(crate) tried: String,
    /// The first error (with path, line and column), and the number of further errors.
    pub(crate) why: String,
    /// Settings in the file that differ from the config in force; `None` if too little of the file
    /// can be parsed.
    pub(crate) held_back: Option<Vec<SettingChange>>,
    pub(crate) next: Vec<NextStep>,
}

/// A setting that differs between two configs, such as the config in force and the current config
/// file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SettingChange {
    /// Name of the site; `None` if the setting does not belong to a site.
    pub(crate) site: Option<String>,
    /// Path of the key: `limits.drain`, `modes[agent:GPTBot].mode`.
    pub(crate) setting: String,
    /// Value in the first config, such as the config in force. `None` if the key is not set and has
    /// no default.
    #[serde(rename = "running")]
    pub(crate) before: Option<String>,
    /// Value in the second config, such as the current config file. `None` if the key is not set
    /// and has no default.
    #[serde(rename = "file")]
    pub(crate) after: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RateStoreReport {
    /// URL of the store, without user name and password.
    pub(crate) place: String,
    /// `used`, or `out` if the store is unavailable. While the store is unavailable, each process
    /// counts separately.
    pub(crate) state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unasked: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem_at: Option<String>,
    /// Number of times that the store became unavailable.
    pub(crate) outages: u64,
    /// Number of queries to the store, by result: `answered`, `late` or `failed`.
    pub(crate) calls: Vec<KindCount>,
    /// Number of requests of rate-limited crawlers, by result. `allowed` and `denied` count
    /// requests that the store allowed or denied. `known-denied` counts requests that the process
    /// denied because of an earlier answer of the store. `alone` counts requests that the process
    /// counted without the store.
    pub(crate) requests: Vec<KindCount>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct UpgradeReport {
    /// `under-way`, `done` (the new process serves) or `failed` (the old process continues).
    pub(crate) state: String,
    pub(crate) at: String,
    /// ID of the new process; `None` if no new process was started.
    pub(crate) process: Option<u32>,
    pub(crate) message: String,
}

/// The registry of crawlers, including the rows of `registry_url` and `registry_extra`.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RegistryReport {
    pub(crate) crawlers: usize,
    /// Number of crawlers whose registry rows were checked against the operator's documentation.
    pub(crate) checked: usize,
    /// Day of the latest check against an operator's documentation.
    pub(crate) last_checked: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) published: Option<PublishedRegistryReport>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PublishedRegistryReport {
    pub(crate) url: String,
    /// `fetched` or `saved` (read from the state directory); `None` until a registry has been read.
    pub(crate) origin: Option<String>,
    pub(crate) hash: Option<String>,
    /// Time of the last response that confirmed that this registry is current.
    pub(crate) confirmed: Option<String>,
    /// Pending version of the registry, which an operator must accept before robotsd uses it.
    pub(crate) waiting: Option<WaitingRegistryReport>,
    /// Why the last fetch failed; `None` if it succeeded.
    pub(crate) problem: Option<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WaitingRegistryReport {
    pub(crate) hash: String,
    pub(crate) why: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct IdentityReport {
    pub(crate) lists: Vec<ListReport>,
    pub(crate) directories: Vec<DirectoryReport>,
    /// Number of client addresses whose reverse DNS names are known.
    pub(crate) names_known: usize,
    /// Number of client addresses whose reverse DNS names are still to be looked up.
    pub(crate) names_waiting: usize,
    pub(crate) suspects: Vec<SuspectReport>,
    /// Messages about missing evidence, one message per cause. The log contains the same messages.
    pub(crate) problems: Vec<String>,
    /// Why the data about network paths is not saved, so that it will be lost when the process
    /// ends; `None` if the data is saved.
    pub(crate) paths_problem: Option<String>,
}

impl IdentityReport {
    /// Returns the number of lists that were confirmed within the last day. Only these lists can
    /// prove that a client is an impostor.
    pub(crate) fn confirmed_lists(&self) -> usize {
        self.lists.iter().filter(|list| list.age_seconds.is_some_and(|age| age <= 24 * 3600)).count()
    }

    pub(crate) fn loaded_directories(&self) -> usize {
        self.directories.iter().filter(|directory| directory.keys.is_some()).count()
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ListReport {
    pub(crate) url: String,
    /// `fetched`, `saved`, `file` or `embedded`; `None` if there is no copy of the list.
    pub(crate) origin: Option<String>,
    pub(crate) prefixes: usize,
    /// Creation time of the list, according to the list itself.
    pub(crate) created: Option<String>,
    /// Time of the last response that confirmed the list.
    pub(crate) confirmed: Option<String>,
    pub(crate) age_seconds: Option<u64>,
    /// Why the last fetch failed; `None` if it succeeded.
    pub(crate) problem: Option<String>,
}

/// A directory of public keys for request signatures. `keys` and `problem` are both `None` until a
/// request needs the directory.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DirectoryReport {
    pub(crate) url: String,
    pub(crate) keys: Option<usize>,
    pub(crate) confirmed: Option<String>,
    pub(crate) problem: Option<String>,
}

/// A site, listener, crawler and method. For this combination, a proxy may hide the addresses of
/// clients, so a failed check does not prove that a client is an impostor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SuspectReport {
    pub(crate) site: String,
    pub(crate) listener: String,
    /// Name of the crawler; empty for signatures that do not name a registered crawler.
    pub(crate) crawler: String,
    /// The method of verification that failed: `range`, `rdns` or `signature`.
    pub(crate) method: String,
    /// Networks that contain most of the client addresses. These networks may have to be added to
    /// `trusted_proxies`.
    pub(crate) networks: Vec<String>,
    pub(crate) last_verified: Option<String>,
}

/// Response to `POST /reload`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReloadReport {
    /// Outcome for the config; `None` if the config was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<ReloadOutcome>,
    /// Outcome for the registry; `None` if the config sets neither `registry_extra` nor
    /// `registry_url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) registry: Option<ReloadOutcome>,
    pub(crate) sites: Vec<SiteReload>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ReloadOutcome {
    /// `published` or `kept`. For the config, `unchanged` and `partly` are also possible.
    pub(crate) outcome: String,
    /// One line about the result, and one line per refused included file.
    pub(crate) message: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SiteReload {
    pub(crate) name: String,
    /// End of the grace period. Until then, requests that new rules disallow are neither refused
    /// nor tagged.
    pub(crate) grace_end: Option<String>,
    #[serde(default)]
    pub(crate) grace_rules: usize,
    /// `published`, `unchanged`, `kept` (the new file was rejected) or `gated` (the new file is
    /// held until an operator accepts it).
    pub(crate) outcome: String,
    pub(crate) hash: Option<String>,
    pub(crate) message: String,
    /// The appended lists. If a site has one report per host, only the first report contains the
    /// lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) append: Vec<AppendReport>,
}

/// The change made by `POST /accept`, `POST /rollback` or `POST /enforce`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ChangeReport {
    pub(crate) site: Option<String>,
    pub(crate) message: String,
    pub(crate) hash: Option<String>,
    pub(crate) before: Option<String>,
    pub(crate) waiting: Option<String>,
    pub(crate) enforcement: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) enforcement_before: Option<String>,
    /// Whether a running robotsd made the change. If `false`, the change takes effect at the next
    /// start.
    pub(crate) running: bool,
    /// Whether the change survives a restart.
    pub(crate) kept: bool,
    /// Reason why the change will be lost at a restart, or the replicas that have not received the
    /// change.
    pub(crate) problem: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) next: Vec<NextStep>,
}

/// Response to `GET /fleet`: the fleet's document and the state of its replicas, as the responding
/// replica last read them from the store.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FleetReport {
    pub(crate) name: String,
    pub(crate) replica: String,
    pub(crate) store: String,
    /// State of the responding replica, as determined by the replica itself.
    pub(crate) state: ReplicaState,
    pub(crate) epoch: Option<String>,
    /// Revision of the document in the store; `None` if the store has no document.
    pub(crate) rev: Option<u64>,
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

/// A fleet-wide off switch (`what` contains its ID), or an accepted version (`what` contains its
/// hash).
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FleetEntry {
    /// Name of a site; `*` for all sites.
    pub(crate) scope: String,
    pub(crate) what: String,
    /// Revision of the document that added this entry; 0 until the store contains the entry.
    pub(crate) rev: u64,
    pub(crate) by: String,
    pub(crate) at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FleetReplica {
    pub(crate) replica: String,
    pub(crate) state: ReplicaState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    pub(crate) version: String,
    pub(crate) silent_seconds: u64,
    #[serde(default)]
    pub(crate) sites: ServedVersions,
}

word_enum! {
    /// State of a replica, in comparison with the document of its fleet.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub(crate) enum ReplicaState {
        /// The replica has applied the whole document.
        Synced = "synced",
        /// The off switches or accepted versions of the replica differ from the entries in the
        /// store.
        Behind = "behind",
        /// A version was accepted for the fleet, but the replica's own source of robots.txt does
        /// not contain it yet.
        Lacks = "lacks",
        Missing = "missing",
        /// The replica cannot reach the store, or has not read the document since it started.
        Stale = "stale",
        /// The store contains an older document than the replica has already read: entries are
        /// missing or older.
        WentBack = "went-back",
        /// The document in the store belongs to another fleet.
        Foreign = "foreign",
        /// The document has a newer format than this robotsd supports.
        Rejected = "rejected",
        /// The replica cannot read some fields of the document.
        Damaged = "damaged",
        Doubled = "doubled",
        /// The replica reports no problem. Only the replica itself reports this state. Other
        /// processes compare the replica with the document, and replace this state with `Synced`,
        /// `Behind` or `Lacks`.
        Current = "current",
        /// The replica has not read a document yet, or runs another version of robotsd that reports
        /// a state unknown to this version.
        #[default]
        #[serde(other)]
        Unknown = "unknown",
    }
}

impl ReplicaState {
    /// Reports whether the replica itself determined this state. All other states result from a
    /// comparison with the document.
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

    pub(crate) fn is_synced(&self) -> bool {
        self.problems.is_empty() && self.rev.is_some() && self.synced() == self.replicas.len()
    }
}

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
    /// Cause as in [`LastReload`], or `accept`, `rollback`, `switch`.
    pub(crate) cause: String,
    /// Outcome as in [`LastReload`], or `absent`, `switched-on`, `switched-off`.
    pub(crate) outcome: String,
    pub(crate) origin: String,
    pub(crate) hash: Option<String>,
    pub(crate) findings: Findings,
    pub(crate) effect: Option<String>,
    pub(crate) message: String,
    /// Person who made the decision; `None` if the person is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) who: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

impl RecordedReload {
    /// Formats who made the decision, and why: ` by alice: "the sale"`.
    pub(crate) fn attribution(&self) -> String {
        let who = self.who.iter().map(|who| format!(" by {who}"));
        who.chain(self.reason.iter().map(|reason| format!(": {reason:?}"))).collect()
    }
}

impl ChangeReport {
    pub(crate) fn new(message: String) -> Self {
        Self { message, ..Self::default() }
    }

    /// Warns that the change will be lost when the process ends, or that some replicas have not
    /// received it. Returns `None` if there is no reason for a warning.
    pub(crate) fn change_warning(&self) -> Option<String> {
        let why = match (&self.problem, self.kept) {
            (Some(problem), true) => {
                return Some(format!("the change is in effect here, and survives restarts; {problem}"));
            }
            (Some(problem), false) => problem,
            (None, false) => "the config has no state_dir",
            (None, true) => return None,
        };
        Some(format!("the change is in effect only until robotsd ends: {why}"))
    }
}
