//! A folder of robots.txt files, one for each host.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::builder::LiveBuilder;
use super::file;
use super::hosts::HostMap;
use super::sites::{SiteMap, Sites};
#[cfg(feature = "watch")]
use super::watch::{Watched, Watcher};
use crate::live::{CompileCache, LiveRobots};

/// What the name of every file ends in.
const ENDING: &str = ".txt";

/// Threads that open files at once, and the files that are worth one.
const MOST_THREADS: usize = 8;
const FEWEST: usize = 64;

/// A folder of robots.txt files, each named for its host, live: files that come make sites, and each is reloaded when it
/// changes.
///
/// | file | host |
/// |---|---|
/// | `example.com.txt` | `example.com`, whatever the port |
/// | `example.com_8080.txt`, `example.com:8080.txt` | `example.com:8080` |
/// | `_wildcard.example.com.txt` | `*.example.com` |
/// | `münchen.example.txt`, `xn--mnchen-3ya.example.txt` | `xn--mnchen-3ya.example` |
/// | `127.0.0.1.txt`, `[::1].txt` | that address |
/// | `default.txt` | every other host |
///
/// Names that begin with a dot or do not end in `.txt` are none of ours; other names that are no host are told of once
/// and passed over, and so is a second name for a host (the first in the order of their octets counts).
///
/// A file that cannot be used harms no other: as [`LiveRobots`] do, its site keeps the last good version, and one that
/// never had any has no rules. A file that is removed is such a file: a robots.txt that is gone by accident would open
/// the whole site. Its site goes when the folder is opened anew, or at once if there never was a good version.
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
    shared: Arc<Shared>,
}

/// Opens a [`Directory`].
#[must_use]
pub struct DirectoryBuilder {
    path: PathBuf,
    fallback: String,
    settings: Settings,
    listeners: Vec<Listener>,
    compile_cache: CompileCache,
    poll: Duration,
    #[cfg(feature = "watch")]
    watcher: Watcher,
}

type Settings = Box<dyn Fn(&str, LiveBuilder) -> LiveBuilder + Send + Sync>;
type Listener = Box<dyn Fn(&DirectoryEvent<'_>) + Send + Sync>;

/// What became of a name in the folder, or of the folder.
#[derive(Debug)]
#[non_exhaustive]
pub enum DirectoryEvent<'a> {
    /// A file made a site.
    #[non_exhaustive]
    Added {
        /// The host as [`HostMap::insert`] takes it.
        host: &'a str,
        /// Its site. What is wrong with the file, if anything, stands in its status.
        live: &'a LiveRobots,
    },
    /// A site that never had a good version lost its file.
    #[non_exhaustive]
    Removed {
        /// The host.
        host: &'a str,
    },
    /// A name is no host's, or of a host that has a file.
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
        error: &'a DirectoryError,
    },
}

/// Why a folder cannot be listed.
#[derive(Clone, Debug)]
pub struct DirectoryError {
    path: PathBuf,
    cause: Arc<io::Error>,
}

struct Shared {
    path: PathBuf,
    fallback: String,
    settings: Settings,
    listeners: Vec<Listener>,
    compile_cache: CompileCache,
    poll: Duration,
    sites: SiteMap,
    /// Held while the folder is read and files are opened.
    known: Mutex<Known>,
    #[cfg(feature = "watch")]
    watcher: Watcher,
    #[cfg(feature = "watch")]
    watched: std::sync::OnceLock<Watched>,
}

#[derive(Default)]
struct Known {
    /// By host.
    sites: BTreeMap<String, Site>,
    /// Names that were told of.
    ignored: BTreeSet<String>,
    /// Whether it was told that the folder cannot be read.
    is_unreadable: bool,
}

struct Site {
    name: String,
    live: LiveRobots,
}

/// What one reading of the folder found.
#[derive(Default)]
struct Listed {
    hosts: BTreeMap<String, String>,
    ignored: BTreeMap<String, String>,
}

