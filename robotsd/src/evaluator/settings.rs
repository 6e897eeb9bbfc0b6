//! What requests and files are judged by, besides the robots.txt.

use std::sync::Arc;

use tower_robots::agent::Registry;
use tower_robots::check;
use tower_robots::policy::Policy;

use crate::config::{self, Config, ConfigError};

/// The registry, the policy and the checks of a site; by default those of a config that says nothing about them.
#[derive(Clone, Debug)]
pub(crate) struct EvaluatorSettings {
    pub(crate) registry: Arc<Registry>,
    pub(crate) policy: Policy,
    pub(crate) checks: check::Options,
}

impl EvaluatorSettings {
    /// As `serve` takes them from a config, `registry_extra` and what `registry_url` brought last included.
    pub(crate) fn of_site(config: &Config, site: &config::SiteConfig) -> Result<Self, ConfigError> {
        let registry = config::load_registry(&config.registry)?;
        let checks = site.check.options(&registry, &site.policy).with_registry(registry.clone());
        Ok(Self { registry, policy: site.policy.clone(), checks })
    }
}

impl Default for EvaluatorSettings {
    fn default() -> Self {
        Self { registry: Registry::builtin().clone(), policy: Policy::default(), checks: check::Options::new() }
    }
}
