//! The state directory: what outlives the process.
//!
//! ```text
//! enforcement                the kill switch of all sites: `on` or `off`
//! sites/NAME/enforcement     that of one
//! sites/NAME/state.json      which versions were accepted and when, which one waits and why
//! sites/NAME/HASH.txt        their bytes
//! sites/NAME/history.jsonl   reloads and turns of the switch
//! sites/NAME/live            which version is live: of fixed size, and overwritten in place
//! lock                       locked as long as a handle is open; which process has it
//! ```
//!
//! Every file is written aside and renamed, so it is whole whenever the process is killed, and is for its owner alone.
//! One thread writes versions for all sites, a moment after they are live; a decision of an operator is written before the
//! call returns. One handle at a time has a directory open, and the others are refused. Damaged and foreign files are reported and ignored. A write that fails is tried
//! again: on a timer, with other writes, on a reload and at the end. Meanwhile the sites go on, and the status reports it. The
//! record of what is live needs no room where files are overwritten in place and may be written at all, so a process that
//! starts after one that could write nothing else knows whether the version it finds was live.

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
