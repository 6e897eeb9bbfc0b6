//! Finding out that a file has changed, without ever taking a half-written one.
//!
//! The *directories* of the path and of every link on the way to it are watched, because a watch on the file dies at
//! the first atomic rename. A rename or a close after writing is a finished version and is taken at once, unless another
//! modification follows on its heels; a bare modification waits until the file has been quiet; and since network file
//! systems and some mounts tell nothing at all, every few seconds the file's stamp is looked at as well, and its contents
//! if that has changed, and they are taken when they are the same twice.
//!
//! One [`Watcher`] does so for thousands of files.

mod debounce;
mod folders;
mod links;
mod scheduler;
mod target;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use self::folders::{Listing, OpenEvents, WatchId, recommended};
use self::scheduler::Scheduler;
use self::target::{CallbackTarget, SiteTarget, Target, contents, names};
use crate::live::Shared;

/// How often things are looked at that tell of no events, where nobody says otherwise.
pub(super) const POLL: Duration = Duration::from_secs(2);

/// Tells of changes of files: any number of them with one set of threads and one source of file system events.
///
/// Cheap to clone; clones share everything. It ends with the last clone and the last thing it watches. Give one to every
/// [`LiveBuilder`](super::LiveBuilder) of a process, and use it for whatever else is reloaded; a builder that is given
/// none starts one of its own.
///
/// A file on a file system that hangs holds up no other, unless four do at once.
///
/// ```
/// use tower_robots::live::LiveRobots;
/// use tower_robots::source::Watcher;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("robots.txt");
/// # let config = folder.path().join("config.toml");
/// # std::fs::write(&path, "User-agent: *\nDisallow: /private/\n")?;
/// # std::fs::write(&config, "")?;
///
/// let watcher = Watcher::new();
/// let live = LiveRobots::file(&path).watcher(&watcher).open()?;
/// let watched = watcher.file(&config, || println!("the config has changed"));
/// assert_eq!(watched.trouble(), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Watcher {
    handle: Arc<Handle>,
}

/// Something that is being watched until this is dropped.
#[must_use = "nothing is watched once it is dropped"]
pub struct Watched {
    handle: Arc<Handle>,
    id: WatchId,
}

/// Ends the threads, which hold the scheduler, once nobody can ask anything of them.
struct Handle(Arc<Scheduler>);

impl Watcher {
    /// A watcher of nothing yet. Its threads start with the first thing it watches.
    #[must_use]
    pub fn new() -> Self {
        Self::with(recommended)
    }

    fn with(ask: OpenEvents) -> Self {
        Self { handle: Arc::new(Handle(Arc::new(Scheduler::new(ask)))) }
    }

    /// Calls back when the contents of a file have changed, when it is gone and when it is back. What it holds now is no
    /// change: read it after this call.
    ///
    /// The callback runs on a thread of the watcher; what comes meanwhile calls it again. Nothing half-written is told
    /// of: the rules are those for a robots.txt. Contents are compared up to [`MAX_FILE`](crate::live::MAX_FILE).
    pub fn file(&self, path: impl Into<PathBuf>, changed: impl Fn() + Send + Sync + 'static) -> Watched {
        let path = path.into();
        let read = contents(path.clone());
        let watched = self.arm(path, Listing::Contents, POLL, || {
            CallbackTarget::new(read, move || {
                changed();
                None
            })
        });
        watched.begin();
        watched
    }

    /// Calls back when names that count have come to a folder or gone from it, and again after as long as it answers.
    pub(super) fn folder(
        &self,
        path: PathBuf,
        poll: Duration,
        counts: impl Fn(&str) -> bool + Send + Sync + 'static,
        changed: impl Fn() -> Option<Duration> + Send + Sync + 'static,
    ) -> Watched {
        let read = names(path.clone(), counts);
        let watched = self.arm(path, Listing::Names, poll, || CallbackTarget::new(read, changed));
        watched.begin();
        watched
    }

    /// Starts to listen for a robots.txt; [`Watched::begin`] starts the looking.
    pub(super) fn robots(&self, path: PathBuf, poll: Duration, shared: Weak<Shared>) -> Watched {
        self.arm(path, Listing::Contents, poll, || SiteTarget(shared))
    }

    fn arm<S: Target + 'static>(
        &self,
        path: PathBuf,
        listing: Listing,
        poll: Duration,
        target: impl FnOnce() -> S,
    ) -> Watched {
        let id = self.handle.0.arm(path, listing, poll, target);
        Watched { handle: self.handle.clone(), id }
    }
}

impl Default for Watcher {
    fn default() -> Self {
        Self::new()
    }
}

impl Watched {
    pub(super) fn begin(&self) {
        self.handle.0.begin(self.id);
    }

    /// Why changes are only found by polling, where the file system's events cannot be had.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.handle.0.trouble(self.id)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.handle.0.forget(self.id);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watcher").field(&self.handle.0).finish()
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Instant;

    use notify::{Error, ErrorKind, RecursiveMode};

    use super::folders::{EventHandler, EventSource};
    use super::*;
    use crate::live::{Cause, LiveRobots};

    /// What a process gets that has every inotify watch it may have.
    struct Exhausted;

    impl notify::Watcher for Exhausted {
        fn new<F: notify::EventHandler>(_: F, _: notify::Config) -> notify::Result<Self> {
            Ok(Self)
        }

        fn watch(&mut self, _: &Path, _: RecursiveMode) -> notify::Result<()> {
            Err(Error::new(ErrorKind::MaxFilesWatch))
        }

        fn unwatch(&mut self, _: &Path) -> notify::Result<()> {
            Err(Error::watch_not_found())
        }

        fn kind() -> notify::WatcherKind {
            notify::WatcherKind::NullWatcher
        }
    }

    fn exhausted(_: EventHandler) -> notify::Result<EventSource> {
        Ok(Box::new(Exhausted))
    }

    fn none(_: EventHandler) -> notify::Result<EventSource> {
        Err(Error::generic("no more instances"))
    }

    #[test]
    fn without_events_changes_are_found_by_polling_and_the_status_says_why() {
        for (ask, reason) in [(exhausted as OpenEvents, "OS file watch limit reached."), (none, "no more instances")] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("robots.txt");
            std::fs::write(&path, "User-agent: *\nDisallow: /a\n").expect("written");
            let watcher = Watcher::with(ask);
            let builder = LiveRobots::file(&path).watcher(&watcher).poll_every(Duration::from_millis(50));
            let live = builder.open().expect("a robots.txt");
            let trouble = live.status().watch_trouble().expect("it is told").to_owned();
            assert!(trouble.contains("no file events, changes are found by polling"), "{trouble}");
            assert!(trouble.contains(reason), "{trouble}");
            std::fs::write(&path, "User-agent: *\nDisallow: /b\n").expect("written");
            let deadline = Instant::now() + Duration::from_secs(60);
            while live.history().last().map(|entry| entry.cause()) != Some(Cause::Poll) {
                assert!(Instant::now() < deadline, "{reason}: it was not found");
                std::thread::sleep(Duration::from_millis(10));
            }
            let body = live.with(|snapshot| snapshot.content().map(|content| content.body().clone()));
            assert_eq!(body.as_deref(), Some(&b"User-agent: *\nDisallow: /b\n"[..]));
        }
    }
}
