//! One site's robots.txt, live.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;

use super::file;
use super::hash::Hash;
use super::rejection::{Rejection, RejectionKind};
use super::reload::{Cause, Outcome, Reload, Reloading};
use super::snapshot::{Content, Snapshot};
use crate::agent::Registry;
use crate::check;
use crate::policy::Policy;
use crate::rules::{Reading, RobotsTxt};

/// How long a file must be left alone after a modification that was not followed by a close.
pub(super) const QUIET: Duration = Duration::from_millis(400);

/// One site's robots.txt, live: read, checked and compiled, and replaced while requests flow.
///
/// Cheap to clone; clones share everything. Dropping the last one stops the watching.
///
/// ```
/// use tower_robots::source::LiveRobots;
///
/// let live = LiveRobots::inline("User-agent: *\nDisallow: /private/\n").open()?;
/// let snapshot = live.snapshot();
/// assert_eq!(snapshot.content().map(|content| content.robots().groups().len()), Some(1));
/// # Ok::<(), tower_robots::source::Rejection>(())
/// ```
#[derive(Clone)]
pub struct LiveRobots {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    current: ArcSwap<Snapshot>,
    source: Source,
    origin: Arc<str>,
    settings: Settings,
    /// Held while a version is made and published, so that versions follow one another, and while listeners are told.
    making: Mutex<Making>,
    /// Held for a moment only: whoever asks for the status waits for no reload.
    history: Mutex<History>,
    #[cfg(feature = "watch")]
    watch: std::sync::OnceLock<super::watch::Watch>,
}

/// Where the bytes come from.
#[derive(Debug)]
pub(super) enum Source {
    Inline(Arc<[u8]>),
    File(PathBuf),
}

/// What a source holds.
pub(super) struct Loaded {
    bytes: Arc<[u8]>,
    modified: Option<SystemTime>,
}

type Listener = Box<dyn Fn(&Reload, &Snapshot) + Send + Sync>;

struct Settings {
    reading: Reading,
    check: check::Options,
    max_age: Duration,
    when_missing: WhenMissing,
    listeners: Vec<Listener>,
}

/// What a version is made with.
struct Making {
    registry: Arc<Registry>,
}

struct History {
    last: Reload,
    since: SystemTime,
}

/// What to do when there is no usable robots.txt at the start. Later on the last good version always stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WhenMissing {
    /// [`LiveBuilder::open`] returns the error. The default.
    #[default]
    Fail,
    /// Start without one: nothing is enforced, and `/robots.txt` is answered with 503 until there is one.
    Unavailable,
    /// Start without one: nothing is enforced, and `/robots.txt` goes to the application behind.
    Relay,
}

/// What is live and how it came to be.
#[derive(Clone, Debug)]
pub struct Status {
    live: Option<Hash>,
    last: Reload,
    since: SystemTime,
    watch_trouble: Option<String>,
}

/// Opens a [`LiveRobots`].
#[must_use]
pub struct LiveBuilder {
    source: Source,
    policy: Policy,
    registry: Arc<Registry>,
    settings: Settings,
    poll: Duration,
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

    /// Reads the source again now, on a thread of its own.
    pub fn reload(&self) -> Reloading {
        let (reloading, slot) = Reloading::new();
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

    /// Replaces the registry: the version that is live is compiled again for it, and later ones will be. Not to be
    /// called from a listener of reloads: it waits for them.
    pub fn set_registry(&self, registry: Arc<Registry>) {
        let mut making = self.shared.making();
        making.registry = registry;
        if let Some(content) = self.snapshot().content() {
            let modified = content.modified().map(|(modified, _)| modified);
            let robots = content.robots().clone();
            self.shared.publish(self.shared.settings.content(robots, modified, &making.registry));
        }
    }

    /// What is live, since when, and what the last reload came to.
    #[must_use]
    pub fn status(&self) -> Status {
        let history = self.shared.history();
        Status {
            live: self.shared.live(),
            last: history.last.clone(),
            since: history.since,
            watch_trouble: self.shared.watch_trouble(),
        }
    }
}

impl fmt::Debug for LiveRobots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveRobots").field("source", &self.shared.source).field("live", &self.shared.live()).finish()
    }
}

