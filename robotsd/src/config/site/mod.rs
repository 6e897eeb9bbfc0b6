//! A site: its hosts, its backend, its robots.txt, and how the robots.txt is enforced.

mod append;
mod backend;
mod gate;
mod hooks;
mod modes;
mod policy;
mod refusal;
mod signals;
mod source;

use std::collections::HashSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use toml::Spanned;
use tower_robots::agent::Registry;
use tower_robots::check::Options;
use tower_robots::layer::Signals;
use tower_robots::live::WhenMissing;
use tower_robots::policy::{Mode, Policy};
use tower_robots::source::HostMap;

use self::backend::{RawBackend, RawUpstream};
use self::modes::RawModes;
use self::policy::{RawEnforcement, RawRate};
use self::refusal::RawRefusal;
use self::signals::{RawField, RawSignals};
use self::source::{OnMissing, SourceKind};
use super::{Faults, Placed, tables};
use crate::refusal::SiteRefusals;
use crate::render::is_displayed_unchanged;
use crate::webhooks::{HookScope, HookSettings};

pub(crate) use self::append::{AppendSettings, AppendSource};
pub(crate) use self::backend::{Backend, Dotfiles, StaticFiles};
pub(crate) use self::gate::GateBasis;
pub(super) use self::gate::{RawGate, resolve as resolve_gate};
pub(super) use self::hooks::{HookUse, RawHeader, RawHook, resolve as resolve_hooks};
pub(super) use self::modes::end;
pub(crate) use self::policy::{CommonSettings, RawAgents, RawCheck, RawExempt};
pub(super) use self::refusal::{RawCase, resolve as resolve_refusal};
pub(super) use self::signals::{unseen_noindex, vary_notes};
pub(super) use self::source::RawRobots;
pub(crate) use self::source::{Remote, RobotsSource};

tables! {
    RawSite {
        name: Spanned<String>,
        hosts: Vec<Spanned<String>>,
        upstreams: Option<Vec<Spanned<String>>>,
        root: Option<Spanned<PathBuf>>,
        dotfiles: Option<Spanned<Dotfiles>>,
        upstream: RawUpstream,
        robots: RawRobots,
        enforcement: RawEnforcement,
        rate: RawRate,
        modes: RawModes,
        refusal: RawRefusal,
        signals: RawSignals,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        field: Vec<Spanned<RawField>>,
    }
}

impl RawSite {
    pub(in crate::config) fn crawlers(&self) -> impl Iterator<Item = &Spanned<String>> {
        let of_cases = self.refusal.case.iter().flat_map(|case| &case.get_ref().crawlers);
        of_cases.chain(self.field.iter().flat_map(|field| &field.get_ref().crawlers))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct SiteConfig {
    pub(crate) name: String,
    /// Host patterns; empty if the site serves every host.
    pub(crate) hosts: Vec<String>,
    /// The upstreams or the static files of the site; `None` if no listener forwards requests.
    pub(crate) backend: Option<Backend>,
    pub(crate) robots: RobotsSource,
    /// Position in `Config::text` of the key that sets the source of the robots.txt.
    pub(crate) robots_span: Range<usize>,
    /// The lists that are appended to the robots.txt, in this order.
    pub(crate) append: Vec<AppendSettings>,
    pub(crate) on_publish: Vec<Arc<HookSettings>>,
    pub(crate) max_age: Duration,
    pub(crate) when_missing: WhenMissing,
    pub(crate) expectations: Option<PathBuf>,
    /// Position of `expectations` in `Config::text`.
    pub(crate) expectations_span: Range<usize>,
    /// The files that the gate uses to check a new version, except the file of expectations.
    pub(crate) gate_basis: GateBasis,
    pub(crate) grace: Duration,
    pub(crate) policy: Policy,
    /// Options for checking the robots.txt. Options that depend on a registry are added by
    /// [`SiteConfig::checks`].
    pub(crate) check: Options,
    /// Responses to refused requests; `None` for the default response of `RobotsLayer`.
    pub(crate) refusal: Option<Arc<SiteRefusals>>,
    pub(crate) signals: Signals,
    /// The values that determine the policy, the checks and the gate, in serialized form.
    pub(crate) terms: String,
}

impl SiteConfig {
    /// Returns the options for checking the robots.txt, including the search engines in `registry`
    /// that the policy refuses. The registry itself is not added to the options, because a live
    /// site already has a registry.
    pub(crate) fn checks(&self, registry: &Registry) -> Options {
        self.check.clone().refused_crawlers(policy::refused_engines(registry, &self.policy))
    }

    pub(crate) fn is_strict(&self, now: SystemTime) -> bool {
        let mut overrides = self.policy.overrides.iter().filter(|over| over.until.is_none_or(|end| now < end));
        self.policy.mode > Mode::Observe || overrides.any(|over| over.mode > Mode::Observe)
    }
}

/// Returns the host patterns of a site with these `hosts`. A site without hosts has the pattern
/// `*`, which matches every host that no other site serves.
pub(crate) fn host_patterns(hosts: &[String]) -> impl Iterator<Item = &str> {
    let every = hosts.is_empty().then_some("*");
    every.into_iter().chain(hosts.iter().map(String::as_str))
}

pub(crate) fn owners<'p, T>(patterns: impl Iterator<Item = (&'p str, T)>) -> HostMap<T> {
    let mut map = HostMap::new();
    for (pattern, owner) in patterns {
        // Errors can be ignored, because a config with invalid hosts, or with a host in two sites,
        // was already refused.
        let _ = map.insert(pattern, owner);
    }
    map
}

