//! The configured sites, opened.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tower_http::services::ServeDir;
use tower_robots::agent::Registry;
use tower_robots::check::Severity;
use tower_robots::layer::RobotsLayer;
use tower_robots::source::{LiveBuilder, LiveRobots, WhenMissing};

use super::backend::Backend;
use super::{SiteName, report};
use crate::config::{self, Config, Source};
use crate::edge::{OriginalAgent, Peer};
use crate::log::{Log, Privacy};
use crate::upstream::{Origins, Surroundings, Upstream, UpstreamLimits};

/// Every site of the config.
#[derive(Debug)]
pub(super) struct Sites {
    sites: Vec<Site>,
    registry_extra: Option<PathBuf>,
    log: Log,
}

/// One site: its robots.txt, live, and what stands behind it.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) name: SiteName,
    pub(super) hosts: Vec<String>,
    live: LiveRobots,
    behind: Behind,
    log: Log,
    privacy: Privacy,
}

/// What the backends of a site's workers are made from.
#[derive(Debug)]
enum Behind {
    Upstreams(Origins),
    Files(PathBuf),
}

impl Sites {
    /// Opens every site. A robots.txt that cannot be used stops the start only where `strict` or the config says so.
    pub(super) fn open(config: &Config, strict: bool, log: &Log) -> Result<Self, String> {
        let registry = match &config.registry_extra {
            Some(path) => extended(path)?,
            None => Registry::builtin().clone(),
        };
        let surroundings = Surroundings::system();
        let open = |site| Site::open(site, &config.upstream, &surroundings, &registry, strict, log, config.log.privacy);
        let sites = config.sites.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Self { sites, registry_extra: config.registry_extra.clone(), log: log.clone() })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Site> {
        self.sites.iter()
    }

    /// Reads the registry and every robots.txt again, off the request path. A registry with a fault changes nothing.
    pub(super) fn reload(&self) {
        if let Some(path) = &self.registry_extra {
            match extended(path) {
                Ok(registry) => {
                    self.sites.iter().for_each(|site| site.live.set_registry(registry.clone()));
                    self.log.say("registry", format!("{}: is in force", path.display()));
                }
                Err(message) => self.log.say("registry-rejected", format!("{message}; the one before stays in force")),
            }
        }
        for site in &self.sites {
            // What comes of it is logged by the site's listener.
            drop(site.live.reload());
        }
    }
}

/// Opens every robots.txt as serving would, for whoever wants to know before: what keeps a site from being served, and
/// the errors that the check finds.
pub(crate) fn rehearse(config: &Config) -> Vec<String> {
    let registry = match config.registry_extra.as_deref().map(extended).transpose() {
        Ok(registry) => registry.unwrap_or_else(|| Registry::builtin().clone()),
        Err(message) => return vec![message],
    };
    let mut problems = Vec::new();
    for site in &config.sites {
        match robots(site, &registry).when_missing(WhenMissing::Fail).open() {
            Err(rejection) => problems.push(format!("site {:?}: {rejection}", site.name)),
            Ok(live) => {
                let snapshot = live.snapshot();
                let findings = snapshot.content().map_or(&[][..], |content| content.report().findings());
                let status = live.status();
                let origin = status.last_reload().origin();
                let errors = findings.iter().filter(|finding| finding.severity() >= Severity::Error);
                problems.extend(errors.map(|finding| format!("site {:?}: {origin}:{finding}", site.name)));
            }
        }
    }
    problems
}

/// A site's robots.txt as the config has it.
fn robots(site: &config::Site, registry: &Arc<Registry>) -> LiveBuilder {
    let builder = match &site.robots {
        Source::File(path) => LiveRobots::file(path),
        Source::Inline(text) => LiveRobots::inline(text),
    };
    builder.policy(site.policy.clone()).registry(registry.clone()).check(site.check.clone()).max_age(site.max_age)
}

/// The built-in registry with a file's rows added, changed and removed.
fn extended(path: &Path) -> Result<Arc<Registry>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let registry = Registry::builtin().extended(&text).map_err(|error| format!("{}:{error}", path.display()))?;
    Ok(Arc::new(registry))
}

impl Site {
    fn open(
        site: &config::Site,
        limits: &UpstreamLimits,
        surroundings: &Surroundings,
        registry: &Arc<Registry>,
        strict: bool,
        log: &Log,
        privacy: Privacy,
    ) -> Result<Self, String> {
        let name: SiteName = Arc::from(&*site.name);
        let live = robots(site, registry)
            .when_missing(if strict { WhenMissing::Fail } else { site.when_missing })
            .on_reload(report::reload(name.clone(), log.clone()))
            .open()
            .map_err(|rejection| format!("site {:?}: {rejection}", site.name))?;
        if let Some(trouble) = live.status().watch_trouble() {
            log.say("watch", format!("{name}: {trouble}"));
        }
        let behind = match &site.backend {
            config::Backend::Files(root) => Behind::Files(root.clone()),
            config::Backend::Upstreams(settings) => {
                let on_event = report::upstream(name.clone(), log.clone());
                let origins = Origins::new(settings, limits.clone(), surroundings, on_event)
                    .map_err(|message| format!("site {:?}: {message}", site.name))?;
                origins.look_up();
                Behind::Upstreams(origins)
            }
        };
        Ok(Self { hosts: site.hosts.clone(), name, live, behind, log: log.clone(), privacy })
    }

    /// A layer of one worker's own. All layers of a site read the same snapshots.
    pub(super) fn layer(&self) -> RobotsLayer {
        RobotsLayer::new(self.live.clone())
            .address_from(|extensions| extensions.get::<Peer>().map(|peer| peer.0.ip()))
            .agent_from(|extensions| extensions.get::<OriginalAgent>().map(OriginalAgent::lines))
            .observe(report::event(self.name.clone(), self.log.clone(), self.privacy))
    }

    /// A backend of one worker's own; what is known of the servers behind it is shared.
    pub(super) fn backend(&self, workers: NonZeroUsize) -> Backend {
        match &self.behind {
            Behind::Upstreams(origins) => Backend::Upstream(Upstream::new(origins, workers)),
            Behind::Files(root) => Backend::Files(ServeDir::new(root)),
        }
    }
}
