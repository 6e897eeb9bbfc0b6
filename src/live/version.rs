//! A version of a robots.txt: bytes under the hash that names them.

use std::sync::Arc;
use std::time::SystemTime;

use super::version_hash::VersionHash;

/// Bytes that a source held, hashed once. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    hash: VersionHash,
    bytes: Arc<[u8]>,
    origin: Arc<str>,
    modified: Option<SystemTime>,
}

impl Version {
    /// Names the bytes by their hash. `modified` is when the source changed them last, as far as it says.
    pub(crate) fn new(bytes: impl Into<Arc<[u8]>>, origin: &Arc<str>, modified: Option<SystemTime>) -> Self {
        let bytes = bytes.into();
        Self { hash: VersionHash::of(&bytes), bytes, origin: origin.clone(), modified }
    }

    /// The same bytes under another date.
    pub(super) fn dated(self, modified: Option<SystemTime>) -> Self {
        Self { modified, ..self }
    }

    pub(crate) const fn hash(&self) -> VersionHash {
        self.hash
    }

    pub(super) const fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    pub(super) const fn origin(&self) -> &Arc<str> {
        &self.origin
    }

    pub(crate) const fn modified(&self) -> Option<SystemTime> {
        self.modified
    }
}
