//! The lock of a state directory. Only the handle (a `StateDir` and its clones) that holds the lock
//! writes to the directory.
//!
//! The lock belongs to an open file (`flock`), not to a process. So a second handle in the same
//! process is refused, too, and a child process that inherits the file descriptor shares the lock.
//! The system releases the lock when the process ends, even after a crash. The process ID in the
//! lock file is used only in the error message if a handle is refused.
//!
//! If the file system does not support locks, or the lock file cannot be written, the directory is
//! used without a lock, and the status reports the problem.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, TryLockError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::disk::Disk;
use super::error::{LockHolder, StateError};
use super::writer::StateWriter;

const LOCK: &str = "lock";

/// Interval between attempts to lock a folder that another handle has locked.
const TRY_AGAIN: Duration = Duration::from_millis(10);

/// The lock of a folder. Files in the folder may only be written while a guard from
/// [`FolderLock::writing`] is held.
pub(super) struct FolderLock {
    path: PathBuf,
    held: RwLock<LockState>,
}

pub(super) enum LockState {
    Locked(#[expect(dead_code, reason = "the open file holds the lock")] File),
    /// The folder could not be locked, or this handle needs no lock. Writing is allowed.
    Unlocked,
    /// The lock was handed over, or every handle was dropped. Writing is not allowed, because
    /// another handle may have locked the folder after the release.
    Released,
}

/// A guard that releases the lock of a folder when it is dropped. A
/// [`StateDir`](crate::live::StateDir), its clones and their sites share the guard, so the lock is
/// released when the last of them is dropped.
pub(super) struct LockHold {
    pub(super) lock: Arc<FolderLock>,
    pub(super) writer: Arc<StateWriter>,
}

impl FolderLock {
    /// Locks a folder, and creates the folder if it does not exist. If the file system prevents
    /// locking, returns the problem and an [`Unlocked`](LockState::Unlocked) lock.
    ///
    /// # Errors
    ///
    /// Returns an error if another handle has locked the folder and does not release the lock in
    /// time.
    pub(super) fn take(disk: &Disk, folder: &Path) -> Result<(Self, Option<String>), StateError> {
        let path = folder.join(LOCK);
        let (state, problem) = acquire(disk, folder, &path)?;
        Ok((Self { path, held: RwLock::new(state) }, problem))
    }

    /// Returns a `FolderLock` that does not lock the folder, for a handle that never writes.
    pub(super) fn none(folder: &Path) -> Self {
        Self { path: folder.join(LOCK), held: RwLock::new(LockState::Unlocked) }
    }

    /// Tries again to lock a folder that could not be locked before. Returns the problem if the
    /// folder still cannot be locked.
    pub(super) fn retry(&self, disk: &Disk, folder: &Path) -> Option<String> {
        if !matches!(*self.read(), LockState::Unlocked) {
            return None;
        }
        match lock(disk, &self.path) {
            Ok(file) => {
                let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
                if matches!(*held, LockState::Unlocked) {
                    *held = LockState::Locked(file);
                }
                None
            }
            Err(fs::TryLockError::Error(cause)) => Some(problem(&self.path, &cause)),
            Err(fs::TryLockError::WouldBlock) => Some(StateError::in_use(folder, holder(&self.path)).to_string()),
        }
    }

    /// Waits until running writes end, and then releases the lock for another process, even if
    /// handles still exist. This process writes nothing until [`FolderLock::take_back`].
    pub(super) fn hand_over(&self) {
        self.release(false);
    }

    /// Locks the folder again after [`FolderLock::hand_over`]. Returns the problem if the folder
    /// cannot be locked.
    ///
    /// # Errors
    ///
    /// Returns an error if another handle has locked the folder and does not release the lock in
    /// time.
    pub(super) fn take_back(&self, disk: &Disk, folder: &Path) -> Result<Option<String>, StateError> {
        if !matches!(*self.read(), LockState::Released) {
            return Ok(None);
        }
        let (state, problem) = acquire(disk, folder, &self.path)?;
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = state;
        Ok(problem)
    }

    /// Returns a guard that must be held while writing. `None` if the lock was handed over, or if
    /// every handle was dropped.
    pub(super) fn writing(&self) -> Option<RwLockReadGuard<'_, LockState>> {
        let held = self.read();
        (!matches!(*held, LockState::Released)).then_some(held)
    }

