//! The state directory: what outlives the process.
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
//! Every file is written under a temporary name and renamed, so it is complete whenever the process
//! is killed. Only its owner can read it. One thread writes versions for all sites, a moment after
//! they go live; an operator's decision is written before the call returns. Only one handle at a
//! time can have a directory open; others are refused. Damaged and unknown files are reported and
//! ignored.
//!
//! A failed write is tried again: on a timer, with other writes, on a reload and at the end.
//! Meanwhile the sites continue, and the status reports the problem. The record of the live version
//! needs no space on file systems that overwrite files in place. So even if the previous process
//! could write nothing else, the next one knows whether the version that it finds was live.

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
