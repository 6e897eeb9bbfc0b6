//! Chapters: how the house is built, what the rules mean, what the check looks for, how reloading and fetching work, what
//! an operator decides, where to put it, and how to have another proxy ask it.

#[doc = include_str!("architecture.md")]
pub mod architecture {}

#[doc = include_str!("semantics.md")]
pub mod semantics {}

#[doc = include_str!("lints.md")]
pub mod lints {}

#[doc = include_str!("reload.md")]
pub mod reload {}

#[doc = include_str!("operating.md")]
pub mod operating {}

#[cfg(all(feature = "fetch", feature = "tls"))]
#[doc = include_str!("fetch.md")]
pub mod fetch {}

#[doc = include_str!("beside.md")]
pub mod beside {}

#[doc = include_str!("deployment.md")]
pub mod deployment {}
