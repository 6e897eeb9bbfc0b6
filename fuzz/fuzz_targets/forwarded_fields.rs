//! The forwarding fields of a trusted proxy: the list of hops is bounded, and every host is valid.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| robotsd::fuzzing::forwarded_fields(bytes));
