//! Opens the robots.txt of a site from the source in its config, and passes new versions to
//! webhooks.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tower_robots::agent::Registry;
use tower_robots::internals::CompileCache;
use tower_robots::internals::{DirectoryEvent, FileSource, SiteSource};
use tower_robots::internals::{RemoteSource, Schedule};
use tower_robots::live::{Cause, Gate, LiveRobots, Reload, ReloadOutcome, Snapshot, StateDir, WhenMissing};
use tower_robots::source::fetch::Fetcher;
use tower_robots::source::{Directory, LiveBuilder, Watcher};

use super::appended_parts::{AppendedParts, FIRST_FETCH, FollowedRegistry, fetcher_trusting};
use super::gate_settings::GateSettings;
use super::inheritance::{self, Inheritance};
use super::log_events;
use super::site_pages::{SavedPages, SitePages};
use super::site_robots::{HostCounts, LiveSite, ReloadCounts, RobotsKind, SiteRobots, SiteSettings, host_name};
use super::state_handle::StateHandle;
use crate::config::{Config, Remote, RobotsSource, SiteConfig, load_registry};
use crate::log::Log;
use crate::webhooks::{Notice, PublishHooks};

#[derive(Clone, Debug)]
pub(super) struct RobotsOpener {
    pub(super) registry: Arc<Registry>,
    pub(super) state: StateHandle,
    pub(super) watcher: Watcher,
    pub(super) publish: Option<PublishListener>,
    /// Parts to append to the robots.txt that is being opened.
    parts: Option<AppendedParts>,
    /// Deadline for the first fetches of parts when a site is opened.
    parts_deadline: Instant,
    gate: Option<Gate>,
    inheritance: Weak<Inheritance>,
    compile_cache: CompileCache,
    fetcher: Arc<Mutex<Option<Fetcher>>>,
    occasion: OpeningOccasion,
    pub(super) registry_order: Arc<tokio::sync::Mutex<()>>,
    pub(super) followed: Option<FollowedRegistry>,
    pub(super) registry_changed: Arc<Notify>,
    log: Log,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpeningOccasion {
    Start,
    OtherConfig,
}

impl RobotsOpener {
    fn open_one<S: SiteSource>(
        &self,
        builder: LiveBuilder<S>,
        (site, settings, when_missing): (&SiteConfig, &SiteSettings, WhenMissing),
    ) -> Result<Arc<SiteRobots>, String> {
        let counts = ReloadCounts::default();
        let builder = builder.when_missing(when_missing).compile_cache(&self.compile_cache);
        let builder = self.configured(builder, site, &site.name, settings, &counts);
        let live = builder.open().map_err(|rejection| match &rejection.pending {
            // The library's own message is not used, because it addresses developers.
            Some(pending) => {
                format!(
                    "{origin}: version {version} is held until accepted: {pending}",
                    origin = rejection.origin,
                    version = pending.hash().short()
                )
            }
            None => rejection.to_string(),
        })?;
        Ok(SiteRobots::new(RobotsKind::One(live, counts), self.parts.clone()))
    }

    pub(super) fn new(config: &Config, registry: Arc<Registry>, state: StateHandle, log: &Log) -> Self {
        Self {
            registry,
            state,
            watcher: Watcher::new(),
            publish: None,
            parts: None,
            parts_deadline: Instant::now() + FIRST_FETCH,
            gate: config.gate.clone(),
            inheritance: Weak::new(),
            compile_cache: CompileCache::default(),
            fetcher: Arc::default(),
            occasion: OpeningOccasion::Start,
            registry_order: Arc::default(),
            followed: None,
            registry_changed: Arc::default(),
            log: log.clone(),
        }
    }

    /// Returns an opener for a new config. The new opener shares the watcher, caches and state of
    /// this opener.
    pub(super) fn with(&self, registry: Arc<Registry>, followed: Option<FollowedRegistry>, gate: Option<Gate>) -> Self {
        let parts_deadline = Instant::now() + FIRST_FETCH;
        let publish = self.publish.as_ref().map(|publish| PublishListener::new(publish.hooks.clone()));
        Self {
            registry,
            followed,
            gate,
            parts_deadline,
            publish,
            occasion: OpeningOccasion::OtherConfig,
            ..self.clone()
        }
    }

