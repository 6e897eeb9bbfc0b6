//! Which hosts are those of a site, of all that a config has.

use tower_robots::source::HostMap;

use crate::config::{Config, SiteConfig};
use crate::quoted_list::QuotedList;

/// The hosts of one site. As the server has it, a host belongs to the site whose pattern fits it best, and what no pattern fits to the
/// site of every other host.
#[derive(Clone, Debug)]
pub(in crate::commands) struct SiteHosts {
    site: String,
    patterns: Vec<String>,
    /// Who has a host, and who is meant: by site, then by file where the site has one for each host.
    owners: Vec<(HostMap<String>, String)>,
}

impl SiteHosts {
    pub(super) fn of(config: &Config, site: &SiteConfig) -> Self {
        let all = config.sites.iter().flat_map(|site| patterns(site).map(|pattern| (pattern, site.name.clone())));
        let owners = vec![(owners(all), site.name.clone())];
        Self { site: site.name.clone(), patterns: patterns(site).map(str::to_owned).collect(), owners }
    }

    /// Those whose file is the one for a host, of a site with a file for each of these patterns.
    pub(super) fn with_file_of(mut self, host: &str, files: &[String]) -> Self {
        let files = owners(files.iter().map(|pattern| (pattern.as_str(), pattern.clone())));
        if let Some(file) = files.get(host).cloned() {
            self.patterns = vec![file.clone()];
            self.owners.push((files, file));
        }
        self
    }

    /// The name of the site.
    pub(in crate::commands) fn site(&self) -> &str {
        &self.site
    }

    /// Whether a request is for the site: by its host, with or without a port; empty where it named none.
    pub(in crate::commands) fn have(&self, host: &[u8]) -> bool {
        self.owners.iter().all(|(owners, meant)| owners.get(host) == Some(meant))
    }

    /// Whether every request is for the site.
    pub(in crate::commands) fn are_all(&self) -> bool {
        self.owners.iter().all(|(owners, _)| owners.len() == 1 && owners.any().is_some())
    }

    pub(in crate::commands) fn list(&self) -> QuotedList<&String> {
        QuotedList::of(self.patterns.iter())
    }
}

/// The site of each host.
pub(super) fn sites_of(config: &Config) -> HostMap<&SiteConfig> {
    owners(config.sites.iter().flat_map(|site| patterns(site).map(move |pattern| (pattern, site))))
}

/// The patterns of a site; one without hosts has every other host.
fn patterns(site: &SiteConfig) -> impl Iterator<Item = &str> {
    let every = site.hosts.is_empty().then_some("*");
    every.into_iter().chain(site.hosts.iter().map(String::as_str))
}

fn owners<'p, T>(patterns: impl Iterator<Item = (&'p str, T)>) -> HostMap<T> {
    let mut map = HostMap::new();
    for (pattern, owner) in patterns {
        // A config with a host that is none, or that two sites have, was refused.
        let _ = map.insert(pattern, owner);
    }
    map
}
