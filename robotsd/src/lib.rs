//! The modules of the program `robotsd`, which serves, checks, explains and enforces the robots.txt
//! of sites.
//!
//! **This API is internal** and can change without notice. Only the program, its tests, its
//! benchmarks and its fuzz targets use this API. Applications should use [`tower_robots`], and
//! operators should read the handbook, `docs/` in the repository.
//!
//! This crate uses only the public API of `tower_robots`. Its main modules:
//!
//! - `edge` and `upstream` implement HTTP. Neither module depends on robots.txt.
//! - `sites` contains the sites that are served, and `serve` runs the server. The robots layer is
//!   between `edge` and `upstream`.
//! - `request` decides about a request, and `decision` answers other proxies that ask for a
//!   decision.
//! - `admin` is the interface that operators use to query and change a running server.
//! - `commands` contains all commands except `serve`. These commands read files or query a running
//!   server.

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
