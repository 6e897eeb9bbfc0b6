//! The reports about a running robotsd: what the admin interface answers with, and the commands read.
//!
//! Types only: `sites` and `admin` fill them, and `commands` prints them. Fields are only ever added: a command and the
//! process it reaches may be of different versions, so readers have a default for fields that are missing.

mod change;
mod config;
mod evidence;
mod rate_store;
mod site;
mod traffic;
mod upgrade;

use serde::{Deserialize, Serialize};

pub(crate) use self::change::{
    ChangeReport, ConfigReload, HistoryReport, RecordedReload, RegistryReload, ReloadReport, SiteReload,
};
pub(crate) use self::config::{ConfigReport, HeldBackSetting, RejectedConfigReport};
pub(crate) use self::evidence::{
    DirectoryReport, IdentityReport, ListReport, PublishedRegistryReport, RegistryReport, SuspectReport,
    WaitingRegistryReport,
};
pub(crate) use self::rate_store::RateStoreReport;
pub(crate) use self::site::{
    AppendReport, FetchReport, Findings, LastReload, OverrideReport, PendingReport, PublishHookReport, ReloadCount,
    SiteReport, WatchedPagesReport,
};
pub(crate) use self::traffic::{KindCount, ListenerReport, RequestsReport, SiteTraffic, TrafficReport, UpstreamReport};
pub(crate) use self::upgrade::UpgradeReport;

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
    /// The last upgrade in place that is under way or has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) upgrade: Option<UpgradeReport>,
    /// The crawlers that are known; none from an older robotsd or while starting.
    #[serde(default)]
    pub(crate) registry: Option<RegistryReport>,
    /// What the senders of requests are checked by; none where they are not checked.
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
    /// Why the switch of every site is taken for `off` although it was not turned.
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

/// Something to do, with the command that does it where there is one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NextStep {
    pub(crate) what: String,
    /// The program and its arguments, each as it is: quoting is the shell's matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) command: Vec<String>,
}

impl NextStep {
    pub(crate) const fn say(what: String) -> Self {
        Self { what, command: Vec::new() }
    }

    pub(crate) fn command<'a>(what: &str, command: impl IntoIterator<Item = &'a str>) -> Self {
        Self { what: what.to_owned(), command: command.into_iter().map(str::to_owned).collect() }
    }
}
