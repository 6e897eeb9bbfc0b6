//! Reading the folder, and opening a site for each file in it.
//!
//! **A removed file of a directory leaves its site.** The last good version stays, as for every other file: a
//! robots.txt that is gone by accident would open the whole site.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, fs, io};

use crate::live::{Cause, CompileCache, LiveRobots, Mutex, Rejection};
use crate::source::builder::LiveBuilder;
use crate::source::file;
use crate::source::file_source::FileSource;
use crate::source::file_system::reach;
use crate::source::hosts::HostMap;
use crate::source::sites::SiteMap;
use crate::source::watch::{Watched, Watcher};

/// The outcome for a name in the folder, or for the folder.
#[derive(Debug)]
#[non_exhaustive]
pub enum DirectoryEvent<'a> {
    /// A file made a site.
    #[non_exhaustive]
    Added {
        /// The host as [`HostMap::insert`](crate::source::HostMap::insert) takes it.
        host: &'a str,
        /// Its site, whose status says what is wrong with the file, if anything.
        live: &'a LiveRobots,
    },
    /// A site that never had a good version lost its file.
    #[non_exhaustive]
    Removed {
        /// The host.
        host: &'a str,
    },
    /// A name belongs to no host, or to a host that has another file.
    #[non_exhaustive]
    Ignored {
        /// The name in the folder.
        name: &'a str,
        /// Why, and what would be right.
        reason: String,
    },
    /// The folder cannot be read; the sites stay as they are.
    #[non_exhaustive]
    Unreadable {
        /// Why.
        error: &'a Rejection,
    },
}

/// A callback for events.
type DirectoryListener = Box<dyn Fn(&DirectoryEvent<'_>) + Send + Sync>;

impl fmt::Display for DirectoryEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added { host, live } => write!(f, "{host}: {}", live.status().last_reload),
            Self::Removed { host } => write!(f, "{host}: its file is gone and was never good; it has no rules now"),
            Self::Ignored { name, reason } => write!(f, "{name:?} is passed over: {reason}"),
            Self::Unreadable { error } => write!(f, "{error}; the sites stay as they are"),
        }
    }
}

/// Threads that open files at once, and the files that are worth one.
const MOST_THREADS: usize = 8;
const FEWEST: usize = 64;

/// The name of the file for every host without one, by default.
pub(super) const DEFAULT_FALLBACK: &str = "default.txt";

pub(super) struct DirectorySettings {
    pub(super) path: PathBuf,
    pub(super) fallback: String,
    pub(super) each: EachSite,
    pub(super) listeners: Vec<DirectoryListener>,
    pub(super) compile_cache: CompileCache,
    pub(super) poll: Duration,
    pub(super) watcher: Watcher,
}

/// The settings of a site, by its host.
type EachSite = Box<dyn Fn(&str, LiveBuilder<FileSource>) -> LiveBuilder<FileSource> + Send + Sync>;

pub(super) struct DirectoryState {
    pub(super) settings: DirectorySettings,
    pub(super) sites: SiteMap,
    /// By host. Held for a moment only; only a scan changes it.
    pub(super) open: Mutex<BTreeMap<String, DirectorySite>>,
    /// Why a name of the last listing is ignored, by name. Held for a moment only.
    pub(super) ignored: Mutex<BTreeMap<String, String>>,
    /// Held while the folder is read and files are opened, so that scans follow one another.
    scan: Mutex<ScanRecord>,
    pub(super) watched: std::sync::OnceLock<Watched>,
}

/// The findings that one scan leaves to the next.
#[derive(Default)]
struct ScanRecord {
    /// Whether it was reported that the folder cannot be read.
    is_unreadable: bool,
    /// Whether sites have come or gone since they were published, as where a listener panicked in between.
    has_unpublished: bool,
    /// Whether the folder was listed before: a file that comes later has appeared.
    was_listed: bool,
}

pub(super) struct DirectorySite {
    name: String,
    pub(super) live: LiveRobots,
}

/// Whether files may be half-written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    Any,
    Settled,
}

impl DirectorySettings {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            fallback: DEFAULT_FALLBACK.into(),
            each: Box::new(|_, builder| builder),
            listeners: Vec::new(),
            compile_cache: CompileCache::default(),
            poll: Watcher::DEFAULT_POLL,
            watcher: Watcher::new(),
        }
    }
}

impl DirectoryState {
    pub(super) fn new(settings: DirectorySettings) -> Self {
        Self {
            settings,
            sites: SiteMap::new(HostMap::new()),
            open: Mutex::default(),
            ignored: Mutex::default(),
            scan: Mutex::default(),
            watched: std::sync::OnceLock::new(),
        }
    }

