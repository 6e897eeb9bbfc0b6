//! Lines of access logs in every format.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| robotsd::fuzzing::log_line(bytes));
