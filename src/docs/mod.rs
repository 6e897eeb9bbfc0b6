//! Chapters: how the house is built, what the rules mean, how reloading works, where to put it.

#[doc = include_str!("architecture.md")]
pub mod architecture {}

#[doc = include_str!("semantics.md")]
pub mod semantics {}

#[doc = include_str!("reload.md")]
pub mod reload {}

#[doc = include_str!("deployment.md")]
pub mod deployment {}
