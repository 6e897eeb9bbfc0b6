//! Chapters: how the house is built, what the rules mean, what the check looks for, how reloading works, where to put
//! it.

#[doc = include_str!("architecture.md")]
pub mod architecture {}

#[doc = include_str!("semantics.md")]
pub mod semantics {}

#[doc = include_str!("lints.md")]
pub mod lints {}

#[doc = include_str!("reload.md")]
pub mod reload {}

#[doc = include_str!("deployment.md")]
pub mod deployment {}
