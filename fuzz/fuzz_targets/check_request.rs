//! Envoy's ext_authz question over gRPC: the content of a call, with its prefix.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| robotsd::fuzzing::check_request(bytes));
