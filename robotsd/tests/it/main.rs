//! Tests the binary as an operator runs it: with real processes, real sockets on loopback, and real
//! files. The tests run only on Linux, the supported platform.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a test stops at the first surprise"
)]

// Some tests also compile the code of the tester's page, which refers to the core by this name.
extern crate tower_robots as robots_core;

#[path = "../../../src/source/evidence/tests/played_dns.rs"]
#[expect(dead_code, reason = "what resolvers meet here needs less of it")]
mod played_dns;
#[path = "../../../tests/it/shared.rs"]
mod shared;
#[path = "../../../tests/it/small_disk.rs"]
mod small_disk;

mod browser;
mod daemon;
mod harness;
mod log_schema;
mod programs;
mod prometheus;

mod admin;
mod agents;
mod answers;
mod authority;
mod beside;
mod board;
mod board_browser;
mod board_week;
mod board_words;
mod check;
mod check_fix;
mod churn;
mod clock_jumps;
mod command_line;
mod config;
mod crash;
mod data;
mod decision;
mod decision_hosts;
mod diff;
mod edit;
mod evaluator;
mod expect;
mod explain;
mod explain_identity;
mod ext_authz;
mod findings;
mod fleet;
mod fleet_calls;
mod fleet_store;
mod foreign_repository;
mod full_disk;
mod gate;
mod gate_pages;
mod grpc;
mod handbook;
mod hanging_files;
mod hostile_files;
mod identity;
mod included;
mod kubernetes;
mod lifecycle;
mod live;
mod local_token;
mod location;
mod log;
mod lsp;
mod metrics;
mod modes;
mod monitoring;
mod not_in_force;
mod notify;
mod operate;
mod pictures;
mod proxy_protocol;
mod publishing;
mod rate;
mod reconfigure;
mod refusal;
mod refusal_caches;
mod refusal_cases;
mod registry_url;
mod rejected_config;
mod replay;
mod replay_identity;
mod serve;
mod shared_rate;
mod shipped;
mod signals;
mod sitemap_memory;
mod sources;
mod spellings;
mod start;
mod status;
mod tester;
mod tester_browser;
mod tls;
mod traces;
mod transcripts;
mod trusted;
mod upgrade;
mod upstreams;
mod watchdog;

/// Folder with the full sets of cases, if it exists.
const SHARED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared");
