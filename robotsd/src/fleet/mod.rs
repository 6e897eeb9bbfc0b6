//! The replicas of one site as a fleet: one document in the store that all of them read.
//!
//! `document` is what stands there and how it is changed, `member` what a replica knows and makes of it.

#![allow(dead_code, reason = "its store and its keeper follow")]

mod document;
mod member;

#[cfg(test)]
mod test_store;
#[cfg(test)]
mod tests;
