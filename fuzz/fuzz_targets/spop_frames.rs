//! The bytes of a SPOP connection, read as HAProxy's questions: limits hold, and no question mixes two requests.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| robotsd::fuzzing::spop_frames(bytes));
