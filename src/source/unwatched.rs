//! In place of `watch` without its feature: nothing is watched, and a file is read again where that is asked for.

use std::path::PathBuf;
use std::sync::Weak;
use std::time::Duration;

use crate::live::Site;

/// Watches nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Watcher;

/// Is not watched.
#[derive(Debug)]
pub(super) struct Watched;

impl Watcher {
    pub(super) const DEFAULT_POLL: Duration = Duration::ZERO;

    pub(super) const fn new() -> Self {
        Self
    }

    pub(super) fn folder(
        &self,
        _: PathBuf,
        _: Duration,
        _: impl Fn(&str) -> bool + Send + Sync + 'static,
        _: impl Fn() -> Option<Duration> + Send + Sync + 'static,
    ) -> Watched {
        Watched
    }

    pub(super) fn robots(&self, _: PathBuf, _: Duration, _: Weak<Site>) -> Watched {
        Watched
    }
}

impl Watched {
    pub(super) const fn begin(&self) {}

    pub(super) const fn trouble(&self) -> Option<String> {
        None
    }
}
