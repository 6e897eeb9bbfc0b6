//! A site's robots.txt as the config has it: where it comes from, what it must not do, and what is remembered of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tower_robots::agent::Registry;
use tower_robots::check::Severity;
use tower_robots::source::{Gate, GateBuilder, LiveBuilder, LiveRobots, Outcome, StateDir, WhenMissing};

use crate::config::{self, Config, Source};
use crate::expect;

/// What every site's robots.txt is opened with.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) registry: Arc<Registry>,
    pub(super) state: Option<StateDir>,
    gate: Option<GateBuilder>,
}

/// What a version of one site must not do.
#[derive(Clone, Debug)]
pub(super) struct Demands {
    gate: Option<GateBuilder>,
    expectations: Option<PathBuf>,
}

impl Shared {
    pub(super) fn new(config: &Config) -> Result<Self, String> {
        let registry = registry(config.registry_extra.as_deref())?;
        let state = config.state_dir.as_ref().map(StateDir::open);
        Ok(Self { registry, state, gate: config.gate.clone() })
    }

    pub(super) fn demands(&self, site: &config::Site) -> Demands {
        Demands { gate: self.gate.clone(), expectations: site.expectations.clone() }
    }

    /// A robots.txt that is yet to be opened.
    pub(super) fn robots(&self, site: &config::Site) -> Result<LiveBuilder, String> {
        let builder = match &site.robots {
            Source::File(path) => LiveRobots::file(path),
            Source::Inline(text) => LiveRobots::inline(text),
        };
        let builder = builder
            .policy(site.policy.clone())
            .registry(self.registry.clone())
            .check(site.check.clone())
            .max_age(site.max_age)
            .grace(site.grace)
            .gate(self.demands(site).gate(&self.registry)?);
        Ok(match &self.state {
            Some(state) => builder.state(state, &*site.name),
            None => builder,
        })
    }
}

impl Demands {
    /// The gate, with the expectations as their file has them now.
    pub(super) fn gate(&self, registry: &Arc<Registry>) -> Result<Gate, String> {
        let Some(gate) = &self.gate else { return Ok(Gate::open()) };
        Ok(match &self.expectations {
            Some(path) => gate.clone().expectations(expect::expectations(path, registry)?).build(),
            None => gate.clone().build(),
        })
    }
}

/// The built-in registry, with a file's rows added, changed and removed where there is one.
pub(super) fn registry(extra: Option<&Path>) -> Result<Arc<Registry>, String> {
    let Some(path) = extra else { return Ok(Registry::builtin().clone()) };
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let registry = Registry::builtin().extended(&text).map_err(|error| format!("{}:{error}", path.display()))?;
    Ok(Arc::new(registry))
}

/// Opens every robots.txt as serving would, for whoever wants to know before: what keeps a site from being served as its
/// source has it, and the errors that the check finds. What is remembered of the sites is neither read nor written.
pub(crate) fn rehearse(config: &Config) -> Vec<String> {
    let shared = match Shared::new(config) {
        Ok(shared) => Shared { state: None, ..shared },
        Err(message) => return vec![message],
    };
    config
        .sites
        .iter()
        .flat_map(|site| problems(site, &shared))
        .map(|(name, problem)| format!("site {name:?}: {problem}"))
        .collect()
}

/// Opens a site as the next start would, for whoever decides about one that no process serves.
pub(super) fn at_rest(config: &Config, site: &config::Site) -> Result<LiveRobots, String> {
    let robots = Shared::new(config)?.robots(site)?.when_missing(WhenMissing::Unavailable);
    robots.open().map_err(|rejection| rejection.to_string())
}

fn problems<'a>(site: &'a config::Site, shared: &Shared) -> Vec<(&'a str, String)> {
    let told = |problems: Vec<String>| problems.into_iter().map(|problem| (&*site.name, problem)).collect();
    let live = match shared.robots(site).map(|robots| robots.when_missing(WhenMissing::Unavailable).open()) {
        Ok(Ok(live)) => live,
        Ok(Err(rejection)) => return told(vec![rejection.to_string()]),
        Err(message) => return told(vec![message]),
    };
    let status = live.status();
    let snapshot = live.snapshot();
    let Some(content) = snapshot.content() else {
        return told(vec![match status.last_reload().outcome() {
            Outcome::Kept { rejection, .. } => rejection.to_string(),
            _ => status.last_reload().to_string(),
        }]);
    };
    let origin = status.last_reload().origin();
    let errors = content.report().findings().iter().filter(|finding| finding.severity() >= Severity::Error);
    told(errors.map(|finding| format!("{origin}:{finding}")).collect())
}
