//! The state that a new site inherits from previous sites. Renaming a site, or moving a host to a
//! new site, does not bypass the gate, because the new robots.txt is still compared with the
//! earlier versions.
//!
//! 1. A site with a new name inherits the versions of at most one previous site. The hosts of the
//!    new site are examined in order, and the first one that a previous site had determines this
//!    previous site. The previous site may still exist; it keeps its own versions. A previous site
//!    had a host if it lists the same pattern. If it only has a wider pattern or serves all other
//!    hosts, it counts only if both sites have the same robots.txt (file or URL). Otherwise, the
//!    host may be new, so the site starts without versions.
//! 2. Enforcement of a new site is off if it is off for any previous site that had one of the new
//!    site's hosts. In doubt, requests are not refused.
//!
//! The previous sites are those of the previous config. At a reload, the previous sites are open.
//! At a start, and for a command, their states are read from the state directory, which contains
//! the state and the hosts of each site. The hosts are written by the last process that served, or
//! by the last command that accepted or rolled back a version while no process served.

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

/// Name of the file in the state directory with the hosts of the last served sites.
const KEPT: &str = "hosts.json";

/// The hosts of each site, by its name.
pub(super) type HostsBySite = BTreeMap<String, HostsOfSite>;

/// The hosts of a site, and the file or URL of its robots.txt if all hosts have the same one.
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

/// For each new site, by its name, the previous sites that had its hosts, in the order of these
/// hosts.
#[derive(Debug, Default)]
pub(super) struct Inheritance(HashMap<String, Vec<(String, FormerSite)>>);

impl Inheritance {
    /// Creates the inheritance from the previous sites `before`. `find` returns the state of a
    /// previous site by its name.
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

    /// Creates the inheritance from the last served sites, which are read from the state directory.
    /// Blocks.
    pub(super) fn kept(state: Option<&StateDir>, config: &Config) -> Self {
        let Some(state) = state else { return Self::default() };
        let names = state.site_names();
        Self::new(config, &kept_hosts(state), |site| {
            let names = names.iter().filter(|name| is_of(site, name));
            names.filter_map(|name| Some((name.strip_prefix(site)?.to_owned(), state.remembered(name)))).collect()
        })
    }

    /// Returns the site whose versions a new site inherits.
    pub(super) fn predecessor(&self, site: &str) -> Option<&str> {
        self.0.get(site)?.first().map(|(name, _)| name.as_str())
    }

    /// Returns the state that the robots.txt with this name inherits. A robots.txt for the whole
    /// site does not inherit from a file in a folder, and a file in a folder does not inherit from
    /// a robots.txt for the whole site.
    pub(super) fn robots(&self, site: &str, name: &str) -> Option<&Remembered> {
        let before = self.0.get(site)?.first()?.1.get(name.strip_prefix(site)?);
        before.filter(|before| before.kept().next().is_some())
    }

    /// Reports whether a new site inherits the versions or the switch of the previous robots.txt
    /// with this name.
    pub(super) fn has_heir(&self, name: &str) -> bool {
        self.0.values().flatten().any(|(site, _)| is_of(site, name))
    }

    /// Switches enforcement off for each robots.txt of a new site that replaces one whose
    /// enforcement is off. Blocks while it writes to the state directory.
    pub(super) fn turn_off(&self, site: &str, robots: &SiteRobots) {
        for live in robots.lives("", &[]) {
            if self.was_off(site, &live.name) {
                // The result can be ignored: the status reports that the switch could not be
                // written.
                let _ = live.robots.set_enforcement(Enforcement::Off);
            }
        }
    }

    /// Reports whether enforcement is off for a previous robots.txt that the new site replaces.
    /// `file` is the part of the name of the robots.txt after the name of its site.
    fn was_off(&self, site: &str, file: &str) -> bool {
        let is_off = |robots: &Remembered| robots.switch() == Enforcement::Off;
        // If the previous site had no robots.txt with the same host, enforcement is off if it is
        // off for any robots.txt of the previous site.
        let was_off = |(_, before): &(String, FormerSite)| match before.get(file) {
            Some(same) => is_off(same),
            None => before.values().any(is_off),
        };
        self.0.get(site).is_some_and(|former| former.iter().any(was_off))
    }

    /// Describes a new site with its inherited versions, and whether its enforcement is off because
    /// of the previous site.
    pub(super) fn arrival(&self, made: &ServedSite) -> String {
        let name = &*made.name;
        let Some(from) = self.predecessor(name) else { return format!("site {name:?} is new") };
        let word = shell_word(name);
        let lives = made.lives();
        let of_hosts =
            lives.iter().any(|live| live.name.strip_prefix(name).is_some_and(|file| self.was_off(name, file)));
        let was = if of_hosts { "it was off for its hosts" } else { "it was off for an earlier site with this name" };
        let off = || format!("; enforcement is off, because {was}: `robotsd enforce on --site {word}` turns it on");
        let off = made.is_off().then(off).unwrap_or_default();
        let has_versions = lives.iter().any(|live| self.robots(name, &live.name).is_some());
        let begins = if has_versions {
            "continues from its versions"
        } else {
            "starts without versions, because the previous site had no such file"
        };
        format!("site {name:?} is new, has hosts of {from:?} and {begins}{off}")
    }
}

fn kept_hosts(state: &StateDir) -> HostsBySite {
    let hosts = files::read(&state.path().join(KEPT)).unwrap_or_default();
    serde_json::from_slice(&hosts).unwrap_or_default()
}

/// Saves the hosts of the served sites for the next start. Blocks.
pub(super) fn keep(state: &StateDir, hosts: &HostsBySite) {
    // The result can be ignored: the state directory itself reports that it cannot be written.
    let _ = serde_json::to_vec(hosts).map(|hosts| files::replace(&state.path().join(KEPT), &hosts));
}

/// Records in the state directory that a site has its hosts, and that no other site has them. After
/// this, decisions that are made while no process serves belong to this site. Blocks.
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

/// Reports whether the state under a site's name belongs to the site. It does if the site was in
/// the last served config, or if no config was served yet.
pub(crate) fn is_settled(state: &StateDir, site: &str) -> bool {
    let hosts = kept_hosts(state);
    hosts.is_empty() || hosts.contains_key(site)
}

/// Returns each host pattern of all sites with the name of its site.
pub(super) fn patterns(sites: &HostsBySite) -> impl Iterator<Item = (&str, &String)> {
    sites.iter().flat_map(|(name, hosts)| hosts.patterns().map(move |pattern| (pattern, name)))
}
