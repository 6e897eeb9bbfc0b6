//! Upgrade in place: a new process of the program replaces this process, and no connection is
//! refused or reset.
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
//! Until the new process reports "serves", both processes have the same sockets, so every
//! connection is accepted by one of them. If the new process fails before "serves", it ends. Then
//! the old process, which has continued to serve, takes back the resources that it has released. If
//! the old process ends before "serves", the new process continues. If the new process ends after
//! "serves", its supervisor restarts it, as usual.
//!
//! The two processes communicate over a pair of sockets ([`channel`]). In each process, a type in
//! [`processes`] represents the other process.
//!
//! **The state directory is handed over, not shared.** The old process writes all changes to the
//! directory and unlocks it. The old process keeps later changes in memory, because it may have to
//! take the directory back. At the admin interface, requests for changes wait until one of the
//! processes serves alone. The new process changes nothing before "serves", so the old process
//! loses nothing if it takes the directory back.
//!
//! **The old process closes a connection after a response that announces the end of the
//! connection.** Closing an idle connection could collide with the client's next request.
//! Therefore, an idle connection is closed only if it stays idle for half of `drain`. A process
//! that ends without a successor closes idle connections immediately.

mod channel;
mod processes;

pub(super) use self::processes::{Predecessor, Successor};

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SocketPlace {
    /// A listener. Contains the listener's address from the config.
    Listener(std::net::SocketAddr),
    /// A TCP listener of the admin interface. Contains the interface's address from the config.
    Admin(std::net::SocketAddr),
    /// The Unix socket of the admin interface. `is_made` is true if robotsd created the socket
    /// file, and false if a supervisor created it.
    AdminSocket { path: std::path::PathBuf, is_made: bool },
}

pub(super) type HandedSockets = Vec<(SocketPlace, std::os::fd::OwnedFd)>;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum SuccessorEvent {
    /// The config of the new process is usable.
    Prepared,
    /// The new process serves. Contains its summary.
    Serves(String),
    /// The new process cannot serve, and has ended. Contains the reason.
    Failed(String),
}
