//! The report about listeners, connections, requests and upstreams.

use serde::{Deserialize, Serialize};

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

impl KindCount {
    pub(crate) fn new(kind: &str, count: u64) -> Self {
        Self { kind: kind.to_owned(), count }
    }
}
