//! Lists a folder of robots.txt files, and opens a site for each file.
//!
//! **Removing a file from the folder does not remove its site.** The last good version stays live,
//! so that the accidental removal of a robots.txt does not allow everything on the site.

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

/// An event during a scan of the folder, about a single file or the whole folder.
#[derive(Debug)]
#[non_exhaustive]
pub enum DirectoryEvent<'a> {
    /// A new file was found, and its site was opened.
    #[non_exhaustive]
    Added {
        /// The host, in the form that [`HostMap::insert`](crate::source::HostMap::insert) accepts.
        host: &'a str,
        /// The host's site. Its status reports any problem with the file.
        live: &'a LiveRobots,
    },
    /// The file of a site was removed. The site never had a usable file, so the site was closed.
    #[non_exhaustive]
    Removed {
        /// The host of the removed file.
        host: &'a str,
    },
    /// A file was ignored, because its name does not contain a valid host, or because another file
    /// has the same host.
    #[non_exhaustive]
    Ignored {
        /// The name of the file.
        name: &'a str,
        /// Why the file was ignored, and what to change.
        reason: String,
    },
    /// The folder cannot be read. The sites do not change.
    #[non_exhaustive]
    Unreadable {
        /// The reason why the folder cannot be read.
        error: &'a Rejection,
    },
}

type DirectoryListener = Box<dyn Fn(&DirectoryEvent<'_>) + Send + Sync>;

impl fmt::Display for DirectoryEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added { host, live } => write!(f, "{host}: {}", live.status().last_reload),
            Self::Removed { host } => {
                write!(f, "{host}: the file was removed before any version of it was live, so the host has no rules")
            }
            Self::Ignored { name, reason } => write!(f, "{name:?} is ignored: {reason}"),
            Self::Unreadable { error } => write!(f, "{error}; the sites are not changed"),
        }
    }
}

/// Maximum number of threads that open files at the same time.
const MAX_THREADS: usize = 8;

/// Number of new files per thread of a scan. A scan uses at most [`MAX_THREADS`] threads.
const MIN_SITES_PER_THREAD: usize = 64;

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

type EachSite = Box<dyn Fn(&str, LiveBuilder<FileSource>) -> LiveBuilder<FileSource> + Send + Sync>;

pub(super) struct DirectoryState {
    pub(super) settings: DirectorySettings,
    pub(super) sites: SiteMap,
    /// The open sites, by host. Only scans change this map. The lock is held only briefly.
    pub(super) open: Mutex<BTreeMap<String, DirectorySite>>,
    /// The names of the files that the last listing of the folder ignored, with the reasons. The
    /// lock is held only briefly.
    pub(super) ignored: Mutex<BTreeMap<String, String>>,
    /// State of the scans. The lock is held while the folder is listed and sites are opened, so
    /// that only one scan runs at a time.
    scan: Mutex<ScanRecord>,
    pub(super) watched: std::sync::OnceLock<Watched>,
}

#[derive(Default)]
struct ScanRecord {
    is_unreadable: bool,
    /// Whether sites were added or removed since the map `sites` was last replaced. At the start of
    /// a scan, the value is `true` only if a listener panicked during the previous scan.
    has_unpublished: bool,
    /// Whether the folder was listed before. After the first listing, every file without a site is
    /// a new file.
    was_listed: bool,
}

pub(super) struct DirectorySite {
    name: String,
    pub(super) live: LiveRobots,
}