    /// Waits until running writes end, and then releases the lock. If `is_stuck` is set, a running
    /// write may never end. In this case, the function does not wait. If a write is running, the
    /// lock is then kept until the process ends.
    fn release(&self, is_stuck: bool) {
        let held = if is_stuck {
            match self.held.try_write() {
                Ok(held) => Some(held),
                Err(TryLockError::Poisoned(held)) => Some(held.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            }
        } else {
            Some(self.held.write().unwrap_or_else(PoisonError::into_inner))
        };
        if let Some(mut held) = held {
            *held = LockState::Released;
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, LockState> {
        // Poisoning is ignored, because a panic cannot leave an incomplete value.
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LockHold {
    fn drop(&mut self) {
        self.lock.release(self.writer.is_stuck());
    }
}

/// Locks the folder. If another handle has locked the folder, waits for up to
/// `Disk::lock_patience`. If the folder cannot be locked for another reason, returns
/// [`LockState::Unlocked`] and the problem.
fn acquire(disk: &Disk, folder: &Path, path: &Path) -> Result<(LockState, Option<String>), StateError> {
    let start = Instant::now();
    loop {
        return match lock(disk, path) {
            Ok(file) => Ok((LockState::Locked(file), None)),
            Err(fs::TryLockError::Error(cause)) => Ok((LockState::Unlocked, Some(problem(path, &cause)))),
            Err(fs::TryLockError::WouldBlock) if start.elapsed() < disk.lock_patience => {
                thread::sleep(TRY_AGAIN);
                continue;
            }
            Err(fs::TryLockError::WouldBlock) => Err(StateError::in_use(folder, holder(path))),
        };
    }
}

fn lock(disk: &Disk, path: &Path) -> Result<File, fs::TryLockError> {
    let try_lock = |file: io::Result<File>| {
        let file = file.map_err(fs::TryLockError::Error)?;
        file.try_lock().map(|()| file)
    };
    let file = match try_lock(disk.open_lock(path)) {
        // The file is opened for writing here, because NFS locks only files that are open for
        // writing.
        #[cfg(unix)]
        Err(fs::TryLockError::Error(error)) if error.raw_os_error() == Some(libc::EBADF) => {
            try_lock(disk.open_lock_for_writing(path))
        }
        locked => locked,
    }?;
    // Errors are ignored. Without the process ID in the file, only the error message for a refused
    // handle is less precise.
    let _ = disk.open_lock_for_writing(path).and_then(|mut file| {
        file.set_len(0)?;
        file.write_all(format!("{}\n", this_process()).as_bytes())
    });
    Ok(file)
}

fn holder(path: &Path) -> LockHolder {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(100).read_to_string(&mut text));
    let text = text.trim_ascii();
    match text.split_once(' ').and_then(|(process, _)| process.parse().ok()) {
        _ if read.is_err() => LockHolder::Unknown,
        _ if text == this_process() => LockHolder::ThisProcess,
        Some(process) => LockHolder::Process(process),
        None => LockHolder::Unknown,
    }
}

/// Returns the ID of this process and the time of the first call. The ID alone is not unique,
/// because the first process of each container has the same ID.
fn this_process() -> &'static str {
    static PROCESS: OnceLock<String> = OnceLock::new();
    PROCESS.get_or_init(|| {
        let age = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        format!("{} {}", std::process::id(), age.as_nanos())
    })
}

fn problem(path: &Path, cause: &io::Error) -> String {
    format!(
        "{file}: the file cannot be locked, so another process could write to the state directory, too: {cause}",
        file = path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_the_last_handle_waits_for_a_running_write_and_prevents_new_writes() {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = Disk::default();
        let (lock, problem) = FolderLock::take(&disk, folder.path()).expect("no other has it");
        assert_eq!(problem, None);
        let lock = Arc::new(lock);
        let hold = LockHold { lock: lock.clone(), writer: Arc::default() };
        let writing = lock.writing().expect("a handle exists");
        let (sender, receiver) = std::sync::mpsc::channel();
        let dropping = thread::spawn(move || {
            drop(hold);
            sender.send(()).expect("the test waits");
        });
        assert!(receiver.try_recv().is_err(), "something is being written");
        drop(writing);
        receiver.recv_timeout(Duration::from_secs(60)).expect("nothing is being written");
        dropping.join().expect("no panic");
        assert!(lock.writing().is_none() && lock.retry(&disk, folder.path()).is_none());
        let (other, _) = FolderLock::take(&disk, folder.path()).expect("it is released");
        assert!(lock.writing().is_none() && other.writing().is_some());
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_could_not_be_locked_is_locked_by_a_retry() {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = Disk::default();
        std::os::unix::fs::symlink("elsewhere", folder.path().join(LOCK)).expect("a link");
        let (lock, problem) = FolderLock::take(&disk, folder.path()).expect("it goes on without");
        assert!(problem.is_some_and(|problem| problem.contains("cannot be locked, so another process could write")));
        fs::remove_file(folder.path().join(LOCK)).expect("removed");
        assert_eq!(lock.retry(&disk, folder.path()), None);
        assert!(matches!(*lock.read(), LockState::Locked(_)));
    }
}