    /// Returns an opener whose sites inherit state according to `inheritance`. The opener holds
    /// only a weak reference to `inheritance`. A robots.txt that the opener opens after
    /// `inheritance` was dropped, such as a file that is added to a directory later, inherits
    /// nothing.
    pub(super) fn inheriting(self, inheritance: &Arc<Inheritance>) -> Self {
        Self { inheritance: Arc::downgrade(inheritance), ..self }
    }

    /// Returns an opener for a dry run, which logs nothing. `state` must be read-only.
    pub(super) fn for_dry_run(&self, state: StateHandle) -> Self {
        Self { state, publish: None, log: Log::without_output(), ..self.clone() }
    }

    pub(super) fn follow_registry(&self, config: &Config) -> Result<Option<FollowedRegistry>, String> {
        let Some(settings) = &config.registry.published else { return Ok(None) };
        let changed = Arc::clone(&self.registry_changed);
        FollowedRegistry::start(settings, &config.registry_accept, || self.fetcher(), changed, &self.log).map(Some)
    }

    /// Returns the settings of a site's gate. If `before` belongs to the same site, the pages of
    /// `before` are kept.
    pub(super) fn gate_settings(&self, site: &SiteConfig, before: Option<&GateSettings>) -> GateSettings {
        let pages = match before {
            Some(before) if before.site == site.name => before.pages.clone(),
            Some(before) => Arc::new(before.pages.for_heir(&site.name)),
            None => {
                let pages = SitePages::new(&site.name, &self.log);
                let inheritance = self.inheritance.upgrade();
                let from = inheritance.as_ref().and_then(|all| all.predecessor(&site.name)).unwrap_or(&site.name);
                let saved = self.saved_pages(from).load();
                let count = saved.len();
                pages.set_sitemaps(saved, count);
                Arc::new(pages)
            }
        };
        GateSettings::new(self.gate.clone(), site, pages, before, &self.watcher, self.state.fleet.as_ref())
    }

    pub(super) fn saved_pages(&self, site: &str) -> SavedPages {
        SavedPages::of(self.state.directory.as_ref().map(StateDir::path), site)
    }

    pub(super) fn site_settings(&self, site: &SiteConfig, gate: Gate) -> SiteSettings {
        SiteSettings {
            policy: site.policy.clone(),
            registry: self.registry.clone(),
            check: site.checks(&self.registry),
            gate,
        }
    }

    /// Opens a site's robots.txt, and connects it to the site's kill switch. Blocks while it reads
    /// files. If `when_missing` requires a response, also waits for a fetch.
    pub(super) fn open(
        &self,
        site: &SiteConfig,
        settings: SiteSettings,
        when_missing: WhenMissing,
    ) -> Result<Arc<SiteRobots>, String> {
        let opener = &Self { parts: self.open_parts(site)?, ..self.clone() };
        let one = (site, &settings, when_missing);
        let robots = match &site.robots {
            RobotsSource::Directory { path, fallback } => {
                opener.open_directory(site, path, fallback, settings, when_missing)
            }
            RobotsSource::File(path) => opener.open_one(LiveRobots::file(path).watcher(&self.watcher), one),
            RobotsSource::Inline(text) => opener.open_one(LiveRobots::text(text), one),
            RobotsSource::Upstream { upstreams, host, server_name, remote } => {
                let builder = LiveRobots::upstream(upstreams, host).map_err(|error| error.to_string())?;
                let builder = self.with_fetcher(builder, remote)?;
                opener.open_one(server_name.iter().fold(builder, |builder, name| builder.server_name(name)), one)
            }
            RobotsSource::Url { url, remote } => {
                let builder = LiveRobots::url(url).map_err(|error| error.to_string())?;
                opener.open_one(self.with_fetcher(builder, remote)?, one)
            }
        }?;
        self.state.register(&site.name, &robots);
        // At a start, this code turns enforcement off if it was off for a previous site. At a
        // reload, operators may switch enforcement while sources are opened, so `Sites::renew`
        // turns enforcement off later.
        if let Some(all) = self.inheritance.upgrade().filter(|_| self.occasion == OpeningOccasion::Start) {
            all.turn_off(&site.name, &robots);
        }
        Ok(robots)
    }

