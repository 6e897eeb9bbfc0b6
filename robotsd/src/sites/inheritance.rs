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

use tower_robots::live::{Enforcement, Remembered, StateDir};

use super::served_site::ServedSite;
use super::site_robots::{FormerSite, SiteRobots};
use crate::config::{Config, SiteConfig, host_patterns, owners};
use crate::files;
use crate::render::shell_word;
use crate::report::is_of;

/// The file of the state directory that has the hosts of the sites that were served last.
const KEPT: &str = "hosts.json";

/// The hosts of each site, by its name.
pub(super) type HostsBySite = BTreeMap<String, Vec<String>>;

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
            let place = site.robots.place();
            let is_of_place = |kept: &Remembered| place.as_deref().is_some_and(|place| kept.is_from(place));
            let by_pattern = |host| answered.get(host).copied().filter(|name| find(name).values().any(is_of_place));
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
        let Some(former) = self.0.get(site) else { return };
        for live in robots.lives("", &[]) {
            let is_off = |robots: &Remembered| robots.switch() == Enforcement::Off;
            // A host that is new, and one file in place of a folder, is off with any.
            let was_off = |(_, site): &(String, FormerSite)| match site.get(&live.name) {
                Some(same) => is_off(same),
                None => site.values().any(is_off),
            };
            if former.iter().any(was_off) {
                // A failure to write it stands in the status.
                let _ = live.robots.set_enforcement(Enforcement::Off);
            }
        }
    }

    /// Says that a site is new, what it goes on from, and whether it is off with that.
    pub(super) fn arrival(&self, made: &ServedSite) -> String {
        let name = &*made.name;
        let Some(from) = self.predecessor(name) else { return format!("site {name:?} is new") };
        let word = shell_word(name);
        let off = || {
            let was = "as its hosts were, or as a site of this name was before";
            format!(", switched off {was}: `robotsd enforce on --site {word}` turns it on")
        };
        let off = made.is_off().then(off).unwrap_or_default();
        let has_versions = made.lives().iter().any(|live| self.robots(name, &live.name).is_some());
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
    let own: Vec<_> = host_patterns(&site.hosts).map(str::to_owned).collect();
    let others = kept_hosts(state).into_iter().map(|(name, hosts)| {
        let left = host_patterns(&hosts).filter(|host| !own.iter().any(|own| own == host));
        (name, left.map(str::to_owned).collect::<Vec<_>>())
    });
    let mut hosts: HostsBySite = others.filter(|(_, left)| !left.is_empty()).collect();
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
    sites.iter().flat_map(|(name, hosts)| host_patterns(hosts).map(move |pattern| (pattern, name)))
}
