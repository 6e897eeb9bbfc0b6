//! The builder of a live robots.txt, with the settings that are the same for all kinds of sources.
//! This module also contains the source for a robots.txt that the application passes as a string.

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

/// Configures and opens a [`LiveRobots`] with a source. Settings that apply to only one kind of
/// source, such as polling, are methods of the builder for that kind.
#[must_use]
pub struct LiveBuilder<S> {
    pub(super) source: S,
    pub(super) settings: SiteSettings,
}

/// The source of a site: inline bytes (`Arc<[u8]>`), [`FileSource`](crate::internals::FileSource),
/// or, with the feature `fetch`, `RemoteSource`. Other crates should not implement this trait,
/// because only this crate can create sites.
pub trait SiteSource: Sized {
    /// Publishes the first version, and a new version whenever the source changes.
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

    /// Sets the mode of the policy, which decides what happens to disallowed requests. This mode
    /// takes precedence over the mode of the [`policy`](Self::policy), even if the policy is set
    /// later. Default: the mode of the policy ([`Mode::Observe`], unless set). A second call
    /// replaces the first.
    pub fn mode(self, mode: Mode) -> Self {
        self.with_settings(|settings| settings.mode = Some(mode))
    }

    /// Sets the policy for disallowed requests: a [`Policy`], its builder, or a [`Mode`]. Default:
    /// [`Policy::default`], which only observes. A second call replaces the first.
    pub fn policy(self, policy: impl Into<Policy>) -> Self {
        self.with_settings(|settings| settings.policy = policy.into())
    }

    /// Sets how the robots.txt is parsed. Default: [`Reading::Standard`]. With
    /// [`Reading::Reference`], the rules are compared only with the path as sent, so a client can
    /// bypass a rule with another spelling of a path, such as `/x/../private/`. A second call
    /// replaces the first.
    pub fn reading(self, reading: Reading) -> Self {
        self.with_settings(|settings| settings.reading = reading)
    }

    /// Sets the options for checking each version. Default: [`check::Options::default`]. A second
    /// call replaces the first.
    pub fn check(self, options: check::Options) -> Self {
        self.with_settings(|settings| settings.check = options)
    }

    /// Sets the registry of crawlers. Default: [`Registry::builtin`]. A second call replaces the
    /// first.
    pub fn registry(self, registry: Arc<Registry>) -> Self {
        self.with_settings(|settings| settings.registry = registry)
    }

    /// Sets how long clients and proxies may cache `/robots.txt`. Default: one hour
    /// ([`LiveRobots::DEFAULT_MAX_AGE`](crate::live::LiveRobots::DEFAULT_MAX_AGE)). Maximum: 24
    /// hours ([`LiveRobots::MAX_AGE_LIMIT`]; RFC 9309, section 2.4). A second call replaces the
    /// first.
    pub fn max_age(self, max_age: Duration) -> Self {
        self.with_settings(|settings| settings.max_age = max_age.min(LiveRobots::MAX_AGE_LIMIT))
    }

    /// Sets what happens if there is no usable robots.txt when the site is opened. Default:
    /// [`WhenMissing::Fail`]. A second call replaces the first.
    pub fn when_missing(self, when_missing: WhenMissing) -> Self {
        self.with_settings(|settings| settings.when_missing = when_missing)
    }

    /// Sets the cause that the history records for the site's first reload. Use [`Cause::Config`]
    /// if the site is opened because the configuration of a running program has changed. Default:
    /// [`Cause::Start`]. A second call replaces the first.
    pub fn opened_by(self, cause: Cause) -> Self {
        self.with_settings(|settings| settings.opened_by = cause)
    }

