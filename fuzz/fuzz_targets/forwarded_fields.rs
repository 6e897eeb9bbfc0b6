//! The fields of a trusted proxy: a bounded way, and only a valid host.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| robotsd::fuzzing::forwarded_fields(octets));
