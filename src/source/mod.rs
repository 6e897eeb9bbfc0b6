//! Where a robots.txt comes from, and what is live of it.
//!
//! [`LiveRobots`] holds one site's robots.txt: it is read, parsed, checked and compiled aside into a [`Snapshot`], which
//! is published with one store. A replacement that is missing, unreadable, too large, empty, binary or HTML changes
//! nothing: the last good snapshot stays, and [`LiveRobots::status`] says why. [`Sites`] maps hosts to live files.
//!
//! This room reads files; it serves nothing.

mod agent_cache;
mod file;
mod hash;
mod hosts;
mod live;
mod rejection;
mod reload;
mod snapshot;
#[cfg(feature = "watch")]
mod watch;

pub use self::file::MAX_FILE;
pub use self::hash::Hash;
pub use self::hosts::{HostMap, HostPatternError, Sites};
pub use self::live::{LiveBuilder, LiveRobots, Status, WhenMissing};
pub use self::rejection::{Rejection, RejectionKind};
pub use self::reload::{Cause, Outcome, Reload, Reloading};
pub use self::snapshot::{Content, Snapshot};
