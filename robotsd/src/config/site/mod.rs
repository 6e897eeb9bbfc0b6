//! A site: its hosts, its backend, its robots.txt, and how that is enforced.

mod append;
mod backend;
mod gate;
mod hooks;
mod modes;
mod policy;
mod refusal;
mod source;

use std::collections::HashSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use toml::Spanned;
use tower_robots::agent::Registry;
use tower_robots::check::Options;
use tower_robots::live::WhenMissing;
use tower_robots::policy::{Mode, Policy};
use tower_robots::source::HostMap;

use self::backend::{RawBackend, RawUpstream};
use self::modes::RawModes;
use self::policy::{RawEnforcement, RawRate};
use self::refusal::RawRefusal;
use self::source::{OnMissing, SourceKind};
use super::{Faults, Placed, tables};
use crate::publish_hook::{HookScope, HookSettings};
use crate::refusal::RefusalPage;
use crate::render::is_shown_whole;

pub(crate) use self::append::{AppendSettings, AppendSource};
pub(crate) use self::backend::{Backend, Dotfiles, StaticFiles};
pub(crate) use self::gate::GateBasis;
pub(super) use self::gate::{RawGate, resolve as resolve_gate};
pub(super) use self::hooks::{HookUse, RawHeader, RawHook, resolve as resolve_hooks};
pub(super) use self::modes::end;
pub(crate) use self::policy::{OfAllSites, RawAgents, RawCheck, RawExempt};
pub(super) use self::refusal::resolve as resolve_refusal;
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
    }
}

/// One site.
#[derive(Clone, Debug)]
pub(crate) struct SiteConfig {
    pub(crate) name: String,
    /// Host patterns; none means every host.
    pub(crate) hosts: Vec<String>,
    /// `None` where no listener forwards requests.
    pub(crate) backend: Option<Backend>,
    pub(crate) robots: RobotsSource,
    /// The place in the text that names it.
    pub(crate) robots_span: Range<usize>,
    /// The parts that are appended to it, in order.
    pub(crate) append: Vec<AppendSettings>,
    /// The requests that are sent when a version goes live.
    pub(crate) on_publish: Vec<Arc<HookSettings>>,
    pub(crate) max_age: Duration,
    pub(crate) when_missing: WhenMissing,
    /// A file of expectations.
    pub(crate) expectations: Option<PathBuf>,
    /// The place in the text that names that.
    pub(crate) expectations_span: Range<usize>,
    /// The version with which its gate compares others, and the pages by which it does.
    pub(crate) gate_basis: GateBasis,
    pub(crate) grace: Duration,
    pub(crate) policy: Policy,
    /// The checks of its robots.txt, without what goes with a registry: see [`SiteConfig::checks`].
    pub(crate) check: Options,
    /// `None`: the default of the layer.
    pub(crate) refusal: Option<Arc<RefusalPage>>,
    /// The values that policy, checks and gate are made from, as text: equal text means equal settings.
    pub(crate) terms: String,
}

impl SiteConfig {
    /// The checks of its robots.txt, with the search engines of a registry that the policy refuses. The registry itself is not among
    /// them: the live one has its own.
    pub(crate) fn checks(&self, registry: &Registry) -> Options {
        self.check.clone().refused_crawlers(policy::refused_engines(registry, &self.policy))
    }

    /// Whether its mode, or an override that has not ended, tags or refuses requests.
    pub(crate) fn is_strict(&self, now: SystemTime) -> bool {
        let mut overrides = self.policy.overrides.iter().filter(|over| over.until.is_none_or(|end| now < end));
        self.policy.mode > Mode::Observe || overrides.any(|over| over.mode > Mode::Observe)
    }
}

/// The patterns of a site with these hosts, for a map of hosts: `*`, which is every other host, where it names none.
pub(crate) fn host_patterns(hosts: &[String]) -> impl Iterator<Item = &str> {
    let every = hosts.is_empty().then_some("*");
    every.into_iter().chain(hosts.iter().map(String::as_str))
}

