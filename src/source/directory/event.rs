//! Events of a directory.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::live::LiveRobots;

/// What became of a name in the folder, or of the folder.
#[derive(Debug)]
#[non_exhaustive]
pub enum DirectoryEvent<'a> {
    /// A file made a site.
    #[non_exhaustive]
    Added {
        /// The host as [`HostMap::insert`](crate::source::HostMap::insert) takes it.
        host: &'a str,
        /// Its site, whose status says what is wrong with the file, if anything.
        live: &'a LiveRobots,
    },
    /// A site that never had a good version lost its file.
    #[non_exhaustive]
    Removed {
        /// The host.
        host: &'a str,
    },
    /// A name belongs to no host, or to a host that has another file.
    #[non_exhaustive]
    Ignored {
        /// The name in the folder.
        name: &'a str,
        /// Why, and what would be right.
        reason: String,
    },
    /// The folder cannot be read; the sites stay as they are.
    #[non_exhaustive]
    Unreadable {
        /// Why.
        error: &'a DirectoryError,
    },
}

/// Why a folder cannot be listed.
#[derive(Clone)]
pub struct DirectoryError {
    path: PathBuf,
    cause: Arc<io::Error>,
}

/// A callback for events.
pub(super) type DirectoryListener = Box<dyn Fn(&DirectoryEvent<'_>) + Send + Sync>;

impl DirectoryError {
    pub(super) fn new(path: &Path, cause: io::Error) -> Self {
        Self { path: path.to_owned(), cause: cause.into() }
    }
}

impl fmt::Display for DirectoryEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added { host, live } => write!(f, "{host}: {}", live.status().last_reload),
            Self::Removed { host } => write!(f, "{host}: its file is gone and was never good; it has no rules now"),
            Self::Ignored { name, reason } => write!(f, "{name:?} is passed over: {reason}"),
            Self::Unreadable { error } => write!(f, "{error}; the sites stay as they are"),
        }
    }
}

impl fmt::Display for DirectoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: cannot be listed", self.path.display())
    }
}

impl fmt::Debug for DirectoryError {
    /// As it is displayed, and its cause: the operator sees this of an error that `main` returns.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}: {}", self.cause)
    }
}

impl Error for DirectoryError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.cause)
    }
}
