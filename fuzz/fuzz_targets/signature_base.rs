//! A signature base has one line for each signed component, whatever a client sends.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tower_robots::identity::fuzzing::signature_base(bytes));
