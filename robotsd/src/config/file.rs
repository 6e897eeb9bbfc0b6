//! The top level of the config file, and the resolved settings of the whole file.

use std::num::NonZeroUsize;
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toml::Spanned;
use tower_robots::check::Severity;
use tower_robots::live::{Gate, VersionHashPrefix};
use tower_robots::policy::{IdentityNeeded, Impostors, Mode};

use super::board::RawBoard;
use super::fleet::{FleetSettings, RawFleet};
use super::identity::RawIdentity;
use super::included::Included;
use super::joined_text::Parts;
use super::limits::RawLimits;
use super::log::RawLog;
use super::rate_store::RawRateStore;
use super::site::{RawGate, RawHook};
use super::{
    AdminSettings, BoardConfig, Document, Fault, IdentityConfig, ListenerConfig, LogConfig, RawAdmin, RawAgents,
    RawCheck, RawExempt, RawListener, RawSite, RegistrySources, SiteConfig, Span, bound, tables, unplaced,
};
use crate::edge::EdgeLimits;
use crate::render::FoundProblem;
use crate::store::StoreSettings;
use crate::upstream::UpstreamLimits;
use crate::webhooks::HookSettings;

/// Allowed numbers of workers. Few machines have more CPU cores than the maximum.
const WORKERS: RangeInclusive<NonZeroUsize> = NonZeroUsize::MIN..=NonZeroUsize::new(1024).unwrap();

tables! {
    RawConfig {
        mode: Mode,
        /// How long new and tightened rules are not enforced: requests that they disallow are only
        /// logged.
        grace: Spanned<Span> = unplaced(Span::NONE),
        workers: Option<Spanned<NonZeroUsize>> => bound(WORKERS, "\"workers\" is {}: write at most 1024, because one per CPU core is enough"),
        state_dir: Option<Spanned<PathBuf>>,
        /// Files with more sites, such as `sites.d/*.toml`.
        include: Vec<Spanned<PathBuf>>,
        /// Folders that paths in included files may point into, in addition to each file's own
        /// folder.
        include_roots: Vec<Spanned<PathBuf>>,
        /// Hosts that hooks in included files may send requests to, in addition to public
        /// addresses.
        hook_hosts: Vec<Spanned<String>>,
        listener: Vec<RawListener>,
        site: Vec<Spanned<RawSite>>,
        agents: RawAgents,
        exempt: RawExempt,
        /// Verification of crawlers; enabled only if this table exists.
        identity: Option<RawIdentity>,
        check: RawCheck,
        admin: Option<RawAdmin>,
        fleet: RawFleet,
        /// Webhooks that notify people of events.
        notify: Vec<Spanned<RawHook>>,
        board: RawBoard,
        /// The store that several processes use to count requests together.
        rate: RawRateStore,
        gate: RawGate,
        limits: RawLimits,
        log: RawLog,
    }
}

impl Document for RawConfig {
    const NAME: &'static str = "the config";
}

impl RawConfig {
    pub(super) fn mode_of(&self, site: &RawSite) -> Mode {
        site.enforcement.mode.unwrap_or(self.mode)
    }

    pub(super) fn identity_rules(&self) -> (Impostors, IdentityNeeded) {
        self.identity.as_ref().map(|identity| (*identity.impostors.get_ref(), identity.needed)).unwrap_or_default()
    }
}

#[derive(Debug)]
pub(crate) struct Config {
    /// Content of the config file and of its included files.
    pub(crate) text: Arc<str>,
    pub(crate) parts: Parts,
    pub(crate) included: Included,
    pub(crate) reviewable: Option<Arc<Reviewable>>,
    pub(crate) workers: NonZeroUsize,
    pub(crate) listeners: Vec<ListenerConfig>,
    pub(crate) sites: Vec<SiteConfig>,
    /// Folder that keeps accepted versions, pending versions and the kill switch across restarts.
    pub(crate) state_dir: Option<PathBuf>,
    /// Position of `state_dir` in `text`.
    pub(crate) state_dir_span: Range<usize>,
    /// The gate settings that all sites share, without the expectations of single sites. `None` if
    /// the gate is disabled.
    pub(crate) gate: Option<Gate>,
    pub(crate) registry: RegistrySources,
    /// Versions of the published registry that are accepted even if they change the registry too
    /// much.
    pub(crate) registry_accept: Vec<VersionHashPrefix>,
    /// Position of `registry_extra` in `text`.
    pub(crate) registry_extra_span: Range<usize>,
    /// How the senders of requests are verified; `None` if they are not verified.
    pub(crate) identity: Option<IdentityConfig>,
    pub(crate) admin: Option<AdminSettings>,
    pub(crate) notify: Vec<Arc<HookSettings>>,
    pub(crate) board: Option<BoardConfig>,
    pub(crate) fleet: Option<FleetSettings>,
    pub(crate) has_replicas: bool,
    /// The store that several processes use to count crawlers' requests together; `None` if each
    /// process counts separately.
    pub(crate) rate_store: Option<StoreSettings>,
    /// Reason why the rate store is never used. `None` if the rate store is used, or if there is no
    /// rate store.
    pub(crate) unused_rate_store: Option<&'static str>,
    /// Configured maximum number of connections. If it is `None`, `edge` derives the limit from the
    /// number of file descriptors that the process may open.
    pub(crate) connections: Option<usize>,
    pub(crate) edge: EdgeLimits,
    /// Maximum time of each step of an upgrade with `robotsd upgrade`.
    pub(crate) upgrade: Duration,
    pub(crate) upstream: UpstreamLimits,
    pub(crate) log: LogConfig,
}

impl Config {
    pub(crate) fn diagnostic(&self, severity: Severity, span: &Range<usize>, message: &str) -> FoundProblem {
        self.parts.diagnostic(severity, &self.text, &Fault::new(span.clone(), message))
    }
}

/// The tables of a config file that [`Config::review`] examines.
///
/// The [review](super::review) is not part of loading a config, because it reads further files, and
/// their file system may hang.
pub(crate) struct Reviewable {
    /// The file without the sites that have problems.
    pub(super) file: RawConfig,
    /// Names of all sites in the file, including sites with problems.
    pub(super) names: Vec<String>,
    /// Paths of the keys that could not be read. `site.?` and `listener.?` represent sites and
    /// listeners with problems.
    pub(super) unread: Vec<String>,
}

tower_robots::internals::debug_as!(|_it| Reviewable {});
