//! Finding out that a file has changed, without ever taking a half-written one.
//!
//! The *directories* of the path and of every link on the way to it are watched, because a watch on the file dies at
//! the first atomic rename. A rename or a close after writing is a finished version and is taken at once, unless another
//! modification follows on its heels; a bare modification waits until the file has been quiet. Network file systems and
//! some mounts report no events, so every few seconds the file's stamp is polled as well, and its contents if the stamp
//! has changed; they are taken when two polls agree.
//!
//! One [`Watcher`] does so for thousands of files. No status, drop or other file system waits for one that hangs.

mod debounce;
mod file_stamp;
mod folders;
mod links;
mod polled_changes;
mod ready;
mod routes;
mod scheduler;
mod target;
mod watcher;

pub use self::watcher::{DEFAULT_POLL, SHORTEST_POLL, Watched, Watcher};