impl LiveBuilder {
    fn new(source: Source) -> Self {
        let settings = Settings {
            reading: Reading::default(),
            check: check::Options::default(),
            max_age: Duration::from_secs(3600),
            when_missing: WhenMissing::default(),
            listeners: Vec::new(),
        };
        let registry = Registry::builtin().clone();
        Self { source, policy: Policy::default(), registry, settings, poll: Duration::from_secs(2) }
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
        self.settings.check = options;
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
    /// callback runs on the thread that reloads and holds up the next reload; its panics are caught.
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

    /// Reads the robots.txt and starts to watch it.
    ///
    /// # Errors
    ///
    /// With [`WhenMissing::Fail`], why there is no usable robots.txt.
    pub fn open(self) -> Result<LiveRobots, Rejection> {
        let Self { source, policy, registry, settings, poll } = self;
        let origin: Arc<str> = match &source {
            Source::Inline(_) => "inline".into(),
            Source::File(path) => path.to_string_lossy().into(),
        };
        let read = source.load(&origin).and_then(|loaded| settings.accept(loaded, &origin, &registry));
        let (content, outcome) = match read {
            Ok(content) => {
                let outcome = Outcome::Published { hash: content.hash() };
                (Some(Arc::new(content)), outcome)
            }
            Err(rejection) if settings.when_missing == WhenMissing::Fail => return Err(rejection),
            Err(rejection) => (None, Outcome::Kept { rejection, live: None }),
        };
        let last = Reload { cause: Cause::Start, origin: origin.clone(), outcome };
        let snapshot = Snapshot::new(content, policy.into(), settings.max_age, settings.when_missing);
        settings.tell(&last, &snapshot);
        let shared = Arc::new(Shared {
            current: ArcSwap::from_pointee(snapshot),
            source,
            origin,
            settings,
            making: Mutex::new(Making { registry }),
            history: Mutex::new(History { last, since: SystemTime::now() }),
            #[cfg(feature = "watch")]
            watch: std::sync::OnceLock::new(),
        });
        #[cfg(feature = "watch")]
        if let Source::File(path) = &shared.source {
            let watch = super::watch::Watch::start(path.clone(), poll, Arc::downgrade(&shared));
            // Nothing else sets it: this is the only place that has the new `shared`.
            let _ = shared.watch.set(watch);
        }
        #[cfg(not(feature = "watch"))]
        let _ = poll;
        Ok(LiveRobots { shared })
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

impl Source {
    fn load(&self, origin: &Arc<str>) -> Result<Loaded, Rejection> {
        match self {
            Self::Inline(text) => Ok(Loaded { bytes: text.clone(), modified: None }),
            Self::File(path) => {
                file::read(path, origin).map(|read| Loaded { bytes: read.bytes.into(), modified: read.modified })
            }
        }
    }
}

impl Settings {
    fn accept(&self, loaded: Loaded, origin: &Arc<str>, registry: &Arc<Registry>) -> Result<Content, Rejection> {
        let robots = RobotsTxt::parse(loaded.bytes);
        match Rejection::of(&robots, origin) {
            Some(rejection) => Err(rejection),
            None => Ok(self.content(robots, loaded.modified, registry)),
        }
    }

    fn content(&self, robots: RobotsTxt, modified: Option<SystemTime>, registry: &Arc<Registry>) -> Content {
        let options = self.check.clone().with_registry(registry.clone());
        Content::new(robots, modified, self.reading, registry, &options)
    }

    fn tell(&self, reload: &Reload, snapshot: &Snapshot) {
        #[cfg(feature = "tracing")]
        match &reload.outcome {
            Outcome::Kept { .. } => tracing::warn!(cause = reload.cause.as_str(), "{reload}"),
            Outcome::Published { .. } | Outcome::Unchanged { .. } => {
                tracing::info!(cause = reload.cause.as_str(), "{reload}")
            }
        }
        for listener in &self.listeners {
            // A listener's panic must end neither the watching nor the others' hearing; the panic hook has told of it.
            let _ = catch_unwind(AssertUnwindSafe(|| listener(reload, snapshot)));
        }
    }
}

impl Shared {
    /// Reads the source and publishes what it holds, or keeps what is live and says why.
    pub(super) fn reload(&self, cause: Cause) -> Reload {
        self.reload_if(cause, |_| true)
    }

    /// Whoever asks for a reload may do so in the middle of writing: a file that was changed a moment ago must be the
    /// same once that moment has passed. A fault of ours leaves nobody waiting.
    fn reload_on_request(&self) -> Reload {
        let settled = |source: &Loaded| {
            let age = source.modified.and_then(|modified| modified.elapsed().ok());
            let Some(rest) = age.and_then(|age| QUIET.checked_sub(age)) else { return true };
            std::thread::sleep(rest);
            self.source.load(&self.origin).is_ok_and(|again| again.bytes == source.bytes)
        };
        catch_unwind(AssertUnwindSafe(|| self.reload_if(Cause::Request, settled))).unwrap_or_else(|_| {
            let rejection = Rejection::new(RejectionKind::Interrupted, &self.origin);
            let outcome = Outcome::Kept { rejection, live: self.live() };
            Reload { cause: Cause::Request, origin: self.origin.clone(), outcome }
        })
    }

    /// Publishes what the source holds only if it was `settled` after it was read; else it is
    /// [`RejectionKind::Unstable`], which is told only to whoever asked: the watcher looks again by itself.
    pub(super) fn reload_if(&self, cause: Cause, settled: impl FnOnce(&Loaded) -> bool) -> Reload {
        let making = self.making();
        let live = self.live();
        let kept = |rejection| Outcome::Kept { rejection, live };
        let outcome = match self.source.load(&self.origin) {
            Ok(loaded) if live == Some(Hash::of(&loaded.bytes)) => Outcome::Unchanged { hash: Hash::of(&loaded.bytes) },
            Ok(loaded) if !settled(&loaded) => kept(Rejection::new(RejectionKind::Unstable, &self.origin)),
            Ok(loaded) => match self.settings.accept(self.dated(loaded), &self.origin, &making.registry) {
                Ok(content) => self.publish(content),
                Err(rejection) => kept(rejection),
            },
            Err(rejection) => kept(rejection),
        };
        let reload = Reload { cause, origin: self.origin.clone(), outcome };
        if reload.is_unstable() && cause != Cause::Request {
            return reload;
        }
        let is_news = {
            let mut history = self.history();
            let is_news = is_news(&history.last.outcome, &reload);
            if matches!(reload.outcome, Outcome::Published { .. }) {
                history.since = SystemTime::now();
            }
            history.last = reload.clone();
            is_news
        };
        if is_news {
            self.settings.tell(&reload, &self.current.load_full());
        }
        reload
    }

    /// A version that replaces another is never dated before it, or whoever asks by date would keep the other: an older
    /// file put back keeps its old date.
    fn dated(&self, loaded: Loaded) -> Loaded {
        let before = self.current.load().content().and_then(|content| content.modified()).map(|(modified, _)| modified);
        match (loaded.modified, before) {
            (Some(modified), Some(before)) if modified <= before => {
                Loaded { modified: Some(SystemTime::now()), ..loaded }
            }
            _ => loaded,
        }
    }

    /// What the source holds now, without publishing it: `None` where it cannot be read.
    #[cfg(feature = "watch")]
    pub(super) fn peek(&self) -> Option<Hash> {
        self.source.load(&self.origin).ok().map(|loaded| Hash::of(&loaded.bytes))
    }

    pub(super) fn live(&self) -> Option<Hash> {
        self.current.load().content().map(|content| content.hash())
    }

    fn publish(&self, content: Content) -> Outcome {
        let content = Arc::new(content);
        self.change(|current| current.with_content(content.clone()));
        Outcome::Published { hash: content.hash() }
    }

    /// Replaces the snapshot by one made from it; made again if another change was quicker.
    fn change(&self, next: impl Fn(&Snapshot) -> Snapshot) {
        self.current.rcu(|current| next(current));
    }

    fn making(&self) -> MutexGuard<'_, Making> {
        // Only whole registries are put in, whatever panicked meanwhile.
        self.making.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn history(&self) -> MutexGuard<'_, History> {
        // A panic while it was held left it as it was before: it is only written with whole values.
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch_trouble(&self) -> Option<String> {
        #[cfg(feature = "watch")]
        return self.watch.get().and_then(super::watch::Watch::trouble);
        #[cfg(not(feature = "watch"))]
        None
    }
}

/// A failure is told once, not at every look at the same broken file.
fn is_news(last: &Outcome, reload: &Reload) -> bool {
    match (&reload.outcome, last) {
        (Outcome::Published { .. }, _) => true,
        (Outcome::Unchanged { .. }, last) => reload.cause == Cause::Request || matches!(last, Outcome::Kept { .. }),
        (Outcome::Kept { rejection: now, .. }, Outcome::Kept { rejection: before, .. }) => {
            reload.cause == Cause::Request || now.kind() != before.kind()
        }
        (Outcome::Kept { .. }, _) => true,
    }
}

impl Status {
    /// The version that is live, if any is.
    #[must_use]
    pub const fn live(&self) -> Option<Hash> {
        self.live
    }

    /// What the last reload came to.
    #[must_use]
    pub const fn last_reload(&self) -> &Reload {
        &self.last
    }

    /// Since when this version, or the lack of one, is live.
    #[must_use]
    pub const fn since(&self) -> SystemTime {
        self.since
    }

    /// Why changes are only found by polling, where the file system's events cannot be had.
    #[must_use]
    pub fn watch_trouble(&self) -> Option<&str> {
        self.watch_trouble.as_deref()
    }
}
