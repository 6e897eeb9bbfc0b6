//! The configured sites, opened.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tower_robots::layer::RobotsLayer;
use tower_robots::live::{Enforcement, StateDir, WhenMissing};
use tower_robots::source::{HostMap, Watcher};

use super::backend::SiteBackend;
use super::gate_settings::GateSettings;
use super::robots_opener::RobotsOpener;
use super::site_name::SiteName;
use super::site_robots::{LiveSite, SiteRobots};
use super::state_handle::StateHandle;
use super::{log_events, static_files};
use crate::config::{self, Config};
use crate::decision;
use crate::edge::{OriginalAgent, Peer};
use crate::log::{Log, LogPrivacy};
use crate::upstream::{Origins, SharedResources, Upstream, UpstreamLimits};

/// Every site of the config.
#[derive(Debug)]
pub(crate) struct Sites {
    pub(super) sites: Vec<ServedSite>,
    pub(super) registry_extra: Option<PathBuf>,
    /// Apart from what is locked while sites are made anew: a switch waits for nobody.
    pub(super) memory: StateHandle,
    pub(super) shared: Mutex<RobotsOpener>,
    pub(super) log: Log,
    pub(super) privacy: LogPrivacy,
}

/// One site: its robots.txt, live, and what stands behind it.
#[derive(Debug)]
pub(super) struct ServedSite {
    pub(super) name: SiteName,
    pub(super) hosts: Vec<String>,
    pub(super) robots: SiteRobots,
    pub(super) demands: GateSettings,
    /// What it was made from, except that its source is the one `robots` has.
    settings: config::SiteConfig,
    /// None where no listener forwards anything.
    behind: Option<BackendSource>,
    log: Log,
    privacy: LogPrivacy,
}

/// What the backends of a site's workers are made from.
#[derive(Clone, Debug)]
enum BackendSource {
    Upstreams(Origins, Arc<UpstreamLimits>),
    Files(config::StaticFiles),
}

impl Sites {
    /// Opens every site. A robots.txt that cannot be used stops the start only where `strict` or the config says so.
    pub(super) fn open(config: &Config, strict: bool, log: &Log) -> Result<Self, String> {
        let shared = RobotsOpener::new(config, StateHandle::open(config))?;
        if let Some(trouble) = shared.memory.state.as_ref().and_then(StateDir::trouble) {
            log.say("state", trouble);
        }
        if let Some(state) = &shared.memory.state {
            let log = log.clone();
            state.on_event(move |event| log.say("state", event.to_string()));
        }
        if shared.memory.switch() == Enforcement::Off {
            log.say("enforcement", "OFF for every site: `robotsd enforce on` turns it on");
        }
        let opening = SiteOpener { config, surroundings: SharedResources::system(), privacy: config.log.privacy, log };
        let sites = config.sites.iter().map(|site| opening.site(site, &shared, strict)).collect::<Result<_, _>>()?;
        Ok(Self {
            sites,
            memory: shared.memory.clone(),
            shared: Mutex::new(shared),
            registry_extra: config.registry_extra.clone(),
            log: log.clone(),
            privacy: config.log.privacy,
        })
    }

    pub(crate) fn count(&self) -> usize {
        self.sites.len()
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &ServedSite> {
        self.sites.iter()
    }

    /// What decides for each host on one worker.
    pub(super) fn desk(&self) -> HostMap<decision::DecisionSite> {
        let mut map = HostMap::new();
        for site in &self.sites {
            let decides =
                decision::DecisionSite { name: site.name.clone(), layer: site.layer(), quiet: site.quiet_layer() };
            let every = [String::from("*")];
            let hosts = if site.hosts.is_empty() { &every[..] } else { &site.hosts };
            for host in hosts {
                // The config was refused if a host was malformed or belonged to two sites.
                let _ = map.insert(host, decides.clone());
            }
        }
        map
    }

    /// Every robots.txt that is live or is to be, in the order of the config; of sites with a folder one for each host.
    pub(crate) fn lives(&self) -> impl Iterator<Item = LiveSite> {
        self.iter().flat_map(ServedSite::lives)
    }

    /// What every site's robots.txt is opened with now.
    pub(super) fn shared(&self) -> RobotsOpener {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is remembered of them, if anything is.
    pub(super) fn state(&self) -> Option<&StateDir> {
        self.memory.state.as_ref()
    }

    /// What does not work as it should for every site.
    pub(crate) fn troubles(&self) -> Vec<String> {
        self.state().and_then(StateDir::trouble).into_iter().collect()
    }

    /// The one that watches for everybody.
    pub(super) fn watcher(&self) -> Watcher {
        self.shared().watcher
    }

    /// The files besides every robots.txt that say how those are taken: the registry, and what is expected.
    pub(super) fn files(&self) -> BTreeSet<PathBuf> {
        let expectations = self.iter().filter_map(|site| site.demands.expectations.clone());
        self.registry_extra.iter().cloned().chain(expectations).collect()
    }

    /// The robots.txt of this name.
    pub(crate) fn live(&self, name: &str) -> Option<LiveSite> {
        self.lives().find(|live| live.name == name)
    }
}

/// What a site is opened with.
pub(super) struct SiteOpener<'a> {
    pub(super) config: &'a Config,
    pub(super) surroundings: SharedResources,
    pub(super) privacy: LogPrivacy,
    pub(super) log: &'a Log,
}

impl SiteOpener<'_> {
    fn site(&self, site: &config::SiteConfig, shared: &RobotsOpener, strict: bool) -> Result<ServedSite, String> {
        let of_site = |message: String| format!("site {:?}: {message}", site.name);
        let when_missing = if strict { WhenMissing::Fail } else { site.when_missing };
        let demands = shared.demands(site);
        let terms = shared.terms(site, demands.gate(&shared.registry).map_err(of_site)?);
        let robots = shared.open(site, terms, when_missing, self.log).map_err(of_site)?;
        if strict {
            // Of a folder no single file stops the start.
            let lives = robots.lives(&site.name, &[]);
            if let Some(live) = lives.iter().find(|live| live.robots.snapshot().content().is_none()) {
                return Err(format!("site {:?}: {}", live.name, live.robots.status().last_reload()));
            }
        }
        self.around(site, demands, robots, None)
    }

