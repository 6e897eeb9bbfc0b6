//! The tables of a config, kept for its review.
//!
//! The [review](super::review) reads files that the config names, whose file system may hang, so it is no part of loading.

use std::fmt;
use std::sync::Arc;

use super::toml_tables::RawConfig;

/// The tables of a config file and its name.
#[derive(Clone, Default)]
pub(crate) struct Reviewable(Option<Arc<(String, RawConfig)>>);

impl Reviewable {
    pub(super) fn new(name: &str, file: RawConfig) -> Self {
        Self(Some(Arc::new((name.to_owned(), file))))
    }

    pub(super) fn file(&self) -> Option<(&str, &RawConfig)> {
        self.0.as_ref().map(|named| (&*named.0, &named.1))
    }
}

impl fmt::Debug for Reviewable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reviewable").finish_non_exhaustive()
    }
}
