//! Finding out that a file has changed, without ever taking a half-written one.
//!
//! The *directories* of the path and of every link on the way to it are watched, because a watch on the file dies at
//! the first atomic rename. A rename or a close after writing is a finished version and is taken at once, unless another
//! modification follows on its heels; a bare modification waits until the file has been quiet. Network file systems and
//! some mounts report no events, so every few seconds the file's stamp is polled as well, and its contents if the stamp
//! has changed; they are taken when two polls agree.
//!
//! One [`Watcher`] does so for thousands of files.
//!
//! **No reader waits for a file.** Locks that a status or a drop takes are held for a moment only; a worker does what
//! callers leave to do, such as unregistering a folder. Each file system has events and workers of its own, so none waits
//! for one that hangs. File operations go through `source::file_system`, where a test can hang a folder.

mod debounce;
mod folders;
mod polled_changes;
mod routes;
mod scheduler;
mod target;
mod watcher;

pub use self::watcher::{Watched, Watcher};
