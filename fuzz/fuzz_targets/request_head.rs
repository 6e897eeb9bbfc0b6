//! The head of a request on the fast path of HTTP/1.1: an accepted head is read the same way after it is written again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| robotsd::fuzzing::request_head(bytes));
