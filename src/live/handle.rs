//! One site's robots.txt, live: the handle.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use arc_swap::ArcSwap;
#[cfg(feature = "layer")]
use arc_swap::Guard;

use super::clock::Clock;
use super::enforcement::Enforcement;
use super::gate::{Gate, Pending};
use super::history::{History, HistoryEntry};
use super::publish::{AcceptError, Making, RollbackError, Settings, Source};
use super::reload::{Cause, Reload, Reloading};
use super::snapshot::Snapshot;
use super::state::{SiteState, StateError};
use super::status::Status;
use super::version_hash::{VersionHash, VersionHashPrefix};
use crate::agent::Registry;
use crate::check;
use crate::policy::Policy;

/// One site's robots.txt, live: read, checked and compiled, and replaced while requests flow.
///
/// Cheap to clone; clones share everything. Dropping the last one stops the watching.
///
/// ```
/// use tower_robots::live::LiveRobots;
///
/// let live = LiveRobots::inline("User-agent: *\nDisallow: /private/\n").open()?;
/// let snapshot = live.snapshot();
/// assert_eq!(snapshot.content().map(|content| content.robots().groups().len()), Some(1));
/// # Ok::<(), tower_robots::live::Rejection>(())
/// ```
#[derive(Clone)]
pub struct LiveRobots {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) current: ArcSwap<Snapshot>,
    pub(crate) source: Source,
    pub(crate) origin: Arc<str>,
    pub(crate) settings: Settings,
    /// Held while a version is made and published, so that versions follow one another, and while listeners are told.
    pub(crate) making: Mutex<Making>,
    /// Held for a moment only: whoever asks for the status waits for no reload.
    pub(crate) past: Mutex<Past>,
    pub(crate) state: Option<SiteState>,
    pub(crate) clock: Clock,
    pub(crate) faults: AtomicU64,
    pub(crate) callback_faults: AtomicU64,
    /// Held while the kill switch is turned, so that what is written last is what was set last.
    pub(crate) switch: Mutex<()>,
    #[cfg(feature = "watch")]
    pub(crate) watch: std::sync::OnceLock<crate::source::Watched>,
    #[cfg(feature = "fetch")]
    pub(crate) following: std::sync::OnceLock<crate::source::SitePoller>,
}

/// What came of what was tried.
pub(crate) struct Past {
    pub(crate) last: Reload,
    pub(crate) since: SystemTime,
    pub(crate) history: History,
    pub(crate) pending: Option<Pending>,
    pub(crate) before: Option<VersionHash>,
}

/// What to do when there is no usable robots.txt at the start. Later on the last good version always stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WhenMissing {
    /// [`LiveBuilder::open`](crate::source::LiveBuilder::open) returns the error. The default.
    #[default]
    Fail,
    /// Start without one: nothing is enforced, and `/robots.txt` is answered with 503 until there is one.
    Unavailable,
    /// Start without one: nothing is enforced, and `/robots.txt` goes to the application behind.
    Relay,
}

