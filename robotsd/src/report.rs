//! The reports about a running robotsd: the answers of the admin interface, which the commands read.
//!
//! Types only: `sites` and `admin` fill them, and `commands` prints them. Fields are only ever added: a command and the
//! process it reaches may be of different versions, so readers have a default for fields that are missing.

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

/// `GET /status`.
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
    /// The last upgrade in place that is under way or has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upgrade: Option<UpgradeReport>,
    /// The crawlers that are known; `None` while starting.
    pub(crate) registry: Option<RegistryReport>,
    /// The evidence by which the senders of requests are checked; none if they are not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) identity: Option<IdentityReport>,
    /// The store in which crawlers are counted with other processes; none if each counts for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate_store: Option<RateStoreReport>,
    /// The hooks of `[[notify]]`, each with the event that it sent last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) notify: Vec<PublishHookReport>,
    /// The fleet that it is of, as it was seen last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fleet: Option<FleetReport>,
    /// The traffic of the listeners; `None` while starting.
    pub(crate) traffic: Option<TrafficReport>,
    /// The bound on open connections.
    pub(crate) connections: Option<usize>,
    /// `off` if nothing is enforced for any site, else `on`; empty while starting.
    pub(crate) enforcement: String,
    /// The switch of every site, or the fleet's: sites may also be off one by one.
    pub(crate) switch: String,
    /// The next steps that concern every site.
    pub(crate) next: Vec<NextStep>,
    /// Why the switch of every site is taken for `off` although it was not turned.
    pub(crate) switch_trouble: Option<String>,
    /// Whether the state directory can be written, with every site's part of it and the board; none without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state_writable: Option<bool>,
    /// The threads that stand still.
    pub(crate) stalled: Vec<String>,
    /// Troubles that concern every site: of the state directory, of certificates and others.
    pub(crate) troubles: Vec<String>,
    /// Whether the client may look at no site that there is, which is a trouble.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_blind: bool,
    pub(crate) listeners: Vec<ListenerReport>,
    pub(crate) sites: Vec<SiteReport>,
}

impl StatusReport {
    /// Where crawlers may get a version that waits all the same, or what they get there; none unless other proxies ask robotsd.
    pub(crate) fn shown_meanwhile(&self, site: &SiteReport) -> Option<String> {
        let pending = site.pending.as_ref()?;
        let is_asked = self.listeners.iter().any(|listener| listener.kind == "decision");
        let (while_away, origin) = ("while robotsd does not answer, the proxy shows its own file", &pending.origin);
        let which = pending.instead.as_ref().map_or("this version", |_| "not this version");
        let without = if site.append.is_empty() { "" } else { ", without the lists that are appended" };
        is_asked.then(|| format!("{while_away}: {which}, if that is {origin}{without}"))
    }
}

/// Something to do, with the command that does it where there is one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NextStep {
    pub(crate) what: String,
    /// The program and its arguments, each as it is: quoting is the shell's matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) command: Vec<String>,
}

impl NextStep {
    pub(crate) fn say(what: impl Into<String>) -> Self {
        Self { what: what.into(), command: Vec::new() }
    }

    /// Whether its command is for the robotsd that runs: others read a file, and name it.
    pub(crate) fn is_for_running(&self) -> bool {
        let words = self.command.iter().map(String::as_str).take(2);
        matches!(*words.collect::<Vec<_>>(), ["robotsd", command] if !matches!(command, "check" | "config"))
    }

    /// The first step of a fleet with a name.
    pub(crate) fn make_document() -> Self {
        let what = "no document of the fleet has been read, so nothing is enforced; to make it, once for all replicas";
        Self::command(what, ["robotsd", "fleet", "init"])
    }

    pub(crate) fn command<'a>(what: &str, command: impl IntoIterator<Item = &'a str>) -> Self {
        Self { what: what.to_owned(), command: command.into_iter().map(str::to_owned).collect() }
    }
}

