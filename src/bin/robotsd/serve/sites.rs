//! The configured sites, opened.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use tower_http::services::ServeDir;
use tower_robots::layer::RobotsLayer;
use tower_robots::source::{LiveRobots, WhenMissing};

use super::backend::Backend;
use super::{SiteName, report};
use crate::config::{self, Config, Source};
use crate::log::Log;
use crate::upstream::{Upstream, UpstreamLimits};

/// Every site of the config.
#[derive(Debug)]
pub(super) struct Sites(Vec<Site>);

/// One site: its robots.txt, live, and what stands behind it.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) hosts: Vec<String>,
    pub(super) layer: RobotsLayer,
    pub(super) backend: Backend,
    live: LiveRobots,
    name: SiteName,
    log: Log,
}

impl Sites {
    /// Opens every site. A robots.txt that cannot be used stops the start only where `strict` or the config says so.
    pub(super) fn open(config: &Config, strict: bool, log: &Log) -> Result<Self, String> {
        config
            .sites
            .iter()
            .map(|site| Site::open(site, &config.upstream, strict, log))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Site> {
        self.0.iter()
    }

    /// Reads every robots.txt again, off the request path.
    pub(super) fn reload(&self) {
        for site in &self.0 {
            site.log.say("reload", format!("{}: asked for by a signal", site.name));
            // What comes of it is logged by the site's listener.
            drop(site.live.reload());
        }
    }
}

impl Site {
    fn open(site: &config::Site, limits: &UpstreamLimits, strict: bool, log: &Log) -> Result<Self, String> {
        let name: SiteName = Arc::from(&*site.name);
        let builder = match &site.robots {
            Source::File(path) => LiveRobots::file(path),
            Source::Inline(text) => LiveRobots::inline(text),
        };
        let live = builder
            .policy(site.policy.clone())
            .max_age(site.max_age)
            .when_missing(if strict { WhenMissing::Fail } else { site.when_missing })
            .on_reload(report::reload(name.clone(), log.clone()))
            .open()
            .map_err(|rejection| match std::error::Error::source(&rejection) {
                Some(cause) => format!("site {:?}: {rejection}: {cause}", site.name),
                None => format!("site {:?}: {rejection}", site.name),
            })?;
        if let Some(trouble) = live.status().watch_trouble() {
            log.say("watch", format!("{name}: {trouble}"));
        }
        let backend = match &site.backend {
            config::Backend::Files(root) => Backend::Files(ServeDir::new(root)),
            config::Backend::Upstreams(addresses) => {
                let mut resolved = Vec::new();
                for address in addresses {
                    resolved.extend(resolve(address).map_err(|message| format!("site {:?}: {message}", site.name))?);
                }
                Backend::Upstream(Upstream::new(resolved, limits.clone()))
            }
        };
        let layer = RobotsLayer::new(live.clone()).observe(report::event(name.clone(), log.clone()));
        Ok(Self { hosts: site.hosts.clone(), layer, backend, live, name, log: log.clone() })
    }
}

/// The addresses of a `host:port`; a name may have several.
fn resolve(authority: &str) -> Result<Vec<SocketAddr>, String> {
    let addresses: Vec<_> = authority
        .to_socket_addrs()
        .map_err(|error| format!("the upstream {authority:?} has no address: {error}"))?
        .collect();
    if addresses.is_empty() { Err(format!("the upstream {authority:?} has no address")) } else { Ok(addresses) }
}