pub(super) fn names(sites: &[Spanned<RawSite>], faults: &mut Faults) {
    let mut names = HashSet::new();
    for site in sites.iter().map(Spanned::get_ref) {
        let name = site.name.get_ref();
        if let Some(why) = name_problem(name) {
            faults.push(site.name.fault(why));
        } else if !names.insert(name) {
            faults.push(site.name.fault(format!("another site already has the name {name:?}: write a different name")));
        }
    }
}

/// Returns the reason why a string cannot be the name of a site. A string is refused if it has
/// another meaning in a command, in a token's site list or in a fleet-wide off switch, or if it
/// could mislead people. Letters of every script are allowed.
pub(in crate::config) fn name_problem(name: &str) -> Option<String> {
    let why = if name.is_empty() {
        return Some("the name is empty: write a name for the log and for commands".to_owned());
    } else if name.contains('*') || name.eq_ignore_ascii_case("all") {
        "in commands, \"*\" and \"all\" mean every site, and \"*\" in a name means any characters"
    } else if name.contains('/') {
        "in commands, \"/\" separates a site from one of its hosts, as in \"shop/www.example\""
    } else if name.contains(',') {
        "in commands, \",\" separates the names in a list"
    } else if name.starts_with('-') {
        "commands would read a name that begins with \"-\" as an option"
    } else if name.split(' ').any(str::is_empty) {
        "a space at the beginning or end, or next to another space, cannot be seen"
    } else if !is_displayed_unchanged(name) {
        "the name contains an invisible character, so it looks like another name"
    } else {
        return None;
    };
    Some(format!("a site cannot be called {name:?}: {why}"))
}

pub(super) fn hosts(sites: &[Spanned<RawSite>], faults: &mut Faults) {
    let mut hosts = HostMap::new();
    for site in sites.iter().map(Spanned::get_ref) {
        for host in &site.hosts {
            let added = hosts.insert(host.get_ref(), ());
            faults.keep(added.map_err(|error| host.fault(error.to_string())));
        }
        if site.hosts.is_empty() && hosts.insert("*", ()).is_err() {
            let message = "an earlier site has no \"hosts\" and therefore serves every host, so this site would get \
                no requests: write \"hosts\" for each of the two";
            faults.push(site.name.fault(message));
        }
    }
}

