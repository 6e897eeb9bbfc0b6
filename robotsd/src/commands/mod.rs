//! The commands, one file or folder each.
//!
//! `check`, `diff`, `test`, `explain`, `replay`, `agents` and `config` read files and need no server. `status`, `history`,
//! `reload` and `operate` (`accept`, `rollback`, `enforce`) query a running robotsd, which [`running`] finds. `serve` is a
//! room of its own.

pub(crate) mod agents;
pub(crate) mod check;
pub(crate) mod config;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod replay;
pub(crate) mod test;

pub(crate) mod history;
pub(crate) mod operate;
pub(crate) mod reload;
pub(crate) mod status;

mod agent_summary;
mod running;
mod site;
mod unmet;
mod wrap;
