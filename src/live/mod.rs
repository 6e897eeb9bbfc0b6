//! One site's published robots.txt.
//!
//! [`LiveRobots`] holds it: a candidate is parsed, checked, compared and compiled aside into a [`Snapshot`], which is
//! published with one store. A candidate that is missing, unreadable, too large, empty, binary or HTML changes nothing: the
//! last good snapshot stays, and [`LiveRobots::status`] says why. A [`Gate`] refuses what is rarely meant, and a
//! [`StateDir`] remembers what was accepted.
//!
//! This room writes the state directory. It knows no file that a robots.txt is read from, no watcher and no HTTP: that is
//! for [`source`](crate::source), which hands in candidates.

mod accepted_versions;
mod agent_cache;
mod agent_lookups;
mod appending;
mod appendix;
mod clock;
mod compile_cache;
mod date;
mod durability;
mod earlier_process;
mod enforcement;
mod gate;
mod handle;
mod kill_switch;
mod notices;
mod publisher;
mod rejection;
mod reload;
mod reload_history;
mod reload_record;
mod reloading;
mod response_fields;
mod settings;
mod site;
mod snapshot;
mod source;
mod state;
mod status;
mod version;
mod version_hash;

pub use self::agent_lookups::AgentLookups;
pub use self::appendix::Appendix;
pub use self::compile_cache::CompileCache;
pub use self::enforcement::Enforcement;
pub use self::gate::{Gate, GateBuilder, Objection, ObjectionKind, Pending, WatchedPages};
pub use self::handle::LiveRobots;
pub use self::kill_switch::KillSwitch;
pub use self::publisher::{AcceptError, RollbackError};
pub use self::rejection::{MAX_FILE, Rejection, RejectionKind};
pub use self::reload::{Cause, Reload, ReloadOutcome, ReloadOutcomeKind};
pub use self::reload_history::{HistoryEntry, MAX_HISTORY};
pub use self::reloading::Reloading;
pub use self::settings::{DEFAULT_MAX_AGE, LONGEST_MAX_AGE};
pub use self::snapshot::{Content, Snapshot, WhenMissing};
pub use self::source::FetchStatus;
pub use self::state::{StateDir, StateDirInUse, StateError, StateEvent};
pub use self::status::{Condition, Status};
pub use self::version_hash::{VersionHash, VersionHashError, VersionHashPrefix};

pub(crate) use self::clock::Clock;
#[cfg(feature = "axum08")]
pub(crate) use self::handle::SiteIdentity;
pub(crate) use self::reloading::Completion;
pub(crate) use self::settings::SiteSettings;
pub(crate) use self::site::Site;
#[cfg(feature = "fetch")]
pub(crate) use self::source::Candidate;
#[cfg(any(feature = "watch", feature = "fetch"))]
pub(crate) use self::source::SourceStatus;
pub(crate) use self::source::{Loaded, Source, load_text};
pub(crate) use self::version::Version;
