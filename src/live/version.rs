//! A version of a robots.txt: bytes under the hash that names them.

use std::sync::Arc;
use std::time::SystemTime;

use super::version_hash::VersionHash;
use crate::rules::LinePlaces;

/// Bytes that a source held, hashed once. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    hash: VersionHash,
    bytes: Arc<[u8]>,
    origin: Arc<str>,
    modified: Option<SystemTime>,
    /// Where the lines come from, where parts are appended.
    places: Option<Arc<LinePlaces>>,
}

impl Version {
    /// Names the bytes by their hash. `modified` is when the source changed them last, as far as it says.
    pub(crate) fn new(bytes: impl Into<Arc<[u8]>>, origin: &Arc<str>, modified: Option<SystemTime>) -> Self {
        let bytes = bytes.into();
        Self { hash: VersionHash::of(&bytes), bytes, origin: origin.clone(), modified, places: None }
    }

    /// With parts that are from elsewhere.
    pub(super) fn with_places(self, places: &Arc<LinePlaces>) -> Self {
        Self { places: Some(places.clone()), ..self }
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

    pub(super) const fn places(&self) -> Option<&Arc<LinePlaces>> {
        self.places.as_ref()
    }

    pub(crate) const fn modified(&self) -> Option<SystemTime> {
        self.modified
    }
}
