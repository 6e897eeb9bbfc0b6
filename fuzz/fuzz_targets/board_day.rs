//! The file of a day of the board: what is read of a damaged one is written as one that is whole, and nothing is lost by the way.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| robotsd::fuzzing::board_day(octets));
