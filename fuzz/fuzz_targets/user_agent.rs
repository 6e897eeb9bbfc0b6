//! A `User-Agent` line always names the same agent, and has at most as many tokens as a chain of obeyed groups.
#![no_main]

#[path = "../properties/user_agent.rs"]
mod user_agent;

libfuzzer_sys::fuzz_target!(|field: &[u8]| user_agent::holds(field));
