//! One site's published robots.txt.
//!
//! [`LiveRobots`] holds it: a candidate is parsed, checked, compared and compiled aside into a [`Snapshot`], which is
//! published with one store. A candidate that is missing, unreadable, too large, empty, binary or HTML changes nothing: the
//! last good snapshot stays, and [`LiveRobots::status`] says why. A [`Gate`] refuses what is rarely meant, and a
//! [`StateDir`] remembers what was accepted.
//!
//! This room writes the state directory. It knows no source: where bytes come from is for [`source`](crate::source).

mod agent_cache;
mod clock;
mod compile_cache;
mod date;
mod enforcement;
mod gate;
mod handle;

mod history;
mod publish;
mod rejection;
mod reload;
mod reload_record;
mod snapshot;
mod state;
mod status;
mod version_hash;
mod versions;

pub use self::compile_cache::CompileCache;
pub use self::enforcement::{Enforcement, KillSwitch};
pub use self::gate::{Gate, GateBuilder, Objection, ObjectionKind, Pending};
pub use self::handle::{LiveRobots, WhenMissing};
pub use self::history::{HistoryEntry, MAX_HISTORY};
pub use self::publish::{AcceptError, RollbackError};
pub use self::rejection::{MAX_FILE, Rejection, RejectionKind};
pub use self::reload::{Cause, Reload, ReloadOutcome, ReloadOutcomeKind, Reloading};
pub use self::snapshot::{Content, Snapshot};
pub use self::state::{StateDir, StateError, StateEvent};
pub use self::status::{Condition, Status};
pub use self::version_hash::{VersionHash, VersionHashError, VersionHashPrefix};

pub(crate) use self::clock::Clock;
pub(crate) use self::handle::{Past, Shared};
pub(crate) use self::publish::{Loaded, Making, Settings, Source};
pub(crate) use self::reload::Completion;
pub(crate) use self::state::{Remembered, SiteState};
