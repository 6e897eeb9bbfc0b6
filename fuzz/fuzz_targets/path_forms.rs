//! The forms of a path: the standard form is stable, the number of forms is bounded, and all forms are different.
#![no_main]

#[path = "../properties/path_forms.rs"]
mod path_forms;

libfuzzer_sys::fuzz_target!(|target: &[u8]| path_forms::holds(target));