    fn open_parts(&self, site: &SiteConfig) -> Result<Option<AppendedParts>, String> {
        let (name, settings) = (&site.name, &site.append);
        match (&self.publish, settings.is_empty()) {
            (_, true) => Ok(None),
            (None, false) => Ok(Some(AppendedParts::available(name, settings))),
            (Some(_), false) => {
                let fetcher = || self.fetcher();
                AppendedParts::open(name, settings, &self.watcher, fetcher, self.parts_deadline, &self.log).map(Some)
            }
        }
    }

    fn open_directory(
        &self,
        site: &SiteConfig,
        path: &Path,
        fallback: &str,
        settings: SiteSettings,
        when_missing: WhenMissing,
    ) -> Result<Arc<SiteRobots>, String> {
        let settings = Arc::new(Mutex::new(settings));
        let counts = Arc::<HostCounts>::default();
        let each = {
            let (opener, site, settings, counts) = (self.clone(), site.clone(), settings.clone(), counts.clone());
            move |host: &str, builder: LiveBuilder<FileSource>| {
                let name = host_name(&site.name, host);
                let settings = settings.lock().clone();
                let builder = builder.when_missing(when_missing);
                opener.configured(builder, &site, &name, &settings, &counts.of(host))
            }
        };
        let on_event = {
            let (name, log) = (site.name.clone(), self.log.clone());
            move |event: &DirectoryEvent<'_>| match event {
                // The opening of the new robots.txt has already been logged.
                DirectoryEvent::Added { .. } => {}
                event => log_events::directory(&log, &name, event),
            }
        };
        let directory = Directory::new(path)
            .fallback(fallback)
            .each(each)
            .on_event(on_event)
            .compile_cache(&self.compile_cache)
            .watcher(&self.watcher)
            .open()
            .map_err(|error| error.to_string())?;
        Ok(SiteRobots::new(RobotsKind::Directory { directory, settings, counts }, self.parts.clone()))
    }

    fn with_fetcher(
        &self,
        builder: LiveBuilder<RemoteSource>,
        remote: &Remote,
    ) -> Result<LiveBuilder<RemoteSource>, String> {
        let schedule = Schedule { every: remote.refresh, hold: remote.hold, ..Schedule::default() };
        let fetcher = fetcher_trusting(remote.ca.as_ref(), || self.fetcher());
        let fetcher = fetcher.map_err(|error| format!("the fetcher cannot be started: {error}"))?;
        Ok(builder.schedule(schedule).fetcher(&fetcher))
    }

    pub(super) fn fetcher(&self) -> std::io::Result<Fetcher> {
        let mut fetcher = self.fetcher.lock();
        match &*fetcher {
            Some(fetcher) => Ok(fetcher.clone()),
            None => Ok(fetcher.insert(Fetcher::new()?).clone()),
        }
    }

    fn configured<S>(
        &self,
        builder: LiveBuilder<S>,
        site: &SiteConfig,
        name: &str,
        settings: &SiteSettings,
        counts: &ReloadCounts,
    ) -> LiveBuilder<S> {
        let opened_by = if self.occasion == OpeningOccasion::Start { Cause::Start } else { Cause::Config };
        let builder = builder
            .opened_by(opened_by)
            .policy(settings.policy.clone())
            .registry(settings.registry.clone())
            .check(settings.check.clone())
            .gate(settings.gate.clone())
            .max_age(site.max_age)
            .counted_as(name)
            .grace(site.grace)
            .on_reload(log_events::reload(Arc::from(name), self.log.clone()))
            .on_reload(counts.listener());
        let builder = self.parts.iter().fold(builder, |builder, parts| builder.append(&parts.appendix));
        let inheritance = self.inheritance.upgrade();
        let before = inheritance.as_ref().and_then(|all| all.robots(&site.name, name));
        let builder = before.into_iter().fold(builder, LiveBuilder::inherit_state);
        let listeners = self.publish.iter().map(|publish| publish.listen(&site.name, name));
        let builder = listeners.fold(builder, LiveBuilder::on_reload);
        self.state.attach(builder, name)
    }
}

