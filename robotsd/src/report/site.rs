//! Reports about the robots.txt of a site and its effects, and about the traffic of sites and
//! listeners.

use serde::{Deserialize, Serialize};
use tower_robots::check::Severity;

use super::{NextStep, RecordedReload};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SiteReport {
    pub(crate) name: String,
    /// Host patterns; empty if the site serves every host.
    pub(crate) hosts: Vec<String>,
    /// `live`, `last-good`, `gated` or `none`. In the state `none`, nothing is enforced.
    pub(crate) state: String,
    /// Origin of the robots.txt.
    pub(crate) origin: String,
    pub(crate) mode: String,
    /// Exceptions from the mode, in the order of the config. If several match a request, the last
    /// one counts.
    pub(crate) overrides: Vec<OverrideReport>,
    /// `off` if the switch of the site or the switch of all sites is off, otherwise `on`.
    pub(crate) enforcement: String,
    /// Position of the site's own switch.
    pub(crate) switch: String,
    /// Reason why the switch counts as `off` although nobody turned it off.
    pub(crate) switch_problem: Option<String>,
    pub(crate) hash: Option<String>,
    /// Time when the live version went live.
    pub(crate) since: Option<String>,
    pub(crate) age_seconds: Option<u64>,
    pub(crate) findings: Findings,
    /// Errors and warnings in one line, as in the log.
    pub(crate) findings_summary: Option<String>,
    pub(crate) last_reload: Option<LastReload>,
    /// Time since which the source has not contained a usable version. Until the source contains
    /// one again, the last good version stays live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) not_taken_since: Option<String>,
    /// Number of reloads by cause and result, since the process started.
    pub(crate) reloads: Vec<ReloadCount>,
    /// The pending version.
    pub(crate) pending: Option<PendingReport>,
    /// The operator's decision (`accept` or `rollback`) that made the live version live, if there
    /// was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decided: Option<RecordedReload>,
    /// Hash of the version that a rollback would restore.
    pub(crate) before: Option<String>,
    /// End of the grace period, during which new rules are only observed.
    pub(crate) grace_end: Option<String>,
    /// Number of rules that are only observed until `grace_end`.
    #[serde(default)]
    pub(crate) grace_rules: usize,
    /// Number of requests that were allowed because an internal error prevented a decision.
    pub(crate) faults: u64,
    /// Number of internal errors while a decision was logged. These decisions took effect.
    pub(crate) callback_faults: u64,
    /// Pages that the gate watches, by their origin. `None` if there is no gate, or if the site has
    /// a directory of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) watched_pages: Option<Vec<WatchedPagesReport>>,
    /// Problems with the inputs of the site's gate, with file system events, with the state
    /// directory, or with the site's upstreams.
    pub(crate) problems: Vec<String>,
    /// State of fetching the robots.txt; `None` if it is not fetched.
    pub(crate) fetch: Option<FetchReport>,
    /// The parts that are appended to the robots.txt, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) append: Vec<AppendReport>,
    /// The requests that are sent when a version goes live.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) on_publish: Vec<PublishHookReport>,
    /// Next steps, the most urgent first.
    pub(crate) next: Vec<NextStep>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WatchedPagesReport {
    /// Description of the pages, such as `of the sitemaps`. In output, it follows the word "pages".
    pub(crate) of: String,
    pub(crate) count: u64,
}

/// A part that is appended to a robots.txt.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AppendReport {
    /// Title of the part in the comments of the served file.
    pub(crate) name: String,
    /// Path or URL of the part.
    pub(crate) source: String,
    /// `appended`: the part is in the newest version, which may be pending. `last-good`: the part
    /// cannot be read now, so its last good copy is appended. `missing`: the part has not been read
    /// since the start, and there is no copy.
    pub(crate) state: String,
    pub(crate) hash: Option<String>,
    pub(crate) problem: Option<String>,
    /// The rules of the part that are left out because no crawler obeys them.
    pub(crate) left_out: Option<String>,
}

