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
//!   lets go of the sockets, accepts no more,
//!   says farewell to its clients, drains, ends
//! ```
//!
//! Both accept on the same sockets until "serves", so every connection is accepted by one of them. A failure before ends the new
//! process, and the one before takes back what it gave up: it has served all the time. If the process before ends in between, the
//! new one goes on: whichever is left serves. After "serves" the new process is like any other, and its death is for its supervisor.
//!
//! The two say all that over a pair of sockets, one of which is the new process's standard input ([`channel`]). [`processes`] has
//! each as the other sees it.
//!
//! **The state directory is handed over, not shared**: it is flushed and unlocked, and later changes wait in memory for
//! the case that it is taken back. A client that changes something at the admin interface waits, or asks the new
//! process: the sockets are handed over too. That makes no change before "serves" either, so what is taken back has missed none.
//!
//! **A connection is closed behind an answer that says so.** Closing an idle one races with its next request, so that
//! is done only to those that stay idle for half of `drain`. A process that ends without a successor has none to send
//! its clients to, and closes them at once.

mod channel;
mod processes;

pub(super) use self::processes::{Predecessor, Successor};

/// The purpose of a socket.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SocketPlace {
    /// A listener, by the address in the config.
    Listener(std::net::SocketAddr),
    /// An address of the admin interface, as the config has it.
    Admin(std::net::SocketAddr),
    /// The socket of the admin interface; `is_made` where the file was made by this process and not by a supervisor.
    AdminSocket { path: std::path::PathBuf, is_made: bool },
}

/// Sockets that one process hands to the other.
pub(super) type HandedSockets = Vec<(SocketPlace, std::os::fd::OwnedFd)>;

/// An event of a new process.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SuccessorEvent {
    /// Its config can be used.
    Prepared,
    /// It serves, and a summary of it.
    Serves(String),
    /// It cannot serve, and has ended.
    Failed(String),
}
