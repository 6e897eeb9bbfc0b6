//! The files that are watched besides every robots.txt: the config, the registry, expectations.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tower_robots::source::{Watched, Watcher};

use super::sites::Sites;

/// Watched files, and the notifications of their changes.
#[derive(Debug)]
pub(super) struct WatchedFiles {
    watcher: Watcher,
    config: Arc<Notify>,
    others_changed: Arc<Notify>,
    /// The others that have changed since [`WatchedFiles::changed`] was last called.
    changed: Arc<Mutex<BTreeSet<PathBuf>>>,
    _config: Watched,
    /// The registry and expectations.
    others: Vec<(PathBuf, Watched)>,
}

impl WatchedFiles {
    pub(super) fn of(config: &Path, sites: &Sites) -> Self {
        let watcher = sites.watcher();
        let notify = Arc::new(Notify::new());
        let changed = Arc::clone(&notify);
        let watched = watcher.file(config, move || changed.notify_one());
        let mut watches = Self {
            watcher,
            config: notify,
            others_changed: Arc::default(),
            changed: Arc::default(),
            _config: watched,
            others: Vec::new(),
        };
        watches.follow(sites);
        watches
    }

    /// Follows the files of these sites from now on. Those that are followed already are not begun anew.
    pub(super) fn follow(&mut self, sites: &Sites) {
        let mut before = std::mem::take(&mut self.others);
        for path in sites.files() {
            let known = before.iter().position(|(known, _)| *known == path);
            let watched = match known {
                Some(place) => before.swap_remove(place).1,
                None => {
                    let (notify, changed, of) =
                        (Arc::clone(&self.others_changed), Arc::clone(&self.changed), path.clone());
                    self.watcher.file(&path, move || {
                        changed.lock().unwrap_or_else(PoisonError::into_inner).insert(of.clone());
                        notify.notify_one();
                    })
                }
            };
            self.others.push((path, watched));
        }
    }

    /// Notified when the config has changed.
    pub(super) fn config(&self) -> Arc<Notify> {
        Arc::clone(&self.config)
    }

    /// Which of the others have changed since the last call.
    pub(super) fn changed(&self) -> BTreeSet<PathBuf> {
        std::mem::take(&mut self.changed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notified when the registry or an expectation has changed.
    pub(super) fn others(&self) -> Arc<Notify> {
        Arc::clone(&self.others_changed)
    }
}