/// A publish hook, and the state of the request that informs its receiver about the newest live
/// version.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PublishHookReport {
    /// Scheme and host of the receiver.
    pub(crate) target: String,
    /// `idle`, `sending`, `delivered` or `failed`.
    pub(crate) state: String,
    pub(crate) version: Option<String>,
    pub(crate) since: Option<String>,
    pub(crate) attempts: usize,
    pub(crate) problem: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OverrideReport {
    /// Scope of the exception: `agent "gptbot"`, `category "ai-training"` or `pattern "/private/"`.
    pub(crate) of: String,
    pub(crate) mode: String,
    pub(crate) until: Option<String>,
    /// Whether `until` has passed, so that the exception no longer matches anything.
    pub(crate) ended: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FetchReport {
    /// Time when the server last confirmed the live version.
    pub(crate) confirmed: Option<String>,
    pub(crate) failing_since: Option<String>,
    /// Number of consecutive fetches that failed.
    pub(crate) failures: u32,
    /// Time until which the live version stays in force although the source no longer contains it.
    pub(crate) held_until: Option<String>,
    /// Time of the next fetch.
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
    /// Origin of the pending version.
    pub(crate) origin: String,
    pub(crate) since: String,
    pub(crate) objections: Vec<String>,
    /// Effect of the pending version on crawlers, in one sentence.
    pub(crate) effect: Option<String>,
    /// What the source contains instead of the pending version, and the effect of that content;
    /// `None` if the source contains the pending version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) instead: Option<String>,
}

/// Number of findings in the live version, by severity.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Findings {
    pub(crate) errors: usize,
    pub(crate) warnings: usize,
    pub(crate) notes: usize,
}

impl Findings {
    /// Counts the findings of each severity with `count`.
    pub(crate) fn of(count: impl Fn(Severity) -> usize) -> Self {
        Self { errors: count(Severity::Error), warnings: count(Severity::Warning), notes: count(Severity::Note) }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LastReload {
    /// Time of the reload.
    pub(crate) when: Option<String>,
    /// Cause: `start`, `config`, `new-file`, `event`, `poll`, `request` and so on.
    pub(crate) cause: String,
    /// `published`, `unchanged`, `kept` (the new file was rejected) or `gated` (it is held until
    /// accepted).
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

/// Traffic of all listeners since the process started.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TrafficReport {
    /// Client connections that are open now.
    pub(crate) open_connections: usize,
    pub(crate) accepted_connections: u64,
    /// Responses by status class: `1xx` to `5xx`.
    pub(crate) responses: Vec<KindCount>,
    /// Number of requests that ended without a response because the client or robotsd closed the
    /// connection.
    pub(crate) unanswered: u64,
    /// Connection errors by kind. The kinds have the same names as in the event `problem`. Contains
    /// only kinds that occurred.
    pub(crate) connection_errors: Vec<KindCount>,
    /// Traffic by site of the config.
    pub(crate) sites: Vec<SiteTraffic>,
}

/// Number of occurrences of one kind.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KindCount {
    pub(crate) kind: String,
    pub(crate) count: u64,
}

/// Requests and upstreams of a site. A site with a directory of files counts as one site here.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SiteTraffic {
    pub(crate) name: String,
    pub(crate) requests: RequestsReport,
    pub(crate) upstreams: Vec<UpstreamReport>,
    /// The requests that got no response from an upstream, by kind. The kinds have the same names
    /// as in the event `upstream`. Contains only kinds that occurred since the upstreams were
    /// configured.
    pub(crate) failures: Vec<KindCount>,
}

/// Reports whether the robots.txt called `name` belongs to a site: `name` is `SITE` or `SITE/HOST`.
pub(crate) fn is_of(site: &str, name: &str) -> bool {
    name.strip_prefix(site).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The requests of a site since the process started, including requests that other proxies asked
/// about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RequestsReport {
    pub(crate) total: u64,
    /// Number of requests for `/robots.txt`.
    pub(crate) robots_txt: u64,
    /// Number of requests that robots.txt does not disallow.
    pub(crate) allowed: u64,
    /// Disallowed requests that were refused. The next three fields count disallowed requests with
    /// another action.
    pub(crate) refused: u64,
    pub(crate) tagged: u64,
    pub(crate) observed: u64,
    pub(crate) passed: u64,
    /// Allowed requests that got a 429 because of a crawl delay.
    pub(crate) limited: u64,
}

/// An upstream server, or a name that cannot be resolved.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct UpstreamReport {
    pub(crate) server: String,
    /// `up`, `out`, or `unresolved`.
    pub(crate) state: String,
    /// Connections to the server that are open now.
    pub(crate) connections: usize,
    /// Time since which the server has been `out` or `unresolved`.
    pub(crate) since: Option<String>,
    /// Kind of the last failure: `connect`, `connect-timeout`, `tls`, `broken` (the connection
    /// failed before a response) or `no-address`.
    pub(crate) check: Option<String>,
    /// Error message of the last failure.
    pub(crate) why: Option<String>,
    /// Seconds until a request is sent to the server again.
    pub(crate) again_seconds: Option<u64>,
}

impl KindCount {
    pub(crate) fn new(kind: &str, count: u64) -> Self {
        Self { kind: kind.to_owned(), count }
    }
}
