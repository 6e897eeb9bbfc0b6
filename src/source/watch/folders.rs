//! Registering folders with the system, so that it reports the events in them.
//!
//! Registering takes a path, so it blocks while a file system hangs. Each file system has a source of events of its own,
//! with its own lock and thread, and no caller that goes away waits for it: the thread that holds the lock finishes its
//! work when it is done.
//!
//! **A folder is watched by what it is**, device and inode, not by a path: the system gives two paths to one folder one
//! watch, whose events bear one of the paths.

use crate::live::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use notify::{Event, RecursiveMode};

use super::polled_changes::links_to;
use super::routes::{FolderId, Impact, Routes, WatchId, WatchedName};
use crate::source::file_system::{self, FileSystemId};

/// The system's events about folders.
pub(super) type EventSource = Box<dyn notify::Watcher + Send>;

/// Receives the events of a source, on the source's thread.
pub(super) type EventHandler = Box<dyn Fn(notify::Result<Event>) + Send>;

/// Opens a source.
pub(super) type OpenEvents = fn(EventHandler) -> notify::Result<EventSource>;

/// Sources there are at most; further file systems share one. A user has 128 of them on Linux, a process among others.
const MOST_SOURCES: usize = 8;

/// The names that a path leads through, as far as their folders are watched.
#[derive(Debug, Default)]
pub(super) struct Registration {
    names: BTreeSet<WatchedName>,
    /// Whether every folder is watched.
    is_complete: bool,
}

/// Every watched folder.
pub(super) struct Folders {
    open: OpenEvents,
    handler: OnceLock<Arc<dyn Fn(notify::Result<Event>) + Send + Sync>>,
    /// Held for a moment only. The source without a file system is shared.
    sources: Mutex<HashMap<Option<FileSystemId>, Arc<SystemEvents>>>,
    /// Held for a moment only, by the threads that deliver events too.
    routes: Mutex<Routes>,
    is_stopped: AtomicBool,
}

/// The events of one file system.
struct SystemEvents {
    /// Held while a folder is registered, which takes as long as its file system does. The thread that delivers events
    /// never takes it.
    source: Mutex<Result<EventSource, String>>,
    /// Paths of folders without targets, to be unregistered. Held for a moment only.
    unused: Mutex<Vec<(PathBuf, FileSystemId)>>,
}

/// Whether a folder's names are the contents that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    Contents,
    Names,
}

impl Registration {
    /// The file system of one of the folders.
    pub(super) fn system(&self) -> Option<FileSystemId> {
        self.names.first().map(|name| name.folder.system)
    }
}

impl Folders {
    pub(super) fn new(open: OpenEvents) -> Self {
        Self {
            open,
            handler: OnceLock::new(),
            sources: Mutex::default(),
            routes: Mutex::default(),
            is_stopped: AtomicBool::new(false),
        }
    }

    /// Hands events to `handler` from now on.
    pub(super) fn start(&self, handler: impl Fn(notify::Result<Event>) + Send + Sync + 'static) {
        // Only the first call counts, and there is no other.
        let _ = self.handler.set(Arc::new(handler));
    }

