//! The reports about a running robotsd: what the admin interface answers with, and the commands read.
//!
//! Types only: `sites` and `admin` fill them, and `commands` prints them. Fields are only ever added: a command and the
//! process it reaches may be of different versions, so readers have a default for fields that are missing.

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
    /// `off` where nothing is enforced for any site, else `on`; empty from an older robotsd.
    #[serde(default)]
    pub(crate) enforcement: String,
    /// What to do next that concerns every site.
    #[serde(default)]
    pub(crate) next: Vec<NextStep>,
    /// Troubles that concern every site: those of the state directory.
    #[serde(default)]
    pub(crate) troubles: Vec<String>,
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
    /// Exceptions from the mode, in the order of the config: the last that fits counts.
    #[serde(default)]
    pub(crate) overrides: Vec<OverrideReport>,
    /// `on`, or `off` while the switch of the site or of all sites is.
    #[serde(default)]
    pub(crate) enforcement: String,
    /// The site's own switch.
    #[serde(default)]
    pub(crate) switch: String,
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

impl ChangeReport {
    pub(crate) fn new(message: String) -> Self {
        Self { message, ..Self::default() }
    }
}