/// Resolves a site. Keys with problems get their default values. Returns `None` if the site's
/// backend or robots.txt is unknown.
pub(super) fn resolve(
    all: CommonSettings<'_>,
    site: &Spanned<RawSite>,
    file: &Arc<HookScope>,
    faults: &mut Faults,
) -> Option<SiteConfig> {
    let (span, site, folder) = (site.span(), site.get_ref(), file.folder());
    let written = RawBackend {
        name: &site.name,
        upstreams: site.upstreams.as_deref(),
        upstream: &site.upstream,
        root: site.root.as_ref(),
        dotfiles: site.dotfiles.as_ref(),
    };
    let backend = faults.keep(backend::resolve(&written, all.listeners, span, folder));
    let of_cases = site.refusal.case.iter().filter_map(|case| case.get_ref().upstream.clone());
    let servers: Vec<_> = written.upstreams.unwrap_or_default().iter().cloned().chain(of_cases).collect();
    backend::check_upstreams(&servers, all.listeners, all.proxy_trusting_admin, folder, faults);
    refusal::check_case_upstreams(&site.refusal, written.upstreams.unwrap_or_default(), folder, faults);
    // If the backend has a problem, the robots.txt is resolved only if its source does not depend
    // on the backend.
    let is_named = site.robots.path.is_some() || site.robots.text.is_some();
    let backend = backend.or(is_named.then_some(None));
    let robots =
        backend.as_ref().map(|backend| source::resolve(&site.robots, &written, &site.hosts, backend.as_ref(), folder));
    let robots = robots.and_then(|robots| faults.keep(robots));
    let append = append::resolve(&site.robots.append, all.state_dir, folder, faults);
    let is_directory = site.robots.source.as_ref().is_some_and(|source| *source.get_ref() == SourceKind::Directory);
    let knows_hosts = is_directory || site.hosts.iter().any(|host| !host.get_ref().contains('*'));
    let of = if knows_hosts { HookUse::Hosts } else { HookUse::Patterns };
    let on_publish = resolve_hooks(&site.robots.on_publish, of, file, faults);
    let terms = CommonSettings { mode: site.enforcement.mode.unwrap_or(all.mode), ..all };
    let policy = policy::resolve(&terms, &site.enforcement, &site.rate, &site.modes, faults);
    let check = faults.keep(policy::checks(all.check, all.exempt));
    let signals = signals::resolve(&site.signals, &site.field, faults);
    let gate_basis = faults.keep(GateBasis::resolve(all.gate, &site.robots, folder));
    Some(SiteConfig {
        name: site.name.get_ref().clone(),
        hosts: site.hosts.iter().map(|host| host.get_ref().clone()).collect(),
        backend: backend?,
        robots: robots?,
        robots_span: robots_span(site),
        append: append.unwrap_or_default(),
        on_publish: on_publish.unwrap_or_default(),
        max_age: site.robots.max_age.get_ref().0,
        when_missing: match site.robots.on_missing {
            OnMissing::Unavailable => WhenMissing::Unavailable,
            OnMissing::Upstream => WhenMissing::Relay,
            OnMissing::Fail => WhenMissing::Fail,
        },
        expectations: site.robots.expectations.as_ref().map(|path| folder.join(path.get_ref())),
        expectations_span: site.robots.expectations.as_ref().map_or(0..0, Spanned::span),
        gate_basis: gate_basis.unwrap_or_default(),
        grace: all.grace,
        policy: policy.unwrap_or_default(),
        check: check.unwrap_or_default(),
        // The refusal page is read later, and only for valid sites.
        refusal: None,
        signals: signals.unwrap_or_default(),
        // Serialization would fail only if a path were not UTF-8, but the config is UTF-8.
        terms: serde_json::to_string(&(terms, &site.enforcement, &site.rate, &site.modes)).unwrap_or_default(),
    })
}

fn robots_span(site: &RawSite) -> Range<usize> {
    let robots = &site.robots;
    let path = robots.path.as_ref().map(Spanned::span);
    let text = robots.text.as_ref().or(robots.url.as_ref()).map(Spanned::span);
    let source = robots.source.as_ref().map(Spanned::span);
    let root = site.root.as_ref().map(Spanned::span);
    path.or(text).or(source).or(root).unwrap_or_else(|| site.name.span())
}
