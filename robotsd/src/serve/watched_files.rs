//! The files that are watched besides every robots.txt: the config, the registry, what gates read, templates of refusals.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tower_robots::source::{Watched, Watcher};

use crate::config::Config;

/// Watched files, and the notifications of their changes.
#[derive(Debug)]
pub(super) struct WatchedFiles {
    watch: FileWatch,
    config: Arc<Notify>,
    _config: Watched,
    /// The registry, expectations and templates.
    others: Vec<(PathBuf, Watched)>,
}

/// Watches the registry and expectations. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct FileWatch {
    watcher: Watcher,
    notify: Arc<Notify>,
    /// The files that have changed since [`WatchedFiles::changed`] was last called.
    changed: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl WatchedFiles {
    /// Watches the config at this path and the files that it names. Blocks for as long as their file systems do.
    pub(super) fn of(path: &Path, config: &Config, watcher: &Watcher) -> Self {
        let notify = Arc::new(Notify::new());
        let changed = Arc::clone(&notify);
        let _config = watcher.file(path, move || changed.notify_one());
        let watch = FileWatch { watcher: watcher.clone(), notify: Arc::default(), changed: Arc::default() };
        let others = watch.files_of(config, &BTreeSet::new());
        Self { watch, config: notify, _config, others }
    }

    /// Watches the files of another config from now on: those it adds, and those of before that it names as well.
    pub(super) fn follow(&mut self, config: &Config, added: Vec<(PathBuf, Watched)>) {
        let named = files(config);
        self.others.retain(|(path, _)| named.contains(path));
        self.others.extend(added);
    }

    pub(super) const fn watch(&self) -> &FileWatch {
        &self.watch
    }

    /// The files that are watched now, the config aside.
    pub(super) fn paths(&self) -> BTreeSet<PathBuf> {
        self.others.iter().map(|(path, _)| path.clone()).collect()
    }

    /// Notified when the config has changed.
    pub(super) fn config(&self) -> Arc<Notify> {
        Arc::clone(&self.config)
    }

    /// Which of the others have changed since the last call.
    pub(super) fn changed(&self) -> BTreeSet<PathBuf> {
        std::mem::take(&mut self.watch.changed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notified when the registry or an expectation has changed.
    pub(super) fn others(&self) -> Arc<Notify> {
        Arc::clone(&self.watch.notify)
    }
}

impl FileWatch {
    /// Begins to watch the files of a config, except those that are watched already. Blocks for as long as their file systems
    /// do.
    pub(super) fn files_of(&self, config: &Config, watched: &BTreeSet<PathBuf>) -> Vec<(PathBuf, Watched)> {
        files(config).into_iter().filter(|path| !watched.contains(path)).map(|path| self.file(path)).collect()
    }

    fn file(&self, path: PathBuf) -> (PathBuf, Watched) {
        let (notify, changed, of) = (Arc::clone(&self.notify), Arc::clone(&self.changed), path.clone());
        let watched = self.watcher.file(&path, move || {
            changed.lock().unwrap_or_else(PoisonError::into_inner).insert(of.clone());
            notify.notify_one();
        });
        (path, watched)
    }
}

/// The files that decide about every robots.txt, the extra registry and what gates read, and the templates of refusals.
fn files(config: &Config) -> BTreeSet<PathBuf> {
    let of_gates =
        config.sites.iter().flat_map(|site| site.expectations.as_deref().into_iter().chain(site.gate_basis.paths()));
    config.registry.extra.iter().cloned().chain(of_gates.map(Path::to_owned)).chain(templates(config)).collect()
}

/// The templates of refusals, which are read with the config.
fn templates(config: &Config) -> impl Iterator<Item = PathBuf> {
    config.sites.iter().filter_map(|site| site.refusal.as_ref()?.file.clone())
}

/// Whether the config is to be read again because one of these files has changed.
pub(super) fn are_of_config(changed: &BTreeSet<PathBuf>, config: &Config) -> bool {
    templates(config).any(|template| changed.contains(&template))
}
