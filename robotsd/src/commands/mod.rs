//! The commands, one file or folder each.
//!
//! `check`, `diff`, `test`, `explain`, `replay`, `agents` and `config` read files and need no server. `status`, `history`,
//! `reload`, `accept`, `rollback` and `enforce` query a running robotsd, which [`arguments::running`] finds; the last three
//! are an [`operator_decision`]. `completions` and `man` describe the command line itself. `serve` is a room of its own.

pub(crate) mod agents;
pub(crate) mod board;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod man;
pub(crate) mod replay;
pub(crate) mod test;
pub(crate) mod upgrade;

pub(crate) mod accept;
pub(crate) mod enforce;
pub(crate) mod history;
pub(crate) mod reload;
pub(crate) mod rollback;
pub(crate) mod status;

mod arguments;
mod claim;
mod operator_decision;
mod output;
