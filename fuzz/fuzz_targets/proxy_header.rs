//! A PROXY protocol header: bytes after it change nothing, and a partial header is never read as a different one.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| robotsd::fuzzing::proxy_header(bytes));
