//! Upgrade in place: a new process of the program replaces this one, and no connection is refused
//! or reset.
//!
//! ```text
//! old process                                    new process
//!   starts it: same path and arguments      →      reads and checks its config
//!   gives it every listening socket         →
//!                                           ←      "prepared"
//!   stops answering at the admin interface,
//!   writes the board and state directory,
//!   unlocks the directory: "take"           →      locks it, opens sites, answers, accepts
//!                                           ←      "serves"
//!   drops the sockets, accepts no more,
//!   directs clients to it, drains, ends
//! ```
//!
//! Until "serves", both processes have the same sockets, so every connection is accepted by one of
//! them. If the new process fails before that, it ends, and the old process takes back the
//! resources that it has released; it has served without interruption. If the old process ends
//! before "serves", the new one continues. After "serves", the new process is like any other: if it
//! ends, its supervisor restarts it.
//!
//! The two processes communicate over a pair of sockets ([`channel`]). [`processes`] contains the
//! objects that represent each process in the other one.
//!
//! **The state directory is handed over, not shared.** The old process writes and unlocks it, and
//! keeps later changes in memory in case it takes the directory back. Requests for changes at the
//! admin interface wait until one of the processes serves alone. The new process makes no changes
//! before "serves", so a state directory that is taken back is complete.
//!
//! **The old process closes a connection after a response that announces this.** Closing an idle
//! connection could collide with its next request, so only connections that stay idle for half of
//! `drain` are closed without an announcement. A process that ends without a successor closes idle
//! connections at once.

mod channel;
mod processes;

pub(super) use self::processes::{Predecessor, Successor};

/// The purpose of a socket.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SocketPlace {
    /// A listener, by its address in the config.
    Listener(std::net::SocketAddr),
    /// An address of the admin interface, as written in the config.
    Admin(std::net::SocketAddr),
    /// The socket of the admin interface. `is_made` is true if this process created the file, and
    /// not a supervisor.
    AdminSocket { path: std::path::PathBuf, is_made: bool },
}

/// Sockets that one process hands to the other.
pub(super) type HandedSockets = Vec<(SocketPlace, std::os::fd::OwnedFd)>;

/// An event of the new process, for the old process.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SuccessorEvent {
    /// The config of the new process is usable.
    Prepared,
    /// The new process serves, with this summary.
    Serves(String),
    /// The new process cannot serve, and has ended, with this reason.
    Failed(String),
}
