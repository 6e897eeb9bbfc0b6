//! The errors of opening a state directory and of writing to it.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What could not be written, and so will be forgotten.
#[derive(Debug)]
pub struct StateError {
    pub(super) path: PathBuf,
    pub(super) cause: io::Error,
}

impl StateError {
    pub(super) fn new(path: &Path, cause: io::Error) -> Self {
        Self { path: path.to_owned(), cause }
    }

    /// Another process writes here by now.
    pub(super) fn handed_over(path: &Path) -> Self {
        Self::new(path, io::Error::other("another process has taken over the state directory"))
    }
}

/// A state directory that another handle has open: in another process, or in this one.
#[derive(Clone, PartialEq, Eq)]
pub struct StateDirInUse {
    pub(super) path: PathBuf,
    pub(super) holder: LockHolder,
}

/// Whose lock it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockHolder {
    ThisProcess,
    Process(u32),
    Unknown,
}

impl StateDirInUse {
    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of the process that has it open, as that process knows it; `None` where that is unknown. In a container
    /// it may be another number than outside.
    #[must_use]
    pub fn process(&self) -> Option<u32> {
        match self.holder {
            LockHolder::ThisProcess => Some(std::process::id()),
            LockHolder::Process(process) => Some(process),
            LockHolder::Unknown => None,
        }
    }
}

impl fmt::Display for StateDirInUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.holder {
            LockHolder::ThisProcess => write!(
                f,
                "{path}: this process has the state directory open already: use a clone of its StateDir, or drop every clone \
                 and every site that was opened with it"
            ),
            LockHolder::Process(process) => write!(
                f,
                "{path}: process {process} has the state directory open: stop it, or give each process a state directory of \
                 its own"
            ),
            LockHolder::Unknown => write!(
                f,
                "{path}: another process has the state directory open: stop it, or give each process a state directory of its \
                 own"
            ),
        }
    }
}

impl fmt::Debug for StateDirInUse {
    /// As it is displayed, because that is what the operator sees of an error that `main` returns.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for StateDirInUse {}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: cannot be written, so it will be forgotten: {}", self.path.display(), self.cause)
    }
}

impl Error for StateError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}
