//! The TOML, key by key, with every default.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toml::Spanned;
use tower_robots::policy::{IdentityNeeded, Impostors, Mode};

use super::board::RawBoard;
use super::keys::Document;
use super::process_tables::RawIdentity;
pub(super) use super::process_tables::{AccessLogging, RawLimits, RawLog};
pub(crate) use super::process_tables::{AddressLogging, LogFormat, QueryLogging};
pub(crate) use super::process_tables::{AdminAccess, ListenerKind, OnError, QuestionSettings, UnknownHost};
pub(super) use super::process_tables::{AdminMode, RawAdmin, RawAdminListener, RawCertificate, RawListener, Reach};
use super::rate_store::RawRateStore;
pub(crate) use super::site_tables::Dotfiles;
pub(super) use super::site_tables::{Family, GateMode, RawAgents, RawCheck, RawExempt, RawGate, RefuseFindings};
pub(super) use super::site_tables::{
    OnMissing, RawAppend, RawEnforcement, RawHeader, RawOverride, RawPublishHook, RawRefusal, RawRobots, RawSite,
    RawUpstream, SourceKind,
};

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawConfig {
    #[serde(default)]
    pub(super) mode: Mode,
    pub(super) workers: Option<Spanned<NonZeroUsize>>,
    pub(super) state_dir: Option<Spanned<PathBuf>>,
    #[serde(default)]
    pub(super) listener: Vec<RawListener>,
    #[serde(default)]
    pub(super) site: Vec<Spanned<RawSite>>,
    #[serde(default)]
    pub(super) agents: RawAgents,
    #[serde(default)]
    pub(super) exempt: RawExempt,
    /// Its presence starts the checks of who sends requests.
    pub(super) identity: Option<RawIdentity>,
    #[serde(default)]
    pub(super) check: RawCheck,
    pub(super) admin: Option<RawAdmin>,
    #[serde(default)]
    pub(super) board: RawBoard,
    /// Where processes share what they count.
    #[serde(default)]
    pub(super) rate: RawRateStore,
    #[serde(default)]
    pub(super) gate: RawGate,
    #[serde(default)]
    pub(super) limits: RawLimits,
    #[serde(default)]
    pub(super) log: RawLog,
}

impl RawConfig {
    /// The mode of a site, where no override fits.
    pub(super) fn mode_of(&self, site: &RawSite) -> Mode {
        site.enforcement.mode.unwrap_or(self.mode)
    }

    /// What becomes of impostors, and what exemptions need.
    pub(super) fn identity_rules(&self) -> (Impostors, IdentityNeeded) {
        self.identity.as_ref().map(|identity| (*identity.impostors.get_ref(), identity.needed)).unwrap_or_default()
    }
}

impl Document for RawConfig {
    const TABLES: &'static [&'static str] = &[
        "listener[]",
        "listener.certificate[]",
        "site[]",
        "site.upstream",
        "site.robots",
        "site.robots.append[]",
        "site.robots.on_publish[]",
        "site.enforcement",
        "site.rate",
        "site.override[]",
        "site.refusal",
        "agents",
        "exempt",
        "identity",
        "identity.list[]",
        "check",
        "gate",
        "gate.must_allow[]",
        "admin",
        "admin.listener[]",
        "board",
        "rate",
        "limits",
        "log",
    ];
    const NAME: &'static str = "the config";
}
