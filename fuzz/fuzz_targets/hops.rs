//! An entry that a client writes to the left of its proxy's own hop does not change that hop.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| robotsd::fuzzing::hops(bytes));
