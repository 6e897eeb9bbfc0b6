//! The errors of opening a state directory and of writing to it, and the events that report them to listeners.

use crate::live::Mutex;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::{fmt, io};

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
#[non_exhaustive]
pub struct StateDirInUse {
    /// The directory.
    pub path: PathBuf,
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
    /// The number of the process that has it open, as that process knows it; `None` where that is unknown. In a container
    /// it may be another number than outside.
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

/// A trouble of a state directory begins or ends. `Display` gives it in one line.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StateEvent<'a> {
    /// The site whose part of the directory it is about; `None` where it is the directory itself.
    pub site: Option<&'a str>,
    pub(super) trouble: Result<&'a str, &'a str>,
}

type StateListener = Box<dyn Fn(&StateEvent<'_>) + Send + Sync>;

#[derive(Default)]
pub(super) struct StateListeners(Mutex<Vec<StateListener>>);

impl<'a> StateEvent<'a> {
    /// The trouble, in the words of [`Status`](crate::live::Status); `None` where it is over.
    pub const fn trouble(&self) -> Option<&'a str> {
        match self.trouble {
            Err(trouble) => Some(trouble),
            Ok(_) => None,
        }
    }
}

impl fmt::Display for StateEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(site) = self.site {
            write!(f, "{site}: ")?;
        }
        match self.trouble {
            Ok(text) | Err(text) => f.write_str(text),
        }
    }
}

impl StateListeners {
    pub(super) fn add(&self, listener: StateListener) {
        self.0.lock().push(listener);
    }

    pub(super) fn notify(&self, event: &StateEvent<'_>) {
        #[cfg(feature = "tracing")]
        match event.trouble {
            Err(_) => tracing::warn!(target: "tower_robots::state", "{event}"),
            Ok(_) => tracing::info!(target: "tower_robots::state", "{event}"),
        }
        for listener in &*self.0.lock() {
            // A listener's panic must not end the writing; the panic hook has reported it.
            let _ = catch_unwind(AssertUnwindSafe(|| listener(event)));
        }
    }
}

/// What is wrong with a site's part of a directory, the most pressing first.
#[derive(Clone, Debug, Default)]
pub(in crate::live) struct StateTroubles {
    pub(in crate::live) save: Option<String>,
    pub(in crate::live) switch: Option<String>,
    pub(in crate::live) append: Option<String>,
    pub(in crate::live) behind: Option<String>,
    pub(in crate::live) unread_switch: Option<String>,
    pub(in crate::live) damaged: Option<String>,
}

/// The kill switch cannot be written down.
pub(super) fn switch_trouble(error: &StateError) -> String {
    let StateError { path, cause } = error;
    format!("{}: cannot be written, so a restart forgets the kill switch: {cause}; it is tried again", path.display())
}
