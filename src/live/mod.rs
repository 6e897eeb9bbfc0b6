//! The published robots.txt of one site: applications serve its live version, and admin pages show
//! and accept its versions.
//!
//! [`LiveRobots`] is a handle to the site. A new version is parsed, checked, compared with the
//! previous one and compiled into a [`Snapshot`]. The new snapshot is published with a single
//! atomic store. If the source is missing, unreadable, too large, empty, binary or HTML, the last
//! good snapshot stays live, and [`LiveRobots::status`] returns the reason. A [`Gate`] holds back
//! versions whose effects are probably not intended. A [`StateDir`] saves the accepted versions.
//!
//! This module also writes the state directory. The module [`source`](crate::source) handles files,
//! file system events and HTTP, and passes new versions to this module.

// Items that only some features use are compiled even without these features, so that the items
// need no `cfg` with a list of features. With all features enabled, no item is unused.
#![cfg_attr(
    not(all(feature = "axum08", feature = "fetch", feature = "layer", feature = "verify", feature = "watch")),
    allow(dead_code, unused_imports)
)]

pub(crate) mod agent_cache;
mod clock;
pub(crate) mod compile_cache;
pub(crate) mod gate;
mod grace;
pub(crate) mod handle;
mod mishaps;
mod mutex;
pub(crate) mod publisher;
mod rejection;
pub(crate) mod reload;
mod reload_record;
mod site;
mod snapshot;
pub(crate) mod source;
pub(crate) mod state;
mod switch;
mod versions;

pub(crate) use self::agent_cache::AgentLookups;
pub(crate) use self::compile_cache::CompileCache;
pub use self::gate::{Gate, Objection, ObjectionKind, Pending};
pub use self::handle::{LiveRobots, Status};
pub use self::publisher::NoSuchVersion;
pub(crate) use self::publisher::Remembered;
pub use self::rejection::{Rejection, RejectionKind};
pub(crate) use self::reload::Attribution;
pub use self::reload::{Cause, HistoryEntry, Reload, ReloadOutcome, ReloadOutcomeKind};
pub use self::snapshot::{Content, Snapshot, WhenMissing};
pub(crate) use self::source::Appendix;
pub use self::source::FetchStatus;
pub(crate) use self::state::ProblemEvent;
pub use self::state::{Problem, ProblemKind, StateDir, StateError};
pub use self::switch::Enforcement;
#[doc(hidden)]
pub use self::switch::KillSwitch;
pub use self::versions::{VersionHash, VersionHashPrefix};

use self::publisher::WasLive;
use self::reload::History;
pub(crate) use self::source::Durability;
use self::versions::{AcceptedState, AcceptedVersion, AcceptedVersions};

pub(crate) use self::clock::Clock;
#[cfg(test)]
pub(crate) use self::clock::TestClock;
pub(crate) use self::handle::SiteIdentity;
pub(crate) use self::mutex::Mutex;
pub(crate) use self::reload::{Completion, Reloading};
pub(crate) use self::site::{Site, SiteSettings};
pub(crate) use self::source::{Candidate, Loaded, Source, load_text};
pub(crate) use self::state::ProblemListener;
pub(crate) use self::versions::Version;
