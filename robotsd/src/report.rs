//! The reports about a running robotsd: what the admin interface answers with, and the commands read.
//!
//! Types only: `sites` and `admin` fill them, and `commands` prints them. Fields are only ever added: a command and the
//! process it reaches may be of different versions, so readers have a default for fields that are missing.

mod rate_store;

use serde::{Deserialize, Serialize};

pub(crate) use self::rate_store::RateStoreReport;

/// `GET /status`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StatusReport {
    pub(crate) version: String,
    pub(crate) pid: u32,
    /// `starting`, `serving` or `draining`.
    pub(crate) state: String,
    pub(crate) started: String,
    pub(crate) uptime_seconds: u64,
    /// The config file, and whether it is what is served; none from an older robotsd.
    #[serde(default)]
    pub(crate) config: Option<ConfigReport>,
    /// The crawlers that are known; none from an older robotsd or while starting.
    #[serde(default)]
    pub(crate) registry: Option<RegistryReport>,
    /// What the senders of requests are checked by; none where nobody checks them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) identity: Option<IdentityReport>,
    /// Where crawlers are counted with other processes; none where each counts for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rate_store: Option<RateStoreReport>,
    /// What happened on the listeners; none from an older robotsd or while starting.
    #[serde(default)]
    pub(crate) traffic: Option<TrafficReport>,
    /// The bound on open connections.
    #[serde(default)]
    pub(crate) connections: Option<usize>,
    /// `off` where nothing is enforced for any site, else `on`; empty from an older robotsd.
    #[serde(default)]
    pub(crate) enforcement: String,
    /// What to do next that concerns every site.
    #[serde(default)]
    pub(crate) next: Vec<NextStep>,
    /// Why the switch of every site is taken for `off` although nobody turned it.
    #[serde(default)]
    pub(crate) switch_trouble: Option<String>,
    /// Troubles that concern every site: those of the state directory.
    #[serde(default)]
    pub(crate) troubles: Vec<String>,
    #[serde(default)]
    pub(crate) listeners: Vec<ListenerReport>,
    #[serde(default)]
    pub(crate) sites: Vec<SiteReport>,
}

/// The registry of crawlers, with the rows of a published one and of an extra file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RegistryReport {
    pub(crate) crawlers: usize,
    /// Rows for which the documentation of their operator was read.
    pub(crate) checked: usize,
    /// The last day on which that was done.
    #[serde(default)]
    pub(crate) last_checked: Option<String>,
    /// The one that is published at a URL, where one is followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) published: Option<PublishedRegistryReport>,
}

/// A registry that is published at a URL.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PublishedRegistryReport {
    pub(crate) url: String,
    /// `fetched` or `saved`; none where there is none yet.
    #[serde(default)]
    pub(crate) origin: Option<String>,
    #[serde(default)]
    pub(crate) hash: Option<String>,
    /// When its server last said that it is right.
    #[serde(default)]
    pub(crate) confirmed: Option<String>,
    /// The version that waits to be accepted.
    #[serde(default)]
    pub(crate) waiting: Option<WaitingRegistryReport>,
    /// Why the last fetch brought nothing.
    #[serde(default)]
    pub(crate) trouble: Option<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WaitingRegistryReport {
    pub(crate) hash: String,
    pub(crate) why: String,
}

/// The evidence about who sends requests.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct IdentityReport {
    #[serde(default)]
    pub(crate) lists: Vec<ListReport>,
    #[serde(default)]
    pub(crate) directories: Vec<DirectoryReport>,
    /// Addresses whose names are known, and those that wait to be looked up.
    #[serde(default)]
    pub(crate) names_known: usize,
    #[serde(default)]
    pub(crate) names_waiting: usize,
    /// Where claims fail and are not refuted.
    #[serde(default)]
    pub(crate) suspects: Vec<SuspectReport>,
    /// Why what is known of paths does not outlive the process.
    #[serde(default)]
    pub(crate) paths_trouble: Option<String>,
}

/// A published list of addresses.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ListReport {
    pub(crate) url: String,
    /// `fetched`, `saved`, `file` or `embedded`; none where there is no list.
    #[serde(default)]
    pub(crate) origin: Option<String>,
    #[serde(default)]
    pub(crate) prefixes: usize,
    /// When its operator made it, as it says itself.
    #[serde(default)]
    pub(crate) created: Option<String>,
    /// When its server last said that it is right, and how long ago that was.
    #[serde(default)]
    pub(crate) confirmed: Option<String>,
    #[serde(default)]
    pub(crate) age_seconds: Option<u64>,
    /// Why the last fetch brought nothing.
    #[serde(default)]
    pub(crate) trouble: Option<String>,
}

