//! The config file as a whole: its tables, and the settings that the program runs on.

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
use crate::publish_hook::HookSettings;
use crate::render::Diagnostic;
use crate::store::StoreSettings;
use crate::upstream::UpstreamLimits;

/// More threads than any machine has cores to run them on.
const WORKERS: RangeInclusive<NonZeroUsize> = NonZeroUsize::MIN..=NonZeroUsize::new(1024).unwrap();

tables! {
    RawConfig {
        mode: Mode,
        /// For how long new and tightened rules only observe.
        grace: Spanned<Span> = unplaced(Span::NONE),
        workers: Option<Spanned<NonZeroUsize>> => bound(WORKERS, "{} workers are more than 1024: one a core is right"),
        state_dir: Option<Spanned<PathBuf>>,
        /// Files with further sites, as `sites.d/*.toml`.
        include: Vec<Spanned<PathBuf>>,
        /// Folders that the paths of included files may lead into, besides that of each file.
        include_roots: Vec<Spanned<PathBuf>>,
        /// Hosts that hooks of included files may be sent to, besides public addresses.
        hook_hosts: Vec<Spanned<String>>,
        listener: Vec<RawListener>,
        site: Vec<Spanned<RawSite>>,
        agents: RawAgents,
        exempt: RawExempt,
        /// Its presence starts the checks of who sends requests.
        identity: Option<RawIdentity>,
        check: RawCheck,
        admin: Option<RawAdmin>,
        fleet: RawFleet,
        /// Requests that notify people of events.
        notify: Vec<Spanned<RawHook>>,
        board: RawBoard,
        /// The store in which processes share their counts.
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
    /// The mode of a site, where no override fits.
    pub(super) fn mode_of(&self, site: &RawSite) -> Mode {
        site.enforcement.mode.unwrap_or(self.mode)
    }

    /// The action for impostors, and the identity that exemptions need.
    pub(super) fn identity_rules(&self) -> (Impostors, IdentityNeeded) {
        self.identity.as_ref().map(|identity| (*identity.impostors.get_ref(), identity.needed)).unwrap_or_default()
    }
}

/// A valid config.
#[derive(Debug)]
pub(crate) struct Config {
    /// The file with those that it includes, for the next one to be compared with.
    pub(crate) text: Arc<str>,
    /// The files that the text is joined of.
    pub(crate) parts: Parts,
    pub(crate) included: Included,
    /// For [`Config::review`].
    pub(crate) reviewable: Option<Arc<Reviewable>>,
    /// Threads that serve.
    pub(crate) workers: NonZeroUsize,
    pub(crate) listeners: Vec<ListenerConfig>,
    pub(crate) sites: Vec<SiteConfig>,
    /// Keeps accepted and waiting versions and the kill switch over restarts.
    pub(crate) state_dir: Option<PathBuf>,
    /// The place in the text that names it.
    pub(crate) state_dir_span: Range<usize>,
    /// The gate of every site, without its expectations; `None` where it is off.
    pub(crate) gate: Option<Gate>,
    /// The sources of the registry besides the built-in rows.
    pub(crate) registry: RegistrySources,
    /// Versions of the published registry that are used whatever they change.
    pub(crate) registry_accept: Vec<VersionHashPrefix>,
    /// The place in the text that names the file of further crawlers.
    pub(crate) registry_extra_span: Range<usize>,
    /// How the senders of requests are checked; `None` where they are not checked.
    pub(crate) identity: Option<IdentityConfig>,
    /// The admin interface; `None` where it is off.
    pub(crate) admin: Option<AdminSettings>,
    /// The requests that tell of events.
    pub(crate) notify: Vec<Arc<HookSettings>>,
    /// The settings of the board; `None` if there is none.
    pub(crate) board: Option<BoardConfig>,
    /// The fleet that the process is of.
    pub(crate) fleet: Option<FleetSettings>,
    /// Whether `[fleet]` names replicas.
    pub(crate) has_replicas: bool,
    /// The store in which processes share their counts of crawlers; `None` if each counts for itself.
    pub(crate) rate_store: Option<StoreSettings>,
    /// Why it is never asked, where that is so.
    pub(crate) rate_store_unasked: Option<&'static str>,
    /// The configured bound on connections; `None` for as many as the process has descriptors for, up to the bound in `edge`.
    pub(crate) connections: Option<usize>,
    pub(crate) edge: EdgeLimits,
    /// How long the new process of an upgrade may take for each of its steps.
    pub(crate) upgrade: Duration,
    pub(crate) upstream: UpstreamLimits,
    pub(crate) log: LogConfig,
}

impl Config {
    /// A problem of these octets of the text.
    pub(crate) fn diagnostic(&self, severity: Severity, span: &Range<usize>, message: &str) -> Diagnostic {
        self.parts.diagnostic(severity, &self.text, &Fault::new(span.clone(), message))
    }
}

/// The tables of a config file, kept for its review.
///
/// The [review](super::review) reads files that the config names, whose file system may hang, so it is no part of loading.
pub(crate) struct Reviewable {
    /// Without the sites that have problems.
    pub(super) file: RawConfig,
    /// The names of all sites that have one.
    pub(super) names: Vec<String>,
    /// The path of each key that could not be read, and `site.?` and `listener.?` where one of them has problems.
    pub(super) unread: Vec<String>,
}

tower_robots::internals::debug_as!(|_it| Reviewable {});
