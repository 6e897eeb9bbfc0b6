//! The sources of a robots.txt, and maps from hosts to sites. Use this module if an application has
//! several sites or many files, or fetches its robots.txt from a server.
//!
//! [`LiveRobots::file`](crate::live::LiveRobots::file) and similar constructors return a
//! [`LiveBuilder`], which opens a live site with its source. [`Sites`] maps hosts to sites, and a
//! [`Directory`] builds such a map from the files in a folder.
//!
//! This module reads files and, with the feature `fetch`, sends HTTP requests. It does not serve
//! requests.

// As in the module `live`, items are compiled even if no enabled feature uses them. So no item
// needs a `cfg` with a list of features.
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
pub(crate) use self::sites::SitesGuard;
pub use self::sites::{IntoSites, SiteMap, Sites};
#[cfg(feature = "watch")]
pub use self::watch::Watcher;

/// Replaces the module `watch` if the feature `watch` is off. Without this feature, files are not
/// watched, but can still be reloaded.
#[cfg(not(feature = "watch"))]
mod watch {
    use std::path::PathBuf;
    use std::sync::Weak;
    use std::time::Duration;

    use crate::live::Site;

    #[derive(Clone, Debug, Default)]
    pub(super) struct Watcher;

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

        pub(super) fn problem(&self) -> Option<String> {
            let problem = "the feature \"watch\" of tower-robots is off, so changes are not noticed: turn it on, or \
                           reload after each change";
            Some(problem.to_owned())
        }
    }
}
