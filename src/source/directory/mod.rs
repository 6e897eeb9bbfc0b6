//! A folder in which each file is the robots.txt of a host: the handle, and how it is opened. Its listing is in `scan`.
//!
//! **A directory is one site with many robots.txt.** They are named `SITE/HOST` in status, log and state.

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

/// A folder of robots.txt files, each named for its host, live: files that come make sites, and each is reloaded when it
/// changes.
///
/// | file | host |
/// |---|---|
/// | `example.com.txt` | `example.com`, whatever the port |
/// | `example.com_8080.txt`, `example.com:8080.txt` | `example.com:8080` |
/// | `_wildcard.example.com.txt` | `*.example.com` |
/// | `xn--mnchen-3ya.example.txt`, with the feature `idn` also `münchen.example.txt` | `xn--mnchen-3ya.example` |
/// | `127.0.0.1.txt`, `[::1].txt` | that address |
/// | `default.txt` | every other host |
///
/// Names that begin with a dot or do not end in `.txt` are left alone, without an event: so are `example.com`, and `robots.txt` in a
/// folder of that name. Other names that are no host are reported once and
/// ignored, and so is a second name for a host (the first in the order of their octets counts).
///
/// A file that cannot be used harms no other: as [`LiveRobots`] do, its site keeps the last good version, and one that
/// never had any has no rules. A file that is removed is such a file: a robots.txt that is gone by accident would open
/// the whole site. Its site goes when the folder is opened anew, or at once if there never was a good version.
///
/// An override of a policy that is for no rule or crawler of a file may be meant for another file. With the feature `tracing` one that has no
/// effect at any of them is a warning when the folder is opened.
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
    /// Those of `shared`, which they keep: whoever has the sites has sites that follow the folder.
    sites: SiteMap,
}

/// Opens a [`Directory`].
#[must_use]
pub struct DirectoryBuilder {
    settings: DirectorySettings,
}

impl Directory {
    /// The name of the file for every host without one, by default.
    pub const DEFAULT_FALLBACK: &str = DEFAULT_FALLBACK;

    /// A folder with a file for each host.
    #[expect(clippy::new_ret_no_self, reason = "the builder makes it, as everywhere in this room")]
    pub fn new(path: impl Into<PathBuf>) -> DirectoryBuilder {
        DirectoryBuilder { settings: DirectorySettings::new(path.into()) }
    }

    /// The sites, for a [`RobotsLayer`](crate::layer::RobotsLayer) or to be looked up. They follow the folder as long as they, a clone
    /// of them, a layer with them, or the directory is held.
    pub fn sites(&self) -> &SiteMap {
        &self.sites
    }

    /// Every host with its site, by name. It waits for no file system.
    pub fn hosts(&self) -> Vec<(String, LiveRobots)> {
        self.shared.open.lock().iter().map(|(host, site)| (host.clone(), site.live.clone())).collect()
    }

    /// Returns a line for each name in the folder that is ignored, as [`DirectoryEvent::Ignored`] has it. It waits for no file system.
    pub fn ignored(&self) -> Vec<String> {
        let ignored = self.shared.ignored.lock();
        let line =
            |(name, reason): (&String, &String)| DirectoryEvent::Ignored { name, reason: reason.clone() }.to_string();
        ignored.iter().map(line).collect()
    }

    /// Reads the folder again now. Files that are there already are not read: [`LiveRobots::reload`] does so.
    ///
    /// It waits for the file system, and for a reading of the folder that is under way; nothing else here waits for
    /// either.
    ///
    /// # Errors
    ///
    /// If it cannot be listed; the sites stay as they are.
    pub fn rescan(&self) -> Result<(), Rejection> {
        self.shared.scan(Age::Settled).map(drop)
    }

    /// Why changes are found by polling only, where the file system reports no events.
    pub fn watch_trouble(&self) -> Option<String> {
        self.shared.watched.get().and_then(Watched::trouble)
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
    /// The name of the file for every host without one. Default: [`Directory::DEFAULT_FALLBACK`]. A second call replaces the first.
    pub fn fallback(mut self, name: impl Into<String>) -> Self {
        self.settings.fallback = name.into();
        self
    }

    /// The settings of each site, by its host (`*` for `default.txt`): policy, registry, check, gate and so on. It is asked again for each
    /// file that comes, so what is switched while the application runs is read here from where it is kept. The directory's compile cache,
    /// watcher and polling replace those set here, and [`WhenMissing::Fail`] is read as
    /// [`WhenMissing::Unavailable`]: one bad file must not keep the others out. Many files are opened by several threads at once.
    /// Default: the builder's own. A second call replaces the first.
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

    /// Calls back with the events of the folder. The callback holds up the next reading of the folder, so it must not call
    /// [`Directory::rescan`]. A second call adds to the first.
    pub fn on_event(mut self, listener: impl Fn(&DirectoryEvent<'_>) + Send + Sync + 'static) -> Self {
        self.settings.listeners.push(Box::new(listener));
        self
    }

    /// Shares compiled files with other sites, too. Default: with those of the folder. A second call replaces the first.
    pub fn compile_cache(mut self, compile_cache: &CompileCache) -> Self {
        self.settings.compile_cache = compile_cache.clone();
        self
    }

    /// How often the folder and each file are polled for changes that the file system has not reported. Default:
    /// [`Watcher::DEFAULT_POLL`](crate::source::Watcher::DEFAULT_POLL). A second call replaces the first.
    #[cfg(feature = "watch")]
    pub fn poll_every(mut self, poll: Duration) -> Self {
        self.settings.poll = poll.max(Watcher::SHORTEST_POLL);
        self
    }

    /// The watcher of the folder and its files. Default: a watcher of its own. A second call replaces the first.
    #[cfg(feature = "watch")]
    pub fn watcher(mut self, watcher: &Watcher) -> Self {
        self.settings.watcher = watcher.clone();
        self
    }

    /// Reads the folder and every file, and starts to watch them.
    ///
    /// # Errors
    ///
    /// If the folder cannot be listed. The status of a site says what is wrong with its file.
    pub fn open(self) -> Result<Directory, Rejection> {
        let shared = Arc::new(DirectoryState::new(self.settings));
        shared.watch();
        shared.scan(Age::Any)?;
        #[cfg(feature = "tracing")]
        shared.trace_idle_overrides();
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
    fn no_reader_waits_for_a_folder_that_hangs_and_neither_does_its_drop() {
        use std::time::Duration;

        use super::Directory;
        use crate::source::file_system::hanging::{HangingFolder, Operations, returns};

        let hung = HangingFolder::new();
        std::fs::write(hung.path().join("a.test.txt"), "User-agent: *\nDisallow: /a\n").expect("written");
        let directory = Directory::new(hung.path()).poll_every(Duration::from_millis(50)).open().expect("a folder");
        hung.hang(Operations::All, 1);
        // Two that wait for the folder, one of them for the other.
        for _ in 0..2 {
            let directory = directory.clone();
            std::thread::spawn(move || directory.rescan());
        }
        hung.hang(Operations::All, 2);
        let read = directory.clone();
        let (hosts, found) = returns("the hosts", move || (read.hosts(), read.sites().load().get("a.test").is_some()));
        assert_eq!((hosts.len(), found), (1, true));
        let read = directory.clone();
        returns("the trouble of the folder", move || read.watch_trouble());
        returns("the status of a site", move || hosts[0].1.status());
        returns("dropping the directory", move || drop(directory));
    }
}
