//! Putting a live robots.txt together.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;

#[cfg(feature = "watch")]
use super::watch::Watcher;
use crate::agent::Registry;
use crate::check;
use crate::live::{
    Cause, Clock, CompileCache, Gate, KillSwitch, LiveRobots, Making, Past, Rejection, RejectionKind, Reload,
    ReloadOutcome, Remembered, Settings, Shared, SiteState, Snapshot, Source, StateDir, WhenMissing,
};
use crate::policy::Policy;
use crate::rules::Reading;

/// Opens a [`LiveRobots`].
#[must_use]
pub struct LiveBuilder {
    pub(super) source: Source,
    policy: Policy,
    registry: Arc<Registry>,
    check: check::Options,
    gate: Gate,
    state: Option<(StateDir, String)>,
    switch: Option<KillSwitch>,
    settings: Settings,
    clock: Clock,
    poll: Duration,
    #[cfg(feature = "watch")]
    watcher: Option<Watcher>,
}

impl LiveRobots {
    /// A robots.txt kept in a file, reloaded when it changes (with the `watch` feature) and on
    /// [`LiveRobots::reload`].
    pub fn file(path: impl Into<PathBuf>) -> LiveBuilder {
        LiveBuilder::new(Source::File(path.into()))
    }

    /// A robots.txt given as text.
    pub fn inline(text: impl AsRef<[u8]>) -> LiveBuilder {
        LiveBuilder::new(Source::Inline(text.as_ref().into()))
    }
}

impl LiveBuilder {
    pub(super) fn new(source: Source) -> Self {
        let settings = Settings {
            reading: Reading::default(),
            max_age: Duration::from_secs(3600),
            grace: Duration::ZERO,
            when_missing: WhenMissing::default(),
            listeners: Vec::new(),
            compile_cache: CompileCache::new(),
        };
        let registry = Registry::builtin().clone();
        Self {
            source,
            policy: Policy::default(),
            registry,
            check: check::Options::default(),
            gate: Gate::open(),
            state: None,
            switch: None,
            settings,
            clock: Clock::default(),
            poll: Duration::from_secs(2),
            #[cfg(feature = "watch")]
            watcher: None,
        }
    }

    /// What to do about disallowed requests. Default: [`Policy::default`], which observes.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// How the file is read. Default: [`Reading::Standard`].
    pub fn reading(mut self, reading: Reading) -> Self {
        self.settings.reading = reading;
        self
    }

    /// How each version is checked. Default: [`check::Options::default`].
    pub fn check(mut self, options: check::Options) -> Self {
        self.check = options;
        self
    }

    /// The crawlers that are known. Default: [`Registry::builtin`].
    pub fn registry(mut self, registry: Arc<Registry>) -> Self {
        self.registry = registry;
        self
    }

    /// How long others may cache `/robots.txt`. Default: one hour; at most 24 hours (RFC 9309, section 2.4).
    pub fn max_age(mut self, max_age: Duration) -> Self {
        self.settings.max_age = max_age.min(Duration::from_secs(24 * 3600));
        self
    }

    /// What to do when there is no usable robots.txt at the start. Default: [`WhenMissing::Fail`].
    pub fn when_missing(mut self, when_missing: WhenMissing) -> Self {
        self.settings.when_missing = when_missing;
        self
    }

    /// Calls back after every reload that changed something or failed in a new way, and after the first one. The
    /// callback runs on the thread that reloads and holds up the next reload, so it must not wait for the state directory
    /// ([`StateDir::flush`](crate::live::StateDir::flush)); its panics are caught.
    pub fn on_reload(mut self, listener: impl Fn(&Reload, &Snapshot) + Send + Sync + 'static) -> Self {
        self.settings.listeners.push(Box::new(listener));
        self
    }

    /// How often a watched file is read to find changes that the file system did not tell of. Default: two seconds.
    /// Has no effect without the `watch` feature.
    pub fn poll_every(mut self, poll: Duration) -> Self {
        self.poll = poll.max(Duration::from_millis(50));
        self
    }

    /// What a version must not do if it is to go live by itself. Default: [`Gate::open`], through which everything passes.
    pub fn gate(mut self, gate: Gate) -> Self {
        self.gate = gate;
        self
    }

    /// Where this site, by its name, remembers what was accepted, what waits, what was tried and its kill switch. Default:
    /// nowhere. Then a restart forgets all of it: the gate has nothing to compare the first version with and refuses only
    /// shutting out everyone, there is nothing to go back to, every rule is new to the grace, and enforcement is on.
    pub fn state(mut self, state: &StateDir, site: impl Into<String>) -> Self {
        self.state = Some((state.clone(), site.into()));
        self
    }

