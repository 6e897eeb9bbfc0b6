//! A site's robots.txt as the config has it, opened: where it comes from, what it must not do, and what is remembered of
//! it.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tower_robots::agent::Registry;
use tower_robots::check;
use tower_robots::layer::RobotsLayer;
use tower_robots::live::{
    CompileCache, Enforcement, Gate, GateBuilder, KillSwitch, LiveRobots, StateDir, StateError, WhenMissing,
};
use tower_robots::policy::Policy;
use tower_robots::source::fetch::{Fetcher, Schedule};
use tower_robots::source::{Directory, DirectoryEvent, LiveBuilder, Watcher};

use super::reload_counts::ReloadCounts;
use super::{SiteName, log_events};
use crate::config::{self, Config, Remote, Source, load_registry};
use crate::expectations::ExpectationsFile;
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

/// What is known of every site whatever its version: the state directory, or without one the switch of all. Cheap to clone;
/// clones are the same.
#[derive(Clone, Debug)]
pub(super) struct StateHandle {
    pub(super) state: Option<StateDir>,
    switch: KillSwitch,
}

/// What a version of one site must not do.
#[derive(Clone, Debug)]
pub(super) struct GateSettings {
    gate: Option<GateBuilder>,
    pub(super) expectations: Option<PathBuf>,
    /// What they came to the last time their file could be used.
    last: Arc<Mutex<Option<Gate>>>,
}

/// How what a source holds is taken, as far as that can be changed while it is live.
#[derive(Clone, Debug)]
pub(super) struct SiteSettings {
    pub(super) policy: Policy,
    pub(super) registry: Arc<Registry>,
    pub(super) check: check::Options,
    pub(super) gate: Gate,
}

/// A site's robots.txt, or a folder of them. Cheap to clone; clones are the same.
#[derive(Clone)]
pub(super) enum SiteRobots {
    One(LiveRobots, ReloadCounts),
    Directory(RobotsDirectory),
}

/// A folder with a robots.txt for each host.
#[derive(Clone)]
pub(super) struct RobotsDirectory {
    directory: Directory,
    /// For files that are yet to come.
    terms: Arc<Mutex<SiteSettings>>,
    /// By host.
    tallies: Arc<Mutex<HashMap<String, ReloadCounts>>>,
}

/// One live robots.txt: that of a site, or of a host of a site that has a folder of them.
#[derive(Clone, Debug)]
pub(crate) struct LiveSite {
    /// The site's name, and the host's behind a slash where the site has a folder.
    pub(crate) name: String,
    /// Host patterns; none for every host.
    pub(crate) hosts: Vec<String>,
    pub(crate) robots: LiveRobots,
    /// What came of which cause.
    pub(super) tally: ReloadCounts,
}

impl RobotsOpener {
    pub(super) fn new(config: &Config) -> Result<Self, String> {
        Ok(Self {
            registry: load_registry(config.registry_extra.as_deref()).map_err(|error| error.to_string())?,
            memory: StateHandle { state: config.state_dir.as_ref().map(StateDir::open), switch: KillSwitch::new() },
            watcher: Watcher::new(),
            gate: config.gate.clone(),
            compile_cache: CompileCache::new(),
            fetcher: Arc::default(),
        })
    }

    /// Where nothing is remembered.
    pub(super) fn without_state(self) -> Self {
        Self { memory: StateHandle { state: None, switch: KillSwitch::new() }, ..self }
    }

    /// As another config has it; what is watched, shared and remembered stays.
    pub(super) fn with(&self, registry: Arc<Registry>, gate: Option<GateBuilder>) -> Self {
        Self { registry, gate, ..self.clone() }
    }

    pub(super) fn demands(&self, site: &config::Site) -> GateSettings {
        GateSettings { gate: self.gate.clone(), expectations: site.expectations.clone(), last: Arc::default() }
    }

    /// By what terms a site's robots.txt is taken, given what it must not do.
    pub(super) fn terms(&self, site: &config::Site, gate: Gate) -> SiteSettings {
        SiteSettings { policy: site.policy.clone(), registry: self.registry.clone(), check: site.check.clone(), gate }
    }

    /// Opens a site's robots.txt. The log is told of every reload; `name` is the site's.
    pub(super) fn open(
        &self,
        site: &config::Site,
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
            Source::File(path) => finished(LiveRobots::file(path)),
            Source::Inline(text) => finished(LiveRobots::inline(text)),
            Source::Directory { path, fallback } => self.folder(site, path, fallback, terms, when_missing, log),
            Source::Upstream { upstreams, host, server_name, remote } => {
                let builder = LiveRobots::upstream(upstreams, host).map_err(|error| error.to_string())?;
                let builder = self.fetched(builder, remote)?;
                finished(match server_name {
                    Some(server_name) => builder.server_name(server_name),
                    None => builder,
                })
            }
            Source::Url { url, remote } => {
                let builder = LiveRobots::url(url).map_err(|error| error.to_string())?;
                finished(self.fetched(builder, remote)?)
            }
        }
    }

    fn folder(
        &self,
        site: &config::Site,
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

    fn finish(&self, site: &config::Site, terms: &SiteSettings, name: &str, builder: LiveBuilder) -> LiveBuilder {
        let builder = builder
            .policy(terms.policy.clone())
            .registry(terms.registry.clone())
            .check(terms.check.clone())
            .gate(terms.gate.clone())
            .max_age(site.max_age)
            .grace(site.grace);
        match &self.memory.state {
            Some(state) => builder.state(state, name),
            None => builder.kill_switch(&self.memory.switch),
        }
    }
}