/// The config file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ConfigReport {
    pub(crate) path: String,
    /// `accepted`: the file is in force; `rejected`: it cannot be used, and the config before is served.
    pub(crate) state: String,
    /// When the config that is served was accepted.
    pub(crate) accepted: String,
    pub(crate) rejected: Option<RejectedConfigReport>,
    /// The settings of the config that is served which have another value until robotsd starts again.
    pub(crate) next_start: Vec<SettingChange>,
    /// The included files that are not in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) refused: Vec<RefusedFileReport>,
}

/// A file with sites that the config includes and that cannot be used.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RefusedFileReport {
    pub(crate) path: String,
    pub(crate) since: String,
    /// The first error, with path, line and column, how many more there are, and what is served in place of the file.
    pub(crate) why: String,
    /// Whether its last good copy is in force; else its sites are not served.
    pub(crate) is_kept: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RejectedConfigReport {
    /// Since when the file cannot be used, and when it was last tried.
    pub(crate) since: String,
    pub(crate) tried: String,
    /// The first error, with path, line and column, and how many more there are.
    pub(crate) why: String,
    /// The settings that are served with another value than the file has; none where the file cannot be read so far.
    pub(crate) held_back: Option<Vec<SettingChange>>,
    /// The next steps.
    pub(crate) next: Vec<NextStep>,
}

/// A setting that has another value in one config than in another: in the file than in the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SettingChange {
    /// The site whose setting it is.
    pub(crate) site: Option<String>,
    /// The key, from its table on: `limits.drain`, `modes[agent:GPTBot].mode`.
    pub(crate) setting: String,
    /// The value in the first config, which is served; none where it is not set there and has no default.
    #[serde(rename = "running")]
    pub(crate) before: Option<String>,
    /// The value in the second config, which is the file's, likewise.
    #[serde(rename = "file")]
    pub(crate) after: Option<String>,
}

/// The store in which processes share what they count of crawlers.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RateStoreReport {
    /// Its URL, without user and password.
    pub(crate) place: String,
    /// `used`, or `out` while each process counts for itself.
    pub(crate) state: String,
    /// Why no request asks it, where that is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unasked: Option<String>,
    /// The last failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trouble: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trouble_at: Option<String>,
    /// How often it was lost.
    pub(crate) outages: u64,
    /// Questions to it: `answered`, `late` or `failed`.
    pub(crate) calls: Vec<KindCount>,
    /// Limited requests: `allowed` or `denied` by it, `known-denied` by an earlier denial of it, or counted by this process `alone`.
    pub(crate) requests: Vec<KindCount>,
}

/// An upgrade in place: the answer to `POST /upgrade`, and the last one in the status.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct UpgradeReport {
    /// `under-way`; `done`: the new process serves; `failed`: the process goes on as before.
    pub(crate) state: String,
    /// When that was.
    pub(crate) at: String,
    /// The number of the new process; none where none was started.
    pub(crate) process: Option<u32>,
    pub(crate) message: String,
}

/// The registry of crawlers, with the rows of a published one and of an extra file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RegistryReport {
    pub(crate) crawlers: usize,
    /// Rows for which the documentation of their operator was read.
    pub(crate) checked: usize,
    /// The last day on which that was done.
    pub(crate) last_checked: Option<String>,
    /// The one that is published at a URL, where one is followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) published: Option<PublishedRegistryReport>,
}

/// A registry that is published at a URL.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PublishedRegistryReport {
    pub(crate) url: String,
    /// `fetched` or `saved`; none where there is none yet.
    pub(crate) origin: Option<String>,
    pub(crate) hash: Option<String>,
    /// When its server last said that it is right.
    pub(crate) confirmed: Option<String>,
    /// The version that waits to be accepted.
    pub(crate) waiting: Option<WaitingRegistryReport>,
    /// Why the last fetch brought nothing.
    pub(crate) trouble: Option<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WaitingRegistryReport {
    pub(crate) hash: String,
    pub(crate) why: String,
}