/// Whether files may be half-written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Age {
    Any,
    Settled,
}

impl Directory {
    /// A folder with a file for each host.
    #[expect(clippy::new_ret_no_self, reason = "the builder makes it, as everywhere in this room")]
    pub fn new(path: impl Into<PathBuf>) -> DirectoryBuilder {
        DirectoryBuilder {
            path: path.into(),
            fallback: "default.txt".into(),
            settings: Box::new(|_, builder| builder),
            listeners: Vec::new(),
            compile_cache: CompileCache::new(),
            poll: Duration::from_secs(2),
            #[cfg(feature = "watch")]
            watcher: Watcher::new(),
        }
    }

    /// The sites, for a [`RobotsLayer`](crate::layer::RobotsLayer) or to be looked up. They follow the folder as long as
    /// the directory is held.
    #[must_use]
    pub fn sites(&self) -> &SiteMap {
        &self.shared.sites
    }

    /// Every host with its site, by name.
    #[must_use]
    pub fn hosts(&self) -> Vec<(String, LiveRobots)> {
        let known = self.shared.known();
        known.sites.iter().map(|(host, site)| (host.clone(), site.live.clone())).collect()
    }

    /// Reads the folder again now. Files that are there already are not read: [`LiveRobots::reload`] does so.
    ///
    /// # Errors
    ///
    /// If it cannot be listed; the sites stay as they are.
    pub fn rescan(&self) -> Result<(), DirectoryError> {
        self.shared.scan(Age::Settled).map(drop)
    }

    /// Why changes are only found by polling, where the file system's events cannot be had.
    #[must_use]
    pub fn watch_trouble(&self) -> Option<String> {
        #[cfg(feature = "watch")]
        return self.shared.watched.get().and_then(Watched::trouble);
        #[cfg(not(feature = "watch"))]
        None
    }
}

impl From<&Directory> for Sites {
    fn from(directory: &Directory) -> Self {
        directory.sites().into()
    }
}

impl DirectoryBuilder {
    /// The name of the file for every host without one. Default: `default.txt`.
    pub fn fallback(mut self, name: impl Into<String>) -> Self {
        self.fallback = name.into();
        self
    }

    /// The settings of each site, by its host: policy, registry, check, gate and so on. What is set here of compile cache,
    /// watcher and polling is replaced by the directory's, and [`WhenMissing::Fail`] is read as
    /// [`WhenMissing::Unavailable`]: one bad file must not keep the others out. Of many files several are opened at once.
    /// Default: the builder's own.
    ///
    /// [`WhenMissing::Fail`]: crate::live::WhenMissing::Fail
    /// [`WhenMissing::Unavailable`]: crate::live::WhenMissing::Unavailable
    pub fn each(mut self, settings: impl Fn(&str, LiveBuilder) -> LiveBuilder + Send + Sync + 'static) -> Self {
        self.settings = Box::new(settings);
        self
    }

