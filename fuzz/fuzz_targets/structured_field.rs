//! A structured field that is read has one written form, and reading that form gives the same value.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tower_robots::identity::fuzzing::structured_field(bytes));
