//! The bytes of an HTTP/1 or HTTP/2 connection, in several writes: the edge answers requests as plain hyper does.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tokio::runtime::{Builder, Runtime};

// The clock is paused while there is work, so deadlines pass at once, but only when nothing else is left to do.
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime"));

fuzz_target!(|bytes: &[u8]| {
    robotsd::fuzzing::connection(bytes, &RUNTIME);
});
