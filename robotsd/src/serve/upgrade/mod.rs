//! Upgrade in place: a new process of the program takes the place of this one, and no connection is refused or reset.
//!
//! ```text
//! process before                                    new process
//!   starts it: same path and arguments       →        reads and checks its config
//!   gives it every listening socket          →
//!                                            ←        "prepared"
//!   answers no more at the admin interface,
//!   writes the board and the state directory,
//!   unlocks that: "take"                     →        locks it, opens sites, answers there, accepts
//!                                            ←        "serves"
//!   accepts no more, says farewell to its clients, ends
//! ```
//!
//! Both accept on the same sockets until the end, so every connection is accepted by one of them. What fails before "serves" ends the
//! new process, and the one before takes back what it gave up: it has served all the time. Where the process before ends in between,
//! the new one goes on: whichever is left serves.
//!
//! The two say all that over a pair of sockets, one of which is the new process's standard input ([`channel`]). [`successor`] is the new
//! process as the one before sees it, [`predecessor`] the other way round.

#[cfg(target_os = "linux")]
pub(super) mod channel;
#[cfg(target_os = "linux")]
pub(super) mod predecessor;
#[cfg(target_os = "linux")]
pub(super) mod successor;

/// Elsewhere sockets are not handed over so.
#[cfg(not(target_os = "linux"))]
mod elsewhere;

#[cfg(target_os = "linux")]
pub(super) use self::channel::{HandedSockets, SocketPlace};
#[cfg(not(target_os = "linux"))]
pub(super) use self::elsewhere::{NoPredecessor as Predecessor, NoSuccessor as Successor};
#[cfg(target_os = "linux")]
pub(super) use self::predecessor::Predecessor;
#[cfg(target_os = "linux")]
pub(super) use self::successor::Successor;

/// What comes of a new process.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SuccessorEvent {
    /// Its config can be used.
    Prepared,
    /// It serves, and what.
    Serves(String),
    /// It cannot serve, and has ended.
    Failed(String),
}

/// The variable that tells a process of whom it takes the place: the number of that process.
#[cfg(target_os = "linux")]
const UPGRADE: &str = "ROBOTSD_UPGRADE";
