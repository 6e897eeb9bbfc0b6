//! The dates of a certificate in DER.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| robotsd::fuzzing::certificate(octets));