/// Opens the robots.txt `name` as the next start would, so that a command can change its state
/// while no process serves it.
pub(super) fn open_unserved(config: &Config, site: &SiteConfig, name: &str) -> Result<LiveSite, String> {
    let state = StateHandle::open(config).map_err(|error| error.to_string())?;
    let registry = load_registry(&config.registry).map_err(|error| error.to_string())?;
    let inheritance = Arc::new(Inheritance::from_state_dir(state.directory.as_ref(), config));
    let opener = RobotsOpener::new(config, registry, state, &Log::without_output()).inheriting(&inheritance);
    let settings = opener.site_settings(site, opener.gate_settings(site, None).gate(&opener.registry)?);
    let robots = opener.open(site, settings, WhenMissing::Unavailable)?;
    opener.state.directory.iter().for_each(|state| inheritance::claim_hosts(state, site));
    let live = robots.live_sites(&site.name, &site.hosts).into_iter().find(|live| live.name == name);
    live.ok_or_else(|| "the folder of the site contains no file for this host".to_owned())
}

/// Text that replaces the version in notices about a removed robots.txt.
const NO_VERSION: &str = "none";

#[derive(Clone, Debug)]
pub(super) struct PublishListener {
    pub(super) hooks: Arc<PublishHooks>,
    /// Whether the opened sites are served. No version is passed to webhooks before the sites are
    /// served.
    is_serving: Arc<AtomicBool>,
}

impl PublishListener {
    pub(super) fn new(hooks: Arc<PublishHooks>) -> Self {
        Self { hooks, is_serving: Arc::default() }
    }

    /// Returns a listener for the reloads of a robots.txt. `name` is the name of the robots.txt:
    /// `SITE`, or `SITE/HOST`.
    pub(super) fn listen(&self, site: &str, name: &str) -> impl Fn(&Reload, &Snapshot) + Send + Sync + 'static {
        let (own, site, name) = (self.clone(), site.to_owned(), name.to_owned());
        move |reload, snapshot| {
            let version = || own.version(&site, &name, snapshot);
            if reload.cause.is_opening() {
                // A robots.txt may begin with a version from before a restart. If the sites are
                // already served, for example when a file is added to a folder, this first version
                // is passed to the hooks here.
                if own.is_serving.load(Ordering::Acquire) && snapshot.content.is_some() {
                    own.hooks.serves(&version());
                }
            } else if matches!(reload.outcome, ReloadOutcome::Published { .. } | ReloadOutcome::Absent { .. }) {
                own.hooks.published(&version());
            }
        }
    }

    /// Marks the opened sites as served, and passes their live versions to the hooks. Blocks while
    /// it reads the state directory.
    pub(super) fn mark_served(&self, live_sites: impl Iterator<Item = (String, LiveSite)>) {
        self.is_serving.store(true, Ordering::Release);
        for (site, live) in live_sites {
            let snapshot = live.robots.snapshot();
            if snapshot.content.is_some() {
                self.hooks.serves(&self.version(&site, &live.name, &snapshot));
            }
        }
    }

    fn version(&self, site: &str, name: &str, snapshot: &Snapshot) -> Notice {
        let hosts = match name.strip_prefix(site).and_then(|rest| rest.strip_prefix('/')) {
            Some(host) if host.contains('*') => Vec::new(),
            Some(host) => vec![host.to_owned()],
            None => self.hooks.hosts(site),
        };
        let version =
            snapshot.content.as_ref().map_or_else(|| NO_VERSION.to_owned(), |content| content.hash().to_string());
        let notice = Notice::new(None, name, &version);
        let message = format!("site {name:?}: version {version} is live", version = notice.short());
        Notice { site: site.to_owned(), hosts, replica: self.hooks.replica.clone(), message, ..notice }
    }
}
