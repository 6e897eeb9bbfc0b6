//! The public handle for watching files and folders.

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::folders::{Listing, OpenEvents, recommended};
use super::routes::WatchId;
use super::scheduler::Scheduler;
use super::target::{CallbackTarget, SiteTarget, Target, contents, names};
use crate::live::Site;

/// Watches any number of files and folders with one set of threads, and reports their changes.
///
/// Cloning is cheap; clones share the threads. The threads end when all clones and all [`Watched`]
/// values are dropped. Use the same watcher for all [`LiveBuilder`](crate::source::LiveBuilder)s of
/// a process, and for the other files that the process reloads. By default, each builder creates a
/// separate watcher.
///
/// A file system that does not respond does not delay other file systems, because each file system
/// has its own workers and event source. Code that reads a status or drops a handle never waits for
/// a file system. Code that starts to watch a file or reloads it may have to wait.
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
/// assert_eq!(watched.problem(), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Watcher {
    handle: Arc<Handle>,
}

/// A watched file or folder. Dropping this value ends the watch.
#[derive(Debug)]
#[must_use = "dropping this value stops the watch"]
pub struct Watched {
    handle: Arc<Handle>,
    id: WatchId,
}

/// Stops the threads when the last handle is dropped. The scheduler cannot stop the threads in its
/// own `drop`, because it is not dropped while they own it.
#[derive(Debug)]
struct Handle(Arc<Scheduler>);

impl Watcher {
    /// Default interval between polls for changes that the file system has not reported.
    pub const DEFAULT_POLL: Duration = Duration::from_secs(2);

    /// Minimum interval between polls for changes.
    pub const MIN_POLL: Duration = Duration::from_millis(50);

    /// Creates a watcher that watches nothing yet. Its threads start when the first file or folder
    /// is added.
    pub fn new() -> Self {
        Self::with(recommended)
    }

    fn with(open: OpenEvents) -> Self {
        Self { handle: Arc::new(Handle(Scheduler::new(open))) }
    }

    /// Calls `changed` when the contents of a file change, when the file disappears, and when it
    /// appears again. The current content is not reported as a change, so read the file after this
    /// call.
    ///
    /// The callback runs on a thread of the watcher. If the file changes while the callback runs,
    /// the callback runs again afterwards. A change is not reported before the file is complete. If
    /// the file is larger than [`LiveRobots::MAX_FILE`](crate::live::LiveRobots::MAX_FILE), its
    /// contents are not compared.
    pub fn file(&self, path: impl Into<PathBuf>, changed: impl Fn() + Send + Sync + 'static) -> Watched {
        let path = path.into();
        let read = contents(path.clone());
        let watched = self.add(path, Listing::Contents, Watcher::DEFAULT_POLL, || {
            CallbackTarget::new(read, move || {
                changed();
                None
            })
        });
        watched.begin();
        watched
    }

    /// Calls `changed` when names are added to or removed from a folder, if `counts` returns `true`
    /// for at least one of these names. The current names are not reported as a change, so list the
    /// folder after this call.
    pub fn names(
        &self,
        folder: impl Into<PathBuf>,
        counts: impl Fn(&str) -> bool + Send + Sync + 'static,
        changed: impl Fn() + Send + Sync + 'static,
    ) -> Watched {
        self.folder(folder.into(), Watcher::DEFAULT_POLL, counts, move || {
            changed();
            None
        })
    }

    /// Watches the names in a folder, like [`Watcher::names`]. If the callback returns a duration,
    /// it is called again after that duration.
    pub(in crate::source) fn folder(
        &self,
        path: PathBuf,
        poll: Duration,
        counts: impl Fn(&str) -> bool + Send + Sync + 'static,
        changed: impl Fn() -> Option<Duration> + Send + Sync + 'static,
    ) -> Watched {
        let read = names(path.clone(), counts);
        let watched = self.add(path, Listing::Names, poll, || CallbackTarget::new(read, changed));
        watched.begin();
        watched
    }

    /// Starts to record changes of a robots.txt. The file is read only after [`Watched::begin`].
    pub(in crate::source) fn robots(&self, path: PathBuf, poll: Duration, site: Weak<Site>) -> Watched {
        self.add(path, Listing::Contents, poll, || SiteTarget(site))
    }

    fn add<T: Target + 'static>(
        &self,
        path: PathBuf,
        listing: Listing,
        poll: Duration,
        target: impl FnOnce() -> T,
    ) -> Watched {
        let id = self.handle.0.add(path, listing, poll, target);
        Watched { handle: self.handle.clone(), id }
    }
}

impl Default for Watcher {
    fn default() -> Self {
        Self::new()
    }
}

impl Watched {
    pub(in crate::source) fn begin(&self) {
        self.handle.0.begin(self.id);
    }

