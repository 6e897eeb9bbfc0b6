//! The builder of a live robots.txt, with the settings that every source has; and the source that is a text.

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

/// Opens a [`LiveRobots`] with a source. Settings of one kind of source, such as polling, exist for that kind only.
#[must_use]
pub struct LiveBuilder<S> {
    pub(super) source: S,
    pub(super) settings: SiteSettings,
}

/// A source of a site: a text (`Arc<[u8]>`), [`FileSource`](crate::internals::FileSource), and with the feature
/// `fetch` `RemoteSource`. Nothing outside of this crate can make a site, so there are no others.
pub trait SiteSource: Sized {
    /// Brings the first version live and keeps it up to date.
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

    /// The mode of the policy: how disallowed requests are handled. Default: the mode of the [`policy`](Self::policy), which is
    /// [`Mode::Observe`] unless it says otherwise. It overrides the mode of the policy, whichever is called first. A second call replaces
    /// the first.
    pub fn mode(self, mode: Mode) -> Self {
        self.with_settings(|settings| settings.mode = Some(mode))
    }

    /// The policy for disallowed requests: a [`Policy`], its builder, or a [`Mode`]. Default: [`Policy::default`], which observes. A second
    /// call replaces the first.
    pub fn policy(self, policy: impl Into<Policy>) -> Self {
        self.with_settings(|settings| settings.policy = policy.into())
    }

    /// How the file is read. Default: [`Reading::Standard`]. A second call replaces the first.
    pub fn reading(self, reading: Reading) -> Self {
        self.with_settings(|settings| settings.reading = reading)
    }

    /// How each version is checked. Default: [`check::Options::default`]. A second call replaces the first.
    pub fn check(self, options: check::Options) -> Self {
        self.with_settings(|settings| settings.check = options)
    }

    /// The known crawlers. Default: [`Registry::builtin`]. A second call replaces the first.
    pub fn registry(self, registry: Arc<Registry>) -> Self {
        self.with_settings(|settings| settings.registry = registry)
    }

    /// How long others may cache `/robots.txt`. Default:
    /// [`LiveRobots::DEFAULT_MAX_AGE`](crate::live::LiveRobots::DEFAULT_MAX_AGE), one hour; at most [`LiveRobots::LONGEST_MAX_AGE`], 24 hours (RFC 9309,
    /// section 2.4). A second call replaces the first.
    pub fn max_age(self, max_age: Duration) -> Self {
        self.with_settings(|settings| settings.max_age = max_age.min(LiveRobots::LONGEST_MAX_AGE))
    }

    /// The behaviour if there is no usable robots.txt at the start. Default: [`WhenMissing::Fail`]. A second call replaces the first.
    pub fn when_missing(self, when_missing: WhenMissing) -> Self {
        self.with_settings(|settings| settings.when_missing = when_missing)
    }

    /// Why the site is opened, which is the cause of its first reload: [`Cause::Config`] where the configuration of a program that
    /// runs has changed, so that the history does not speak of a start. Default: [`Cause::Start`]. A second call replaces the first.
    pub fn opened_by(self, cause: Cause) -> Self {
        self.with_settings(|settings| settings.opened_by = cause)
    }

    /// Calls back after every reload that changed something or failed in a new way, and after the first one. The callbacks
    /// run in the order of publication, one at a time, on a thread that reloads and holds no lock meanwhile: a callback may
    /// use the site as any caller does, and a reload that it brings about is delivered after it returns. If another thread
    /// delivers, a reload may be answered before its callbacks have run. Panics are caught. A second call adds a callback.
    ///
    /// The site owns the callback: one that holds a [`LiveRobots`] of the same site keeps it, with its threads, after the application
    /// has dropped its own. Let it hold a [`Weak`] of the application's `Arc` around the site.
    pub fn on_reload(self, listener: impl Fn(&Reload, &Snapshot) + Send + Sync + 'static) -> Self {
        self.with_settings(|settings| settings.listeners.push(Box::new(listener)))
    }

    /// The conditions under which a version goes live without an operator. Default: [`Gate::open`], which passes every version. A second
    /// call replaces the first.
    pub fn gate(self, gate: Gate) -> Self {
        self.with_settings(|settings| settings.gate = gate)
    }

    /// The state directory, and the site's name in it: for accepted versions, the version that waits, the history and the
    /// kill switch. Default: none. Then a restart forgets all of it: the gate has nothing to compare the first version with and refuses only
    /// shutting out everyone, there is nothing to go back to, every rule is new to the grace, and enforcement is on.
    ///
    /// Sites that are open at one time need names of their own. Two of one name share their part of the directory, so that a
    /// site can be replaced by another handle: what either accepts last is what the next start finds. A second call replaces the first.
    pub fn state(self, state: &StateDir, site: impl Into<String>) -> Self {
        self.with_settings(|settings| settings.state = Some((state.clone(), site.into())))
    }

