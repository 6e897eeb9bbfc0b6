//! Builder of a live robots.txt, with the settings that all sources share; also contains the inline
//! source.

use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use crate::agent::Registry;
use crate::check;
use crate::live::{
    Appendix, Cause, Clock, CompileCache, Completion, Gate, KillSwitch, LiveRobots, Loaded, Mutex, Rejection, Reload,
    Remembered, Site, SiteSettings, Snapshot, Source, StateDir, Version, WhenMissing, load_text,
};
use crate::policy::{Mode, Policy};
use crate::rules::Reading;

/// Opens a [`LiveRobots`] with a source. Settings for one kind of source, such as polling, exist
/// only for that kind.
#[must_use]
pub struct LiveBuilder<S> {
    pub(super) source: S,
    pub(super) settings: SiteSettings,
}

/// Source of a site: inline bytes (`Arc<[u8]>`), [`FileSource`](crate::internals::FileSource), or
/// with the feature `fetch` `RemoteSource`. Only this crate can create a site, so there are no other
/// sources.
pub trait SiteSource: Sized {
    /// Publishes the first version and keeps it up to date.
    #[doc(hidden)]
    fn open(builder: LiveBuilder<Self>) -> Result<LiveRobots, Rejection>;
}

impl<S> LiveBuilder<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source, settings: SiteSettings::default() }
    }

    fn with_settings(mut self, change: impl FnOnce(&mut SiteSettings)) -> Self {
        change(&mut self.settings);
        self
    }

    pub(super) fn with_source(mut self, change: impl FnOnce(&mut S)) -> Self {
        change(&mut self.source);
        self
    }

    /// Sets the mode of the policy: how disallowed requests are handled. It replaces the mode of the
    /// [`policy`](Self::policy), whichever is called first. Default: the mode of the policy, by
    /// default [`Mode::Observe`]. A second call replaces the first.
    pub fn mode(self, mode: Mode) -> Self {
        self.with_settings(|settings| settings.mode = Some(mode))
    }

    /// Sets the policy for disallowed requests: a [`Policy`], its builder, or a [`Mode`]. Default:
    /// [`Policy::default`], which only observes. A second call replaces the first.
    pub fn policy(self, policy: impl Into<Policy>) -> Self {
        self.with_settings(|settings| settings.policy = policy.into())
    }

    /// Sets how the file is parsed. Default: [`Reading::Standard`]. A second call replaces the first.
    pub fn reading(self, reading: Reading) -> Self {
        self.with_settings(|settings| settings.reading = reading)
    }

    /// Sets how each version is checked. Default: [`check::Options::default`]. A second call
    /// replaces the first.
    pub fn check(self, options: check::Options) -> Self {
        self.with_settings(|settings| settings.check = options)
    }

    /// Sets the known crawlers. Default: [`Registry::builtin`]. A second call replaces the first.
    pub fn registry(self, registry: Arc<Registry>) -> Self {
        self.with_settings(|settings| settings.registry = registry)
    }

    /// Sets how long others may cache `/robots.txt`. Default: one hour
    /// ([`LiveRobots::DEFAULT_MAX_AGE`](crate::live::LiveRobots::DEFAULT_MAX_AGE)). Maximum: 24
    /// hours ([`LiveRobots::MAX_AGE_LIMIT`]; RFC 9309, section 2.4). A second call replaces the
    /// first.
    pub fn max_age(self, max_age: Duration) -> Self {
        self.with_settings(|settings| settings.max_age = max_age.min(LiveRobots::MAX_AGE_LIMIT))
    }

    /// Sets the behaviour if there is no usable robots.txt at the start. Default:
    /// [`WhenMissing::Fail`]. A second call replaces the first.
    pub fn when_missing(self, when_missing: WhenMissing) -> Self {
        self.with_settings(|settings| settings.when_missing = when_missing)
    }

    /// Sets why the site is opened, which is the cause of its first reload. Use [`Cause::Config`]
    /// if the configuration of a running program has changed, so that the history does not report a
    /// start. Default: [`Cause::Start`]. A second call replaces the first.
    pub fn opened_by(self, cause: Cause) -> Self {
        self.with_settings(|settings| settings.opened_by = cause)
    }

    /// Adds a callback. It is called after the first reload, and after every reload that changed
    /// something or failed in a new way. Callbacks run one at a time, in the order of publication,
    /// on a thread that reloads. That thread holds no lock, so a callback may use the site like any
    /// caller; a reload that it starts is delivered after it returns. If another thread is
    /// delivering, a reload may be answered before its callbacks have run. Panics are caught. A
    /// second call adds a callback.
    ///
    /// The site owns the callback. A callback that owns a [`LiveRobots`] of the same site would
    /// keep the site and its threads alive after the application has dropped its own handle. Use a
    /// [`Weak`] of the application's `Arc` around the site instead.
    pub fn on_reload(self, listener: impl Fn(&Reload, &Snapshot) + Send + Sync + 'static) -> Self {
        self.with_settings(|settings| settings.listeners.push(Box::new(listener)))
    }

    /// Sets the conditions for publishing a version without an operator. Default: [`Gate::open`],
    /// which passes every version. A second call replaces the first.
    pub fn gate(self, gate: Gate) -> Self {
        self.with_settings(|settings| settings.gate = gate)
    }

    /// Sets the state directory, and the site's name in it. It stores accepted versions, the
    /// pending version, the history and the kill switch. Default: none; then a restart forgets all
    /// of them. The gate has nothing to compare the first version with, so it refuses only a
    /// version that blocks everyone. There is no version to roll back to, every rule counts as new
    /// for the grace period, and enforcement is on.
    ///
    /// Sites that are open at the same time need different names. Two sites with the same name
    /// share their part of the directory, so that one handle can replace another: the next start
    /// finds the version that either of them accepted last. A second call replaces the first.
    pub fn state(self, state: &StateDir, site: impl Into<String>) -> Self {
        self.with_settings(|settings| settings.state = Some((state.clone(), site.into())))
    }

    /// Starts from the state of a site with another name ([`LiveRobots::remembered`],
    /// [`StateDir::remembered`]): its versions, pending version and history. They replace this
    /// site's own part of the state directory. The kill switch is not inherited. Default: none. A
    /// second call replaces the first.
    pub fn inherit_state(self, before: &Remembered) -> Self {
        self.with_settings(|settings| settings.inherited = Some(before.clone()))
    }

    /// Sets the kill switch of this and other sites. It is ignored if the site has a state
    /// directory, whose own kill switch then applies. A second call replaces the first.
    pub fn kill_switch(self, switch: &KillSwitch) -> Self {
        self.with_settings(|settings| settings.switch = Some(switch.clone()))
    }

    /// Adds a kill switch that does not belong to a state directory, such as that of a fleet. Any
    /// of the switches can turn enforcement off. A second call adds another one. Maximum: four;
    /// later ones are ignored.
    pub fn additional_kill_switch(mut self, switch: &KillSwitch) -> Self {
        if self.settings.additional_kill_switches.len() < 4 {
            self.settings.additional_kill_switches.push(switch.clone());
        }
        self
    }

    /// Sets how long a newly disallowed request is only observed. The time starts with the first
    /// accepted version that disallows the request, among the last few that are remembered.
    /// Default: zero. A second call replaces the first.
    pub fn grace(self, grace: Duration) -> Self {
        self.with_settings(|settings| settings.grace = grace)
    }

    /// Replaces the system's clock, for tests. It applies to the grace period, the ends of
    /// overrides and all dates. A second call replaces the first.
    pub fn clock(self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.with_settings(|settings| settings.clock = Clock::new(clock))
    }

    /// Shares compiled files with other sites. Default: nothing is shared. A second call replaces the first.
    pub fn compile_cache(self, compile_cache: &CompileCache) -> Self {
        self.with_settings(|settings| settings.compile_cache = compile_cache.clone())
    }

    /// Sets the name for counting crawlers' requests if the policy limits them. Sites with the same
    /// name and [`CompileCache`] share their counts. So a site that is opened again with other
    /// settings replaces the previous one and gives no crawler a new burst. Default: counts are not
    /// shared. A second call replaces the first.
    pub fn counted_as(self, name: impl Into<String>) -> Self {
        self.with_settings(|settings| settings.counted_as = Some(name.into()))
    }

    /// Sets the parts that are appended to every version before it is checked and gated: lists of
    /// crawlers that others maintain. Default: nothing. A second call replaces the first.
    pub fn append(self, appendix: &Appendix) -> Self {
        self.with_settings(|settings| settings.appendix = Some(appendix.clone()))
    }

    /// Marks this as one of many sites: an unusable file must not keep the others from starting,
    /// and overrides may be meant for another site's file.
    pub(super) fn one_of_many(mut self) -> Self {
        self.settings.is_one_of_many = true;
        if self.settings.when_missing == WhenMissing::Fail {
            self.settings.when_missing = WhenMissing::Unavailable;
        }
        self
    }
}

