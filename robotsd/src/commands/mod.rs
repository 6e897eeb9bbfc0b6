//! The commands, one file or folder each.
//!
//! `check`, `diff`, `edit`, `test`, `explain`, `replay`, `agents` and `config` read files and need no server. `status`, `history`,
//! `reload`, `accept`, `rollback` and `enforce` query a running robotsd, which [`running`] finds, or each of a [`fleet`]; the last three
//! are [`decisions`]. `audit` reads who made them, and `token` makes a token for those who do. `completions` and `man` describe the
//! [`command_line`] itself. `serve` is a room of its own.

pub(crate) mod agents;
pub(crate) mod audit;
pub(crate) mod board;
pub(crate) mod check;
pub(crate) mod command_line;
pub(crate) mod config;
pub(crate) mod diff;
pub(crate) mod edit;
pub(crate) mod explain;
pub(crate) mod replay;
pub(crate) mod test;
pub(crate) mod token;

pub(crate) mod decisions;
pub(crate) mod reload;
pub(crate) mod running;
pub(crate) mod status;

mod arguments;
mod claim;
pub(crate) mod fleet;
mod output;