    /// Closes the sources, without waiting for a file system.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        let sources: Vec<_> = self.sources.lock().drain().collect();
        sources.iter().for_each(|(_, events)| self.finish(events));
    }

    /// Brings the registered folders up to what a path leads to now. Also returns the targets that have to be registered
    /// anew: a folder of theirs is no longer where it was.
    pub(super) fn register(
        &self,
        id: WatchId,
        path: &Path,
        listing: Listing,
        registration: &mut Registration,
    ) -> (Result<(), String>, Vec<WatchId>) {
        let (wanted, mut result) = names_on_the_way(path, listing);
        let names = &registration.names;
        let is_same = registration.is_complete && wanted.len() == names.len() && wanted.keys().eq(names);
        if is_same && self.routes.lock().all_watched(names) {
            return (result, Vec::new());
        }
        let mut have = BTreeSet::new();
        let mut orphans = Vec::new();
        for (name, path) in wanted {
            match self.watch(id, &name, &path) {
                Ok(left) => {
                    orphans.extend(left);
                    have.insert(name);
                }
                Err(error) => result = Err(trouble(&path, &error)),
            }
        }
        self.leave(id, registration.names.difference(&have));
        *registration = Registration { names: have, is_complete: result.is_ok() };
        orphans.retain(|orphan| *orphan != id);
        (result, orphans)
    }

    /// Registers nothing for a target any more. It waits for no file system.
    pub(super) fn unregister(&self, id: WatchId, registration: &mut Registration) {
        self.leave(id, &std::mem::take(registration).names);
    }

    /// The targets an event concerns. Called by the thread that delivers events.
    pub(super) fn impact(&self, event: &notify::Result<Event>) -> Impact {
        self.routes.lock().impact(event)
    }

    /// Adds a target to a folder, and registers the folder unless it is; returns the targets of folders that are no longer
    /// there.
    fn watch(&self, id: WatchId, name: &WatchedName, path: &Path) -> Result<Vec<WatchId>, String> {
        let system = name.folder.system;
        let events = self.events_of(system)?;
        let result = {
            let mut source = events.source.lock();
            self.unregister_unused(&events, &mut source);
            // Under the lock of the source: a folder that another thread is still registering may fail.
            if self.routes.lock().join(id, name) {
                Ok(Vec::new())
            } else {
                self.register_folder(id, name, path, &mut source)
            }
        };
        self.finish(&events);
        result
    }

    fn register_folder(
        &self,
        id: WatchId,
        name: &WatchedName,
        path: &Path,
        source: &mut Result<EventSource, String>,
    ) -> Result<Vec<WatchId>, String> {
        let source = source.as_mut().map_err(|trouble| trouble.clone())?;
        // The path without links: a link may lead to another folder while this one is still watched.
        let root = file_system::canonicalize(path).map_err(|error| error.to_string())?;
        let before = self.routes.lock().root_of(&name.folder);
        let mut orphans = Vec::new();
        for root in before.iter().chain([&root]) {
            let removed = self.routes.lock().remove_root(root);
            if let Some((folder, ids)) = removed {
                orphans.extend(ids);
                self.discard(root.clone(), folder.system);
            }
            // Most are not registered, and a folder that is gone took its watch with it.
            let _ = source.unwatch(root);
        }
        // Before the system is called: events may come at once.
        self.routes.lock().insert(&root, id, name);
        file_system::before_registering(&root);
        match source.watch(&root, RecursiveMode::NonRecursive) {
            Ok(()) => Ok(orphans),
            Err(error) => {
                self.routes.lock().remove_root(&root);
                Err(error.to_string())
            }
        }
    }

    fn leave<'n>(&self, id: WatchId, names: impl IntoIterator<Item = &'n WatchedName>) {
        for name in names {
            let unused = self.routes.lock().remove(id, name);
            if let Some(root) = unused {
                self.discard(root, name.folder.system);
                if let Ok(events) = self.events_of(name.folder.system) {
                    self.finish(&events);
                }
            }
        }
    }

    /// Notes that a folder has no targets; [`Folders::finish`] unregisters it.
    fn discard(&self, root: PathBuf, system: FileSystemId) {
        if let Ok(events) = self.events_of(system) {
            events.unused.lock().push((root, system));
        }
    }

    /// Does what is left to do for a source, unless a thread holds it: that one does so when it is done.
    fn finish(&self, events: &SystemEvents) {
        loop {
            let Some(mut source) = events.source.try_lock() else { return };
            self.unregister_unused(events, &mut source);
            drop(source);
            // Noted after the look and before the lock was free again.
            if events.unused.lock().is_empty() {
                return;
            }
        }
    }

    fn unregister_unused(&self, events: &SystemEvents, source: &mut Result<EventSource, String>) {
        let unused = std::mem::take(&mut *events.unused.lock());
        if self.is_stopped.load(Ordering::SeqCst) {
            *source = Err(STOPPED.into());
        }
        let Ok(source) = source else { return };
        for (root, system) in unused {
            // Another target may have come to the folder meanwhile.
            let is_used = self.routes.lock().is_root(&root, system);
            if !is_used {
                let _ = source.unwatch(&root);
            }
        }
    }

    /// The events of a file system, opened when they are needed first.
    fn events_of(&self, system: FileSystemId) -> Result<Arc<SystemEvents>, String> {
        let mut sources = self.sources.lock();
        if self.is_stopped.load(Ordering::SeqCst) {
            return Err(STOPPED.into());
        }
        let key = Some(system).filter(|_| sources.contains_key(&Some(system)) || sources.len() < MOST_SOURCES);
        if let Some(events) = sources.get(&key) {
            return Ok(events.clone());
        }
        let handler = self.handler.get().ok_or("it is not started")?.clone();
        let source = (self.open)(Box::new(move |event| handler(event))).map_err(|error| error.to_string());
        let events = Arc::new(SystemEvents { source: Mutex::new(source), unused: Mutex::default() });
        sources.insert(key, events.clone());
        Ok(events)
    }

    /// How many folders are watched.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.routes.lock().len()
    }
}

const STOPPED: &str = "the watcher is stopped";

