//! The state directory: the state of sites and kill switches that is kept across restarts.
//!
//! ```text
//! enforcement                the kill switch of all sites: `on` or `off`
//! sites/NAME/enforcement     the kill switch of one site
//! sites/NAME/state.json      accepted versions with dates, the pending version and why
//! sites/NAME/HASH.txt        the bytes of a version
//! sites/NAME/history.jsonl   reloads and changes of the switch
//! sites/NAME/live            the record of the live version: of fixed size, overwritten in place
//! lock                       locked as long as a handle is open; names its process
//! ```
//!
//! A file is written under a temporary name and renamed, so it is complete even if the process is
//! killed. There are three exceptions: lines are appended to the history, the record `live` is
//! overwritten in place, and a kill switch's file is overwritten if the disk is full. Only the
//! owner of a file can read it. One thread writes the versions of all sites, shortly after they go
//! live. An operator's decision is written before the function for this decision returns. Only one
//! handle at a time can have a directory open. Damaged files, and files in an unknown format, are
//! reported and ignored.
//!
//! A failed write is retried after a delay, with the next write, on a reload, and when the process
//! ends. Until a retry succeeds, the sites keep serving, and the status reports the problem. On
//! most file systems, the record of the live version can be overwritten without free space. So even
//! if no other file can be written, the next process learns from the record whether the newest
//! version in the directory was live.

pub(crate) mod disk;
mod error;
pub(crate) mod folder_name;
mod json;
mod lock;
mod record_file;
pub(crate) mod replacement;
mod site;
mod state_dir;
mod switch_file;
mod writer;

#[cfg(test)]
pub(super) use self::disk::{Access, Disk};
pub(crate) use self::error::ProblemListener;
pub use self::error::{Problem, ProblemEvent, ProblemKind, StateError};
pub(super) use self::site::SiteState;
pub use self::state_dir::StateDir;
#[cfg(test)]
pub(super) use self::writer::StateWriter;

#[cfg(test)]
mod tests;
