//! The modules of the program `robotsd`, which serves, checks, explains and enforces a site's
//! robots.txt.
//!
//! **This API is internal**: it contains what the program, its tests, benches and fuzz targets
//! need, and changes without notice. Applications use [`tower_robots`]; operators read the handbook,
//! `docs/` in the repository.
//!
//! This crate uses only the public API of `tower_robots`. Its main modules:
//!
//! - `edge` and `upstream` implement HTTP and do not know about robots.txt.
//! - `sites` contains what is served, and `serve` puts the layer between edge and upstream.
//! - `request` decides about a request, and `decision` answers other proxies.
//! - `admin` answers an operator about a running server.
//! - `commands` contains the rest of the command line: commands that read files, and commands that
//!   query a running server.

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
mod audit;
mod authorities;
mod board;
mod cli;
mod commands;
mod config;
mod counting;
mod date;
mod decision;
mod edge;
mod evaluator;
mod exit;
mod expectations;
mod fetch;
mod files;
mod fleet;
mod html;
mod http_common;
mod input;
mod log;
mod metrics;
mod names;
mod pages;
mod refusal;
mod render;
mod report;
mod request;
mod selector;
mod serve;
mod sites;
mod socket;
mod store;
mod target_url;
mod upstream;
mod webhooks;
mod word_enum;

use std::process::ExitCode;

/// Runs the command that the process was started with.
pub fn run() -> ExitCode {
    cli::run()
}
