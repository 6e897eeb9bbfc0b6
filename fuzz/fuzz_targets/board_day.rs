//! The board's file of one day: whatever is read from a damaged file is written back as a valid file, and nothing more is lost.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| robotsd::fuzzing::board_day(bytes));
