//! Determines which sites decide about a request: the site whose name is in the decision request,
//! the site that serves the host of the request, or all sites.

use std::collections::HashMap;
use std::sync::Arc;

use tower_robots::internals::Origin;
use tower_robots::layer::RobotsLayer;
use tower_robots::source::HostMap;

use super::asked_request::AskedRequest;
use crate::config::UnknownHost;
use crate::request::SiteJudge;

#[derive(Clone, Debug)]
pub(crate) struct DecisionSite {
    pub(crate) judge: SiteJudge,
    /// A layer that neither logs nor counts. It is used for a proxy's second request about a
    /// refusal, and to compare the decisions of several sites.
    pub(crate) quiet: RobotsLayer,
}

#[derive(Debug, Default)]
pub(crate) struct DecisionSites {
    sites: Vec<DecisionSite>,
    by_name: HashMap<Arc<str>, usize>,
    by_host: HostMap<usize>,
}

impl DecisionSites {
    /// Adds a site with its hosts. Each host is a name with or without a port, `*.example.com`, or
    /// `*`.
    pub(crate) fn add<'h>(&mut self, site: DecisionSite, hosts: impl IntoIterator<Item = &'h str>) {
        let place = self.sites.len();
        for host in hosts {
            // Inserting cannot fail, because a config with a malformed host or with a host in two
            // sites is rejected.
            let _ = self.by_host.insert(host, place);
        }
        self.by_name.insert(Arc::clone(&site.judge.name), place);
        self.sites.push(site);
    }

    pub(super) fn named(&self, name: &str) -> Option<&DecisionSite> {
        self.sites.get(*self.by_name.get(name)?)
    }

    pub(super) fn of_host(&self, host: Option<&[u8]>) -> Option<&DecisionSite> {
        let place = host.map_or_else(|| self.by_host.any(), |host| self.by_host.get(host));
        self.sites.get(*place?)
    }

    /// Returns the sites that a request may be for: one site, or all sites if the decision request
    /// does not identify a site. Returns no site if the host is unknown and `unknown` allows
    /// requests for unknown hosts.
    ///
    /// All sites are returned if a host is invalid, if the decision request is malformed, or if it
    /// contains two hosts of different sites. The client chooses the `Host` field, and robotsd does
    /// not know which of the two hosts the proxy uses.
    pub(super) fn of_request(&self, asked: &AskedRequest<'_>, unknown: UnknownHost) -> &[DecisionSite] {
        let mut places = Vec::with_capacity(2);
        for host in [asked.host, asked.host_in_target].into_iter().flatten() {
            if !is_host(host) {
                return &self.sites;
            }
            places.push(self.by_host.get(host).copied());
        }
        places.dedup();
        match *places {
            [Some(place)] if asked.odd.is_none() => self.sites.get(place..=place).unwrap_or_default(),
            [None] if asked.odd.is_none() && unknown == UnknownHost::Pass => &[],
            _ => &self.sites,
        }
    }
}

/// Reports whether `host` is a valid host, with or without a port. Internationalised names are
/// valid only in the ASCII form that clients send.
fn is_host(host: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._[]:".contains(byte);
    let host = std::str::from_utf8(host).ok().filter(|host| host.bytes().all(|byte| is_part(&byte)));
    host.is_some_and(|host| Origin::of(&format!("http://{host}")).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_with_or_without_a_port() {
        for host in ["h.test", "H.TEST.", "h.test:80", "h.test:", "h_1.test", "192.0.2.1:8080", "[2001:db8::1]:443"] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        let no_hosts = ":80 h.test:? h.test:# h.test:80?x h.test:80@x h.test:@ h.test:80\\ h.test:,x h.test:99999 [h.test] u@h.test \
                        h.test/x h..test .h.test h.test%00 [::1 ::1 m\u{fc}nchen.test h.test:80:80 h.test, *";
        for host in no_hosts.split(' ').chain(["", "h.test h"]) {
            assert!(!is_host(host.as_bytes()), "{host}");
        }
    }
}
