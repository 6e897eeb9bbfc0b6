//! The report about the robots.txt of a site, its effects, and the traffic of sites and listeners.

use serde::{Deserialize, Serialize};
use tower_robots::check::Severity;

use super::{NextStep, RecordedReload};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SiteReport {
    pub(crate) name: String,
    /// Host patterns; none for every host.
    pub(crate) hosts: Vec<String>,
    /// `live`, `last-good`, `gated` or `none`; with the last nothing is enforced.
    pub(crate) state: String,
    /// The origin of the robots.txt.
    pub(crate) origin: String,
    pub(crate) mode: String,
    /// Exceptions from the mode, in the order of the config: the last that fits counts.
    pub(crate) overrides: Vec<OverrideReport>,
    /// `on`, or `off` while the switch of the site or of all sites is.
    pub(crate) enforcement: String,
    /// The site's own switch.
    pub(crate) switch: String,
    /// Why it is taken for `off` although it was not turned.
    pub(crate) switch_trouble: Option<String>,
    pub(crate) hash: Option<String>,
    /// When the version that is live became so.
    pub(crate) since: Option<String>,
    pub(crate) age_seconds: Option<u64>,
    pub(crate) findings: Findings,
    /// The errors and warnings in one line, as the log has them.
    pub(crate) findings_summary: Option<String>,
    pub(crate) last_reload: Option<LastReload>,
    /// Since when the source has held nothing usable; the live version is the last good one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) not_taken_since: Option<String>,
    /// The number of outcomes by cause, since the process started.
    pub(crate) reloads: Vec<ReloadCount>,
    /// The version that waits to be accepted.
    pub(crate) pending: Option<PendingReport>,
    /// The decision of an operator by which the version that is live became so, if it was one: `accept` or `rollback`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decided: Option<RecordedReload>,
    /// The version that a rollback would go back to.
    pub(crate) before: Option<String>,
    /// Until when some of what is disallowed is only observed.
    pub(crate) grace_end: Option<String>,
    /// Number of rules that only observe until then.
    #[serde(default)]
    pub(crate) grace_rules: usize,
    /// Requests that passed because judging them ended in a fault of robotsd's.
    pub(crate) faults: u64,
    /// Times that logging what was decided ended in a fault of robotsd's; the decisions stood.
    pub(crate) callback_faults: u64,
    /// The pages that its gate watches, by where they come from; none without a gate, and for one of a directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) watched_pages: Option<Vec<WatchedPagesReport>>,
    /// Troubles of the site: with what its gate reads, with events of the file system, with the state directory, with its upstreams.
    pub(crate) troubles: Vec<String>,
    /// The state of fetching, where the robots.txt is fetched.
    pub(crate) fetch: Option<FetchReport>,
    /// The parts that are appended to the robots.txt, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) append: Vec<AppendReport>,
    /// The requests that are sent when a version goes live.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) on_publish: Vec<PublishHookReport>,
    /// The next steps, the most pressing first.
    pub(crate) next: Vec<NextStep>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WatchedPagesReport {
    /// Which pages they are, as it stands behind "pages": `of the sitemaps`.
    pub(crate) of: String,
    pub(crate) count: u64,
}

/// A part that is appended to a robots.txt.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AppendReport {
    /// The title in comments of the file that is served.
    pub(crate) name: String,
    /// Its path or its URL.
    pub(crate) source: String,
    /// `appended` to the newest version, which may wait at the gate, `last-good` (it cannot be read now) or `missing` (it was not
    /// read since the start, and there is no copy of it).
    pub(crate) state: String,
    pub(crate) hash: Option<String>,
    pub(crate) trouble: Option<String>,
    /// The rules of it that no crawler obeys.
    pub(crate) left_out: Option<String>,
}

/// A hook, and its request for the version that went live last.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PublishHookReport {
    /// The scheme and host that it sends to.
    pub(crate) target: String,
    /// `idle`, `sending`, `delivered` or `failed`.
    pub(crate) state: String,
    pub(crate) version: Option<String>,
    pub(crate) since: Option<String>,
    pub(crate) attempts: usize,
    pub(crate) trouble: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OverrideReport {
    /// Its scope: `agent "gptbot"`, `category "ai-training"` or `pattern "/private/"`.
    pub(crate) of: String,
    pub(crate) mode: String,
    pub(crate) until: Option<String>,
    /// Whether that has passed, so that it fits nothing any more.
    pub(crate) ended: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FetchReport {
    /// When the server last confirmed the live version.
    pub(crate) confirmed: Option<String>,
    pub(crate) failing_since: Option<String>,
    /// Fetches in a row that brought nothing.
    pub(crate) failures: u32,
    /// Until when a version stays in force that is missing at its source.
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
    /// The origin of its bytes.
    pub(crate) origin: String,
    pub(crate) since: String,
    pub(crate) objections: Vec<String>,
    /// What it changes for crawlers, in one sentence.
    pub(crate) effect: Option<String>,
    /// What the source holds in place of this version, and what that does; none where it holds this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) instead: Option<String>,
}

/// How many findings the version that is live has, by severity.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Findings {
    pub(crate) errors: usize,
    pub(crate) warnings: usize,
    pub(crate) notes: usize,
}

impl Findings {
    /// The counts of each severity: `error`, `warning`, `note`.
    pub(crate) fn of(count: impl Fn(Severity) -> usize) -> Self {
        Self { errors: count(Severity::Error), warnings: count(Severity::Warning), notes: count(Severity::Note) }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LastReload {
    /// When something was last made of it.
    pub(crate) when: Option<String>,
    /// Why: `start`, `config`, `new-file`, `event`, `poll`, `request` and so on.
    pub(crate) cause: String,
    /// `published`, `unchanged`, `kept` (the candidate was rejected) or `gated` (it waits to be accepted).
    pub(crate) outcome: String,
    pub(crate) message: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ListenerReport {
    #[serde(skip_serializing_if = "Option::is_none")]
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
    pub(crate) connection_errors: Vec<KindCount>,
    /// By site of the config.
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
    pub(crate) upstreams: Vec<UpstreamReport>,
    /// Requests that got no answer from an upstream, by kind as the event `upstream` names them; those that occurred since
    /// the upstreams were configured.
    pub(crate) failures: Vec<KindCount>,
}

/// Whether a robots.txt is that of a site, or of one of its hosts.
pub(crate) fn is_of(site: &str, name: &str) -> bool {
    name.strip_prefix(site).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The requests of a site since the process started, and the questions of other proxies about some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    pub(crate) since: Option<String>,
    /// The last failure: `connect`, `connect-timeout`, `tls`, `broken` (the connection, before an answer) or `no-address`.
    pub(crate) check: Option<String>,
    /// The error behind it.
    pub(crate) why: Option<String>,
    /// In how many seconds a request tries it again.
    pub(crate) again_seconds: Option<u64>,
}

impl KindCount {
    pub(crate) fn new(kind: &str, count: u64) -> Self {
        Self { kind: kind.to_owned(), count }
    }
}