    /// Calls back with what becomes of the names in the folder. The callback holds up the next reading of it, and must
    /// not ask the directory anything.
    pub fn on_event(mut self, listener: impl Fn(&DirectoryEvent<'_>) + Send + Sync + 'static) -> Self {
        self.listeners.push(Box::new(listener));
        self
    }

    /// Shares what is made of equal files with other sites, too. Default: with those of the folder.
    pub fn compile_cache(mut self, compile_cache: &CompileCache) -> Self {
        self.compile_cache = compile_cache.clone();
        self
    }

    /// How often the folder and each file are looked at to find changes that the file system did not tell of. Default:
    /// two seconds.
    pub fn poll_every(mut self, poll: Duration) -> Self {
        self.poll = poll.max(Duration::from_millis(50));
        self
    }

    /// What watches the folder and its files, together with others. Default: a watcher of its own.
    #[cfg(feature = "watch")]
    pub fn watcher(mut self, watcher: &Watcher) -> Self {
        self.watcher = watcher.clone();
        self
    }

    /// Reads the folder and every file, and starts to watch them.
    ///
    /// # Errors
    ///
    /// If the folder cannot be listed. What is wrong with a file stands in the status of its site.
    pub fn open(self) -> Result<Directory, DirectoryError> {
        let shared = Arc::new(Shared {
            path: self.path,
            fallback: self.fallback,
            settings: self.settings,
            listeners: self.listeners,
            compile_cache: self.compile_cache,
            poll: self.poll,
            sites: SiteMap::new(HostMap::new()),
            known: Mutex::default(),
            #[cfg(feature = "watch")]
            watcher: self.watcher,
            #[cfg(feature = "watch")]
            watched: std::sync::OnceLock::new(),
        });
        #[cfg(feature = "watch")]
        shared.watch();
        shared.scan(Age::Any)?;
        Ok(Directory { shared })
    }
}

impl Shared {
    /// Before the folder is read, so that no name that comes after it goes unnoticed.
    #[cfg(feature = "watch")]
    fn watch(self: &Arc<Self>) {
        let directory = Arc::downgrade(self);
        let look = move || {
            // Why it cannot be listed was told.
            directory.upgrade().and_then(|directory| directory.scan(Age::Settled).ok()).flatten()
        };
        let counts = |name: &str| is_ours(name);
        let watched = self.watcher.folder(self.path.clone(), self.poll, counts, look);
        // Nothing else sets it.
        let _ = self.watched.set(watched);
    }

    /// Makes sites of the files that have come, and tells how long to wait for those that are too young: a file that has
    /// just come may be half-written, so it is opened once it has been left alone.
    fn scan(&self, age: Age) -> Result<Option<Duration>, DirectoryError> {
        let mut known = self.known();
        let listed = match list(&self.path, &self.fallback) {
            Ok(listed) => listed,
            Err(error) => {
                if !std::mem::replace(&mut known.is_unreadable, true) {
                    self.tell(&DirectoryEvent::Unreadable { error: &error });
                }
                return Err(error);
            }
        };
        known.is_unreadable = false;
        for (name, reason) in &listed.ignored {
            if !known.ignored.contains(name) {
                self.tell(&DirectoryEvent::Ignored { name, reason: reason.clone() });
            }
        }
        // A name that went and comes again is told of again, and nothing is remembered of a million that went.
        known.ignored = listed.ignored.into_keys().collect();
        let mut wait = None;
        let mut changed = self.let_go(&mut known, &listed.hosts);
        let mut come = Vec::new();
        for (host, name) in listed.hosts {
            if known.sites.get(&host).is_some_and(|site| site.name == name) {
                continue;
            }
            match rest(&self.path.join(&name)).filter(|_| age == Age::Settled) {
                Some(rest) => wait = wait.max(Some(rest)),
                None => come.push((host, name)),
            }
        }
        for (host, site) in self.open_all(come) {
            self.tell(&DirectoryEvent::Added { host: &host, live: &site.live });
            known.sites.insert(host, site);
            changed = true;
        }
        if changed {
            self.publish(&known);
        }
        Ok(wait)
    }

    /// Opens sites on every core: thousands of files are mostly compiling.
    fn open_all(&self, come: Vec<(String, String)>) -> Vec<(String, Site)> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        let share = come.len().div_ceil(threads).max(FEWEST);
        let (first, others) = come.split_at(share.min(come.len()));
        std::thread::scope(|scope| {
            let open = |come: &[(String, String)]| -> Vec<_> {
                come.iter().filter_map(|(host, name)| Some((host.clone(), self.open_one(host, name)?))).collect()
            };
            let spawn = |come| {
                let spawned =
                    std::thread::Builder::new().name("robots-open".into()).spawn_scoped(scope, move || open(come));
                // The system gives no thread: it is done by this one.
                spawned.map_err(|_| come)
            };
            let others: Vec<_> = others.chunks(share).map(spawn).collect();
            let mut opened = open(first);
            for other in others {
                match other.map(std::thread::ScopedJoinHandle::join) {
                    Ok(Ok(sites)) => opened.extend(sites),
                    // Whatever the settings or a listener panicked with goes to whoever opened the folder.
                    Ok(Err(panic)) => std::panic::resume_unwind(panic),
                    Err(come) => opened.extend(open(come)),
                }
            }
            opened
        })
    }

