//! Detects that a file has changed, and never publishes an incomplete file.
//!
//! The *folders* that contain the file and every symbolic link on its path are watched, because a
//! watch on the file itself ends when another file is renamed to its name. After a rename, or a
//! close after writing, the file is complete and is published at once, unless another modification
//! follows immediately. After any other modification, the file is published when it was not
//! modified for a while. Network file systems and some mounts do not report events, so the file's
//! stamp is also polled every few seconds, and its contents are read if the stamp has changed. New
//! contents are published when two polls find the same contents.
//!
//! One [`Watcher`] watches thousands of files.
//!
//! **No reader waits for a file.** Locks that are needed to read a status or to drop a target are
//! held only briefly. Slow steps, such as unregistering a folder, are left to a worker. Each file
//! system has its own event source and workers, so a hanging file system does not delay the others.
//! Before each file operation, a function of `source::file_system` is called, so that a test can
//! make a folder hang.

mod debounce;
mod folders;
mod polled_changes;
mod routes;
mod scheduler;
mod target;
mod watcher;

pub use self::watcher::{Watched, Watcher};
