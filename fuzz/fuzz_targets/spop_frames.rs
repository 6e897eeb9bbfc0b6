//! The octets of a connection of SPOP, read as HAProxy's questions: bounds hold, and no question is about two requests.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| robotsd::fuzzing::spop_frames(octets));
