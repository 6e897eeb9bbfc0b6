//! A folder with a robots.txt file for each host. The submodule `scan` lists the files in the
//! folder, and opens their sites.
//!
//! **In robotsd, a directory is one site that has a robots.txt file for each of its hosts.** The
//! status, the log and the state directory call each file `SITE/HOST`.

mod scan;

use std::path::PathBuf;
use std::sync::Arc;
#[cfg(feature = "watch")]
use std::time::Duration;

pub use self::scan::DirectoryEvent;
use self::scan::{Age, DEFAULT_FALLBACK, DirectorySettings, DirectoryState};
use crate::live::{CompileCache, LiveRobots, Rejection};
use crate::source::builder::LiveBuilder;
use crate::source::file_source::FileSource;
use crate::source::sites::{IntoSites, SiteMap, Sites};
use crate::source::watch::Watched;
#[cfg(feature = "watch")]
use crate::source::watch::Watcher;

/// A folder of robots.txt files, each named after its host. A site is opened for each new file, and
/// each file is reloaded when it changes.
///
/// | file | host |
/// |---|---|
/// | `example.com.txt` | `example.com`, with any port |
/// | `example.com_8080.txt`, `example.com:8080.txt` | `example.com:8080` |
/// | `_wildcard.example.com.txt` | `*.example.com` |
/// | `xn--mnchen-3ya.example.txt`, `münchen.example.txt` (needs `idn`) | `xn--mnchen-3ya.example` |
/// | `127.0.0.1.txt`, `[::1].txt` | that address |
/// | `default.txt` | every other host |
///
/// A file `robots.txt` in the folder applies only to a host called `robots`. Use `default.txt` for
/// all hosts that have no other file.
///
/// A file is ignored without an event if its name begins with a dot or does not end in `.txt`,
/// unless it is the [`fallback`](DirectoryBuilder::fallback). If the name of a file ends in `.txt`
/// but contains no valid host, the file is ignored, and an event reports this once. If the names of
/// several files contain the same host, the first name in byte order is used, and the other files
/// are ignored.
///
/// An unusable file affects only its own site. The site keeps its last good version, like any
/// [`LiveRobots`]; if it never had a good version, it has no rules. The site of a removed file also
/// keeps its last good version, because an accidental removal must not allow everything on the
/// site. Such a site is closed when the folder is opened again. However, it is closed immediately
/// if it never had a good version, or if another file has the same host.
///
/// An override in the policy may be written for only some of the files. With the feature `tracing`,
/// opening the folder logs a warning for each override that affects none of the files.
///
/// ```
/// use tower_robots::source::Directory;
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
///
/// std::fs::write(folder.join("example.com.txt"), "User-agent: *\nDisallow: /private/\n")?;
/// let directory = Directory::new(folder).open()?;
/// assert!(directory.sites().load().get("example.com").is_some());
/// assert!(directory.sites().load().get("example.org").is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Directory {
    shared: Arc<DirectoryState>,
    /// A clone of the map in `shared`. Unlike that map, this clone owns `shared`, so the folder is
    /// watched as long as this clone or a copy of it exists.
    sites: SiteMap,
}

/// Opens a [`Directory`].
#[must_use]
pub struct DirectoryBuilder {
    settings: DirectorySettings,
}

impl Directory {
    /// Default name of the file for all hosts that have no other file.
    pub const DEFAULT_FALLBACK: &str = DEFAULT_FALLBACK;

    /// Prepares to open a folder of robots.txt files.
    #[expect(clippy::new_ret_no_self, reason = "as in the other types of this module, the builder creates the value")]
    pub fn new(path: impl Into<PathBuf>) -> DirectoryBuilder {
        DirectoryBuilder { settings: DirectorySettings::new(path.into()) }
    }

    /// Returns the sites, for a [`RobotsLayer`](crate::layer::RobotsLayer) or for lookups. As long
    /// as this directory, the map, a clone of the map, or a layer that uses the map exists, the map
    /// is updated when the folder changes.
    pub fn sites(&self) -> &SiteMap {
        &self.sites
    }

    /// Returns every host with its site, sorted by name. Does not read the folder.
    pub fn hosts(&self) -> Vec<(String, LiveRobots)> {
        self.shared.open.lock().iter().map(|(host, site)| (host.clone(), site.live.clone())).collect()
    }

    /// Returns a line for each ignored file that an event has reported, in the format of
    /// [`DirectoryEvent::Ignored`]. Does not read the folder.
    pub fn ignored(&self) -> Vec<String> {
        let ignored = self.shared.ignored.lock();
        let line =
            |(name, reason): (&String, &String)| DirectoryEvent::Ignored { name, reason: reason.clone() }.to_string();
        ignored.iter().map(line).collect()
    }

    /// Lists the files in the folder again, and opens a site for each new file. To read the file of
    /// an open site again, use [`LiveRobots::reload`].
    ///
    /// Waits for the file system, and for the end of a scan that is already running. The other
    /// methods of this type do not wait for the file system or for a scan.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be listed. In this case, no site is opened or closed.
    pub fn rescan(&self) -> Result<(), Rejection> {
        self.shared.scan(Age::Settled).map(drop)
    }

    /// Returns why the folder is polled for changes; `None` if the file system reports changes. If
    /// the feature `watch` is off, returns a message that changes are not noticed.
    pub fn watch_problem(&self) -> Option<String> {
        self.shared.watched.get().and_then(Watched::problem)
    }
}

