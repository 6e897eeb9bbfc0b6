//! The files of a state directory, as a disk may have left them: one of the versions is live, and switches are as their files say.
#![no_main]

#[path = "../properties/state_dir.rs"]
mod state_dir;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| state_dir::holds(octets));
