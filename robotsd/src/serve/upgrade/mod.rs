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
//! them. If the new process fails before that, it ends, and the old one takes back what it gave up;
//! it has served all the time. If the old process ends in between, the new one continues. After
//! "serves" the new process is like any other: if it dies, its supervisor restarts it.
//!
//! The two communicate over a pair of sockets; one socket is the new process's standard input
//! ([`channel`]). [`processes`] contains each process as the other sees it.
//!
//! **The state directory is handed over, not shared**: it is flushed and unlocked, and later
//! changes wait in memory in case it is taken back. A client that changes something at the admin
//! interface waits, or asks the new process, because the sockets are handed over, too. Before
//! "serves" the new process makes no changes, either, so a state directory that is taken back is
//! complete.
//!
//! **A connection is closed after a response that announces it.** Closing an idle connection could
//! collide with its next request, so that is done only to connections that stay idle for half of
//! `drain`. A process without a successor cannot direct its clients to another one, and closes idle
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
    /// An address of the admin interface, as the config writes it.
    Admin(std::net::SocketAddr),
    /// The socket of the admin interface. `is_made` is true if this process created the file, and
    /// not a supervisor.
    AdminSocket { path: std::path::PathBuf, is_made: bool },
}

/// Sockets that one process hands to the other.
pub(super) type HandedSockets = Vec<(SocketPlace, std::os::fd::OwnedFd)>;

/// An event of a new process.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SuccessorEvent {
    /// Its config can be used.
    Prepared,
    /// It serves, with this summary.
    Serves(String),
    /// It cannot serve, and has ended.
    Failed(String),
}
