//! Access to the paths that the module `source` uses.
//!
//! An operation on a path blocks while the path's file system does not respond. During an
//! operation, a caller must not hold a lock that is needed to read a status, to drop a handle or to
//! use another file system.

use std::fs::Metadata;
use std::path::Path;

/// Identifies a file system: its device number on Unix; 0 on other systems.
pub(super) type FileSystemId = u64;

/// Returns the path unchanged. Must be called before each operation on the path, so that tests can
/// block the operation.
pub(super) fn reach(path: &Path) -> &Path {
    #[cfg(test)]
    hanging::wait(path, hanging::Operations::All);
    path
}

/// Returns the folder unchanged. Must be called before the folder is registered for events, so that
/// tests can block the registration.
pub(super) fn reach_to_register(folder: &Path) -> &Path {
    #[cfg(test)]
    hanging::wait(folder, hanging::Operations::Registering);
    folder
}

pub(super) fn id(path: &Path, metadata: &Metadata) -> FileSystemId {
    #[cfg(test)]
    if let Some(id) = hanging::id(path) {
        return id;
    }
    #[cfg(unix)]
    {
        let _ = path;
        std::os::unix::fs::MetadataExt::dev(metadata)
    }
    #[cfg(not(unix))]
    {
        let _ = (path, metadata);
        0
    }
}

#[cfg(test)]
pub(super) mod hanging {
    use crate::live::Mutex;
    use std::path::{Path, PathBuf};
    use std::sync::mpsc;
    use std::sync::{Condvar, MutexGuard, PoisonError};
    use std::time::{Duration, Instant};

    use super::FileSystemId;

    static FOLDERS: Mutex<Vec<Folder>> = Mutex::new(Vec::new());
    static CHANGED: Condvar = Condvar::new();

    struct Folder {
        path: PathBuf,
        id: FileSystemId,
        hangs: Option<Operations>,
        waiting: usize,
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(in crate::source) enum Operations {
        All,
        Registering,
    }

    pub(in crate::source) struct HangingFolder {
        _folder: tempfile::TempDir,
        path: PathBuf,
    }

    impl HangingFolder {
        pub(in crate::source) fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().canonicalize().expect("a path");
            let mut folders = folders();
            // No real device has such a high number.
            let id = u64::MAX - folders.len() as u64;
            folders.push(Folder { path: path.clone(), id, hangs: None, waiting: 0 });
            Self { _folder: folder, path }
        }

        pub(in crate::source) fn path(&self) -> &Path {
            &self.path
        }

        /// Makes operations in the folder hang until `self` is dropped. Returns when `number`
        /// operations are waiting in the folder.
        pub(in crate::source) fn hang(&self, operations: Operations, number: usize) {
            let mut folders = folders();
            let deadline = Instant::now() + Duration::from_secs(60);
            loop {
                let folder = folders.iter_mut().find(|folder| folder.path == self.path).expect("it is there");
                folder.hangs = Some(operations);
                if folder.waiting >= number {
                    return;
                }
                let left = deadline.checked_duration_since(Instant::now()).expect("as many operations hang");
                folders = CHANGED.wait_timeout(folders, left).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    impl Drop for HangingFolder {
        fn drop(&mut self) {
            if let Some(folder) = folders().iter_mut().find(|folder| folder.path == self.path) {
                folder.hangs = None;
            }
            CHANGED.notify_all();
        }
    }

    /// Runs `call` on a new thread and returns the result. Panics if `call` does not return within
    /// a minute, because it is then probably waiting for a [`HangingFolder`].
    pub(in crate::source) fn returns<R: Send + 'static>(what: &str, call: impl FnOnce() -> R + Send + 'static) -> R {
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || sender.send(call()));
        let returned = receiver.recv_timeout(Duration::from_secs(60));
        returned.unwrap_or_else(|error| {
            // The operations in hanging folders must continue before this thread panics, because
            // destructors that run during the panic may access these folders and would wait
            // forever.
            folders().iter_mut().for_each(|folder| folder.hangs = None);
            CHANGED.notify_all();
            panic!("{what} waits for a file system that does not respond: {error}")
        })
    }

    pub(super) fn wait(path: &Path, operation: Operations) {
        let mut folders = folders();
        let hangs = |folder: &Folder| folder.hangs.is_some_and(|hangs| hangs == Operations::All || hangs == operation);
        let hung = |folder: &Folder| path.starts_with(&folder.path) && hangs(folder);
        let Some(at) = folders.iter().position(hung) else { return };
        folders[at].waiting += 1;
        CHANGED.notify_all();
        while hangs(&folders[at]) {
            folders = CHANGED.wait(folders).unwrap_or_else(PoisonError::into_inner);
        }
        folders[at].waiting -= 1;
    }

    pub(super) fn id(path: &Path) -> Option<FileSystemId> {
        folders().iter().find(|folder| path.starts_with(&folder.path)).map(|folder| folder.id)
    }

    fn folders() -> MutexGuard<'static, Vec<Folder>> {
        FOLDERS.lock()
    }
}
