//! The commands. Each command has its own file or folder.
//!
//! `check`, `diff`, `edit`, `test`, `explain`, `replay`, `agents` and `config` read files and need
//! no server. `status`, `history`, `reload`, `accept`, `rollback` and `enforce` query a running
//! robotsd, which [`running`] finds, or every replica of a [`fleet`]. `accept`, `rollback` and
//! `enforce` are in [`decisions`], and `completions` and `man` in [`command_line`]. The command
//! `serve` is in a module outside this folder.

pub(crate) mod agents;
pub(crate) mod audit;
pub(crate) mod board;
pub(crate) mod check;
pub(crate) mod command_line;
pub(crate) mod config;
pub(crate) mod diff;
pub(crate) mod edit;
pub(crate) mod explain;
pub(crate) mod lsp;
pub(crate) mod replay;
pub(crate) mod test;
pub(crate) mod tester;
pub(crate) mod token;

pub(crate) mod decisions;
pub(crate) mod reload;
pub(crate) mod running;
pub(crate) mod status;

mod arguments;
mod claim;
pub(crate) mod fleet;
mod output;
