//! Putting a live robots.txt together: the settings every source has.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::agent::Registry;
use crate::check;
use crate::live::{
    Clock, CompileCache, Gate, KillSwitch, LONGEST_MAX_AGE, LiveRobots, Rejection, Reload, SiteSettings, Snapshot,
    StateDir, WhenMissing,
};
use crate::policy::Policy;
use crate::rules::Reading;

/// Opens a [`LiveRobots`] with a source. What is set for one source only, such as polling, is there for that source only.
#[must_use]
pub struct LiveBuilder<S> {
    pub(super) source: S,
    pub(super) settings: SiteSettings,
}

/// A source of a site: [`InlineSource`](super::InlineSource), [`FileSource`](super::FileSource), and with the feature
/// `fetch` `UrlSource` and `UpstreamSource`. Sealed.
pub trait SiteSource: sealed::Opens {}

pub(super) mod sealed {
    use super::LiveBuilder;
    use crate::live::{LiveRobots, Rejection};

    /// Opens a site.
    pub trait Opens: Sized {
        /// Brings the first version live and keeps it up to date.
        fn open(builder: LiveBuilder<Self>) -> Result<LiveRobots, Rejection>;
    }
}

impl<S> LiveBuilder<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source, settings: SiteSettings::default() }
    }

    #[cfg(any(feature = "watch", feature = "fetch"))]
    pub(super) fn with_source(mut self, change: impl FnOnce(&mut S)) -> Self {
        change(&mut self.source);
        self
    }

    /// What to do about disallowed requests. Default: [`Policy::default`], which observes.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.settings.policy = policy;
        self
    }

    /// How the file is read. Default: [`Reading::Standard`].
    pub fn reading(mut self, reading: Reading) -> Self {
        self.settings.reading = reading;
        self
    }

    /// How each version is checked. Default: [`check::Options::default`].
    pub fn check(mut self, options: check::Options) -> Self {
        self.settings.check = options;
        self
    }

    /// The crawlers that are known. Default: [`Registry::builtin`].
    pub fn registry(mut self, registry: Arc<Registry>) -> Self {
        self.settings.registry = registry;
        self
    }

    /// How long others may cache `/robots.txt`. Default:
    /// [`DEFAULT_MAX_AGE`](crate::live::DEFAULT_MAX_AGE), one hour; at most [`LONGEST_MAX_AGE`], 24 hours (RFC 9309,
    /// section 2.4).
    pub fn max_age(mut self, max_age: Duration) -> Self {
        self.settings.max_age = max_age.min(LONGEST_MAX_AGE);
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

    /// What a version must not do if it is to go live by itself. Default: [`Gate::open`], through which everything passes.
    pub fn gate(mut self, gate: Gate) -> Self {
        self.settings.gate = gate;
        self
    }

    /// Where this site, by its name, remembers what was accepted, what waits, what was tried and its kill switch. Default:
    /// nowhere. Then a restart forgets all of it: the gate has nothing to compare the first version with and refuses only
    /// shutting out everyone, there is nothing to go back to, every rule is new to the grace, and enforcement is on.
    pub fn state(mut self, state: &StateDir, site: impl Into<String>) -> Self {
        self.settings.state = Some((state.clone(), site.into()));
        self
    }

    /// What turns enforcement off for this site and others at once. Default: the switch of the state directory, where there
    /// is one, which then counts in any case.
    pub fn kill_switch(mut self, switch: &KillSwitch) -> Self {
        self.settings.switch = Some(switch.clone());
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
        self.settings.clock = Clock::new(clock);
        self
    }

    /// Shares what is made of equal files with other sites. Default: nothing is shared.
    pub fn compile_cache(mut self, compile_cache: &CompileCache) -> Self {
        self.settings.compile_cache = compile_cache.clone();
        self
    }

    /// For one of many sites, whose start no other's file may stop.
    pub(super) fn never_fail(mut self) -> Self {
        if self.settings.when_missing == WhenMissing::Fail {
            self.settings.when_missing = WhenMissing::Unavailable;
        }
        self
    }
}

impl<S: SiteSource> LiveBuilder<S> {
    /// Reads the robots.txt and starts to keep it up to date. Where the source holds nothing usable, or something the gate
    /// refuses, the version that was accepted last goes live, if one is remembered.
    ///
    /// # Errors
    ///
    /// With [`WhenMissing::Fail`], why there is no usable robots.txt.
    pub fn open(self) -> Result<LiveRobots, Rejection> {
        S::open(self)
    }
}

impl<S: fmt::Debug> fmt::Debug for LiveBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveBuilder")
            .field("source", &self.source)
            .field("policy", &self.settings.policy)
            .finish_non_exhaustive()
    }
}
