//! Where a robots.txt comes from, and what is live of it.
//!
//! [`LiveRobots`] holds one site's robots.txt: it is read, parsed, checked and compiled aside into a [`Snapshot`], which
//! is published with one store. A replacement that is missing, unreadable, too large, empty, binary or HTML changes
//! nothing: the last good snapshot stays, and [`LiveRobots::status`] says why. A [`Gate`] refuses what is rarely meant, and
//! a [`StateDir`] remembers what was accepted. [`Sites`] maps hosts to live files,
//! and a [`Directory`] makes them of the files in a folder.
//!
//! This room reads and writes files and, with the feature `fetch`, fetches them; it serves nothing.

mod agent_cache;
mod builder;
mod clock;
mod concluding;
mod date;
mod directory;
mod enforcement;
#[cfg(feature = "fetch")]
#[cfg_attr(docsrs, doc(cfg(feature = "fetch")))]
pub mod fetch;
mod file;
mod gate;
mod hash;
mod history;
mod hosts;
mod live;
mod making;
mod origin;
mod rejection;
mod reload;
mod shelf;
mod site_map;
mod snapshot;
mod state;
mod status;
mod versions;
#[cfg(feature = "watch")]
mod watch;

pub use self::builder::LiveBuilder;
pub use self::directory::{Directory, DirectoryBuilder, DirectoryError, DirectoryEvent};
pub use self::enforcement::{Enforcement, KillSwitch};
pub use self::file::MAX_FILE;
pub use self::gate::{Gate, GateBuilder, Objection, ObjectionKind, Pending};
pub use self::hash::{Hash, HashError, HashPrefix};
pub use self::history::{HistoryEntry, MAX_HISTORY};
pub use self::hosts::{HostMap, HostPatternError};
pub use self::live::{LiveRobots, WhenMissing};
pub use self::making::{AcceptError, RollbackError};
pub use self::origin::{Origin, Scheme};
pub use self::rejection::{Rejection, RejectionKind};
pub use self::reload::{Cause, Outcome, OutcomeKind, Reload, Reloading};
pub use self::shelf::Shelf;
pub use self::site_map::{SiteMap, Sites};
pub use self::snapshot::{Content, Snapshot};
pub use self::state::{StateDir, StateError, StateEvent};
pub use self::status::{Condition, Status};
#[cfg(feature = "watch")]
pub use self::watch::{Watched, Watcher};
