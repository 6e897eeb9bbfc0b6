//! The head of an upstream's response on the fast path of HTTP/1.1: the body is as long as the head announces.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| robotsd::fuzzing::response_head(bytes));
