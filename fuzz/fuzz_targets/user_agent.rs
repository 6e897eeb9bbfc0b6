//! A `User-Agent` line names the same agent each time, and no more tokens than a chain of obeyed groups has.
#![no_main]

#[path = "../properties/user_agent.rs"]
mod user_agent;

libfuzzer_sys::fuzz_target!(|field: &[u8]| user_agent::holds(field));
