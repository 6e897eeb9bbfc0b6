//! Tests of the crate as its users see it: only data from `tests/cases` and the public API.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a test stops at the first surprise"
)]

#[cfg(feature = "tls")]
#[path = "../../src/source/evidence/tests/certificate.rs"]
mod certificate;
mod clock;
#[cfg(feature = "tls")]
#[path = "../../src/source/evidence/tests/closing.rs"]
mod closing;
#[cfg(all(target_os = "linux", feature = "watch"))]
mod crash;
mod shared;
#[expect(dead_code, reason = "the test of the core asks for more")]
mod slow;
#[cfg(all(target_os = "linux", feature = "watch"))]
mod small_disk;

use tower_robots::rules;

mod agent_names;
mod agents;
mod append;
#[cfg(all(feature = "axum08", feature = "watch"))]
mod axum08;
mod bounds;
mod check;
mod conformance;
mod dependencies;
mod differences;
#[cfg(all(feature = "layer", feature = "watch"))]
mod directory;
mod edits;
#[cfg(all(feature = "tracing", feature = "layer", feature = "watch"))]
mod events;
#[cfg(feature = "fetch")]
mod fetch;
mod findings;
mod fixes;
#[cfg(feature = "watch")]
mod front;
#[cfg(all(target_os = "linux", feature = "watch"))]
mod full_disk;
mod fuzz_corpora;
#[cfg(feature = "watch")]
mod gate;
#[cfg(feature = "watch")]
mod gate_pages;
mod google_suite;
#[cfg(feature = "verify")]
mod identity;
#[cfg(all(feature = "axum08", feature = "tracing", feature = "verify"))]
mod in_force;
mod keywords;
mod lints;
#[cfg(all(feature = "layer", feature = "watch"))]
mod other_layers;
mod people;
#[cfg(feature = "layer")]
mod pitfalls;
mod properties;
#[cfg(feature = "watch")]
mod publish;
mod registry_rows;
#[cfg(feature = "watch")]
mod reload;
#[cfg(feature = "layer")]
mod signals;
#[cfg(feature = "watch")]
mod sites;
mod spec;
#[cfg(feature = "watch")]
mod startup_errors;
#[cfg(feature = "watch")]
mod state;
#[cfg(feature = "watch")]
mod state_lock;
mod tidy;
#[cfg(all(feature = "tracing", feature = "layer", feature = "watch"))]
mod trace_events;
#[cfg(any(feature = "fetch", feature = "watch"))]
mod waiting;

/// Reports whether the tests run in full, which takes minutes. By default, some tests run only a
/// part of their cases.
fn is_long() -> bool {
    std::env::var_os("ROBOTSD_LONG").is_some()
}

/// The folder of the full case sets, if it exists.
const SHARED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared");