    /// Before the folder is read, so that no name that comes after it goes unnoticed.
    pub(super) fn watch(self: &Arc<Self>) {
        let directory = Arc::downgrade(self);
        let look = move || {
            // An event has reported why it cannot be listed.
            directory.upgrade().and_then(|directory| directory.scan(Age::Settled).ok()).flatten()
        };
        let (path, poll) = (self.settings.path.clone(), self.settings.poll);
        let watched = self.settings.watcher.folder(path, poll, is_site_file, look);
        // No other call sets it.
        let _ = self.watched.set(watched);
    }

    /// Makes sites of the files that have come. Returns how long to wait for files that are too young: a file that has
    /// just come may be half-written, so it is opened once it has been left alone.
    pub(super) fn scan(&self, age: Age) -> Result<Option<Duration>, Rejection> {
        let DirectorySettings { path, fallback, .. } = &self.settings;
        // A listener that panicked has left the sites that were opened so far; the next scan goes on there.
        let mut record = self.scan.lock();
        let listing = match list(path, fallback) {
            Ok(listing) => listing,
            Err(error) => {
                let error = Rejection::unlisted(error, path);
                if !std::mem::replace(&mut record.is_unreadable, true) {
                    self.report(&DirectoryEvent::Unreadable { error: &error });
                }
                return Err(error);
            }
        };
        record.is_unreadable = false;
        let appeared = std::mem::replace(&mut record.was_listed, true);
        // A name that went and comes again is reported again.
        let before = std::mem::replace(&mut *self.ignored.lock(), listing.ignored.clone());
        for (name, reason) in listing.ignored {
            if !before.contains_key(&name) {
                self.report(&DirectoryEvent::Ignored { name: &name, reason });
            }
        }
        let mut wait = None;
        let closed = self.close_sites_without_file(&listing.hosts);
        record.has_unpublished |= !closed.is_empty();
        for (host, _) in &closed {
            self.report(&DirectoryEvent::Removed { host });
        }
        let mut come = Vec::new();
        for (host, name) in listing.hosts {
            let is_open = self.open.lock().get(&host).is_some_and(|site| site.name == name);
            if is_open {
                continue;
            }
            match rest(&path.join(&name)).filter(|_| age == Age::Settled) {
                Some(rest) => wait = wait.max(Some(rest)),
                None => come.push((host, name)),
            }
        }
        for (host, site) in self.open_all(come, appeared) {
            self.report(&DirectoryEvent::Added { host: &host, live: &site.live });
            let replaced = self.open.lock().insert(host, site);
            drop(replaced);
            record.has_unpublished = true;
        }
        if std::mem::take(&mut record.has_unpublished) {
            self.publish();
        }
        Ok(wait)
    }

    /// Opens sites on every core: thousands of files are mostly compiling.
    fn open_all(&self, come: Vec<(String, String)>, appeared: bool) -> BTreeMap<String, DirectorySite> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        let threads = threads.min(come.len().div_ceil(FEWEST));
        let (come, opened) = (Mutex::new(come.into_iter()), Mutex::new(BTreeMap::new()));
        let open = || {
            let next = || come.lock().next();
            while let Some((host, name)) = next() {
                let site = self.open_one(&host, name, appeared);
                opened.lock().extend(site.map(|site| (host, site)));
            }
        };
        // A panic of the settings or of a listener goes on in the caller that opens the folder.
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // Where the system gives no thread, the others do its share.
                let _ = std::thread::Builder::new().name("robots-open".into()).spawn_scoped(scope, open);
            }
            open();
        });
        std::mem::take(&mut *opened.lock())
    }

    fn open_one(&self, host: &str, name: String, appeared: bool) -> Option<DirectorySite> {
        let settings = &self.settings;
        let file = LiveRobots::file(settings.path.join(&name));
        let builder = (settings.each)(host, file).compile_cache(&settings.compile_cache);
        let builder = builder.watched_by(&settings.watcher, settings.poll);
        // It cannot fail: a file that cannot be used is a site without rules.
        let builder = if appeared { builder.opened_by(Cause::NewFile) } else { builder };
        let live = builder.one_of_many().open().ok()?;
        Some(DirectorySite { name, live })
    }

    /// Closes sites that have lost their file and never had a good version, and returns them.
    fn close_sites_without_file(&self, listed: &BTreeMap<String, String>) -> Vec<(String, DirectorySite)> {
        let mut open = self.open.lock();
        let without = |(host, site): (&String, &DirectorySite)| {
            let stays = listed.contains_key(host) || site.live.with(|snapshot| snapshot.content.is_some());
            (!stays).then(|| host.clone())
        };
        let hosts: Vec<_> = open.iter().filter_map(without).collect();
        hosts.into_iter().filter_map(|host| open.remove_entry(&host)).collect()
    }

    fn publish(&self) {
        let mut hosts = HostMap::new();
        for (host, site) in self.open.lock().iter() {
            // The listing has inserted each by the same rules.
            let _ = hosts.insert(host, site.live.clone());
        }
        self.sites.replace(hosts);
    }

    /// Warns of overrides that have no effect at any site: one that has some at one of them is meant for that.
    #[cfg(feature = "tracing")]
    pub(super) fn trace_idle_overrides(&self) {
        let sites: Vec<_> = self.open.lock().values().map(|site| site.live.clone()).collect();
        let snapshots = sites.iter().map(LiveRobots::snapshot).filter(|snapshot| snapshot.content.is_some());
        let idle = snapshots.map(|snapshot| {
            let mut alone = Arc::unwrap_or_clone(snapshot);
            alone.is_one_of_many = false;
            BTreeSet::from_iter(
                [alone.misspelled_overrides(), alone.overrides_without_rule(), alone.ended_overrides()].concat(),
            )
        });
        for trouble in idle.reduce(|all, idle| &all & &idle).into_iter().flatten() {
            tracing::warn!(target: "tower_robots::directory", "{}: {trouble}", self.settings.path.display());
        }
    }

    fn report(&self, event: &DirectoryEvent<'_>) {
        #[cfg(feature = "tracing")]
        match event {
            DirectoryEvent::Unreadable { .. } => tracing::warn!(target: "tower_robots::directory", "{event}"),
            _ => tracing::info!(target: "tower_robots::directory", "{event}"),
        }
        self.settings.listeners.iter().for_each(|listener| listener(event));
    }
}