impl StateHandle {
    /// The switch of every site.
    pub(super) fn switch(&self) -> Enforcement {
        self.state.as_ref().map_or_else(|| self.switch.enforcement(), StateDir::enforcement)
    }

    /// Turns the switch of every site; fails where that could not be written down.
    pub(super) fn set_switch(&self, to: Enforcement) -> Result<(), StateError> {
        match &self.state {
            Some(state) => state.set_enforcement(to),
            None => {
                self.switch.set_enforcement(to);
                Ok(())
            }
        }
    }
}

impl GateSettings {
    /// The gate, with the expectations as their file has them now.
    pub(super) fn gate(&self, registry: &Arc<Registry>) -> Result<Gate, String> {
        let gate = match (&self.gate, &self.expectations) {
            (None, _) => Gate::open(),
            (Some(gate), Some(path)) => gate.clone().expectations(expectations(path, registry)?).build(),
            (Some(gate), None) => gate.clone().build(),
        };
        self.keep(&gate);
        Ok(gate)
    }

    /// Has it that this is what they came to.
    pub(super) fn keep(&self, gate: &Gate) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(gate.clone());
    }

    pub(super) fn last(&self) -> Option<Gate> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl SiteRobots {
    /// What is live of it now.
    pub(super) fn lives(&self, site: &str, hosts: &[String]) -> Vec<LiveSite> {
        match self {
            Self::One(robots, tally) => {
                let (robots, tally) = (robots.clone(), tally.clone());
                vec![LiveSite { name: site.to_owned(), hosts: hosts.to_vec(), robots, tally }]
            }
            Self::Directory(folder) => {
                let tallies = folder.tallies.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let live = |(host, robots): (String, LiveRobots)| {
                    let tally = tallies.get(&host).cloned().unwrap_or_default();
                    LiveSite { name: within(site, &host), hosts: vec![host], robots, tally }
                };
                folder.directory.hosts().into_iter().map(live).collect()
            }
        }
    }

    /// A layer of one worker's own. All layers of a site read the same snapshots.
    pub(super) fn layer(&self) -> RobotsLayer {
        match self {
            Self::One(live, _) => RobotsLayer::new(live.clone()),
            Self::Directory(folder) => RobotsLayer::new(&folder.directory),
        }
    }

    /// Has the switches stand as in what this takes the place of; off for whatever is new where all of that was off.
    pub(super) fn take_switches(&self, before: &Self) {
        let before: HashMap<_, _> =
            before.lives("", &[]).into_iter().map(|live| (live.name, live.robots.status().switch())).collect();
        let was_off = !before.is_empty() && before.values().all(|switch| *switch == Enforcement::Off);
        for LiveSite { name, robots, .. } in self.lives("", &[]) {
            let own = robots.status().switch();
            let switch = before.get(&name).copied().unwrap_or(if was_off { Enforcement::Off } else { own });
            if own != switch {
                // What could not be written down stands in the status.
                let _ = robots.set_enforcement(switch);
            }
        }
    }

    /// What does not work as it should with all of it; troubles of one robots.txt stand in its status.
    pub(super) fn watch_trouble(&self) -> Option<String> {
        match self {
            Self::One(live, _) => live.status().watch_trouble().map(str::to_owned),
            Self::Directory(folder) => folder.directory.watch_trouble(),
        }
    }

    /// Looks for names that have come and gone. Blocks; what is wrong has been told.
    pub(super) fn rescan(&self) {
        if let Self::Directory(folder) = self {
            let _ = folder.directory.rescan();
        }
    }

    /// Takes it by other terms from now on. Blocks while what is live is made anew, which a registry or checks that are
    /// others call for.
    pub(super) fn take_by(&self, terms: &SiteSettings) {
        self.change(
            |held| held.clone_from(terms),
            |live| {
                live.set_policy(terms.policy.clone());
                live.set_registry(terms.registry.clone());
                live.set_check(terms.check.clone());
                live.set_gate(terms.gate.clone());
            },
        );
    }

    pub(super) fn set_registry(&self, registry: &Arc<Registry>) {
        self.change(|held| held.registry.clone_from(registry), |live| live.set_registry(registry.clone()));
    }

    pub(super) fn set_gate(&self, gate: &Gate) {
        self.change(|held| held.gate.clone_from(gate), |live| live.set_gate(gate.clone()));
    }

    /// Files that are yet to come first: one that is opened meanwhile is changed again, and none is left out.
    fn change(&self, terms: impl FnOnce(&mut SiteSettings), live: impl Fn(&LiveRobots)) {
        match self {
            Self::One(robots, _) => live(robots),
            Self::Directory(folder) => {
                terms(&mut folder.terms.lock().unwrap_or_else(PoisonError::into_inner));
                folder.directory.hosts().iter().for_each(|(_, robots)| live(robots));
            }
        }
    }
}

impl fmt::Debug for SiteRobots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(live, _) => f.debug_tuple("One").field(live).finish(),
            Self::Directory(folder) => f.debug_tuple("Directory").field(&folder.directory).finish(),
        }
    }
}

/// What a file expects of a robots.txt.
fn expectations(path: &Path, registry: &Arc<Registry>) -> Result<check::Expectations, String> {
    ExpectationsFile::read(path, registry).map(|file| file.expectations).map_err(|error| error.to_string())
}

/// What a host of a site with a folder is called.
fn within(site: &str, host: &str) -> String {
    format!("{site}/{host}")
}

/// Opens a robots.txt by its name as the next start would, for whoever decides about one that no process serves.
pub(super) fn at_rest(config: &Config, site: &config::Site, name: &str) -> Result<LiveSite, String> {
    let shared = RobotsOpener::new(config)?;
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