    fn open_one(&self, host: &str, name: &str) -> Option<Site> {
        let file = LiveRobots::file(self.path.join(name));
        let builder = (self.settings)(host, file).compile_cache(&self.compile_cache).poll_every(self.poll);
        #[cfg(feature = "watch")]
        let builder = builder.watcher(&self.watcher);
        // It cannot fail: what cannot be used is a site without rules.
        let live = builder.never_fail().open().ok()?;
        Some(Site { name: name.to_owned(), live })
    }

    /// Lets go of sites that have lost their file and never had a good version.
    fn let_go(&self, known: &mut Known, listed: &BTreeMap<String, String>) -> bool {
        let before = known.sites.len();
        known.sites.retain(|host, site| {
            let stays = listed.contains_key(host) || site.live.with(|snapshot| snapshot.content().is_some());
            if !stays {
                self.tell(&DirectoryEvent::Removed { host });
            }
            stays
        });
        known.sites.len() != before
    }

    fn publish(&self, known: &Known) {
        let mut hosts = HostMap::new();
        for (host, site) in &known.sites {
            // Each was read by the same rules when it was listed.
            let _ = hosts.insert(host, site.live.clone());
        }
        self.sites.replace(hosts);
    }

    fn tell(&self, event: &DirectoryEvent<'_>) {
        #[cfg(feature = "tracing")]
        tracing::info!("{event}");
        self.listeners.iter().for_each(|listener| listener(event));
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // A listener that panicked has left it with the sites that were opened so far; the next reading goes on there.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a file that has just been written to has to be left alone still.
fn rest(path: &Path) -> Option<Duration> {
    file::unrest(std::fs::metadata(path).ok()?.modified().ok()?)
}

/// Whether a name says that it is a site's.
fn is_ours(name: &str) -> bool {
    name.ends_with(ENDING) && !name.starts_with('.')
}

fn list(path: &Path, fallback: &str) -> Result<Listed, DirectoryError> {
    let failed = |error: io::Error| DirectoryError { path: path.to_owned(), cause: error.into() };
    let mut names = BTreeSet::new();
    let mut listed = Listed::default();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        match name.to_str() {
            Some(name) if name == fallback || is_ours(name) => {
                names.insert(name.to_owned());
            }
            Some(_) => {}
            None => {
                listed.ignored.insert(name.to_string_lossy().into_owned(), "its name is not UTF-8".into());
            }
        }
    }
    // Says what is a host, and that each has one file.
    let mut hosts = HostMap::new();
    for name in names {
        let host = if name == fallback { "*".to_owned() } else { host_of(&name) };
        let place = listed.hosts.len();
        match hosts.insert(&host, place) {
            Ok(()) => {
                listed.hosts.insert(host, name);
            }
            Err(error) => {
                listed.ignored.insert(name, error.to_string());
            }
        }
    }
    Ok(listed)
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

impl fmt::Display for DirectoryEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added { host, live } => write!(f, "{host}: {}", live.status().last_reload()),
            Self::Removed { host } => write!(f, "{host}: its file is gone and was never good; it has no rules now"),
            Self::Ignored { name, reason } => write!(f, "{name:?} is passed over: {reason}"),
            Self::Unreadable { error } => write!(f, "{error}; the sites stay as they are"),
        }
    }
}

impl fmt::Display for DirectoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: cannot be listed", self.path.display())
    }
}

impl Error for DirectoryError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.cause)
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory").field("path", &self.shared.path).field("sites", &self.shared.sites).finish()
    }
}

impl fmt::Debug for DirectoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectoryBuilder")
            .field("path", &self.path)
            .field("fallback", &self.fallback)
            .finish_non_exhaustive()
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
