//! The hosts of a site, whose pages are its own.

use tower_robots::source::HostMap;

/// The host patterns of a site.
#[derive(Debug)]
pub(crate) struct OwnHosts {
    /// None where the site is for every host.
    patterns: Option<HostMap<()>>,
    /// The first that is no pattern.
    name: Option<String>,
}

impl OwnHosts {
    pub(crate) fn of(hosts: &[String]) -> Self {
        let mut patterns = HostMap::new();
        for host in hosts {
            // A config with a host that is none was refused.
            let _ = patterns.insert(host, ());
        }
        let name = hosts.iter().find(|host| !host.contains('*')).cloned();
        Self { patterns: (!hosts.is_empty()).then_some(patterns), name }
    }

    /// Whether a host, with its port, is one of them.
    pub(crate) fn has(&self, host: &[u8]) -> bool {
        self.patterns.as_ref().is_none_or(|patterns| patterns.get(host).is_some())
    }

    /// A host to request from, where one is known.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}
