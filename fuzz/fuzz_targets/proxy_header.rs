//! A header of the PROXY protocol: octets after it change nothing, and its parts are never taken for another.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| robotsd::fuzzing::proxy_header(octets));
