//! Opens the robots.txt of a site from the source that its config names.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tower_robots::agent::Registry;
use tower_robots::live::{CompileCache, Gate, GateBuilder, LiveRobots, WhenMissing};
use tower_robots::source::fetch::{Fetcher, Schedule};
use tower_robots::source::{Directory, DirectoryEvent, LiveBuilder, Watcher};

use super::gate_settings::GateSettings;
use super::log_events;
use super::reload_counts::ReloadCounts;
use super::site_name::SiteName;
use super::site_robots::{LiveSite, RobotsDirectory, SiteRobots, within};
use super::site_settings::SiteSettings;
use super::state_handle::StateHandle;
use crate::config::{self, Config, Remote, RobotsSource, load_registry};
use crate::log::Log;

/// What every site's robots.txt is opened with: there is one of each in the process.
#[derive(Clone, Debug)]
pub(super) struct RobotsOpener {
    pub(super) registry: Arc<Registry>,
    pub(super) memory: StateHandle,
    pub(super) watcher: Watcher,
    gate: Option<GateBuilder>,
    compile_cache: CompileCache,
    fetcher: Arc<Mutex<Option<Fetcher>>>,
}

impl RobotsOpener {
    pub(super) fn new(config: &Config, memory: StateHandle) -> Result<Self, String> {
        Ok(Self {
            registry: load_registry(config.registry_extra.as_deref()).map_err(|error| error.to_string())?,
            memory,
            watcher: Watcher::new(),
            gate: config.gate.clone(),
            compile_cache: CompileCache::new(),
            fetcher: Arc::default(),
        })
    }

    /// As another config has it; what is watched, shared and remembered stays.
    pub(super) fn with(&self, registry: Arc<Registry>, gate: Option<GateBuilder>) -> Self {
        Self { registry, gate, ..self.clone() }
    }

    pub(super) fn demands(&self, site: &config::SiteConfig) -> GateSettings {
        GateSettings::new(self.gate.clone(), site.expectations.clone())
    }

    /// By what terms a site's robots.txt is taken, given what it must not do.
    pub(super) fn terms(&self, site: &config::SiteConfig, gate: Gate) -> SiteSettings {
        SiteSettings { policy: site.policy.clone(), registry: self.registry.clone(), check: site.check.clone(), gate }
    }

    /// Opens a site's robots.txt. The log is told of every reload; `name` is the site's.
    pub(super) fn open(
        &self,
        site: &config::SiteConfig,
        terms: SiteSettings,
        when_missing: WhenMissing,
        log: &Log,
    ) -> Result<SiteRobots, String> {
        let name: SiteName = Arc::from(&*site.name);
        let finished = |builder: LiveBuilder| {
            let builder = self.finish(site, &terms, &site.name, builder);
            let builder = builder.when_missing(when_missing).compile_cache(&self.compile_cache).watcher(&self.watcher);
            let tally = ReloadCounts::default();
            let builder = builder.on_reload(log_events::reload(name.clone(), log.clone())).on_reload(tally.listener());
            let live = builder.open();
            live.map(|live| SiteRobots::One(live, tally)).map_err(|rejection| rejection.to_string())
        };
        match &site.robots {
            RobotsSource::File(path) => finished(LiveRobots::file(path)),
            RobotsSource::Inline(text) => finished(LiveRobots::inline(text)),
            RobotsSource::Directory { path, fallback } => self.folder(site, path, fallback, terms, when_missing, log),
            RobotsSource::Upstream { upstreams, host, server_name, remote } => {
                let builder = LiveRobots::upstream(upstreams, host).map_err(|error| error.to_string())?;
                let builder = self.fetched(builder, remote)?;
                finished(match server_name {
                    Some(server_name) => builder.server_name(server_name),
                    None => builder,
                })
            }
            RobotsSource::Url { url, remote } => {
                let builder = LiveRobots::url(url).map_err(|error| error.to_string())?;
                finished(self.fetched(builder, remote)?)
            }
        }
    }

    fn folder(
        &self,
        site: &config::SiteConfig,
        path: &Path,
        fallback: &str,
        terms: SiteSettings,
        when_missing: WhenMissing,
        log: &Log,
    ) -> Result<SiteRobots, String> {
        let terms = Arc::new(Mutex::new(terms));
        let tallies: Arc<Mutex<HashMap<String, ReloadCounts>>> = Arc::default();
        let each = {
            let (shared, site, terms, log) = (self.clone(), site.clone(), terms.clone(), log.clone());
            let tallies = tallies.clone();
            move |host: &str, builder: LiveBuilder| {
                let name = within(&site.name, host);
                let terms = terms.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let builder = shared.finish(&site, &terms, &name, builder).when_missing(when_missing);
                let tally =
                    tallies.lock().unwrap_or_else(PoisonError::into_inner).entry(host.to_owned()).or_default().clone();
                builder.on_reload(log_events::reload(Arc::from(name), log.clone())).on_reload(tally.listener())
            }
        };
        let tell = {
            let (name, log) = (site.name.clone(), log.clone());
            move |event: &DirectoryEvent<'_>| match event {
                // Its own start was told of.
                DirectoryEvent::Added { .. } => {}
                event => log.say("directory", format!("{name}: {event}")),
            }
        };
        let directory = Directory::new(path)
            .fallback(fallback)
            .each(each)
            .on_event(tell)
            .compile_cache(&self.compile_cache)
            .watcher(&self.watcher)
            .open()
            .map_err(|error| chain(&error))?;
        Ok(SiteRobots::Directory(RobotsDirectory { directory, terms, tallies }))
    }

    fn fetched(&self, builder: LiveBuilder, remote: &Remote) -> Result<LiveBuilder, String> {
        let schedule = Schedule::new().every(remote.refresh).hold(remote.hold);
        let fetcher = match &remote.ca {
            // Whom one site trusts, no other does.
            Some(ca) => Fetcher::builder().trust_only(ca).and_then(tower_robots::source::fetch::FetcherBuilder::start),
            None => self.fetcher(),
        };
        let fetcher = fetcher.map_err(|error| format!("nothing can be fetched: {error}"))?;
        Ok(builder.schedule(schedule).fetcher(&fetcher))
    }

    /// The one all sites share; its thread starts with the first that is fetched.
    fn fetcher(&self) -> std::io::Result<Fetcher> {
        let mut fetcher = self.fetcher.lock().unwrap_or_else(PoisonError::into_inner);
        match &*fetcher {
            Some(fetcher) => Ok(fetcher.clone()),
            None => Ok(fetcher.insert(Fetcher::new()?).clone()),
        }
    }

    fn finish(&self, site: &config::SiteConfig, terms: &SiteSettings, name: &str, builder: LiveBuilder) -> LiveBuilder {
        let builder = builder
            .policy(terms.policy.clone())
            .registry(terms.registry.clone())
            .check(terms.check.clone())
            .gate(terms.gate.clone())
            .max_age(site.max_age)
            .grace(site.grace);
        self.memory.finish(builder, name)
    }
}

/// Opens a robots.txt by its name as the next start would, for whoever decides about one that no process serves.
pub(super) fn at_rest(config: &Config, site: &config::SiteConfig, name: &str) -> Result<LiveSite, String> {
    let shared = RobotsOpener::new(config, StateHandle::open(config))?;
    let terms = shared.terms(site, shared.demands(site).gate(&shared.registry)?);
    let robots = shared.open(site, terms, WhenMissing::Unavailable, &Log::nowhere())?;
    let live = robots.lives(&site.name, &site.hosts).into_iter().find(|live| live.name == name);
    live.ok_or_else(|| "its folder has no such file".to_owned())
}

fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
