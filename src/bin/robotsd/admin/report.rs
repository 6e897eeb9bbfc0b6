//! What is said over the wire, by the service and to the commands.
//!
//! Fields are only ever added: a command and the process it asks may be of different versions, so readers know a default
//! for what they do not find.

use serde::{Deserialize, Serialize};

/// `GET /status`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StatusReport {
    pub(crate) version: String,
    pub(crate) pid: u32,
    /// `starting`, `serving` or `draining`.
    pub(crate) state: String,
    pub(crate) started: String,
    pub(crate) uptime_seconds: u64,
    /// The bound on open connections.
    #[serde(default)]
    pub(crate) connections: Option<usize>,
    #[serde(default)]
    pub(crate) listeners: Vec<ListenerReport>,
    #[serde(default)]
    pub(crate) sites: Vec<SiteReport>,
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
    /// `on`, or `off` while the switch of the site or of all sites is.
    #[serde(default)]
    pub(crate) enforcement: String,
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
    /// What does not work as it should: events of the file system, the folder for what is to survive restarts.
    #[serde(default)]
    pub(crate) troubles: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PendingReport {
    pub(crate) hash: String,
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
    /// `published`, `unchanged`, `kept` (what was read was not taken) or `gated` (it waits to be accepted).
    pub(crate) outcome: String,
    pub(crate) message: String,
}

/// `POST /reload`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReloadReport {
    /// What came of the extra registry, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) registry: Option<RegistryReload>,
    #[serde(default)]
    pub(crate) sites: Vec<SiteReload>,
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
    /// `published`, `unchanged`, `kept` (what was read was not taken) or `gated` (it waits to be accepted).
    pub(crate) outcome: String,
    /// The version that is live now.
    #[serde(default)]
    pub(crate) hash: Option<String>,
    pub(crate) message: String,
}