    /// Starts from the state of another site ([`LiveRobots::remembered`], [`StateDir::remembered`]), for a site that gets another name: its
    /// versions, its pending version and its history. They replace what this site's own part of the state directory contains. The kill
    /// switch is not inherited. Default: none. A second call replaces the first.
    pub fn inherit_state(self, before: &Remembered) -> Self {
        self.with_settings(|settings| settings.inherited = Some(before.clone()))
    }

    /// The kill switch of this and other sites. Default: that of the state directory, if there is one, which then takes
    /// precedence. A second call replaces the first.
    pub fn kill_switch(self, switch: &KillSwitch) -> Self {
        self.with_settings(|settings| settings.switch = Some(switch.clone()))
    }

    /// Adds a kill switch that is not part of a state directory, such as that of a fleet: if any of them is off, nothing is enforced. A
    /// second call adds another one, up to four; later ones are ignored.
    pub fn additional_kill_switch(mut self, switch: &KillSwitch) -> Self {
        if self.settings.additional_kill_switches.len() < 4 {
            self.settings.additional_kill_switches.push(switch.clone());
        }
        self
    }

    /// How long a request that is newly disallowed is only observed. Counted from the first accepted version that
    /// disallows it, of the last few that are remembered. Default: zero. A second call replaces the first.
    pub fn grace(self, grace: Duration) -> Self {
        self.with_settings(|settings| settings.grace = grace)
    }

    /// Another clock than the system's, for tests: for the grace, the ends of overrides and all dates. A second call replaces the first.
    pub fn clock(self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.with_settings(|settings| settings.clock = Clock::new(clock))
    }

    /// Shares compiled files with other sites. Default: nothing is shared. A second call replaces the first.
    pub fn compile_cache(self, compile_cache: &CompileCache) -> Self {
        self.with_settings(|settings| settings.compile_cache = compile_cache.clone())
    }

    /// The name under which the requests of its crawlers are counted, where the policy limits them. Sites of one [`CompileCache`]
    /// that have one name share what they count: a site that is opened anew, with other settings, takes the place of the one before
    /// and gives nobody a new burst. Default: it shares that with no other. A second call replaces the first.
    pub fn counted_as(self, name: impl Into<String>) -> Self {
        self.with_settings(|settings| settings.counted_as = Some(name.into()))
    }

    /// The parts that are appended to every version before it is checked and gated: lists of crawlers that others
    /// keep. Default: nothing. A second call replaces the first.
    pub fn append(self, appendix: &Appendix) -> Self {
        self.with_settings(|settings| settings.appendix = Some(appendix.clone()))
    }

    /// For one of many sites: its file must not keep the others from starting, and need not have what their policy is about.
    pub(super) fn one_of_many(mut self) -> Self {
        self.settings.is_one_of_many = true;
        if self.settings.when_missing == WhenMissing::Fail {
            self.settings.when_missing = WhenMissing::Unavailable;
        }
        self
    }
}

impl LiveBuilder<Arc<[u8]>> {
    /// The name of the text in place of `inline`, for one of many: in messages, the history, and
    /// [`PacedRequest::origin`](crate::parts::PacedRequest::origin), by which a store of several processes keeps the requests of this
    /// site apart from those of others. Default: `inline`. A second call replaces the first.
    pub fn named(self, name: impl Into<Arc<str>>) -> Self {
        self.with_settings(|settings| settings.text_name = Some(name.into()))
    }
}

impl<S: SiteSource> LiveBuilder<S> {
    /// Reads the robots.txt and starts to keep it up to date. If the source holds nothing usable, or something the gate
    /// refuses, the version that was accepted last goes live, if one is remembered.
    ///
    /// # Errors
    ///
    /// With [`WhenMissing::Fail`], why there is no usable robots.txt.
    pub fn open(self) -> Result<LiveRobots, Rejection> {
        S::open(self)
    }
}

robots_core::debug_as!(|it| [S: std::fmt::Debug] LiveBuilder::<S> { source: it.source, policy: it.settings.policy });

impl LiveRobots {
    /// A robots.txt given as text; [`LiveRobots::publish`] replaces it.
    pub fn text(text: impl AsRef<[u8]>) -> LiveBuilder<Arc<[u8]>> {
        LiveBuilder::new(text.as_ref().into())
    }
}

/// The text of a site that is open.
#[derive(Debug)]
struct InlineText {
    /// Held for a moment only.
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