    /// The site around a robots.txt that is open. What is the same as in the site `before` is shared with it.
    pub(super) fn around(
        &self,
        site: &config::SiteConfig,
        demands: GateSettings,
        robots: SiteRobots,
        before: Option<&ServedSite>,
    ) -> Result<ServedSite, String> {
        let log = self.log;
        let name: SiteName = Arc::from(&*site.name);
        if let Some(trouble) = robots.watch_trouble().filter(|_| before.is_none()) {
            log.say("watch", format!("{name}: {trouble}"));
        }
        for LiveSite { name, robots, .. } in robots.lives(&name, &[]) {
            if before.is_none() && robots.status().switch() == Enforcement::Off {
                log.say("enforcement", format!("OFF for site {name:?}: `robotsd enforce on --site NAME` turns it on"));
            }
        }
        let behind = match (&site.backend, before.and_then(|before| before.servers_of(site, &self.config.upstream))) {
            (None, _) => None,
            (Some(config::Backend::Files(files)), _) => Some(BackendSource::Files(files.clone())),
            (Some(config::Backend::Upstreams(_)), Some(same)) => Some(same),
            (Some(config::Backend::Upstreams(settings)), None) => {
                let on_event = log_events::upstream(name.clone(), log.clone());
                let limits = self.config.upstream.clone();
                let origins = Origins::new(settings, limits.clone(), &self.surroundings, on_event)
                    .map_err(|message| format!("site {name:?}: {message}"))?;
                origins.look_up();
                Some(BackendSource::Upstreams(origins, Arc::new(limits)))
            }
        };
        let (hosts, settings) = (site.hosts.clone(), site.clone());
        Ok(ServedSite { name, hosts, robots, demands, settings, behind, log: log.clone(), privacy: self.privacy })
    }
}

impl ServedSite {
    pub(super) fn is_called(&self, name: &str) -> bool {
        *self.name == *name
    }

    /// Whether a robots.txt of this name is one of the site's.
    pub(super) fn has(&self, name: &str) -> bool {
        name.strip_prefix(&*self.name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            && self.lives().iter().any(|live| live.name == name)
    }

    pub(super) fn lives(&self) -> Vec<LiveSite> {
        self.robots.lives(&self.name, &self.hosts)
    }

    /// A layer of one worker's own. All layers of a site read the same snapshots.
    pub(super) fn layer(&self) -> RobotsLayer {
        self.quiet_layer().observe(log_events::event(self.name.clone(), self.log.clone(), self.privacy))
    }

    /// One that tells the log nothing.
    fn quiet_layer(&self) -> RobotsLayer {
        self.robots
            .layer()
            .address_from(|extensions| extensions.get::<Peer>().map(|peer| peer.address.ip()))
            .agent_from(|extensions| extensions.get::<OriginalAgent>().map(OriginalAgent::lines))
    }

    /// A backend of one worker's own; what is known of the servers behind it is shared. One that the worker has had
    /// `before` goes on with its connections if it leads to the same servers.
    pub(super) fn backend(&self, workers: NonZeroUsize, before: Option<&SiteBackend>) -> Option<SiteBackend> {
        Some(match (self.behind.as_ref()?, before) {
            (BackendSource::Upstreams(origins, _), Some(SiteBackend::Upstream(upstream)))
                if upstream.leads_to(origins) =>
            {
                SiteBackend::Upstream(upstream.clone())
            }
            (BackendSource::Upstreams(origins, _), _) => SiteBackend::Upstream(Upstream::new(origins, workers)),
            (BackendSource::Files(files), _) => SiteBackend::Files(static_files::serve(files)),
        })
    }

    pub(super) fn settings(&self) -> &config::SiteConfig {
        &self.settings
    }

    /// Goes by settings whose source could not be used: the next config is compared with what there really is.
    pub(super) fn keep_source_of(&mut self, before: &Self) {
        let config::SiteConfig { robots, max_age, grace, when_missing, .. } = before.settings.clone();
        self.settings = config::SiteConfig { robots, max_age, grace, when_missing, ..self.settings.clone() };
    }

    /// Whether its robots.txt is what these settings would open.
    pub(super) fn has_source_of(&self, site: &config::SiteConfig) -> bool {
        let of = |site: &config::SiteConfig| (site.robots.clone(), site.max_age, site.grace, site.when_missing);
        of(&self.settings) == of(site)
    }

    pub(super) fn is_served_as(&self, other: &Self) -> bool {
        match (&self.behind, &other.behind) {
            (Some(BackendSource::Upstreams(origins, _)), Some(BackendSource::Upstreams(others, _))) => {
                origins.are(others)
            }
            (Some(BackendSource::Files(files)), Some(BackendSource::Files(others))) => files == others,
            (None, None) => true,
            _ => false,
        }
    }

    fn servers_of(&self, site: &config::SiteConfig, limits: &UpstreamLimits) -> Option<BackendSource> {
        match (&self.behind, &self.settings.backend, &site.backend) {
            (Some(behind), Some(config::Backend::Upstreams(ours)), Some(config::Backend::Upstreams(theirs))) => {
                let is_same = matches!(behind, BackendSource::Upstreams(_, held) if **held == *limits);
                (is_same && ours == theirs).then(|| behind.clone())
            }
            _ => None,
        }
    }
}