/// Whether a scan also opens recently modified files, which may still be incomplete.
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

    /// Starts to watch the folder. Must be called before the folder is listed, so that no file that
    /// is created after the listing is missed.
    pub(super) fn watch(self: &Arc<Self>) {
        let directory = Arc::downgrade(self);
        let look = move || {
            // An error is ignored here, because `scan` reports it to the listeners.
            directory.upgrade().and_then(|directory| directory.scan(Age::Settled).ok()).flatten()
        };
        let (path, poll) = (self.settings.path.clone(), self.settings.poll);
        let fallback = self.settings.fallback.clone();
        let is_ours = move |name: &str| is_site_file(name, &fallback);
        let watched = self.settings.watcher.folder(path, poll, is_ours, look);
        // `set` cannot fail, because no other code sets `watched`.
        let _ = self.watched.set(watched);
    }

    /// Opens sites for new files. With [`Age::Settled`], skips files that were modified recently,
    /// because another program may still be writing them. Returns the time until the skipped files
    /// can be opened; `None` if no file was skipped.
    pub(super) fn scan(&self, age: Age) -> Result<Option<Duration>, Rejection> {
        let DirectorySettings { path, fallback, .. } = &self.settings;
        // If a listener panics, the sites that are already open are kept, and the next scan opens
        // the remaining sites.
        let mut record = self.scan.lock();
        let listing = match list(path, fallback) {
            Ok(listing) => listing,
            Err(error) => {
                let error = Rejection::unreadable_folder(error, path);
                if !std::mem::replace(&mut record.is_unreadable, true) {
                    self.report(&DirectoryEvent::Unreadable { error: &error });
                }
                return Err(error);
            }
        };
        record.is_unreadable = false;
        let appeared = std::mem::replace(&mut record.was_listed, true);
        // An event reports an ignored name only if the previous listing did not ignore the same
        // name.
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
        for (host, name) in &listing.hosts {
            let is_open = self.open.lock().get(host).is_some_and(|site| site.name == *name);
            if is_open {
                continue;
            }
            match time_until_settled(&path.join(name)).filter(|_| age == Age::Settled) {
                Some(rest) => wait = wait.max(Some(rest)),
                None => come.push((host.clone(), name.clone())),
            }
        }
        for (host, site) in self.open_all(come, appeared) {
            self.report(&DirectoryEvent::Added { host: &host, live: &site.live });
            let replaced = self.open.lock().insert(host, site);
            drop(replaced);
            record.has_unpublished = true;
        }
        if std::mem::take(&mut record.has_unpublished) {
            self.publish(&listing.hosts);
        }
        Ok(wait)
    }

    /// Opens sites on several threads, because compiling thousands of files on one thread takes too
    /// long.
    fn open_all(&self, come: Vec<(String, String)>, appeared: bool) -> BTreeMap<String, DirectorySite> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        let threads = threads.min(come.len().div_ceil(MIN_SITES_PER_THREAD));
        let (come, opened) = (Mutex::new(come.into_iter()), Mutex::new(BTreeMap::new()));
        let open = || {
            let next = || come.lock().next();
            while let Some((host, name)) = next() {
                let site = self.open_one(&host, name, appeared);
                opened.lock().extend(site.map(|site| (host, site)));
            }
        };
        // If the callback `each` or a listener panics, the panic continues in the caller of this
        // function.
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // If the system cannot start a thread, the other threads open the files.
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
        // Opening cannot fail, because a site whose file is unusable is opened without rules.
        let builder = if appeared { builder.opened_by(Cause::NewFile) } else { builder };
        let live = builder.with_shared_policy(host).open().ok()?;
        Some(DirectorySite { name, live })
    }

    /// Closes the sites whose file was removed and was never usable. Returns these sites.
    fn close_sites_without_file(&self, listed: &BTreeMap<String, String>) -> Vec<(String, DirectorySite)> {
        let mut open = self.open.lock();
        let without = |(host, site): (&String, &DirectorySite)| {
            let stays = listed.contains_key(host) || site.live.with(|snapshot| snapshot.content.is_some());
            (!stays).then(|| host.clone())
        };
        let hosts: Vec<_> = open.iter().filter_map(without).collect();
        hosts.into_iter().filter_map(|host| open.remove_entry(&host)).collect()
    }

    /// Replaces the map of sites. If the names of two files are different spellings of one host,
    /// and one of these files was removed, closes the site of the removed file.
    fn publish(&self, listed: &BTreeMap<String, String>) {
        let mut hosts = HostMap::new();
        // The closed sites are dropped only after the lock is released.
        let mut closed = Vec::new();
        {
            let mut open = self.open.lock();
            let (first, last): (Vec<_>, Vec<_>) = open.keys().cloned().partition(|host| listed.contains_key(host));
            for host in first.into_iter().chain(last) {
                // `list` has rejected invalid hosts, so inserting fails only for a host that is
                // already in the map.
                if hosts.insert(&host, open[&host].live.clone()).is_err() {
                    closed.extend(open.remove(&host));
                }
            }
        }
        self.sites.replace(hosts);
    }

    /// Warns about settings of the policy that have no effect on any site. A setting that affects
    /// only some of the sites causes no warning, because it was probably written for those sites.
    #[cfg(feature = "tracing")]
    pub(super) fn trace_idle_settings(&self) {
        let sites: Vec<_> = self.open.lock().values().map(|site| site.live.clone()).collect();
        let snapshots = sites.iter().map(LiveRobots::snapshot).filter(|snapshot| snapshot.content.is_some());
        let idle = snapshots.map(|snapshot| {
            let mut alone = Arc::unwrap_or_clone(snapshot);
            alone.has_shared_policy = false;
            BTreeSet::from_iter(
                [alone.misspelled_overrides(), alone.settings_without_effect(), alone.ended_overrides()].concat(),
            )
        });
        for problem in idle.reduce(|all, idle| &all & &idle).into_iter().flatten() {
            tracing::warn!(target: "tower_robots::directory", "{}: {problem}", self.settings.path.display());
        }
    }

    fn report(&self, event: &DirectoryEvent<'_>) {
        #[cfg(feature = "tracing")]
        match event {
            DirectoryEvent::Unreadable { .. } | DirectoryEvent::Ignored { .. } => {
                tracing::warn!(target: "tower_robots::directory", "{event}");
            }
            _ => tracing::info!(target: "tower_robots::directory", "{event}"),
        }
        self.settings.listeners.iter().for_each(|listener| listener(event));
    }
}

/// Returns the time until a recently modified file may be read; `None` if it may be read now.
fn time_until_settled(path: &Path) -> Option<Duration> {
    file::time_until_complete(fs::metadata(reach(path)).ok()?.modified().ok()?)
}

const ENDING: &str = ".txt";

#[derive(Default)]
pub(super) struct FolderListing {
    /// The name of the file for each host.
    pub(super) hosts: BTreeMap<String, String>,
    pub(super) ignored: BTreeMap<String, String>,
}

fn is_site_file(name: &str, fallback: &str) -> bool {
    name == fallback || name.ends_with(ENDING) && !name.starts_with('.')
}

/// Lists the files in the folder. Blocks until the file system responds.
pub(super) fn list(path: &Path, fallback: &str) -> io::Result<FolderListing> {
    let mut names = BTreeSet::new();
    let mut listing = FolderListing::default();
    for entry in fs::read_dir(reach(path))? {
        let name = entry?.file_name();
        match name.to_str() {
            Some(name) if is_site_file(name, fallback) => {
                names.insert(name.to_owned());
            }
            Some(_) => {}
            None => {
                listing.ignored.insert(name.to_string_lossy().into_owned(), "the name of the file is not UTF-8".into());
            }
        }
    }
    // A file is ignored if its host cannot be inserted into this map, because the host is invalid
    // or because another file has the same host.
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

/// Returns the host in the name of a file, in the form that [`HostMap::insert`] accepts.
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
    fn the_host_of_a_file_is_derived_from_the_file_name() {
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