/// How long a file that was written to a moment ago has to be left alone still.
fn rest(path: &Path) -> Option<Duration> {
    file::unrest(fs::metadata(reach(path)).ok()?.modified().ok()?)
}

/// The ending of every file name.
const ENDING: &str = ".txt";

/// The files one listing of the folder found.
#[derive(Default)]
pub(super) struct FolderListing {
    /// File names by host.
    pub(super) hosts: BTreeMap<String, String>,
    /// Why a name is ignored, by name.
    pub(super) ignored: BTreeMap<String, String>,
}

/// Whether a name says that its file belongs to a site.
fn is_site_file(name: &str) -> bool {
    name.ends_with(ENDING) && !name.starts_with('.')
}

/// Lists the folder. Blocks for as long as its file system does.
pub(super) fn list(path: &Path, fallback: &str) -> io::Result<FolderListing> {
    let mut names = BTreeSet::new();
    let mut listing = FolderListing::default();
    for entry in fs::read_dir(reach(path))? {
        let name = entry?.file_name();
        match name.to_str() {
            Some(name) if name == fallback || is_site_file(name) => {
                names.insert(name.to_owned());
            }
            Some(_) => {}
            None => {
                listing.ignored.insert(name.to_string_lossy().into_owned(), "its name is not UTF-8".into());
            }
        }
    }
    // Decides which names are hosts, and that each host has one file.
    let mut hosts = HostMap::new();
    for name in names {
        let host = if name == fallback { "*".to_owned() } else { host_of(&name) };
        match hosts.insert(&host, ()) {
            Ok(()) => {
                listing.hosts.insert(host, name);
            }
            Err(error) => {
                listing.ignored.insert(name, error.to_string());
            }
        }
    }
    Ok(listing)
}

/// The host a file is named for, as [`HostMap::insert`] takes it.
fn host_of(name: &str) -> String {
    let host = name.strip_suffix(ENDING).unwrap_or(name);
    let host = match host.strip_prefix("_wildcard.") {
        Some(below) => format!("*.{below}"),
        None => host.to_owned(),
    };
    match host.rsplit_once('_') {
        Some((name, port)) if !name.is_empty() && port.parse::<u16>().is_ok() => format!("{name}:{port}"),
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_for_its_host() {
        for (name, host) in [
            ("example.com.txt", "example.com"),
            ("example.com_8080.txt", "example.com:8080"),
            ("example.com:8080.txt", "example.com:8080"),
            ("_wildcard.example.com.txt", "*.example.com"),
            ("my_host.example.txt", "my_host.example"),
            ("_dmarc.example.txt", "_dmarc.example"),
            ("[::1].txt", "[::1]"),
            ("[::1]_81.txt", "[::1]:81"),
        ] {
            assert_eq!(host_of(name), host, "{name}");
        }
    }
}
