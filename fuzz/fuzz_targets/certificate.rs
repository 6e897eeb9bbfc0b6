//! The validity dates of a DER certificate.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| robotsd::fuzzing::certificate(bytes));