/// A directory of keys; one that no request has needed has neither keys nor trouble.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DirectoryReport {
    pub(crate) url: String,
    #[serde(default)]
    pub(crate) keys: Option<usize>,
    #[serde(default)]
    pub(crate) confirmed: Option<String>,
    #[serde(default)]
    pub(crate) trouble: Option<String>,
}

/// A path of requests on which no claim is refuted, because its addresses may be those of a proxy.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SuspectReport {
    pub(crate) site: String,
    pub(crate) listener: String,
    /// Empty for those whose signature names no crawler that is registered.
    pub(crate) crawler: String,
    /// What fails: `range`, `rdns` or `signature`.
    #[serde(default)]
    pub(crate) method: String,
    /// The networks of most of its addresses: what may be missing in `trusted_proxies`.
    #[serde(default)]
    pub(crate) networks: Vec<String>,
    /// When the crawler was last verified on it.
    #[serde(default)]
    pub(crate) last_verified: Option<String>,
}

/// The config file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ConfigReport {
    pub(crate) path: String,
    /// `accepted`: the file is what is served; `rejected`: it cannot be used, and the config before is served.
    pub(crate) state: String,
    /// When the config that is served was accepted.
    pub(crate) accepted: String,
    #[serde(default)]
    pub(crate) rejected: Option<RejectedConfigReport>,
    /// The settings of the config that is served which have another value until robotsd starts again.
    #[serde(default)]
    pub(crate) next_start: Vec<HeldBackSetting>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RejectedConfigReport {
    /// Since when the file cannot be used, and when it was last tried.
    pub(crate) since: String,
    pub(crate) tried: String,
    /// The first error, with path, line and column, and how many more there are.
    pub(crate) why: String,
    /// The settings that are served with another value than the file has; none where the file cannot be read so far.
    #[serde(default)]
    pub(crate) held_back: Option<Vec<HeldBackSetting>>,
    /// What to do next.
    #[serde(default)]
    pub(crate) next: Vec<NextStep>,
}

/// A setting that has another value in the file than in the process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HeldBackSetting {
    #[serde(default)]
    pub(crate) site: Option<String>,
    pub(crate) setting: String,
    /// The value that is served; none where it is not set.
    #[serde(default)]
    pub(crate) running: Option<String>,
    /// The value in the file, likewise.
    #[serde(default)]
    pub(crate) file: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ListenerReport {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    pub(crate) address: String,
    pub(crate) kind: String,
    /// `http` or `https`.
    pub(crate) scheme: String,
    /// `bound` by the process itself, or `passed` to it.
    pub(crate) socket: String,
}

/// Connections now, and what happened since the process started.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TrafficReport {
    /// Connections of clients that are open now.
    pub(crate) open_connections: usize,
    pub(crate) accepted_connections: u64,
    /// Responses by class of their status: `1xx` to `5xx`.
    pub(crate) responses: Vec<KindCount>,
    /// Requests whose client left, or which were cut off, before there was a response.
    pub(crate) unanswered: u64,
    /// Connection errors by kind, as the event `trouble` names them; those that occurred.
    #[serde(default)]
    pub(crate) connection_errors: Vec<KindCount>,
    /// By site of the config.
    #[serde(default)]
    pub(crate) sites: Vec<SiteTraffic>,
}

/// How often something of a kind happened.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KindCount {
    pub(crate) kind: String,
    pub(crate) count: u64,
}

/// The requests and the upstreams of a site; one with a directory of files is one site here.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SiteTraffic {
    pub(crate) name: String,
    pub(crate) requests: RequestsReport,
    #[serde(default)]
    pub(crate) upstreams: Vec<UpstreamReport>,
    /// Requests that got no answer from an upstream, by kind as the event `upstream` names them; those that occurred since
    /// the upstreams were configured.
    #[serde(default)]
    pub(crate) failures: Vec<KindCount>,
}