    /// Adds a callback that is called after the first reload, after every reload that was
    /// requested, and after every other reload that changed something or failed for a new reason.
    /// Callbacks run one at a time, in the order of the reloads, on the thread that reloads. If
    /// another thread is already running callbacks of the site, that thread also runs the callbacks
    /// for this reload, so a reload may return before its callbacks have run. No lock is held
    /// during the call, so a callback may use the site like any other code. If a callback reloads
    /// the site, the callbacks for that reload run after the callback returns. Panics are caught. A
    /// second call adds a callback.
    ///
    /// Sites that share a `Fetcher` run their callbacks on its threads. While 16 callbacks block at
    /// the same time, the fetches of all sites with this `Fetcher` wait. A callback that waits in
    /// [`LiveRobots::reload_blocking`] counts as blocking.
    ///
    /// The site owns the callback. A callback that owns a [`LiveRobots`] of the same site would
    /// therefore keep the site and its threads alive after the application has dropped its own
    /// handle. To use the site in a callback, keep an `Arc` of the handle in the application, and
    /// give the callback a [`Weak`].
    pub fn on_reload(self, listener: impl Fn(&Reload, &Snapshot) + Send + Sync + 'static) -> Self {
        self.with_settings(|settings| settings.listeners.push(Box::new(listener)))
    }

    /// Sets the gate, which decides whether a version is published without an operator's approval.
    /// Default: [`Gate::open`], which allows every version. A second call replaces the first.
    pub fn gate(self, gate: Gate) -> Self {
        self.with_settings(|settings| settings.gate = gate)
    }

    /// Sets the state directory, and the name of the site in it. The directory contains accepted
    /// versions, the pending version, the history and the kill switch. Default: none.
    ///
    /// Without a state directory, a restart loses the versions, the history and the position of the
    /// kill switch. The gate cannot compare the first version with an earlier one, so it refuses
    /// the first version only if this version blocks all crawlers. After the restart, an operator
    /// cannot roll back, every rule counts as new for the grace period, and enforcement is on.
    ///
    /// Sites that are open at the same time need different names. Two sites with the same name
    /// share the same files. Use the same name only if a new site replaces an old site and must
    /// keep the old site's state. After a restart, the site uses the last version that either of
    /// the two sites accepted. A site of a [`Directory`](crate::source::Directory) has the name
    /// `NAME/HOST` in the state directory, unless `site` is the host or ends in `/HOST`. A second
    /// call replaces the first.
    pub fn state(self, state: &StateDir, site: impl Into<String>) -> Self {
        self.with_settings(|settings| settings.state = Some((state.clone(), site.into())))
    }

    /// Inherits the versions, the pending version and the history of a site with another name
    /// ([`LiveRobots::remembered`], [`StateDir::remembered`]). The inherited state replaces the
    /// state that the state directory contains for this site. The kill switch is not inherited.
    /// Default: none. A second call replaces the first.
    pub fn inherit_state(self, before: &Remembered) -> Self {
        self.with_settings(|settings| settings.inherited = Some(before.clone()))
    }

    /// Sets a kill switch that this site shares with other sites. If this site has a state
    /// directory, the directory's own kill switch also applies: nothing is enforced while either
    /// switch is off. A second call replaces the first.
    #[doc(hidden)]
    pub fn kill_switch(self, switch: &KillSwitch) -> Self {
        self.with_settings(|settings| settings.switch = Some(switch.clone()))
    }

    /// Adds a kill switch that does not belong to a state directory, such as the switch of a fleet.
    /// If any kill switch of the site is off, nothing is enforced. A second call adds another
    /// switch. At most 62 switches can be added; further switches are ignored, which causes a
    /// warning in the log.
    #[doc(hidden)]
    pub fn additional_kill_switch(mut self, switch: &KillSwitch) -> Self {
        // A snapshot has 64 bits for switches: these 62, and those of `state` and `kill_switch`.
        if self.settings.additional_kill_switches.len() < 62 {
            self.settings.additional_kill_switches.push(switch.clone());
        } else {
            #[cfg(feature = "tracing")]
            tracing::warn!(
                target: "tower_robots::reload",
                "LiveBuilder::additional_kill_switch ignores a switch, because a site can have at most 62: let sites \
                 share a switch"
            );
        }
        self
    }