/// The owner of a host, by patterns.
pub(crate) fn owners<'p, T>(patterns: impl Iterator<Item = (&'p str, T)>) -> HostMap<T> {
    let mut map = HostMap::new();
    for (pattern, owner) in patterns {
        // A config with a host that is none, or that two sites have, was refused.
        let _ = map.insert(pattern, owner);
    }
    map
}

/// Every site has a name of its own, which cannot be read as anything else.
pub(super) fn names(sites: &[Spanned<RawSite>], faults: &mut Faults) {
    let mut names = HashSet::new();
    for site in sites.iter().map(Spanned::get_ref) {
        let name = site.name.get_ref();
        if let Some(why) = misleading(name) {
            faults.push(site.name.fault(why));
        } else if !names.insert(name) {
            faults.push(site.name.fault(format!("the name {name:?} is taken by another site")));
        }
    }
}

/// Why a text cannot be the name of a site: commands, scopes of tokens and marks of a fleet would take it for something else, or a person
/// would. Letters of every script are fine.
pub(in crate::config) fn misleading(name: &str) -> Option<String> {
    let why = if name.is_empty() {
        return Some("the name is empty: the log names sites by it".to_owned());
    } else if name.contains('*') || name.eq_ignore_ascii_case("all") {
        "\"*\" and \"all\" stand for every site, and \"*\" in a name for any characters"
    } else if name.contains('/') {
        "\"/\" separates a site from one of its hosts, as in \"shop/www.example\""
    } else if name.contains(',') {
        "\",\" separates the names in a list"
    } else if name.starts_with('-') {
        "what begins with \"-\" is an option in a command"
    } else if name.split(' ').any(str::is_empty) {
        "a space at the end of a name, or next to another one, is not seen"
    } else if !is_shown_whole(name) {
        "it has a character that does not show, so it looks like another name"
    } else {
        return None;
    };
    Some(format!("a site cannot be called {name:?}: {why}"))
}

/// Every host is one site's.
pub(super) fn hosts(sites: &[Spanned<RawSite>], faults: &mut Faults) {
    let mut hosts = HostMap::new();
    for site in sites.iter().map(Spanned::get_ref) {
        for host in &site.hosts {
            let added = hosts.insert(host.get_ref(), ());
            faults.keep(added.map_err(|error| host.fault(error.to_string())));
        }
        if site.hosts.is_empty() && hosts.insert("*", ()).is_err() {
            let message = "an earlier site has no hosts, so it matches every host: name the hosts of each";
            faults.push(site.name.fault(message));
        }
    }
}

/// A site of this file, with the defaults in place of parts that have problems; none where its robots.txt is unknown.
pub(super) fn resolve(
    all: OfAllSites<'_>,
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
    backend::faulty(written.upstreams.unwrap_or_default(), all.listeners, all.own_proxy, folder, faults);
    // Without a backend it is not known what a source may use that does not say all itself.
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
    let terms = OfAllSites { mode: site.enforcement.mode.unwrap_or(all.mode), ..all };
    let policy = policy::resolve(&terms, &site.enforcement, &site.rate, &site.modes, faults);
    let check = faults.keep(policy::checks(all.check, all.exempt));
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
        // Its file is read with the sites that are sound.
        refusal: None,
        // Fails only for a path that is not UTF-8.
        terms: serde_json::to_string(&(terms, &site.enforcement, &site.rate, &site.modes)).unwrap_or_default(),
    })
}

/// The place that names the robots.txt of a site: its own keys, or those that stand for it.
fn robots_span(site: &RawSite) -> Range<usize> {
    let robots = &site.robots;
    let path = robots.path.as_ref().map(Spanned::span);
    let text = robots.text.as_ref().or(robots.url.as_ref()).map(Spanned::span);
    let source = robots.source.as_ref().map(Spanned::span);
    let root = site.root.as_ref().map(Spanned::span);
    path.or(text).or(source).or(root).unwrap_or_else(|| site.name.span())
}
