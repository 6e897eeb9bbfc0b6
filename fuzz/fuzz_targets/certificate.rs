//! The validity dates of a DER certificate.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| robotsd::fuzzing::certificate(octets));