/// The evidence about who sends requests.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct IdentityReport {
    pub(crate) lists: Vec<ListReport>,
    pub(crate) directories: Vec<DirectoryReport>,
    /// Addresses whose names are known, and those that wait to be looked up.
    pub(crate) names_known: usize,
    pub(crate) names_waiting: usize,
    /// The paths on which claims fail and are not refuted.
    pub(crate) suspects: Vec<SuspectReport>,
    /// The missing evidence, a line for each cause, as the log has it.
    pub(crate) troubles: Vec<String>,
    /// Why what is known of paths does not outlive the process.
    pub(crate) paths_trouble: Option<String>,
}

impl IdentityReport {
    /// How many lists were confirmed within a day: only those can refute a claim.
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
    /// `fetched`, `saved`, `file` or `embedded`; none where there is no list.
    pub(crate) origin: Option<String>,
    pub(crate) prefixes: usize,
    /// When its operator made it, as it says itself.
    pub(crate) created: Option<String>,
    /// When its server last said that it is right, and how long ago that was.
    pub(crate) confirmed: Option<String>,
    pub(crate) age_seconds: Option<u64>,
    /// Why the last fetch brought nothing.
    pub(crate) trouble: Option<String>,
}

/// A directory of keys; one that no request has needed has neither keys nor trouble.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DirectoryReport {
    pub(crate) url: String,
    pub(crate) keys: Option<usize>,
    pub(crate) confirmed: Option<String>,
    pub(crate) trouble: Option<String>,
}

/// A path of requests on which no claim is refuted, because its addresses may be those of a proxy.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SuspectReport {
    pub(crate) site: String,
    pub(crate) listener: String,
    /// Empty for those whose signature names no crawler that is registered.
    pub(crate) crawler: String,
    /// The kind of evidence that fails: `range`, `rdns` or `signature`.
    pub(crate) method: String,
    /// The networks of most of its addresses: they may be missing in `trusted_proxies`.
    pub(crate) networks: Vec<String>,
    /// When the crawler was last verified on it.
    pub(crate) last_verified: Option<String>,
}

/// `POST /reload`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReloadReport {
    /// The outcome for the config, if that was read again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<ReloadOutcome>,
    /// The outcome for the extra registry, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) registry: Option<ReloadOutcome>,
    pub(crate) sites: Vec<SiteReload>,
}

/// The outcome of reading the config or the registry again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ReloadOutcome {
    /// `published`, `kept`, or of a config `unchanged` or `partly`.
    pub(crate) outcome: String,
    /// One line, and one more for each included file that is refused.
    pub(crate) message: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SiteReload {
    pub(crate) name: String,
    /// Until when some of what is disallowed is only observed.
    pub(crate) grace_end: Option<String>,
    /// Number of rules that only observe until then.
    #[serde(default)]
    pub(crate) grace_rules: usize,
    /// `published`, `unchanged`, `kept` (the candidate was rejected) or `gated` (it waits to be accepted).
    pub(crate) outcome: String,
    /// The version that is live now.
    pub(crate) hash: Option<String>,
    pub(crate) message: String,
    /// The parts that are appended, after they were read again; for the files of a folder, at the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) append: Vec<AppendReport>,
}

/// `POST /accept`, `POST /rollback` and `POST /enforce`: the change.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ChangeReport {
    /// None where every site was meant.
    pub(crate) site: Option<String>,
    /// In one sentence.
    pub(crate) message: String,
    /// The version that is live now.
    pub(crate) hash: Option<String>,
    /// The version that was live before.
    pub(crate) before: Option<String>,
    /// The version that waits to be accepted now.
    pub(crate) waiting: Option<String>,
    /// The new position of the switch: `on` or `off`.
    pub(crate) enforcement: Option<String>,
    /// Its position before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) enforcement_before: Option<String>,
    /// Whether a running robotsd did it; else it holds from the next start.
    pub(crate) running: bool,
    /// Whether it still holds after a restart.
    pub(crate) kept: bool,
    /// Why it does not, where it should.
    pub(crate) trouble: Option<String>,
    /// The remaining steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) next: Vec<NextStep>,
}

