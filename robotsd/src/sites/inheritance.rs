//! The state that new sites inherit from previous sites. Without inheritance, a renamed site, or a
//! new site with an old host, could bypass the gate, because the gate would have no earlier version
//! to compare with.
//!
//! 1. A site with a new name inherits the versions of at most one previous site. The hosts of the
//!    new site are tried in order. The first host that belonged to any previous site decides: the
//!    new site inherits from that site. If the previous site still exists, it keeps its own
//!    versions. A host belonged to a previous site if that site listed the same pattern. If the
//!    previous site only had a wider pattern, or served all hosts, the host may be new. A previous
//!    site with such a wider pattern is used only if both sites have the same robots.txt (file or
//!    URL). If no previous site is found, the new site starts without versions.
//! 2. Enforcement of a new site is off if it was off for any previous site that had one of the new
//!    site's hosts. If it is unknown whether enforcement was off, requests are not refused.
//!
//! At a reload, the previous sites are the open sites. At a start and in commands, the states and
//! hosts of the previous sites are read from the state directory. The serving process writes the
//! hosts. If no process serves, the commands `accept` and `rollback` write the hosts.

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

/// File in the state directory with each site's hosts, for the next start.
const HOSTS_FILE: &str = "hosts.json";

pub(super) type HostsBySite = BTreeMap<String, HostsOfSite>;

/// The hosts of a site, and the file or URL of their robots.txt. `robots` is `None` if each host
/// has its own robots.txt.
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

/// For each new site, the previous sites that its hosts belonged to, in the order of the hosts.
#[derive(Debug, Default)]
pub(super) struct Inheritance(HashMap<String, Vec<(String, FormerSite)>>);

impl Inheritance {
    /// Determines what new sites inherit. `before` contains the hosts of the previous sites, and
    /// `find` returns the state of a previous site by its name.
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

    /// Determines what new sites inherit from the sites in the state directory. Blocks.
    pub(super) fn from_state_dir(state: Option<&StateDir>, config: &Config) -> Self {
        let Some(state) = state else { return Self::default() };
        let names = state.site_names();
        Self::new(config, &saved_hosts(state), |site| {
            let names = names.iter().filter(|name| is_of(site, name));
            names.filter_map(|name| Some((name.strip_prefix(site)?.to_owned(), state.remembered(name)))).collect()
        })
    }

    pub(super) fn predecessor(&self, site: &str) -> Option<&str> {
        self.0.get(site)?.first().map(|(name, _)| name.as_str())
    }

    /// Returns the state that the robots.txt `name` of a new site inherits. A robots.txt for a
    /// whole site never inherits from a robots.txt for a single host, or vice versa.
    pub(super) fn robots(&self, site: &str, name: &str) -> Option<&Remembered> {
        let before = self.0.get(site)?.first()?.1.get(name.strip_prefix(site)?);
        before.filter(|before| before.kept().next().is_some())
    }

    /// Reports whether any new site inherits from the previous site with the robots.txt `name`.
    pub(super) fn has_heir(&self, name: &str) -> bool {
        self.0.values().flatten().any(|(site, _)| is_of(site, name))
    }

    /// For each robots.txt of a new site, switches enforcement off if it was off for the previous
    /// robots.txt. Blocks while it writes to the state directory.
    pub(super) fn turn_off(&self, site: &str, robots: &SiteRobots) {
        for live in robots.live_sites("", &[]) {
            if self.was_off(site, &live.name) {
                // The result is ignored, because the status reports that the switch could not be
                // written.
                let _ = live.robots.set_enforcement(Enforcement::Off);
            }
        }
    }

    /// Reports whether enforcement was off for the robots.txt that the new robots.txt replaces.
    /// `file` is the name of the new robots.txt without the name of the site: empty, or `/HOST`.
    fn was_off(&self, site: &str, file: &str) -> bool {
        let is_off = |robots: &Remembered| robots.switch() == Enforcement::Off;
        // If the previous site had no robots.txt for the same host, enforcement is off if it was
        // off for any host of that site.
        let was_off = |(_, before): &(String, FormerSite)| match before.get(file) {
            Some(same) => is_off(same),
            None => before.values().any(is_off),
        };
        self.0.get(site).is_some_and(|former| former.iter().any(was_off))
    }

    /// Describes a new site: which versions it inherits, and whether its enforcement is off because
    /// of a previous site.
    pub(super) fn new_site_message(&self, made: &ServedSite) -> String {
        let name = &*made.name;
        let Some(from) = self.predecessor(name) else { return format!("site {name:?} is new") };
        let word = shell_word(name);
        let live_sites = made.live_sites();
        let of_hosts =
            live_sites.iter().any(|live| live.name.strip_prefix(name).is_some_and(|file| self.was_off(name, file)));
        let was = if of_hosts {
            "it was switched off for these hosts before"
        } else {
            "it was switched off for an earlier site with this name"
        };
        let off =
            || format!("; enforcement is off, because {was}: to switch it on, run `robotsd enforce on --site {word}`");
        let off = made.is_off().then(off).unwrap_or_default();
        let has_versions = live_sites.iter().any(|live| self.robots(name, &live.name).is_some());
        let begins = if has_versions {
            "continues with the versions of that site"
        } else {
            "starts without versions, because that site had no file for these hosts"
        };
        format!("site {name:?} is new. It has hosts of the site {from:?}, and {begins}{off}")
    }
}

fn saved_hosts(state: &StateDir) -> HostsBySite {
    let hosts = files::read(&state.path().join(HOSTS_FILE)).unwrap_or_default();
    serde_json::from_slice(&hosts).unwrap_or_default()
}

/// Saves the hosts of the served sites for the next start. Blocks while it writes to the state
/// directory.
pub(super) fn save_hosts(state: &StateDir, hosts: &HostsBySite) {
    // The result is ignored, because `StateDir` reports that the directory is not writable.
    let _ = serde_json::to_vec(hosts).map(|hosts| files::replace(&state.path().join(HOSTS_FILE), &hosts));
}

/// Records in the state directory that the hosts of this site belong to no other site. This
/// function is used when a version is accepted or rolled back while no process serves. Blocks.
pub(super) fn claim_hosts(state: &StateDir, site: &SiteConfig) {
    let own = HostsOfSite::of(site);
    let others = saved_hosts(state).into_iter().map(|(name, other)| {
        let left = other.patterns().filter(|host| own.patterns().all(|own| own != *host)).map(str::to_owned);
        (name, HostsOfSite { hosts: left.collect(), robots: other.robots.clone() })
    });
    let mut hosts: HostsBySite = others.filter(|(_, left)| !left.hosts.is_empty()).collect();
    hosts.insert(site.name.clone(), own);
    save_hosts(state, &hosts);
}

/// Reports whether the state under this site name belongs to the site. This is the case if the last
/// served config contained the site, or if no config was served yet.
pub(crate) fn has_own_state(state: &StateDir, site: &str) -> bool {
    let hosts = saved_hosts(state);
    hosts.is_empty() || hosts.contains_key(site)
}

pub(super) fn patterns(sites: &HostsBySite) -> impl Iterator<Item = (&str, &String)> {
    sites.iter().flat_map(|(name, hosts)| hosts.patterns().map(move |pattern| (pattern, name)))
}
