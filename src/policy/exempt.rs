//! Requests that are never judged.

use super::network::Network;
use super::overrides::is_called;
use crate::agent::Agent;
use crate::rules::{PathPattern, ProductToken, Reading, RequestPath};

/// Paths, addresses and agents whose requests pass unjudged.
#[derive(Clone, Debug)]
pub(super) struct Exemptions {
    patterns: Vec<PathPattern>,
    networks: Vec<Network>,
    agents: Vec<ProductToken>,
}

impl Exemptions {
    pub(super) fn new<P: AsRef<[u8]>>(
        patterns: impl IntoIterator<Item = P>,
        networks: Vec<Network>,
        agents: Vec<ProductToken>,
    ) -> Self {
        let patterns = patterns.into_iter().map(|pattern| PathPattern::new(pattern.as_ref(), Reading::Standard));
        // An empty pattern would exempt everything; in a list of paths it can only be a slip.
        Self { patterns: patterns.filter(|pattern| pattern.priority() > 0).collect(), networks, agents }
    }

    /// Every form has to be exempt: `/.well-known/..%2fprivate/x` is `/private/x` to some servers.
    pub(super) fn cover_path(&self, path: &RequestPath<'_>) -> bool {
        path.is_robots_txt() || path.forms().all(|(_, form)| self.patterns.iter().any(|pattern| pattern.matches(form)))
    }

    pub(super) fn cover_address(&self, address: Option<std::net::IpAddr>) -> bool {
        address.is_some_and(|address| self.networks.iter().any(|network| network.contains(address)))
    }

    pub(super) fn cover_agent(&self, agent: &Agent) -> bool {
        self.agents.iter().any(|name| is_called(agent, name))
    }
}
