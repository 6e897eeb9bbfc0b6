//! Any bytes parse, and every position that is reported lies within the file.
#![no_main]

#[path = "../properties/parse.rs"]
mod parse;

libfuzzer_sys::fuzz_target!(|file: &[u8]| parse::holds(file));