    /// What turns enforcement off for this site and others at once. Default: the switch of the state directory, where there
    /// is one, which then counts in any case.
    pub fn kill_switch(mut self, switch: &KillSwitch) -> Self {
        self.switch = Some(switch.clone());
        self
    }

    /// How long a request that is newly disallowed is only observed. Counted from the first accepted version that
    /// disallows it, of the last few that are remembered. Default: zero.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.settings.grace = grace;
        self
    }

    /// Another clock than the system's, for tests: what the grace, the ends of overrides and all dates go by.
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Clock::new(clock);
        self
    }

    /// Shares what is made of equal files with other sites. Default: nothing is shared.
    pub fn compile_cache(mut self, compile_cache: &CompileCache) -> Self {
        self.settings.compile_cache = compile_cache.clone();
        self
    }

    /// What watches the file, together with others. Default: a watcher of its own.
    #[cfg(feature = "watch")]
    pub fn watcher(mut self, watcher: &Watcher) -> Self {
        self.watcher = Some(watcher.clone());
        self
    }

    /// For one of many sites, whose start no other's file may stop.
    pub(super) fn never_fail(mut self) -> Self {
        if self.settings.when_missing == WhenMissing::Fail {
            self.settings.when_missing = WhenMissing::Unavailable;
        }
        self
    }

    /// Reads the robots.txt and starts to watch it. Where the source holds nothing usable, or something the gate refuses,
    /// the version that was accepted last goes live, if one is remembered.
    ///
    /// # Errors
    ///
    /// With [`WhenMissing::Fail`], why there is no usable robots.txt.
    pub fn open(self) -> Result<LiveRobots, Rejection> {
        #[cfg(feature = "watch")]
        let watcher = self.watcher;
        let (source, policy, registry, gate) = (self.source, self.policy, self.registry, self.gate);
        let (state, switch) = (self.state, self.switch);
        let (check, settings, clock, poll) = (self.check, self.settings, self.clock, self.poll);
        let origin: Arc<str> = source.origin();
        let site: Option<SiteState> = state.as_ref().map(|(state, name)| state.site(name));
        let now = clock.now();
        let Remembered { versions, pending, history, enforcement, was_live } =
            site.as_ref().map(|site| site.load(now)).unwrap_or_default();
        let snapshot = Snapshot::empty(policy.into(), clock.clone(), settings.max_age, settings.when_missing);
        let snapshot = snapshot.with_switches(|switches| switches.site = enforcement);
        // Stands for "nothing yet" until `start` says what came of it.
        let nothing = Rejection::new(RejectionKind::Missing, &origin);
        let outcome = ReloadOutcome::Kept { rejection: nothing, live: None };
        let last = Reload::new(Cause::Start, &origin, outcome);
        let shared = Arc::new(Shared {
            current: ArcSwap::from_pointee(snapshot),
            source,
            origin,
            settings,
            making: Mutex::new(Making::new(registry, check, gate, versions, pending, was_live)),
            past: Mutex::new(Past { last, since: now, history, pending: None, before: None }),
            state: site,
            clock,
            faults: AtomicU64::new(0),
            callback_faults: AtomicU64::new(0),
            switch: Mutex::new(()),
            #[cfg(feature = "watch")]
            watch: std::sync::OnceLock::new(),
            #[cfg(feature = "fetch")]
            following: std::sync::OnceLock::new(),
        });
        if let Some(switch) = state.as_ref().map(|(state, _)| state.switch()).or(switch.as_ref()) {
            switch.join(&shared);
        }
        // Before the file is read, so that no change after it goes unnoticed.
        #[cfg(feature = "watch")]
        if let Source::File(path) = &shared.source {
            let watched = watcher.unwrap_or_default().robots(path.clone(), poll, Arc::downgrade(&shared));
            // Nothing else sets it: this is the only place that has the new `shared`.
            let _ = shared.watch.set(watched);
        }
        shared.start()?;
        #[cfg(feature = "watch")]
        if let Some(watched) = shared.watch.get() {
            watched.begin();
        }
        #[cfg(not(feature = "watch"))]
        let _ = poll;
        #[cfg(feature = "fetch")]
        if let Source::Remote(remote) = &shared.source {
            remote.follow(&shared)?;
        }
        Ok(LiveRobots::from_shared(shared))
    }
}

impl fmt::Debug for LiveBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveBuilder")
            .field("source", &self.source)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