/// The system's own events: inotify on Linux.
pub(super) fn recommended(handler: EventHandler) -> notify::Result<EventSource> {
    Ok(Box::new(notify::recommended_watcher(handler)?))
}

/// The names that a change of what a path leads to can show at, with paths to their folders; the error names a folder that
/// is not there.
fn names_on_the_way(path: &Path, listing: Listing) -> (BTreeMap<WatchedName, PathBuf>, Result<(), String>) {
    let mut result = Ok(());
    let mut names = BTreeMap::new();
    let mut add = |folder: &Path, name: Option<&OsStr>| match FolderId::of(folder) {
        Ok(id) => {
            names.insert(WatchedName { folder: id, name: name.map(OsStr::to_owned) }, folder.to_owned());
        }
        Err(error) => result = Err(trouble(folder, &error)),
    };
    for link in &links_to(path) {
        if let (Some(folder), Some(name)) = (link.parent(), link.file_name()) {
            add(folder, Some(name));
        }
    }
    if listing == Listing::Names {
        add(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()), None);
    }
    (names, result)
}

fn trouble(folder: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: no file events, changes are found by polling: {error}", folder.display())
}

#[cfg(test)]
mod tests {
    use notify::event::{CreateKind, EventKind, ModifyKind, RemoveKind, RenameMode};

    use super::super::debounce::Urgency;
    use super::*;

    fn registered(folders: &Folders, id: WatchId, path: &Path) -> Registration {
        let mut registration = Registration::default();
        let (result, _) = folders.register(id, path, Listing::Contents, &mut registration);
        assert_eq!(result, Ok(()));
        registration
    }

    fn concerned(folders: &Folders, kind: EventKind, path: PathBuf) -> Vec<(WatchId, Urgency)> {
        match folders.impact(&Ok(Event::new(kind).add_path(path))) {
            Impact::For(concerned) => concerned,
            Impact::Nothing => Vec::new(),
            Impact::ForAll => panic!("nothing was missed"),
        }
    }

    /// A folder, kept as long as the first is, and the path of one inside of it.
    fn folder_with_inner() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().canonicalize().expect("a path").join("inner");
        std::fs::create_dir(&inner).expect("a folder");
        (folder, inner)
    }

    fn started() -> Folders {
        let folders = Folders::new(recommended);
        folders.start(|_| ());
        folders
    }

    #[test]
    fn a_folder_is_watched_once_whatever_path_leads_to_it_and_let_go_with_its_last_file() {
        let (_folder, inner) = folder_with_inner();
        let root = inner.parent().expect("a folder");
        let folders = started();
        let mut first: Vec<_> = (0..100).map(|id| registered(&folders, id, &inner.join(format!("{id}.txt")))).collect();
        assert_eq!(folders.len(), 1);
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&inner, root.join("link")).expect("a link");
            let mut other = registered(&folders, 200, &root.join("link/7.txt"));
            // The folder of the link is watched as well, for the link itself may be changed.
            assert_eq!(folders.len(), 2);
            let rename = EventKind::Modify(ModifyKind::Name(RenameMode::To));
            assert_eq!(
                concerned(&folders, rename, inner.join("7.txt")),
                [(7, Urgency::Renamed), (200, Urgency::Renamed)]
            );
            assert_eq!(concerned(&folders, rename, root.join("link")), [(200, Urgency::Renamed)]);
            folders.unregister(200, &mut other);
            assert_eq!(folders.len(), 1);
        }
        let created = EventKind::Create(CreateKind::File);
        assert_eq!(concerned(&folders, created, inner.join("3.txt")), [(3, Urgency::WhenQuiet)]);
        assert_eq!(concerned(&folders, created, inner.join("none of ours")), []);
        for (id, registration) in first.iter_mut().enumerate() {
            folders.unregister(id as WatchId, registration);
        }
        assert_eq!(folders.len(), 0);
    }

    #[test]
    fn a_folder_that_went_is_watched_anew_when_it_is_back() {
        let (_folder, inner) = folder_with_inner();
        let folders = started();
        let (mut one, path) = (registered(&folders, 1, &inner.join("a.txt")), inner.join("a.txt"));
        let _other = registered(&folders, 2, &inner.join("b.txt"));
        // The new folder may have the inode of the old one: only the event shows that it went.
        let mut all = concerned(&folders, EventKind::Remove(RemoveKind::Other), inner);
        all.sort_by_key(|(id, _)| *id);
        assert_eq!(all, [(1, Urgency::Gone), (2, Urgency::Gone)]);
        let (result, orphans) = folders.register(1, &path, Listing::Contents, &mut one);
        assert_eq!((result, orphans), (Ok(()), vec![2]));
        assert_eq!(folders.len(), 1);
    }
}
