//! The rooms of the program `robotsd`: a site's robots.txt served, checked, explained and enforced.
//!
//! **This API is internal**: it is what the program, its tests, benches and fuzz targets need, and it changes without notice.
//! An application uses [`tower_robots`]; an operator reads [`docs`].
//!
//! Uses the public API of `tower_robots` only. `edge` and `upstream` speak HTTP and know nothing of robots.txt; `sites` holds
//! what is served, and `serve` puts the layer between edge and upstream; `request` decides about a request, `ask` answers other proxies; `admin` answers an
//! operator about a server that runs. `commands` holds the rest of the command line: the commands that read files, and those
//! that query a running server.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

#[doc(hidden)]
pub mod benching;
pub mod docs;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
#[doc(hidden)]
pub mod shared_rate;

mod admin;
mod ask;
mod audit;
mod authorities;
mod board;
mod cli;
mod commands;
mod config;
mod counting;
mod date;
mod edge;
mod evaluator;
mod exchange;
mod exit;
mod expectations;
mod files;
mod fleet;
mod html;
mod input;
mod log;
mod metrics;
mod names;
mod pages;
mod publish_hook;
mod refusal;
mod render;
mod report;
mod request;
mod retrieval;
mod selector;
mod serve;
mod sites;
mod socket;
mod store;
mod target_url;
mod upstream;
mod word_enum;

use std::process::ExitCode;

/// Runs the command that the process was started with.
pub fn run() -> ExitCode {
    cli::run()
}
