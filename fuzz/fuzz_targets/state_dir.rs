//! The files of a state directory in any condition: the live version is one of the known versions, and switches match their files.
#![no_main]

#[path = "../properties/state_dir.rs"]
mod state_dir;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| state_dir::holds(bytes));
