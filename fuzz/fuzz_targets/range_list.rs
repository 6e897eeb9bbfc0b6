//! A published list of addresses is whole or an error, and is never taken for a part of itself.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| tower_robots::identity::fuzzing::range_list(octets));
