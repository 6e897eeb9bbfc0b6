//! Detects that a file has changed, without ever taking a half-written one.
//!
//! The *directories* of the path and of every link on the way to it are watched, because a watch on
//! the file ends at the first atomic rename. A rename or a close after writing marks a finished
//! version. That version is taken at once, unless another modification follows immediately. Other
//! modifications wait until the file has been quiet. Network file systems and some mounts report no
//! events, so the file's stamp is also polled every few seconds, and its contents are read if the
//! stamp has changed. They are taken when two polls agree.
//!
//! One [`Watcher`] watches thousands of files.
//!
//! **No reader waits for a file.** Locks that a status call or a drop takes are held only briefly.
//! Slow steps, such as unregistering a folder, are left to a worker. Each file system has its own
//! events and workers, so a hung file system does not delay the others. File operations go through
//! `source::file_system`, where a test can make a folder hang.

mod debounce;
mod folders;
mod polled_changes;
mod routes;
mod scheduler;
mod target;
mod watcher;

pub use self::watcher::{Watched, Watcher};
