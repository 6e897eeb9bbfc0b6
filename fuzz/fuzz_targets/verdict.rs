//! The index agrees with the slow matcher, including the line. The first line of the input is the path.
#![no_main]

#[expect(dead_code, reason = "the test of the core asks for more")]
#[path = "../../tests/it/slow.rs"]
mod slow;
#[path = "../properties/verdict.rs"]
mod verdict;

use tower_robots::rules;

libfuzzer_sys::fuzz_target!(|input: &[u8]| verdict::holds(input));
