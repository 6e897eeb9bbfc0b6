//! The files that are watched in addition to every robots.txt: the config and its included files,
//! the registry, the files of gates, and templates of refusals. Certificates are read again here,
//! too.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tower_robots::internals::Watched;
use tower_robots::source::Watcher;

use crate::config::{Config, IncludePattern};
use crate::edge::{CertificateEvent, CertificateEventKind, LiveCertificates};
use crate::log::{Log, LogEvent};

/// Watched files, and the notifications of their changes.
#[derive(Debug)]
pub(super) struct WatchedFiles {
    pub(super) watch: FileWatch,
    /// Notified when the config has changed.
    pub(super) config: Arc<Notify>,
    _config: Watched,
    /// The registry, expectations and templates.
    others: Vec<(PathBuf, Watched)>,
}

/// Watches the registry and expectations. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct FileWatch {
    watcher: Watcher,
    /// Notified when one of these files has changed.
    pub(super) notify: Arc<Notify>,
    /// The files that have changed since the last call of [`WatchedFiles::changed`].
    changed: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl WatchedFiles {
    /// Watches the config at this path and the files that it names. Blocks for as long as their
    /// file systems do.
    pub(super) fn of(path: &Path, config: &Config, watcher: &Watcher) -> Self {
        let notify = Arc::new(Notify::new());
        let changed = Arc::clone(&notify);
        let _config = watcher.file(path, move || changed.notify_one());
        let watch = FileWatch { watcher: watcher.clone(), notify: Arc::default(), changed: Arc::default() };
        let others = watch.files_of(config, &BTreeSet::new());
        Self { watch, config: notify, _config, others }
    }

    /// Watches the files of another config from now on: the `added` ones, and those watched before
    /// that it still names.
    pub(super) fn follow(&mut self, config: &Config, added: Vec<(PathBuf, Watched)>) {
        let named = files(config);
        self.others.retain(|(path, _)| named.contains(path));
        self.others.extend(added);
    }

    /// Returns the files that are watched now, except the config.
    pub(super) fn paths(&self) -> BTreeSet<PathBuf> {
        self.others.iter().map(|(path, _)| path.clone()).collect()
    }

    /// Returns the files, except the config, that have changed since the last call.
    pub(super) fn changed(&self) -> BTreeSet<PathBuf> {
        std::mem::take(&mut self.watch.changed.lock())
    }
}

impl FileWatch {
    /// Starts to watch the files of a config, except those that are watched already. Blocks for as
    /// long as their file systems do.
    pub(super) fn files_of(&self, config: &Config, watched: &BTreeSet<PathBuf>) -> Vec<(PathBuf, Watched)> {
        files(config).into_iter().filter(|path| !watched.contains(path)).map(|path| self.path(path, config)).collect()
    }

    fn path(&self, path: PathBuf, config: &Config) -> (PathBuf, Watched) {
        let (notify, changed, of) = (Arc::clone(&self.notify), Arc::clone(&self.changed), path.clone());
        let has_changed = move || {
            changed.lock().insert(of.clone());
            notify.notify_one();
        };
        let watched = match config.included.patterns.iter().find(|pattern| pattern.path() == path) {
            Some(pattern) => {
                let (folder, pattern) = (pattern.folder.clone(), pattern.clone());
                self.watcher.names(folder, move |name| pattern.fits(name), has_changed)
            }
            None => self.watcher.file(&path, has_changed),
        };
        (path, watched)
    }
}

/// Returns the files that affect every robots.txt (the additional registry and the files of gates),
/// and those that are read with the config.
fn files(config: &Config) -> BTreeSet<PathBuf> {
    let of_gates =
        config.sites.iter().flat_map(|site| site.expectations.as_deref().into_iter().chain(site.gate_basis.paths()));
    config.registry.extra.iter().cloned().chain(of_gates.map(Path::to_owned)).chain(of_config(config)).collect()
}

/// Returns the files that are read with the config: templates of refusals, and included files, as
/// paths and as patterns.
fn of_config(config: &Config) -> impl Iterator<Item = PathBuf> {
    let templates = config.sites.iter().filter_map(|site| site.refusal.as_ref()?.file.clone());
    let included = config.included.paths.iter().cloned();
    templates.chain(included).chain(config.included.patterns.iter().map(IncludePattern::path))
}

/// Reports whether the config is to be read again because one of these files has changed.
pub(super) fn are_of_config(changed: &BTreeSet<PathBuf>, config: &Config) -> bool {
    of_config(config).any(|path| changed.contains(&path))
}

/// Interval of the checks. A check reads a few small files; certificates are replaced every few
/// weeks.
const EVERY: Duration = Duration::from_secs(5);

/// Minimum time that changed files must stay the same.
const SETTLING: Duration = Duration::from_millis(400);

/// The certificates of all listeners. Cheap to clone.
///
/// The files of one listener are read on a separate blocking thread, one read at a time. A hanging
/// file system therefore keeps one thread, and does not delay other listeners.
#[derive(Clone, Debug)]
pub(super) struct CertificateWatch {
    followed: Arc<Mutex<Vec<FollowedCertificates>>>,
    log: Log,
}

/// The certificates of one listener.
#[derive(Clone, Debug)]
struct FollowedCertificates {
    live: LiveCertificates,
    /// Held while their files are read.
    order: Arc<tokio::sync::Mutex<()>>,
}

impl CertificateWatch {
    /// Starts to follow the certificates, and logs them.
    pub(super) fn introduce(all: Vec<LiveCertificates>, log: &Log) -> Self {
        let certificates = Self { followed: Arc::default(), log: log.clone() };
        certificates.follow(all);
        certificates
    }

    /// Follows these certificates from now on, and logs new ones. Reads no files. No other thread
    /// reads the new ones yet.
    pub(super) fn follow(&self, all: Vec<LiveCertificates>) {
        let before = self.followed.lock().clone();
        let now = SystemTime::now();
        let mut followed = Vec::with_capacity(all.len());
        for live in all {
            followed.push(match before.iter().find(|other| live.is(&other.live)) {
                Some(same) => same.clone(),
                None => {
                    log_news(&self.log, live.report_all(now));
                    FollowedCertificates { live, order: Arc::default() }
                }
            });
        }
        *self.followed.lock() = followed;
    }

    /// Reads them again on request.
    pub(super) fn reload(&self) {
        for FollowedCertificates { live, order } in self.followed.lock().clone() {
            let log = self.log.clone();
            tokio::spawn(async move {
                let order = order.lock_owned().await;
                spawn_blocking(move || {
                    let _order = order;
                    log_news(&log, live.reload(SystemTime::now()));
                })
                .await
            });
        }
    }

    /// Checks the files at intervals, for as long as the runtime exists.
    pub(super) async fn watch(self) {
        loop {
            tokio::time::sleep(EVERY).await;
            for FollowedCertificates { live, order } in self.followed.lock().clone() {
                // The previous check may not have ended.
                let Ok(order) = order.try_lock_owned() else { continue };
                let log = self.log.clone();
                // The panic hook reports a panic.
                drop(spawn_blocking(move || {
                    let _order = order;
                    log_news(&log, live.look(SystemTime::now(), SETTLING));
                }));
            }
        }
    }
}

fn log_news(log: &Log, news: Vec<CertificateEvent>) {
    for CertificateEvent { kind, message } in news {
        let event = match kind {
            CertificateEventKind::InForce => LogEvent::Certificate,
            CertificateEventKind::Rejected => LogEvent::CertificateRejected,
            CertificateEventKind::Warning => LogEvent::CertificateWarning,
        };
        log.say(event, message);
    }
}