/// `GET /fleet`: the document of a fleet, and its replicas, as one of them sees both.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FleetReport {
    pub(crate) name: String,
    /// The one that reports.
    pub(crate) replica: String,
    pub(crate) store: String,
    /// As it says of itself.
    pub(crate) state: ReplicaState,
    pub(crate) epoch: Option<String>,
    /// Of the document in the store; none where that has none.
    pub(crate) rev: Option<u64>,
    /// When it was read last.
    pub(crate) read: Option<String>,
    #[serde(default)]
    pub(crate) troubles: Vec<String>,
    #[serde(default)]
    pub(crate) marks: Vec<FleetEntry>,
    #[serde(default)]
    pub(crate) accepts: Vec<FleetEntry>,
    #[serde(default)]
    pub(crate) replicas: Vec<FleetReplica>,
}

/// A mark by its id, or an accepted version by its hash.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FleetEntry {
    /// `*`, or a site.
    pub(crate) scope: String,
    pub(crate) what: String,
    /// 0 before the store has it.
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
    /// The version that it serves of each site.
    #[serde(default)]
    pub(crate) sites: ServedVersions,
}

word_enum! {
    /// How a replica stands to the document of its fleet.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub(crate) enum ReplicaState {
        /// It has all that the store has.
        Synced = "synced",
        /// It has other marks or accepts than the store.
        Behind = "behind",
        /// A version that is accepted has not come to its source.
        Lacks = "lacks",
        Missing = "missing",
        /// It has no store now, or has not read it since its start.
        Stale = "stale",
        /// Entries of the store are older than its own, or gone.
        WentBack = "went-back",
        /// The document is of another fleet.
        Foreign = "foreign",
        /// The document is of a later version.
        Rejected = "rejected",
        /// It cannot read some fields of the document.
        Damaged = "damaged",
        /// Another process has its name.
        Doubled = "doubled",
        /// As it says of itself; the document says whether it is synced, behind or lacks a version.
        Current = "current",
        /// It has read no document, or is of another version, which has a state more.
        #[default]
        #[serde(other)]
        Unknown = "unknown",
    }
}

impl ReplicaState {
    /// Whether a replica says it of itself.
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

    /// Whether every replica has what the store has.
    pub(crate) fn is_synced(&self) -> bool {
        self.troubles.is_empty() && self.rev.is_some() && self.synced() == self.replicas.len()
    }
}

/// What a replica answered, or why it did not.
#[derive(Debug, Serialize)]
pub(crate) struct ReplicaAnswer<T> {
    pub(crate) replica: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) answer: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// `GET /history`: the reloads of a site, the newest last.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HistoryReport {
    pub(crate) site: String,
    pub(crate) entries: Vec<RecordedReload>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RecordedReload {
    pub(crate) when: String,
    /// As in [`LastReload`], or `accept`, `rollback`, `switch`.
    pub(crate) cause: String,
    /// As in [`LastReload`], or `absent`, `switched-on`, `switched-off`.
    pub(crate) outcome: String,
    pub(crate) origin: String,
    pub(crate) hash: Option<String>,
    pub(crate) findings: Findings,
    /// The effect on crawlers, in one sentence.
    pub(crate) effect: Option<String>,
    pub(crate) message: String,
    /// Who decided it, and why, where that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) who: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

impl RecordedReload {
    /// ` by alice: "the sale"`, as far as that is known.
    pub(crate) fn attribution(&self) -> String {
        let who = self.who.iter().map(|who| format!(" by {who}"));
        who.chain(self.reason.iter().map(|reason| format!(": {reason:?}"))).collect()
    }
}

impl ChangeReport {
    pub(crate) fn new(message: String) -> Self {
        Self { message, ..Self::default() }
    }

    /// Why it ends with the process, where it does; or what has not heard of it yet.
    pub(crate) fn end(&self) -> Option<String> {
        let why = match (&self.trouble, self.kept) {
            (Some(trouble), true) => return Some(format!("it holds here, over restarts too; {trouble}")),
            (Some(trouble), false) => trouble,
            (None, false) => "its config has no state_dir",
            (None, true) => return None,
        };
        Some(format!("it holds until robotsd ends: {why}"))
    }
}
