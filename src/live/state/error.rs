//! The error of a write.

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
}

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
