//! Watches files other than robots.txt files: the config and its included files, the registry, the
//! files that gates read, and the templates for refusals. Also checks certificates for changes.

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
use crate::refusal::SiteRefusals;

#[derive(Debug)]
pub(super) struct WatchedFiles {
    pub(super) watch: FileWatch,
    pub(super) config: Arc<Notify>,
    _config: Watched,
    others: Vec<(PathBuf, Watched)>,
}

/// Watches the files of a config, except the config file itself. Clones are cheap and share their
/// state.
#[derive(Clone, Debug)]
pub(super) struct FileWatch {
    watcher: Watcher,
    pub(super) notify: Arc<Notify>,
    changed: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl WatchedFiles {
    /// Watches the config file at `path`, and the files that the config names. Blocks while a file
    /// system hangs.
    pub(super) fn of(path: &Path, config: &Config, watcher: &Watcher) -> Self {
        let notify = Arc::new(Notify::new());
        let changed = Arc::clone(&notify);
        let _config = watcher.file(path, move || changed.notify_one());
        let watch = FileWatch { watcher: watcher.clone(), notify: Arc::default(), changed: Arc::default() };
        let others = watch.files_of(config, &BTreeSet::new());
        Self { watch, config: notify, _config, others }
    }

    /// Watches the files of a new config. `added` contains the watches for files that were not
    /// watched before; watches for files that the new config does not name are dropped.
    pub(super) fn follow(&mut self, config: &Config, added: Vec<(PathBuf, Watched)>) {
        let named = files(config);
        self.others.retain(|(path, _)| named.contains(path));
        self.others.extend(added);
    }

    pub(super) fn paths(&self) -> BTreeSet<PathBuf> {
        self.others.iter().map(|(path, _)| path.clone()).collect()
    }

    /// Returns the files that have changed since the last call, except the config file.
    pub(super) fn changed(&self) -> BTreeSet<PathBuf> {
        std::mem::take(&mut self.watch.changed.lock())
    }
}

impl FileWatch {
    /// Starts to watch the files of a config, except those in `watched`. Blocks while a file system
    /// hangs.
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
                self.watcher.names(folder, move |name| pattern.matches_pattern(name), has_changed)
            }
            None => self.watcher.file(&path, has_changed),
        };
        (path, watched)
    }
}

/// Returns the additional registry, the files that gates read, and the files from
/// [`content_files`].
fn files(config: &Config) -> BTreeSet<PathBuf> {
    let of_gates =
        config.sites.iter().flat_map(|site| site.expectations.as_deref().into_iter().chain(site.gate_basis.paths()));
    config.registry.extra.iter().cloned().chain(of_gates.map(Path::to_owned)).chain(content_files(config)).collect()
}

/// Returns the files whose content becomes part of the config: templates for refusals and included
/// files. Each pattern for included files is also returned, as a path.
fn content_files(config: &Config) -> impl Iterator<Item = PathBuf> {
    let templates = config.sites.iter().filter_map(|site| site.refusal.as_deref()).flat_map(SiteRefusals::files);
    let included = config.included.paths.iter().cloned();
    templates.chain(included).chain(config.included.patterns.iter().map(IncludePattern::path))
}

/// Reports whether the content of a changed file is part of the config.
pub(super) fn has_content_file(changed: &BTreeSet<PathBuf>, config: &Config) -> bool {
    content_files(config).any(|path| changed.contains(&path))
}

/// Interval between checks of the certificates. A check of the certificates is cheap, because the
/// files are small.
const EVERY: Duration = Duration::from_secs(5);

/// Minimum time that changed certificate files must stay the same before they are used.
const SETTLING: Duration = Duration::from_millis(400);

/// Loads the certificates of listeners again when their files change. Clones are cheap and share
/// their state.
///
/// The files of each listener are read on a separate blocking thread, and never by two threads at
/// the same time. Therefore, a hanging file system blocks only one thread, and other listeners are
/// not delayed.
#[derive(Clone, Debug)]
pub(super) struct CertificateWatch {
    followed: Arc<Mutex<Vec<FollowedCertificates>>>,
    log: Log,
}

#[derive(Clone, Debug)]
struct FollowedCertificates {
    live: LiveCertificates,
    order: Arc<tokio::sync::Mutex<()>>,
}

impl CertificateWatch {
    pub(super) fn introduce(all: Vec<LiveCertificates>, log: &Log) -> Self {
        let certificates = Self { followed: Arc::default(), log: log.clone() };
        certificates.follow(all);
        certificates
    }

    /// Replaces the watched certificates without reading files, and logs the new certificates.
    pub(super) fn follow(&self, all: Vec<LiveCertificates>) {
        let before = self.followed.lock().clone();
        let now = SystemTime::now();
        let mut followed = Vec::with_capacity(all.len());
        for live in all {
            followed.push(match before.iter().find(|other| live.is_clone_of(&other.live)) {
                Some(same) => same.clone(),
                None => {
                    log_news(&self.log, live.report_all(now));
                    FollowedCertificates { live, order: Arc::default() }
                }
            });
        }
        *self.followed.lock() = followed;
    }

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

    pub(super) async fn watch(self) {
        loop {
            tokio::time::sleep(EVERY).await;
            for FollowedCertificates { live, order } in self.followed.lock().clone() {
                let Ok(order) = order.try_lock_owned() else { continue };
                let log = self.log.clone();
                // The result is ignored: if the check panics, the panic hook reports it.
                drop(spawn_blocking(move || {
                    let _order = order;
                    log_news(&log, live.reload_changed(SystemTime::now(), SETTLING));
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
        log.write_message(event, message);
    }
}
