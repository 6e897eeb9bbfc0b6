//! What a site that is new goes on from: another name for a site, or a host that moves into a new one, publishes nothing that no gate
//! has compared.
//!
//! 1. A site with a name that none had before goes on from the versions of the one that had the first of its hosts which any had, whether
//!    that is gone or stays with what it has. A host is had by the same pattern, and out of a wider one, or a site for every other
//!    host, where both have the same robots.txt; with another one it begins anew, because the host may not have been there.
//! 2. It is off where any site is off that had one of its hosts: in doubt nobody is refused.
//!
//! The sites before are those of the config before. At a reload they are open. At a start, and for a command, the state directory has
//! their hosts, as the last process that served wrote them, or the last command that decided about a version while none did, and what is
//! kept under their names.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use tower_robots::internals::Remembered;
use tower_robots::live::{Enforcement, StateDir};

use super::served_site::ServedSite;
use super::site_robots::{FormerSite, SiteRobots};
use crate::config::{Config, SiteConfig, host_patterns, owners};
use crate::files;
use crate::render::shell_word;
use crate::report::is_of;

/// The file of the state directory that has the hosts of the sites that were served last.
const KEPT: &str = "hosts.json";

/// The hosts of each site, by its name.
pub(super) type HostsBySite = BTreeMap<String, HostsOfSite>;

/// The hosts of a site, and the file or the URL of its robots.txt, if each of them has the same.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct HostsOfSite {
    pub(super) hosts: Vec<String>,
    pub(super) robots: Option<String>,
}

impl HostsOfSite {
    pub(super) fn of(site: &SiteConfig) -> Self {
        Self { hosts: site.hosts.clone(), robots: site.robots.place() }
    }

    pub(super) fn patterns(&self) -> impl Iterator<Item = &str> {
        host_patterns(&self.hosts)
    }
}

/// The sites before that had hosts of each new site of a config, in the order of these hosts, by the name of the new one.
#[derive(Debug, Default)]
pub(super) struct Inheritance(HashMap<String, Vec<(String, FormerSite)>>);

impl Inheritance {
    /// With these sites before, each of which `find` has by its name.
    pub(super) fn new(config: &Config, before: &HostsBySite, find: impl Fn(&str) -> FormerSite) -> Self {
        let named: HashMap<&str, &String> = patterns(before).collect();
        let answered = owners(patterns(before));
        let new = config.sites.iter().filter(|site| !before.contains_key(&site.name));
        let former = new.map(|site| {
            let robots = site.robots.place();
            let is_same =
                |name: &&String| robots.is_some() && before.get(*name).is_some_and(|before| before.robots == robots);
            let by_pattern = |host| answered.get(host).copied().filter(is_same);
            let had =
                host_patterns(&site.hosts).filter_map(|host| named.get(host).copied().or_else(|| by_pattern(host)));
            let mut had: Vec<&String> = had.collect();
            had.dedup();
            (site.name.clone(), had.into_iter().map(|name| (name.clone(), find(name))).collect())
        });
        Self(former.collect())
    }

    /// With the sites that were served last, as a state directory has them. Blocks.
    pub(super) fn kept(state: Option<&StateDir>, config: &Config) -> Self {
        let Some(state) = state else { return Self::default() };
        let names = state.site_names();
        Self::new(config, &kept_hosts(state), |site| {
            let names = names.iter().filter(|name| is_of(site, name));
            names.filter_map(|name| Some((name.strip_prefix(site)?.to_owned(), state.remembered(name)))).collect()
        })
    }

    /// The site whose versions a new one goes on from.
    pub(super) fn predecessor(&self, site: &str) -> Option<&str> {
        self.0.get(site)?.first().map(|(name, _)| name.as_str())
    }

    /// What the robots.txt of this name goes on from: one file of a folder and the only one of a site are not the same.
    pub(super) fn robots(&self, site: &str, name: &str) -> Option<&Remembered> {
        let before = self.0.get(site)?.first()?.1.get(name.strip_prefix(site)?);
        before.filter(|before| before.kept().next().is_some())
    }