    /// Sets the grace period. The grace period of a request begins when the site accepts the oldest
    /// saved version that disallows the request. Until the period ends, the request is only
    /// observed. Without [`LiveBuilder::state`], no version is saved, so the period begins again at
    /// each start of the process. Default: zero. A second call replaces the first.
    pub fn grace(self, grace: Duration) -> Self {
        self.with_settings(|settings| settings.grace = grace)
    }

    /// Replaces the system's clock, for tests. The clock determines grace periods, the ends of
    /// overrides, and all dates. A second call replaces the first.
    pub fn clock(self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.with_settings(|settings| settings.clock = Clock::new(clock))
    }

    /// Shares compiled files with other sites that use the same cache. `CompileCache` is in the
    /// module `internals`, which is not stable. Default: the site has its own cache. A second call
    /// replaces the first.
    pub fn compile_cache(self, compile_cache: &CompileCache) -> Self {
        self.with_settings(|settings| settings.compile_cache = compile_cache.clone())
    }

    /// Sets a name for sharing the rate limit buckets of this site. Sites with the same name and
    /// the same [`CompileCache`] share their buckets. So if a site is opened again with other
    /// settings, crawlers do not get a new burst. By default, buckets are not shared. A second call
    /// replaces the first.
    pub fn counted_as(self, name: impl Into<String>) -> Self {
        self.with_settings(|settings| settings.counted_as = Some(name.into()))
    }

    /// Sets the parts that are appended to every version, for example a list of AI crawlers that is
    /// maintained separately. The parts are appended to a version before the version is checked and
    /// before the gate examines it. `Appendix` is in the module `internals`, which is not stable.
    /// Default: none. A second call replaces the first.
    pub fn append(self, appendix: &Appendix) -> Self {
        self.with_settings(|settings| settings.appendix = Some(appendix.clone()))
    }

    /// Marks this site as one of many with the same settings. An unusable file does not prevent
    /// opening the site. An override that has no effect on the site's file is not reported, because
    /// it may be meant for the file of another site. `/HOST` is appended to the site's name in the
    /// state directory, unless the name is the host or already ends in `/HOST`.
    pub(super) fn with_shared_policy(mut self, host: &str) -> Self {
        self.settings.has_shared_policy = true;
        if let Some((_, name)) = &mut self.settings.state {
            let is_named_by_host = name.strip_suffix(host).is_some_and(|site| site.is_empty() || site.ends_with('/'));
            if !is_named_by_host {
                *name = format!("{name}/{host}");
            }
        }
        if self.settings.when_missing == WhenMissing::Fail {
            self.settings.when_missing = WhenMissing::Unavailable;
        }
        self
    }
}

impl LiveBuilder<Arc<[u8]>> {
    /// Sets the name of an inline robots.txt, for applications with several sites. The name appears
    /// in messages and in the history. Default: `inline`. A second call replaces the first.
    pub fn named(self, name: impl Into<Arc<str>>) -> Self {
        self.with_settings(|settings| settings.text_name = Some(name.into()))
    }
}

impl<S: SiteSource> LiveBuilder<S> {
    /// Reads the robots.txt, publishes it, and starts to follow changes of the source. If the
    /// source has no usable file, or the gate refuses the file, publishes the last accepted version
    /// (if any).
    ///
    /// # Errors
    ///
    /// With [`WhenMissing::Fail`], returns an error if there is no usable robots.txt.
    pub fn open(self) -> Result<LiveRobots, Rejection> {
        S::open(self)
    }
}

robots_core::debug_as!(|it| [S: std::fmt::Debug] LiveBuilder::<S> { source: it.source, policy: it.settings.policy });

impl LiveRobots {
    /// Prepares a site with an inline robots.txt, which [`LiveRobots::publish`] can replace.
    pub fn text(text: impl AsRef<[u8]>) -> LiveBuilder<Arc<[u8]>> {
        LiveBuilder::new(text.as_ref().into())
    }
}

#[derive(Debug)]
struct InlineText {
    /// The version that was published last. The lock is held only briefly.
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
            Site::reload_on_thread(site, completion, |site| site.reload(|_| true));
        }
    }
}
