//! The binary, as an operator runs it: real processes, real sockets on loopback, real files.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a test stops at the first surprise"
)]

#[path = "../../../tests/it/shared.rs"]
mod shared;
#[cfg(target_os = "linux")]
#[path = "../../../tests/it/small_disk.rs"]
mod small_disk;

#[cfg(unix)]
mod daemon;
mod harness;
mod log_schema;
mod played_names;
mod programs;
mod prometheus;

mod admin;
mod agents;
mod answers;
#[cfg(unix)]
mod beside;
#[cfg(unix)]
mod board;
#[cfg(unix)]
mod board_browser;
#[cfg(target_os = "linux")]
mod board_week;
#[cfg(unix)]
mod board_words;
mod check;
mod check_fix;
mod churn;
mod command_line;
mod config;
#[cfg(unix)]
mod data;
mod decision;
mod decision_hosts;
mod diff;
mod evaluator;
mod expect;
mod explain;
mod explain_identity;
mod ext_authz;
mod findings;
#[cfg(unix)]
mod fleet;
#[cfg(target_os = "linux")]
mod full_disk;
mod gate;
mod gate_pages;
mod grpc;
#[cfg(target_os = "linux")]
mod hanging_files;
#[cfg(target_os = "linux")]
mod hostile_files;
mod identity;
mod kubernetes;
mod lifecycle;
mod live;
#[cfg(unix)]
mod location;
#[cfg(unix)]
mod log;
mod metrics;
mod modes;
mod monitoring;
mod operate;
#[cfg(unix)]
mod proxy_protocol;
mod publishing;
mod rate;
mod reconfigure;
mod refusal;
mod registry_url;
#[cfg(unix)]
mod rejected_config;
mod replay;
mod replay_identity;
mod serve;
#[cfg(unix)]
mod shared_rate;
#[cfg(unix)]
mod shipped;
#[cfg(target_os = "linux")]
mod sitemap_memory;
mod sources;
#[cfg(unix)]
mod spellings;
mod start;
#[cfg(unix)]
mod status;
mod tls;
mod traces;
mod transcripts;
mod trusted;
#[cfg(target_os = "linux")]
mod upgrade;
mod upstreams;

/// Where the full case sets are, if they are there.
const SHARED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared");
