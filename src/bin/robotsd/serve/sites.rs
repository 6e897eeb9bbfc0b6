//! The configured sites, opened.

use std::fmt::Display;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tower_http::services::ServeDir;
use tower_robots::layer::RobotsLayer;
use tower_robots::source::{Enforcement, HostMap, LiveRobots, StateDir, WhenMissing};

use super::backend::Backend;
use super::robots::{Demands, Shared};
use super::tally::Tally;
use super::{SiteName, report};
use crate::config::{self, Config};
use crate::decision;
use crate::edge::{OriginalAgent, Peer};
use crate::log::{Log, Privacy};
use crate::upstream::{Origins, Surroundings, Upstream};

/// Every site of the config.
#[derive(Debug)]
pub(crate) struct Sites {
    sites: Vec<Site>,
    pub(super) registry_extra: Option<PathBuf>,
    pub(super) shared: Mutex<Shared>,
    pub(super) log: Log,
}

/// One site: its robots.txt, live, and what stands behind it.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) name: SiteName,
    pub(super) hosts: Vec<String>,
    pub(super) live: LiveRobots,
    pub(super) demands: Demands,
    pub(super) tally: Tally,
    /// None where no listener forwards anything.
    behind: Option<Behind>,
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
        let shared = Shared::new(config)?;
        if let Some(trouble) = shared.state.as_ref().and_then(StateDir::trouble) {
            log.say("state", format!("{trouble}; what is accepted is forgotten at the end"));
        }
        if shared.state.as_ref().is_some_and(|state| state.enforcement() == Enforcement::Off) {
            log.say("enforcement", "OFF for every site: `robotsd enforce on` turns it on");
        }
        let opening = Opening { config, surroundings: Surroundings::system(), shared: &shared, strict, log };
        let sites = config.sites.iter().map(|site| opening.site(site)).collect::<Result<_, _>>()?;
        Ok(Self { sites, shared: Mutex::new(shared), registry_extra: config.registry_extra.clone(), log: log.clone() })
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &Site> {
        self.sites.iter()
    }

    /// What decides for each host on one worker.
    pub(super) fn desk(&self) -> HostMap<decision::Site> {
        let mut map = HostMap::new();
        for site in &self.sites {
            let decides = decision::Site { name: site.name.clone(), layer: site.layer(), quiet: site.quiet_layer() };
            let every = [String::from("*")];
            let hosts = if site.hosts.is_empty() { &every[..] } else { &site.hosts };
            for host in hosts {
                // The config was refused if a host was malformed or belonged to two sites.
                let _ = map.insert(host, decides.clone());
            }
        }
        map
    }
}

/// What a site is opened with.
struct Opening<'a> {
    config: &'a Config,
    surroundings: Surroundings,
    shared: &'a Shared,
    strict: bool,
    log: &'a Log,
}

impl Opening<'_> {
    fn site(&self, site: &config::Site) -> Result<Site, String> {
        let log = self.log;
        let name: SiteName = Arc::from(&*site.name);
        let of_site = |message: &dyn Display| format!("site {:?}: {message}", site.name);
        let tally = Tally::default();
        let live = self
            .shared
            .robots(site)
            .map_err(|message| of_site(&message))?
            .when_missing(if self.strict { WhenMissing::Fail } else { site.when_missing })
            .on_reload(report::reload(name.clone(), log.clone()))
            .on_reload(tally.listener())
            .open()
            .map_err(|rejection| of_site(&rejection))?;
        let status = live.status();
        if let Some(trouble) = status.watch_trouble() {
            log.say("watch", format!("{name}: {trouble}"));
        }
        if let Some(trouble) = status.state_trouble() {
            log.say("state", format!("{name}: {trouble}"));
        }
        if status.switch() == Enforcement::Off {
            log.say("enforcement", format!("OFF for site {name:?}: `robotsd enforce on --site NAME` turns it on"));
        }
        let behind = match &site.backend {
            None => None,
            Some(config::Backend::Files(root)) => Some(Behind::Files(root.clone())),
            Some(config::Backend::Upstreams(settings)) => {
                let on_event = report::upstream(name.clone(), log.clone());
                let origins = Origins::new(settings, self.config.upstream.clone(), &self.surroundings, on_event)
                    .map_err(|message| of_site(&message))?;
                origins.look_up();
                Some(Behind::Upstreams(origins))
            }
        };
        let demands = self.shared.demands(site);
        let privacy = self.config.log.privacy;
        Ok(Site { hosts: site.hosts.clone(), name, live, demands, tally, behind, log: log.clone(), privacy })
    }
}

impl Site {
    /// A layer of one worker's own. All layers of a site read the same snapshots.
    pub(super) fn layer(&self) -> RobotsLayer {
        self.quiet_layer().observe(report::event(self.name.clone(), self.log.clone(), self.privacy))
    }

    /// One that tells the log nothing.
    fn quiet_layer(&self) -> RobotsLayer {
        RobotsLayer::new(self.live.clone())
            .address_from(|extensions| extensions.get::<Peer>().map(|peer| peer.0.ip()))
            .agent_from(|extensions| extensions.get::<OriginalAgent>().map(OriginalAgent::lines))
    }

    /// A backend of one worker's own; what is known of the servers behind it is shared.
    pub(super) fn backend(&self, workers: NonZeroUsize) -> Option<Backend> {
        Some(match self.behind.as_ref()? {
            Behind::Upstreams(origins) => Backend::Upstream(Upstream::new(origins, workers)),
            Behind::Files(root) => Backend::Files(ServeDir::new(root)),
        })
    }
}
