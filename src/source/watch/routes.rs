//! Finds the targets (watched files and folders) that an event affects.
//!
//! A folder is watched under its canonical path, whatever symbolic links lead to it. The identity
//! of the folder is also stored, because another folder may get the same path after the folder is
//! moved.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use notify::Event;
use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind, RenameMode};

use super::debounce::Urgency;
use crate::source::file_system::{self, FileSystemId, reach};

/// Number of a target, unique within one watcher.
pub(super) type WatchId = u64;

/// A watched name in a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WatchedName {
    pub(super) system: FileSystemId,
    /// Path of the folder, without symbolic links.
    pub(super) folder: PathBuf,
    /// The name; `None` for all names in the folder.
    pub(super) name: Option<OsString>,
}

/// The identity of a folder, which stays the same when the folder is moved. On Unix, it is the
/// device and inode; on other systems, it is the path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FolderId {
    pub(super) system: FileSystemId,
    #[cfg(unix)]
    inode: u64,
    #[cfg(not(unix))]
    path: PathBuf,
}

#[derive(Debug, Default)]
pub(super) struct Routes {
    pub(super) folders: HashMap<PathBuf, FolderListeners>,
    /// The watched path of each folder. Each folder has only one watched path, because the
    /// operating system has only one watch per folder, even if the folder is registered under two
    /// paths.
    paths: HashMap<FolderId, PathBuf>,
}

#[derive(Debug, Default)]
pub(super) struct FolderListeners {
    /// The identity of the watched folder, if the folder is watched.
    folder: Option<FolderId>,
    /// Whether the folder was moved or removed. The system stops watching a removed folder, and
    /// reports events in a moved folder under the old path.
    is_gone: bool,
    /// The targets in the folder, by the name that they watch. The targets with the key `None`
    /// watch all names.
    targets: HashMap<Option<OsString>, Vec<WatchId>>,
}

impl FolderId {
    pub(super) fn of(folder: &Path) -> std::io::Result<Self> {
        let metadata = fs::metadata(reach(folder))?;
        let system = file_system::id(folder, &metadata);
        #[cfg(unix)]
        return Ok(Self { system, inode: std::os::unix::fs::MetadataExt::ino(&metadata) });
        #[cfg(not(unix))]
        return Ok(Self { system, path: folder.to_owned() });
    }
}

impl Routes {
    /// Adds a target to a folder. Reports whether the folder at this path is already watched and is
    /// still the folder with the identity `folder`.
    pub(super) fn add(&mut self, id: WatchId, name: &WatchedName, folder: &FolderId) -> bool {
        let listeners = self.folders.entry(name.folder.clone()).or_default();
        let ids = listeners.targets.entry(name.name.clone()).or_default();
        if !ids.contains(&id) {
            ids.push(id);
        }
        listeners.folder.as_ref() == Some(folder) && !listeners.is_gone
    }

    /// Removes a target from a folder. If the folder has no other targets, also removes the folder
    /// and returns `true`.
    pub(super) fn remove(&mut self, id: WatchId, name: &WatchedName) -> bool {
        let Some(listeners) = self.folders.get_mut(&name.folder) else { return false };
        if let Some(ids) = listeners.targets.get_mut(&name.name) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                listeners.targets.remove(&name.name);
            }
        }
        let is_unused = listeners.targets.is_empty();
        if is_unused {
            self.forget(&name.folder);
            self.folders.remove(&name.folder);
        }
        is_unused
    }

    /// Records that a folder is now watched under this path. Returns the previous watched path of
    /// the folder, if any.
    pub(super) fn watch(&mut self, folder: &FolderId, path: &Path) -> Option<PathBuf> {
        self.forget(path);
        let before = self.paths.get(folder).cloned();
        before.iter().for_each(|before| self.forget(before));
        self.paths.insert(folder.clone(), path.to_owned());
        let listeners = self.folders.entry(path.to_owned()).or_default();
        (listeners.folder, listeners.is_gone) = (Some(folder.clone()), false);
        before
    }

    /// Records that the folder at this path is not watched any more. Keeps the targets in the
    /// folder.
    pub(super) fn forget(&mut self, path: &Path) {
        if let Some(folder) = self.folders.get_mut(path).and_then(|listeners| listeners.folder.take()) {
            self.paths.remove(&folder);
        }
    }

    pub(super) fn affected_targets(&mut self, event: &notify::Result<Event>) -> Vec<(WatchId, Urgency)> {
        let event = match event {
            Ok(event) if !event.need_rescan() => event,
            // The event queue overflowed or failed. Events may be lost, so any target may have
            // changed.
            _ => return self.folders.values().flat_map(|folder| folder.all(Urgency::WhenQuiet)).collect(),
        };
        let urgency_of = |path: usize| match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => Some(Urgency::Closed),
            // Events about reads are ignored, because each read by a worker would cause another
            // read, and because a web server may constantly read files in the same folder.
            EventKind::Access(_) => None,
            EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => Some(Urgency::Gone),
            // An event of this kind has two paths, and the first path is the old name.
            EventKind::Modify(ModifyKind::Name(RenameMode::Both)) if path == 0 => Some(Urgency::Gone),
            EventKind::Modify(ModifyKind::Name(_)) => Some(Urgency::Renamed),
            _ => Some(Urgency::WhenQuiet),
        };
        let moves = matches!(
            event.kind,
            EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) | EventKind::Any
        );
        let mut affected_targets = Vec::new();
        for (number, path) in event.paths.iter().enumerate() {
            let Some(urgency) = urgency_of(number) else { break };
            if let Some(listeners) = self.folders.get_mut(path).filter(|_| moves) {
                listeners.is_gone = true;
                // The event concerns the folder itself, so any of its targets may have changed.
                let of_folder = if urgency == Urgency::Gone { Urgency::Gone } else { Urgency::WhenQuiet };
                affected_targets.extend(listeners.all(of_folder));
            }
            let folder = path.parent().and_then(|folder| self.folders.get(folder));
            if let (Some(listeners), Some(name)) = (folder, path.file_name()) {
                affected_targets.extend(listeners.of(Some(name.to_owned()), urgency));
                if moves {
                    affected_targets.extend(listeners.of(None, Urgency::Gathered));
                }
            }
        }
        affected_targets
    }
}

impl FolderListeners {
    fn all(&self, urgency: Urgency) -> impl Iterator<Item = (WatchId, Urgency)> {
        self.targets.values().flatten().map(move |id| (*id, urgency))
    }

    fn of(&self, name: Option<OsString>, urgency: Urgency) -> impl Iterator<Item = (WatchId, Urgency)> {
        self.targets.get(&name).into_iter().flatten().map(move |id| (*id, urgency))
    }
}
