//! Requests that are never judged.

use super::agent_name::is_called;
use crate::agent::{Agent, Network};
use crate::rules::{PathPattern, ProductToken, Reading, RequestPath};

/// Paths, addresses and agents whose requests pass unjudged.
#[derive(Clone, Debug)]
pub(super) struct Exemptions {
    pub(super) patterns: Vec<PathPattern>,
    pub(super) networks: Vec<Network>,
    pub(super) agents: Vec<ProductToken>,
}

impl Default for Exemptions {
    fn default() -> Self {
        let pattern = |pattern: &str| PathPattern::new(pattern.as_bytes(), Reading::Standard);
        Self { patterns: Self::DEFAULT_PATHS.map(pattern).into(), networks: Vec::new(), agents: Vec::new() }
    }
}

impl Exemptions {
    pub(super) const DEFAULT_PATHS: [&str; 1] = [PathPattern::WELL_KNOWN];

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