    /// Returns why the file or folder is polled for changes; `None` if the file system reports
    /// changes. Does not wait for any file system.
    pub fn problem(&self) -> Option<String> {
        self.handle.0.problem(self.id)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.handle.0.remove(self.id);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Instant;

    use notify::{Error, ErrorKind, RecursiveMode};

    use super::*;
    use crate::live::{Cause, LiveRobots};
    use crate::source::file_system::hanging::{HangingFolder, Operations, returns};
    use crate::source::watch::folders::{EventHandler, EventSource};
    use crate::source::watch::scheduler::MAX_WORKERS;

    /// An event source of a system that has no free inotify watches, so it cannot watch anything.
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
    fn without_file_events_changes_are_found_by_polling_and_the_status_contains_the_reason() {
        for (open, reason) in [(exhausted as OpenEvents, "OS file watch limit reached."), (none, "no more instances")] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("robots.txt");
            std::fs::write(&path, "User-agent: *\nDisallow: /a\n").expect("written");
            let watcher = Watcher::with(open);
            let builder = LiveRobots::file(&path).watcher(&watcher).poll_every(Duration::from_millis(50));
            let live = builder.open().expect("a robots.txt");
            let problem = live.status().watch_problem.expect("it is reported");
            let want = "the system cannot report file events, so changes are found only by polling";
            assert!(problem.contains(want), "{problem}");
            assert!(problem.contains(reason), "{problem}");
            std::fs::write(&path, "User-agent: *\nDisallow: /b\n").expect("written");
            let deadline = Instant::now() + Duration::from_secs(60);
            // The file is empty for a moment while it is being written, and a poll may find the
            // empty file.
            let is_polled = || live.history().last().is_some_and(|entry| entry.cause == Cause::Poll);
            while !(is_polled() && has_body(&live, "User-agent: *\nDisallow: /b\n")) {
                assert!(Instant::now() < deadline, "{reason}: it was not found");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }

    /// A poll interval so long that tests detect changes only through events.
    const SELDOM: Duration = Duration::from_secs(3600);

    fn has_body(live: &LiveRobots, text: &str) -> bool {
        live.with(|snapshot| snapshot.content.as_ref().is_some_and(|content| content.body() == text))
    }

    #[test]
    fn a_hanging_file_system_blocks_no_status_no_drop_and_no_other_file_system() {
        let watcher = Watcher::new();
        let hung = HangingFolder::new();
        let open = {
            let watcher = watcher.clone();
            move |path: &Path| LiveRobots::file(path).watcher(&watcher).poll_every(SELDOM).open().expect("a robots.txt")
        };
        let write = |path: &Path| std::fs::write(path, "User-agent: *\nDisallow: /a\n").expect("written");
        let there: Vec<_> = (0..10).map(|number| hung.path().join(format!("{number}.txt"))).collect();
        there.iter().for_each(|path| write(path));
        let hanging: Vec<_> = there.iter().map(|path| open(path)).collect();
        let watched = watcher.file(&there[0], || ());
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("robots.txt");
        write(&path);
        let other = open(&path);

        hung.hang(Operations::All, 0);
        // The files have just changed, so workers look up the folders of these files.
        there.iter().for_each(|path| write(path));
        hung.hang(Operations::All, MAX_WORKERS);

        for live in hanging.clone() {
            returns("the status of a site that hangs", move || live.status());
        }
        let watched = returns("the problem of a file that hangs", move || {
            assert_eq!(watched.problem(), None);
            watched
        });
        returns("dropping a file that hangs", move || drop(watched));
        returns("dropping sites that hang", move || drop(hanging));
        let status = other.clone();
        returns("the status of another site", move || status.status());
        std::fs::write(&path, "User-agent: *\nDisallow: /b\n").expect("written");
        let live = other.clone();
        returns("a change of another site", move || {
            while !has_body(&live, "User-agent: *\nDisallow: /b\n") {
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let another = returns("opening another site", move || open(&path));
        returns("dropping other sites", move || drop((other, another)));
        returns("dropping the watcher", move || drop(watcher));
    }

    #[test]
    fn registering_a_hanging_folder_blocks_no_drop_and_no_other_file_system() {
        let watcher = Watcher::new();
        let hung = HangingFolder::new();
        let folder = tempfile::tempdir().expect("a folder");
        let inner = hung.path().join("inner");
        std::fs::create_dir(&inner).expect("a folder");
        let paths = [hung.path(), inner.as_path(), folder.path()].map(|folder| folder.join("robots.txt"));
        for path in &paths {
            std::fs::write(path, "User-agent: *\nDisallow: /a\n").expect("written");
        }
        let open = |path: &Path| {
            let builder = LiveRobots::file(path).watcher(&watcher).poll_every(SELDOM);
            move || builder.open().expect("a robots.txt")
        };
        let [first, second, other] = paths.each_ref().map(|path| open(path));
        let first = first();
        hung.hang(Operations::Registering, 0);
        std::thread::spawn(second);
        hung.hang(Operations::Registering, 1);

        returns("dropping the last site of a folder", move || drop(first));
        let other = returns("opening another site", other);
        returns("dropping another site", move || drop(other));
        returns("dropping the watcher", move || drop(watcher));
    }
}