/// The requests of a site since the process started, and the questions of other proxies about some.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RequestsReport {
    pub(crate) total: u64,
    /// Requests for `/robots.txt`.
    pub(crate) robots_txt: u64,
    /// Those that robots.txt does not disallow.
    pub(crate) allowed: u64,
    /// Disallowed, by what was done.
    pub(crate) refused: u64,
    pub(crate) tagged: u64,
    pub(crate) observed: u64,
    pub(crate) passed: u64,
    /// Allowed ones that were answered with 429.
    pub(crate) limited: u64,
}

/// An upstream server, or a name that cannot be resolved.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct UpstreamReport {
    pub(crate) server: String,
    /// `up`, `out`, or `unresolved`.
    pub(crate) state: String,
    /// Connections to it that are open now.
    pub(crate) connections: usize,
    /// Since when it is out or unresolved.
    #[serde(default)]
    pub(crate) since: Option<String>,
    /// What failed last: `connect`, `connect-timeout`, `tls`, `broken` (the connection, before an answer) or `no-address`.
    #[serde(default)]
    pub(crate) check: Option<String>,
    /// The error behind it.
    #[serde(default)]
    pub(crate) why: Option<String>,
    /// In how many seconds a request tries it again.
    #[serde(default)]
    pub(crate) again_seconds: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SiteReport {
    pub(crate) name: String,
    /// Host patterns; none for every host.
    #[serde(default)]
    pub(crate) hosts: Vec<String>,
    /// `live`, `last-good`, `gated` or `none`; with the last nothing is enforced.
    pub(crate) state: String,
    /// Where the robots.txt comes from.
    #[serde(default)]
    pub(crate) origin: String,
    pub(crate) mode: String,
    /// Exceptions from the mode, in the order of the config: the last that fits counts.
    #[serde(default)]
    pub(crate) overrides: Vec<OverrideReport>,
    /// `on`, or `off` while the switch of the site or of all sites is.
    #[serde(default)]
    pub(crate) enforcement: String,
    /// The site's own switch.
    #[serde(default)]
    pub(crate) switch: String,
    /// Why it is taken for `off` although nobody turned it.
    #[serde(default)]
    pub(crate) switch_trouble: Option<String>,
    #[serde(default)]
    pub(crate) hash: Option<String>,
    /// When the version that is live became so.
    #[serde(default)]
    pub(crate) since: Option<String>,
    #[serde(default)]
    pub(crate) age_seconds: Option<u64>,
    #[serde(default)]
    pub(crate) findings: Findings,
    #[serde(default)]
    pub(crate) last_reload: Option<LastReload>,
    /// How often what came of which cause, since the process started.
    #[serde(default)]
    pub(crate) reloads: Vec<ReloadCount>,
    /// The version that waits to be accepted.
    #[serde(default)]
    pub(crate) pending: Option<PendingReport>,
    /// The version that a rollback would go back to.
    #[serde(default)]
    pub(crate) before: Option<String>,
    /// Until when some of what is disallowed is only observed.
    #[serde(default)]
    pub(crate) grace_end: Option<String>,
    /// Requests that passed because judging them ended in a fault of robotsd's.
    #[serde(default)]
    pub(crate) faults: u64,
    /// Times that logging what was decided ended in a fault of robotsd's; the decisions stood.
    #[serde(default)]
    pub(crate) callback_faults: u64,
    /// Troubles of the site: with events of the file system, with the state directory.
    #[serde(default)]
    pub(crate) troubles: Vec<String>,
    /// The state of fetching, where the robots.txt is fetched.
    #[serde(default)]
    pub(crate) fetch: Option<FetchReport>,
    /// What to do next, the most pressing first.
    #[serde(default)]
    pub(crate) next: Vec<NextStep>,
}

