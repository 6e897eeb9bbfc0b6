//! A published list of addresses is read completely or is an error; a truncated list is never accepted.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tower_robots::identity::fuzzing::range_list(bytes));
