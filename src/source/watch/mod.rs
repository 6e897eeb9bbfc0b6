//! Detects changes of files, and never publishes an incomplete file.
//!
//! The watcher watches *folders*: the folder of the file, and the folder of every symbolic link on
//! the file's path. A watch on the file itself would end when another file is renamed to the file's
//! name.
//!
//! - A file is complete after it was renamed to the watched name, or closed after writing. A
//!   complete file is published at once, unless another modification follows immediately.
//! - After any other modification, the file is published once it has not been modified for a while.
//! - Because network file systems and some mounts do not report events, the file's stamp (length,
//!   times and inode) is also polled every few seconds. If the stamp has changed, the contents are
//!   read. New contents are published when two successive polls have found the same contents.
//!
//! One [`Watcher`] can watch thousands of files.
//!
//! **Callers that read a status or drop targets never wait for a file system.** The locks that they
//! need are held only briefly. Slow operations, such as unregistering a folder, run on a worker.
//! Each file system has its own event source and workers, so a file system that does not respond
//! does not delay other file systems.

mod debounce;
mod folders;
mod polled_changes;
mod routes;
mod scheduler;
mod target;
mod watcher;

pub use self::watcher::{Watched, Watcher};