impl IntoSites for &Directory {
    fn into_sites(self) -> Sites {
        self.sites().into_sites()
    }
}

impl IntoSites for Directory {
    fn into_sites(self) -> Sites {
        self.sites.into_sites()
    }
}

impl DirectoryBuilder {
    /// Sets the name of the file for all hosts that have no other file. Default:
    /// [`Directory::DEFAULT_FALLBACK`]. A second call replaces the first.
    pub fn fallback(mut self, name: impl Into<String>) -> Self {
        self.settings.fallback = name.into();
        self
    }

    /// Sets a callback that configures each site by its host (`*` for `default.txt`): policy,
    /// registry, check, gate and so on. The callback is also called when a file is added later. If
    /// your settings can change at run time, read the current settings in the callback. The compile
    /// cache, watcher and polling interval of the directory replace the values that the callback
    /// sets. The host is appended to the name in a state directory, unless the name already ends in
    /// the host ([`LiveBuilder::state`]). [`WhenMissing::Fail`] is treated as
    /// [`WhenMissing::Unavailable`], so that one unusable file does not prevent opening the other
    /// sites. If there are many files, several threads call the callback at the same time. Default:
    /// no callback. A second call replaces the first.
    ///
    /// [`WhenMissing::Fail`]: crate::live::WhenMissing::Fail
    /// [`WhenMissing::Unavailable`]: crate::live::WhenMissing::Unavailable
    pub fn each(
        mut self,
        each: impl Fn(&str, LiveBuilder<FileSource>) -> LiveBuilder<FileSource> + Send + Sync + 'static,
    ) -> Self {
        self.settings.each = Box::new(each);
        self
    }

    /// Adds a callback for the events of the folder. A callback runs during a scan of the folder,
    /// and [`Directory::rescan`] waits for the end of that scan. So a callback must never call
    /// `rescan`. A second call adds a callback.
    pub fn on_event(mut self, listener: impl Fn(&DirectoryEvent<'_>) + Send + Sync + 'static) -> Self {
        self.settings.listeners.push(Box::new(listener));
        self
    }

    /// Shares compiled files with sites outside the folder that use the same cache. `CompileCache`
    /// is in the module `internals`, which is not stable. Default: the folder has its own cache. A
    /// second call replaces the first.
    pub fn compile_cache(mut self, compile_cache: &CompileCache) -> Self {
        self.settings.compile_cache = compile_cache.clone();
        self
    }

    /// Sets the interval for polling the folder and each file, to find changes that the file system
    /// has not reported. Default: [`Watcher::DEFAULT_POLL`](crate::source::Watcher::DEFAULT_POLL).
    /// A second call replaces the first.
    #[cfg(feature = "watch")]
    pub fn poll_every(mut self, poll: Duration) -> Self {
        self.settings.poll = poll.max(Watcher::MIN_POLL);
        self
    }

    /// Sets the watcher of the folder and its files. By default, the directory creates a watcher. A
    /// second call replaces the first.
    #[cfg(feature = "watch")]
    pub fn watcher(mut self, watcher: &Watcher) -> Self {
        self.settings.watcher = watcher.clone();
        self
    }

    /// Lists the files in the folder, reads each of them, and starts to watch the folder and its
    /// files.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be listed. A problem with a single file does not cause
    /// an error; the status of the file's site contains the problem.
    pub fn open(self) -> Result<Directory, Rejection> {
        let shared = Arc::new(DirectoryState::new(self.settings));
        shared.watch();
        shared.scan(Age::Any)?;
        #[cfg(feature = "tracing")]
        shared.trace_idle_settings();
        let sites = shared.sites.followed_by(shared.clone());
        Ok(Directory { shared, sites })
    }
}

robots_core::debug_as!(|it| Directory { path: it.shared.settings.path, sites: it.sites() });

robots_core::debug_as!(|it| DirectoryBuilder { path: it.settings.path, fallback: it.settings.fallback });

#[cfg(test)]
mod tests {
    #[cfg(feature = "watch")]
    #[test]
    fn reading_or_dropping_a_directory_does_not_wait_for_a_hanging_folder() {
        use std::time::Duration;

        use super::Directory;
        use crate::source::file_system::hanging::{HangingFolder, Operations, returns};

        let hung = HangingFolder::new();
        std::fs::write(hung.path().join("a.test.txt"), "User-agent: *\nDisallow: /a\n").expect("written");
        let directory = Directory::new(hung.path()).poll_every(Duration::from_millis(50)).open().expect("a folder");
        hung.hang(Operations::All, 1);
        // Two scans must wait: one for the hanging folder, and the other for the end of the first
        // scan.
        for _ in 0..2 {
            let directory = directory.clone();
            std::thread::spawn(move || directory.rescan());
        }
        hung.hang(Operations::All, 2);
        let read = directory.clone();
        let (hosts, found) = returns("the hosts", move || (read.hosts(), read.sites().load().get("a.test").is_some()));
        assert_eq!((hosts.len(), found), (1, true));
        let read = directory.clone();
        returns("the problem of the folder", move || read.watch_problem());
        returns("the status of a site", move || hosts[0].1.status());
        returns("dropping the directory", move || drop(directory));
    }
}