/// Something to do, with the command that does it where there is one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NextStep {
    pub(crate) what: String,
    /// The program and its arguments, each as it is: quoting is the shell's matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OverrideReport {
    /// Its scope: `agent "gptbot"`, `category "ai-training"` or `pattern "/private/"`.
    pub(crate) of: String,
    pub(crate) mode: String,
    #[serde(default)]
    pub(crate) until: Option<String>,
    /// Whether that has passed, so that it fits nothing any more.
    #[serde(default)]
    pub(crate) ended: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FetchReport {
    /// When the server last confirmed the live version.
    #[serde(default)]
    pub(crate) confirmed: Option<String>,
    #[serde(default)]
    pub(crate) failing_since: Option<String>,
    /// Fetches in a row that brought nothing.
    #[serde(default)]
    pub(crate) failures: u32,
    /// Until when a version stays in force that is missing at its source.
    #[serde(default)]
    pub(crate) held_until: Option<String>,
    /// When it is fetched next.
    pub(crate) next: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReloadCount {
    /// As in [`LastReload`].
    pub(crate) cause: String,
    pub(crate) outcome: String,
    pub(crate) count: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PendingReport {
    pub(crate) hash: String,
    /// Where its bytes came from.
    #[serde(default)]
    pub(crate) origin: String,
    pub(crate) since: String,
    pub(crate) objections: Vec<String>,
}

/// How many findings the version that is live has, by severity.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Findings {
    pub(crate) errors: usize,
    pub(crate) warnings: usize,
    pub(crate) notes: usize,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LastReload {
    /// When something was last made of it.
    #[serde(default)]
    pub(crate) when: Option<String>,
    /// `start`, `event`, `poll` or `request`.
    pub(crate) cause: String,
    /// `published`, `unchanged`, `kept` (the candidate was rejected) or `gated` (it waits to be accepted).
    pub(crate) outcome: String,
    pub(crate) message: String,
}

/// `POST /reload`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReloadReport {
    /// What came of the config, where that was read again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<ConfigReload>,
    /// What came of the extra registry, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) registry: Option<RegistryReload>,
    #[serde(default)]
    pub(crate) sites: Vec<SiteReload>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ConfigReload {
    /// `published`, `unchanged` or `kept`.
    pub(crate) outcome: String,
    pub(crate) message: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RegistryReload {
    /// `published` or `kept`.
    pub(crate) outcome: String,
    pub(crate) message: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SiteReload {
    pub(crate) name: String,
    /// Until when some of what is disallowed is only observed.
    #[serde(default)]
    pub(crate) grace_end: Option<String>,
    /// `published`, `unchanged`, `kept` (the candidate was rejected) or `gated` (it waits to be accepted).
    pub(crate) outcome: String,
    /// The version that is live now.
    #[serde(default)]
    pub(crate) hash: Option<String>,
    pub(crate) message: String,
}

/// `POST /accept`, `POST /rollback` and `POST /enforce`: what was changed.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ChangeReport {
    /// None where every site was meant.
    #[serde(default)]
    pub(crate) site: Option<String>,
    /// In one sentence.
    pub(crate) message: String,
    /// The version that is live now.
    #[serde(default)]
    pub(crate) hash: Option<String>,
    /// The version that was live before.
    #[serde(default)]
    pub(crate) before: Option<String>,
    /// The version that waits to be accepted now.
    #[serde(default)]
    pub(crate) waiting: Option<String>,
    /// What the switch was turned to: `on` or `off`.
    #[serde(default)]
    pub(crate) enforcement: Option<String>,
    /// Whether a running robotsd did it; else it holds from the next start.
    #[serde(default)]
    pub(crate) running: bool,
    /// Whether it still holds after a restart.
    pub(crate) kept: bool,
    /// Why it does not, where it should.
    #[serde(default)]
    pub(crate) trouble: Option<String>,
}

/// `GET /history`: the reloads of a site, the newest last.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HistoryReport {
    pub(crate) site: String,
    #[serde(default)]
    pub(crate) entries: Vec<RecordedReload>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RecordedReload {
    pub(crate) when: String,
    /// As in [`LastReload`], or `accept`, `rollback`, `switch`.
    pub(crate) cause: String,
    /// As in [`LastReload`], or `absent`, `switched-on`, `switched-off`.
    pub(crate) outcome: String,
    #[serde(default)]
    pub(crate) origin: String,
    #[serde(default)]
    pub(crate) hash: Option<String>,
    #[serde(default)]
    pub(crate) findings: Findings,
    /// What it changes for crawlers, in one sentence.
    #[serde(default)]
    pub(crate) effect: Option<String>,
    pub(crate) message: String,
}

impl NextStep {
    pub(crate) const fn say(what: String) -> Self {
        Self { what, command: Vec::new() }
    }

    pub(crate) fn command<'a>(what: &str, command: impl IntoIterator<Item = &'a str>) -> Self {
        Self { what: what.to_owned(), command: command.into_iter().map(str::to_owned).collect() }
    }
}

impl KindCount {
    pub(crate) fn new(kind: &str, count: u64) -> Self {
        Self { kind: kind.to_owned(), count }
    }
}

impl ChangeReport {
    pub(crate) fn new(message: String) -> Self {
        Self { message, ..Self::default() }
    }
}
