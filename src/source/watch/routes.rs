//! Which targets an event is for.
//!
//! A folder is known by its identity, not by a path to it: the system gives two paths to one folder one watch, whose
//! events bear one of the paths.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use notify::Event;
use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};

use super::debounce::Urgency;
use crate::source::file_system::{self, FileSystemId};

/// The number of a target among all that one watcher has.
pub(super) type WatchId = u64;

/// A name in a watched folder; without a name, every name in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WatchedName {
    pub(super) folder: FolderId,
    pub(super) name: Option<OsString>,
}

/// The identity of a folder, wherever it is moved: device and inode, where there are such.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FolderId {
    pub(super) system: FileSystemId,
    #[cfg(unix)]
    inode: u64,
    #[cfg(not(unix))]
    path: PathBuf,
}

/// The folders that are watched, and the targets in each. It is locked for a moment only, by the thread that delivers
/// events too.
#[derive(Debug, Default)]
pub(super) struct Routes {
    /// The path a folder is watched by.
    roots: HashMap<FolderId, PathBuf>,
    listeners: HashMap<PathBuf, FolderListeners>,
}

#[derive(Debug)]
struct FolderListeners {
    folder: FolderId,
    named: HashMap<OsString, Vec<WatchId>>,
    /// The targets that every name concerns.
    every: Vec<WatchId>,
    /// The folder was moved or removed: the system has dropped its watch, or reports another place under its path.
    is_gone: bool,
}

/// The reads that an event calls for.
#[derive(Debug)]
pub(super) enum Impact {
    Nothing,
    For(Vec<(WatchId, Urgency)>),
    /// Events may have been lost.
    ForAll,
}

impl FolderId {
    pub(super) fn of(folder: &Path) -> std::io::Result<Self> {
        let metadata = file_system::metadata(folder)?;
        let system = file_system::id(folder, &metadata);
        #[cfg(unix)]
        return Ok(Self { system, inode: std::os::unix::fs::MetadataExt::ino(&metadata) });
        #[cfg(not(unix))]
        return Ok(Self { system, path: folder.to_owned() });
    }
}

impl Routes {
    pub(super) fn all_watched(&self, names: &BTreeSet<WatchedName>) -> bool {
        names.iter().all(|name| self.is_watched(&name.folder))
    }

    fn is_watched(&self, folder: &FolderId) -> bool {
        self.listeners_of(folder).is_some_and(|listeners| !listeners.is_gone)
    }

    /// Whether a path is that of a watched folder on this file system.
    pub(super) fn is_root(&self, root: &Path, system: FileSystemId) -> bool {
        self.listeners.get(root).is_some_and(|listeners| listeners.folder.system == system)
    }

    /// Adds a target where its folder is watched already.
    pub(super) fn join(&mut self, id: WatchId, name: &WatchedName) -> bool {
        let is_watched = self.is_watched(&name.folder);
        if is_watched {
            self.add(id, name);
        }
        is_watched
    }

    /// The path by which a folder was watched before.
    pub(super) fn root_of(&self, folder: &FolderId) -> Option<PathBuf> {
        self.roots.get(folder).cloned()
    }

    /// Forgets the folder that was watched by a path, with its targets.
    pub(super) fn remove_root(&mut self, root: &Path) -> Option<(FolderId, Vec<WatchId>)> {
        let old = self.listeners.remove(root)?;
        self.roots.remove(&old.folder);
        let ids = old.all().collect();
        Some((old.folder, ids))
    }

    /// A folder that is watched by this path from now on, with its first target.
    pub(super) fn insert(&mut self, root: &Path, id: WatchId, name: &WatchedName) {
        self.roots.insert(name.folder.clone(), root.to_owned());
        let folder = name.folder.clone();
        let listeners = FolderListeners { folder, named: HashMap::new(), every: Vec::new(), is_gone: false };
        self.listeners.insert(root.to_owned(), listeners);
        self.add(id, name);
    }

    fn listeners_of(&self, folder: &FolderId) -> Option<&FolderListeners> {
        self.listeners.get(self.roots.get(folder)?)
    }

    fn add(&mut self, id: WatchId, name: &WatchedName) {
        let Some(listeners) = self.roots.get(&name.folder).and_then(|root| self.listeners.get_mut(root)) else {
            return;
        };
        let ids = match &name.name {
            Some(name) => listeners.named.entry(name.clone()).or_default(),
            None => &mut listeners.every,
        };
        if !ids.contains(&id) {
            ids.push(id);
        }
    }

    /// Removes a target; the path of its folder if it was the last one there.
    pub(super) fn remove(&mut self, id: WatchId, name: &WatchedName) -> Option<PathBuf> {
        let root = self.roots.get(&name.folder)?.clone();
        let listeners = self.listeners.get_mut(&root)?;
        match &name.name {
            Some(name) => {
                if let Some(ids) = listeners.named.get_mut(name) {
                    ids.retain(|other| *other != id);
                    if ids.is_empty() {
                        listeners.named.remove(name);
                    }
                }
            }
            None => listeners.every.retain(|other| *other != id),
        }
        if listeners.all().next().is_some() {
            return None;
        }
        self.roots.remove(&name.folder);
        self.listeners.remove(&root);
        Some(root)
    }

    /// The targets an event concerns.
    pub(super) fn impact(&mut self, event: &notify::Result<Event>) -> Impact {
        // An overflow or another fault of the queue.
        let Ok(event) = event else { return Impact::ForAll };
        if event.need_rescan() {
            return Impact::ForAll;
        }
        let urgency = match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => Urgency::Closed,
            // Reading raises events too: our own would never end, and a folder of static files is read all the time.
            EventKind::Access(_) => return Impact::Nothing,
            EventKind::Modify(ModifyKind::Name(_)) => Urgency::Renamed,
            EventKind::Remove(_) => Urgency::Gone,
            _ => Urgency::WhenQuiet,
        };
        // Of the folder itself: the next look finds out what it holds by now.
        let of_folder = if urgency == Urgency::Gone { Urgency::Gone } else { Urgency::WhenQuiet };
        let moves = matches!(
            event.kind,
            EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) | EventKind::Any
        );
        let mut concerned = Vec::new();
        for path in &event.paths {
            if let Some(listeners) = self.listeners.get_mut(path).filter(|_| moves) {
                listeners.is_gone = true;
                concerned.extend(listeners.all().map(|id| (id, of_folder)));
            }
            let folder = path.parent().and_then(|folder| self.listeners.get(folder));
            if let (Some(listeners), Some(name)) = (folder, path.file_name()) {
                concerned.extend(listeners.named(name).map(|id| (id, urgency)));
                if moves {
                    concerned.extend(listeners.every.iter().map(|id| (*id, Urgency::Gathered)));
                }
            }
        }
        if concerned.is_empty() { Impact::Nothing } else { Impact::For(concerned) }
    }

    /// How many folders are watched.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.listeners.len()
    }
}

impl FolderListeners {
    fn all(&self) -> impl Iterator<Item = WatchId> {
        self.named.values().flatten().chain(&self.every).copied()
    }

    fn named(&self, name: &OsStr) -> impl Iterator<Item = WatchId> {
        self.named.get(name).into_iter().flatten().copied()
    }
}
