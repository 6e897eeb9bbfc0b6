//! The sources of a robots.txt, and the sites by host: for applications with several sites, many files, or a file elsewhere.
//!
//! [`LiveRobots::file`](crate::live::LiveRobots::file) and its like start a [`LiveBuilder`], which ties a source to a live
//! site. [`Sites`] maps hosts to live files, and a [`Directory`] makes them of the files in a folder.
//!
//! This room reads files and, with the feature `fetch`, fetches them; it serves nothing.

// As in `live`: what one feature alone reads stands here without it too, so that no item needs to name its readers. With all of them
// nothing is unused.
#![cfg_attr(
    not(all(feature = "axum08", feature = "fetch", feature = "layer", feature = "verify", feature = "watch")),
    allow(dead_code, unused_imports)
)]

pub(crate) mod builder;
pub(crate) mod directory;
#[cfg(feature = "verify")]
pub mod evidence;
#[cfg(feature = "fetch")]
pub mod fetch;
mod file;
pub(crate) mod file_source;
mod file_system;
#[cfg(feature = "fetch")]
pub mod follow;
pub(crate) mod hosts;
mod sites;
#[cfg(feature = "watch")]
pub(crate) mod watch;

pub use self::builder::LiveBuilder;
pub use self::directory::{Directory, DirectoryBuilder};
pub use self::hosts::HostMap;
pub(crate) use self::hosts::Scheme;
pub use self::sites::{IntoSites, SiteMap, Sites};
#[cfg(feature = "watch")]
pub use self::watch::Watcher;

/// In place of `watch` without its feature: nothing is watched, and a file is read again where that is asked for.
#[cfg(not(feature = "watch"))]
mod watch {
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
}
