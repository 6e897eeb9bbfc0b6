//! The answers to what changes something, and the history of changes.

use serde::{Deserialize, Serialize};

use super::{Findings, NextStep};

/// `POST /reload`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReloadReport {
    /// What came of the config, where that was read again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<ConfigReload>,
    /// What came of the extra registry, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
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
    pub(crate) grace_end: Option<String>,
    /// `published`, `unchanged`, `kept` (the candidate was rejected) or `gated` (it waits to be accepted).
    pub(crate) outcome: String,
    /// The version that is live now.
    pub(crate) hash: Option<String>,
    pub(crate) message: String,
}

/// `POST /accept`, `POST /rollback` and `POST /enforce`: what was changed.
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
    /// What the switch was turned to: `on` or `off`.
    pub(crate) enforcement: Option<String>,
    /// Whether a running robotsd did it; else it holds from the next start.
    #[serde(default)]
    pub(crate) running: bool,
    /// Whether it still holds after a restart.
    pub(crate) kept: bool,
    /// Why it does not, where it should.
    pub(crate) trouble: Option<String>,
    /// What is left to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) next: Vec<NextStep>,
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
    /// As in [`LastReload`](super::site::LastReload), or `accept`, `rollback`, `switch`.
    pub(crate) cause: String,
    /// As in [`LastReload`](super::site::LastReload), or `absent`, `switched-on`, `switched-off`.
    pub(crate) outcome: String,
    #[serde(default)]
    pub(crate) origin: String,
    pub(crate) hash: Option<String>,
    #[serde(default)]
    pub(crate) findings: Findings,
    /// What it changes for crawlers, in one sentence.
    pub(crate) effect: Option<String>,
    pub(crate) message: String,
}

impl ChangeReport {
    pub(crate) fn new(message: String) -> Self {
        Self { message, ..Self::default() }
    }
}