impl LiveRobots {
    /// What is live now. It stays as it is however long it is held.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.shared.current.load_full()
    }

    /// Reads what is live now, without the cost of sharing it. `read` must not block: the version it sees cannot be
    /// freed meanwhile.
    pub fn with<R>(&self, read: impl FnOnce(&Snapshot) -> R) -> R {
        read(&self.shared.current.load())
    }

    /// As [`LiveRobots::with`], for a local: the guard must not be kept, nor held across an await.
    #[cfg(feature = "layer")]
    pub(crate) fn load(&self) -> Guard<Arc<Snapshot>> {
        self.shared.current.load()
    }

    /// Reads the source again now, on a thread of its own; what is fetched is fetched now.
    pub fn reload(&self) -> Reloading {
        let (reloading, slot) = Reloading::new();
        #[cfg(feature = "fetch")]
        if let Some(following) = self.shared.following.get() {
            following.reload(slot);
            return reloading;
        }
        let job = {
            let (shared, slot) = (self.shared.clone(), slot.clone());
            move || slot.fill(shared.reload_on_request())
        };
        if std::thread::Builder::new().name("robots-reload".into()).spawn(job).is_err() {
            // The system gives no thread: whoever asked has to wait for the file.
            slot.fill(self.shared.reload_on_request());
        }
        reloading
    }

    /// Replaces the policy; the rules stay as they are.
    pub fn set_policy(&self, policy: Policy) {
        let policy = Arc::new(policy);
        self.shared.change(|current| current.with_policy(policy.clone()));
    }

    /// Replaces the registry: the version that is live is compiled again for it, and later ones will be, unless
    /// it is the one there is. Not to be
    /// called from a listener of reloads: it waits for them.
    pub fn set_registry(&self, registry: Arc<Registry>) {
        self.shared.set_registry(registry);
    }

    /// Replaces how versions are checked: the one that is live is checked again, unless nothing is different. Not to be
    /// called from a listener of reloads: it waits for them.
    pub fn set_check(&self, options: check::Options) {
        self.shared.set_check(options);
    }

    /// Replaces the gate, for what comes from now on. What waits is examined again when the source is read the next
    /// time, on [`LiveRobots::reload`] for one. Not to be called from a listener of reloads: it waits for them.
    pub fn set_gate(&self, gate: Gate) {
        self.shared.set_gate(gate);
    }

    /// Brings the version live that waits (see [`Status::pending`]): those very bytes, whatever the source holds by now.
    /// It blocks while they are compiled and written down; not to be called from a listener of reloads.
    ///
    /// # Errors
    ///
    /// If nothing waits, or another version does; nothing changes then.
    pub fn accept(&self, hash: &VersionHashPrefix) -> Result<Reload, AcceptError> {
        self.shared.accept(hash)
    }

    /// Brings the version live that was accepted before the one that is live. That one waits from now on, as what the
    /// gate refused does: it does not come back by itself until the source has held something else. It blocks while
    /// the version is compiled and written down; not to be called from a listener of reloads.
    ///
    /// # Errors
    ///
    /// If no version was accepted before.
    pub fn rollback(&self) -> Result<Reload, RollbackError> {
        self.shared.rollback()
    }

    /// Turns enforcement of this site off, or on again, at once: it waits for no reload. With a state directory it stays
    /// so after a restart.
    ///
    /// # Errors
    ///
    /// If it could not be written to the state directory: it is done, and will be forgotten when the process ends unless it
    /// can be written before, which is tried.
    pub fn set_enforcement(&self, enforcement: Enforcement) -> Result<(), StateError> {
        let _turning = self.shared.switch.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.shared.current.load().switches().site;
        self.shared.change(|current| current.with_switches(|switches| switches.site = enforcement));
        let written = self.shared.state.as_ref().map_or(Ok(()), |state| state.set_enforcement(enforcement));
        if before != enforcement {
            self.shared.remember_switch(enforcement, "this site");
        }
        written
    }

    /// What is live, since when, what waits, and what the last reload came to.
    #[must_use]
    pub fn status(&self) -> Status {
        self.shared.status()
    }

    /// What was tried and came to something new, and turns of the kill switch, the newest last: at most
    /// [`MAX_HISTORY`](super::MAX_HISTORY) entries, with a state directory those of earlier processes too.
    #[must_use]
    pub fn history(&self) -> Vec<HistoryEntry> {
        self.shared.past().history.iter().cloned().collect()
    }

    /// Counts a request that passed because judging it ended in a panic.
    #[cfg(feature = "layer")]
    pub(crate) fn count_fault(&self) {
        self.shared.faults.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a panic of a callback that ran once a request was decided.
    #[cfg(feature = "layer")]
    pub(crate) fn count_callback_fault(&self) {
        self.shared.callback_faults.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn from_shared(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

impl fmt::Debug for LiveRobots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveRobots").field("source", &self.shared.source).field("live", &self.shared.live()).finish()
    }
}

impl Shared {
    /// Whoever asks for a reload may do so in the middle of writing: a file that was changed a moment ago must be the
    /// same once that moment has passed. A fault of ours leaves nobody waiting.
    fn reload_on_request(&self) -> Reload {
        catch_unwind(AssertUnwindSafe(|| self.reload_once_quiet(Cause::Request)))
            .unwrap_or_else(|_| Reload::interrupted(Cause::Request, &self.origin, self.live()))
    }

    pub(crate) fn live(&self) -> Option<VersionHash> {
        self.current.load().content().map(|content| content.hash())
    }

    /// The switch of all sites was turned.
    pub(crate) fn set_switch_of_all(&self, enforcement: Enforcement) {
        self.change(|current| current.with_switches(|switches| switches.all = enforcement));
    }

    /// Replaces the snapshot by one made from it; made again if another change was quicker.
    pub(crate) fn change(&self, next: impl Fn(&Snapshot) -> Snapshot) {
        self.current.rcu(|current| next(current));
    }

    pub(crate) fn making(&self) -> MutexGuard<'_, Making> {
        // Only whole values are put in, whatever panicked meanwhile.
        self.making.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn past(&self) -> MutexGuard<'_, Past> {
        // A panic while it was held left it as it was before: it is only written with whole values.
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn status(&self) -> Status {
        let snapshot = self.current.load();
        let past = self.past();
        Status {
            live: snapshot.content().map(|content| content.hash()),
            last: past.last.clone(),
            since: past.since,
            pending: past.pending.clone(),
            before: past.before,
            enforcement: snapshot.enforcement(),
            switch: snapshot.switches().site,
            grace_end: snapshot.grace_end(),
            faults: self.faults.load(Ordering::Relaxed),
            callback_faults: self.callback_faults.load(Ordering::Relaxed),
            state_troubles: self.state.as_ref().map(SiteState::troubles).unwrap_or_default(),
            watch_trouble: self.watch_trouble(),
            #[cfg(feature = "fetch")]
            fetch: self.following.get().map(crate::source::SitePoller::status),
        }
    }

    fn watch_trouble(&self) -> Option<String> {
        #[cfg(feature = "watch")]
        return self.watch.get().and_then(crate::source::Watched::trouble);
        #[cfg(not(feature = "watch"))]
        None
    }
}
