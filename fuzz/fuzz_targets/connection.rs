//! The octets of a connection of HTTP/1 or HTTP/2, in some writes: the edge answers requests as hyper alone does.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tokio::runtime::{Builder, Runtime};

// The clock stands still while there is something to do, so deadlines pass at once, and only when nothing else is left.
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime"));

fuzz_target!(|octets: &[u8]| {
    robotsd::fuzzing::connection(octets, &RUNTIME);
});