    /// Whether a new site goes on from this robots.txt, or is off with it.
    pub(super) fn has_heir(&self, name: &str) -> bool {
        self.0.values().flatten().any(|(site, _)| is_of(site, name))
    }

    /// Turns off what takes the place of what is off. Blocks: it writes to the state directory.
    pub(super) fn turn_off(&self, site: &str, robots: &SiteRobots) {
        for live in robots.lives("", &[]) {
            if self.was_off(site, &live.name) {
                // A failure to write it stands in the status.
                let _ = live.robots.set_enforcement(Enforcement::Off);
            }
        }
    }

    /// Whether a robots.txt of a site before, in whose place one of a new site comes, is off. `file` is its name behind that of the site.
    fn was_off(&self, site: &str, file: &str) -> bool {
        let is_off = |robots: &Remembered| robots.switch() == Enforcement::Off;
        // A host that is new, and one file in place of a folder, is off with any.
        let was_off = |(_, before): &(String, FormerSite)| match before.get(file) {
            Some(same) => is_off(same),
            None => before.values().any(is_off),
        };
        self.0.get(site).is_some_and(|former| former.iter().any(was_off))
    }

    /// Says that a site is new, what it goes on from, and whether it is off with that.
    pub(super) fn arrival(&self, made: &ServedSite) -> String {
        let name = &*made.name;
        let Some(from) = self.predecessor(name) else { return format!("site {name:?} is new") };
        let word = shell_word(name);
        let lives = made.lives();
        let of_hosts =
            lives.iter().any(|live| live.name.strip_prefix(name).is_some_and(|file| self.was_off(name, file)));
        let was = if of_hosts { "as its hosts were" } else { "as a site of this name was before" };
        let off = || format!(", switched off {was}: `robotsd enforce on --site {word}` turns it on");
        let off = made.is_off().then(off).unwrap_or_default();
        let has_versions = lives.iter().any(|live| self.robots(name, &live.name).is_some());
        let begins =
            if has_versions { "goes on from its versions" } else { "begins anew: nothing is kept of such a file" };
        format!("site {name:?} is new, has hosts of {from:?} and {begins}{off}")
    }
}

fn kept_hosts(state: &StateDir) -> HostsBySite {
    let hosts = files::read(&state.path().join(KEPT)).unwrap_or_default();
    serde_json::from_slice(&hosts).unwrap_or_default()
}

/// Writes down the hosts of the sites that are served, for the next start. Blocks.
pub(super) fn keep(state: &StateDir, hosts: &HostsBySite) {
    // A directory that cannot be written has that among its troubles.
    let _ = serde_json::to_vec(hosts).map(|hosts| files::replace(&state.path().join(KEPT), &hosts));
}

/// Writes down that a site has its hosts now, and no other has them: what is decided about it while no process serves is its own. Blocks.
pub(super) fn settle(state: &StateDir, site: &SiteConfig) {
    let own = HostsOfSite::of(site);
    let others = kept_hosts(state).into_iter().map(|(name, other)| {
        let left = other.patterns().filter(|host| own.patterns().all(|own| own != *host)).map(str::to_owned);
        (name, HostsOfSite { hosts: left.collect(), robots: other.robots.clone() })
    });
    let mut hosts: HostsBySite = others.filter(|(_, left)| !left.hosts.is_empty()).collect();
    hosts.insert(site.name.clone(), own);
    keep(state, &hosts);
}

/// Whether a site has what is kept under its name, by the config that was served last, if one was.
pub(crate) fn is_settled(state: &StateDir, site: &str) -> bool {
    let hosts = kept_hosts(state);
    hosts.is_empty() || hosts.contains_key(site)
}

/// The host patterns of all sites, each with the name of its site.
pub(super) fn patterns(sites: &HostsBySite) -> impl Iterator<Item = (&str, &String)> {
    sites.iter().flat_map(|(name, hosts)| hosts.patterns().map(move |pattern| (pattern, name)))
}