impl LiveBuilder<Arc<[u8]>> {
    /// Sets the name of an inline robots.txt, for applications with several. The name is used in
    /// messages, in the history, and as
    /// [`RateLimitedRequest::origin`](crate::parts::RateLimitedRequest::origin). A store that several
    /// processes share uses it to separate the requests of this site from those of others. Default:
    /// `inline`. A second call replaces the first.
    pub fn named(self, name: impl Into<Arc<str>>) -> Self {
        self.with_settings(|settings| settings.text_name = Some(name.into()))
    }
}

impl<S: SiteSource> LiveBuilder<S> {
    /// Reads the robots.txt and starts to keep it up to date. If the source has no usable file, or
    /// the gate refuses it, the version that was accepted last is published, if one is remembered.
    ///
    /// # Errors
    ///
    /// With [`WhenMissing::Fail`], the reason why there is no usable robots.txt.
    pub fn open(self) -> Result<LiveRobots, Rejection> {
        S::open(self)
    }
}

robots_core::debug_as!(|it| [S: std::fmt::Debug] LiveBuilder::<S> { source: it.source, policy: it.settings.policy });

impl LiveRobots {
    /// Prepares a site with an inline robots.txt; [`LiveRobots::publish`] replaces it.
    pub fn text(text: impl AsRef<[u8]>) -> LiveBuilder<Arc<[u8]>> {
        LiveBuilder::new(text.as_ref().into())
    }
}

/// The robots.txt of an open inline site.
#[derive(Debug)]
struct InlineText {
    /// Held only briefly.
    version: Mutex<Version>,
    site: Weak<Site>,
}

impl SiteSource for Arc<[u8]> {
    fn open(builder: LiveBuilder<Self>) -> Result<LiveRobots, Rejection> {
        let LiveBuilder { source, settings } = builder;
        let origin = settings.text_name.clone().unwrap_or_else(|| "inline".into());
        let version = Mutex::new(load_text(&source, &origin)?);
        let site = Site::new(settings, &origin, |site| Arc::new(InlineText { version, site }));
        site.start()?;
        Ok(LiveRobots::of(site))
    }
}

impl Source for InlineText {
    fn load(&self) -> Loaded {
        Ok(self.version.lock().clone())
    }

    fn text(&self) -> Option<&Mutex<Version>> {
        Some(&self.version)
    }

    fn reload(&self, completion: Arc<Completion>) {
        if let Some(site) = self.site.upgrade() {
            Site::reload_apart(site, completion, |site| site.reload(|_| true));
        }
    }
}
