//! Reports about sites and their robots.txt, and about the traffic of sites and listeners.

use serde::{Deserialize, Serialize};
use tower_robots::check::Severity;

use super::{NextStep, RecordedReload};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SiteReport {
    pub(crate) name: String,
    /// Host patterns; empty if the site serves every host.
    pub(crate) hosts: Vec<String>,
    /// `live`, `last-good`, `gated` or `none`. `none` means that nothing is enforced.
    pub(crate) state: String,
    pub(crate) origin: String,
    pub(crate) mode: String,
    /// Exceptions from the mode, in the order of the config; the last matching exception counts for
    /// a request.
    pub(crate) overrides: Vec<OverrideReport>,
    /// `off` if the kill switch of the site or the kill switch for all sites is off; `on` if both
    /// are on.
    pub(crate) enforcement: String,
    /// Position of the site's own kill switch: `on` (enforcing) or `off`.
    pub(crate) switch: String,
    /// Reason why the site's kill switch counts as `off` although nobody has turned it off.
    pub(crate) switch_problem: Option<String>,
    pub(crate) hash: Option<String>,
    pub(crate) since: Option<String>,
    pub(crate) age_seconds: Option<u64>,
    pub(crate) findings: Findings,
    /// Summary of the errors and warnings on one line, as in the log.
    pub(crate) findings_summary: Option<String>,
    pub(crate) last_reload: Option<LastReload>,
    /// Start of the current series of failed reloads; `None` if the last reload succeeded. During
    /// the series, the last good version stays live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) not_taken_since: Option<String>,
    /// Number of reloads by cause and result, since the process started.
    pub(crate) reloads: Vec<ReloadCount>,
    /// Pending version, which an operator must accept before it goes live.
    pub(crate) pending: Option<PendingReport>,
    /// The operator's decision (`accept` or `rollback`) that published the live version, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decided: Option<RecordedReload>,
    /// Hash of the version that a rollback would restore; `None` if there is no such version.
    pub(crate) before: Option<String>,
    /// End of the grace period, during which new rules are only observed.
    pub(crate) grace_end: Option<String>,
    /// Number of rules that are only observed until `grace_end`.
    #[serde(default)]
    pub(crate) grace_rules: usize,
    /// Number of requests that were allowed because an internal error prevented a decision.
    pub(crate) faults: u64,
    /// Number of internal errors while decisions were logged. The decisions took effect.
    pub(crate) callback_faults: u64,
    /// Lists of pages that the gate watches, such as the pages of the sitemaps. `None` if there is
    /// no gate, or if the site has one robots.txt per host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) watched_pages: Option<Vec<WatchedPagesReport>>,
    /// Problems with the files that the gate reads, with file system events, with the state
    /// directory, or with upstreams.
    pub(crate) problems: Vec<String>,
    /// How the robots.txt is fetched; `None` if it is not fetched.
    pub(crate) fetch: Option<FetchReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) append: Vec<AppendReport>,
    /// The requests that are sent when a version goes live.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) on_publish: Vec<PublishHookReport>,
    /// Next steps for the operator, the most urgent first.
    pub(crate) next: Vec<NextStep>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WatchedPagesReport {
    /// Description such as `of the sitemaps`, which is printed after the word "pages".
    pub(crate) of: String,
    pub(crate) count: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AppendReport {
    /// Title of the list in the comments of the served file.
    pub(crate) name: String,
    /// Path or URL of the list.
    pub(crate) source: String,
    /// `appended`: the list is in the newest version, which may be pending. `last-good`: the list
    /// cannot be read, so its last good copy is appended. `missing`: the list has not been read
    /// since the start, and there is no copy.
    pub(crate) state: String,
    pub(crate) hash: Option<String>,
    pub(crate) problem: Option<String>,
    /// Rules of the list that robotsd leaves out, because no crawler obeys them.
    pub(crate) left_out: Option<String>,
}

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
    /// Whether the exception no longer applies, because `until` has passed.
    pub(crate) ended: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FetchReport {
    /// Time when the server last confirmed the live version.
    pub(crate) confirmed: Option<String>,
    pub(crate) failing_since: Option<String>,
    /// Number of consecutive fetches that failed.
    pub(crate) failures: u32,
    /// If the source no longer contains the robots.txt, the live version stays in force until this
    /// time.
    pub(crate) held_until: Option<String>,
    pub(crate) next: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReloadCount {
    /// Cause of the reloads, as in [`LastReload`].
    pub(crate) cause: String,
    pub(crate) outcome: String,
    pub(crate) count: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PendingReport {
    pub(crate) hash: String,
    /// Path or URL of the pending version.
    pub(crate) origin: String,
    pub(crate) since: String,
    pub(crate) objections: Vec<String>,
    /// Effect of the pending version on crawlers, in one sentence.
    pub(crate) effect: Option<String>,
    /// The version that the source contains now, and its effect on crawlers; `None` if the source
    /// still contains the pending version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) instead: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Findings {
    pub(crate) errors: usize,
    pub(crate) warnings: usize,
    pub(crate) notes: usize,
}

impl Findings {
    pub(crate) fn of(count: impl Fn(Severity) -> usize) -> Self {
        Self { errors: count(Severity::Error), warnings: count(Severity::Warning), notes: count(Severity::Note) }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LastReload {
    pub(crate) when: Option<String>,
    /// Cause of the reload: `start`, `config`, `new-file`, `event`, `poll`, `request` or another
    /// cause.
    pub(crate) cause: String,
    /// `published`, `unchanged`, `kept` (the new file was rejected) or `gated` (the new file is
    /// held until an operator accepts it).
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
    /// `bound` if this process opened the socket; `passed` if another process passed the socket to
    /// this process.
    pub(crate) socket: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TrafficReport {
    pub(crate) open_connections: usize,
    pub(crate) accepted_connections: u64,
    /// Responses by status class: `1xx` to `5xx`.
    pub(crate) responses: Vec<KindCount>,
    /// Number of requests that ended without a response because the client or robotsd closed the
    /// connection.
    pub(crate) unanswered: u64,
    /// Connection errors by kind. Only kinds that occurred are listed. The kinds have the same
    /// names as in the event `problem`.
    pub(crate) connection_errors: Vec<KindCount>,
    pub(crate) sites: Vec<SiteTraffic>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KindCount {
    pub(crate) kind: String,
    pub(crate) count: u64,
}

/// Requests and upstreams of a site. A site with one robots.txt per host counts as one site here.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SiteTraffic {
    pub(crate) name: String,
    pub(crate) requests: RequestsReport,
    pub(crate) upstreams: Vec<UpstreamReport>,
    /// Requests that got no response from an upstream since the upstreams were configured, by kind.
    /// Only kinds that occurred are listed. The kinds have the same names as in the event
    /// `upstream`.
    pub(crate) failures: Vec<KindCount>,
}

/// Reports whether `name` (`SITE` or `SITE/HOST`) belongs to this site.
pub(crate) fn is_of(site: &str, name: &str) -> bool {
    name.strip_prefix(site).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The requests of a site since the process started, including requests that other proxies asked
/// about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RequestsReport {
    pub(crate) total: u64,
    pub(crate) robots_txt: u64,
    /// Number of requests that robots.txt does not disallow.
    pub(crate) allowed: u64,
    /// Number of disallowed requests that were refused.
    pub(crate) refused: u64,
    /// Number of disallowed requests that were forwarded with a tag.
    pub(crate) tagged: u64,
    /// Number of disallowed requests that were forwarded because of the mode or a grace period.
    pub(crate) observed: u64,
    /// Number of disallowed requests that were forwarded because of an exemption or an override.
    pub(crate) passed: u64,
    /// Number of allowed requests that got the status 429 because of a crawl delay.
    pub(crate) limited: u64,
}

/// An upstream server, or a host name that does not resolve.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct UpstreamReport {
    pub(crate) server: String,
    /// `up`, `out`, or `unresolved`.
    pub(crate) state: String,
    pub(crate) connections: usize,
    pub(crate) since: Option<String>,
    /// Kind of the last failure: `connect`, `connect-timeout`, `tls`, `broken` (the connection
    /// failed before a response) or `no-address`.
    pub(crate) check: Option<String>,
    pub(crate) why: Option<String>,
    /// Number of seconds until the server gets a request again.
    pub(crate) again_seconds: Option<u64>,
}

impl KindCount {
    pub(crate) fn new(kind: &str, count: u64) -> Self {
        Self { kind: kind.to_owned(), count }
    }
}
