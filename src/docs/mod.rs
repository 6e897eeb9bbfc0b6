//! Chapters, for people who decide what a site does about crawlers or who change this crate: how the house is built, what the rules mean,
//! what the check looks for, how reloading and fetching work, who a crawler is. The decisions of an operator, where to put robotsd, and how
//! to have another proxy ask it are in those of [`robotsd`](https://docs.rs/robotsd/latest/robotsd/docs/).
//!
//! A chapter is there with the features that it is about: `axum` with `axum08`, `crawlers` and `fetch` with `tls`, `identity` and `rate`
//! with `verify`. `cargo doc --open --features full` has all of them.

#[doc = include_str!("architecture.md")]
pub mod architecture {}

#[doc = include_str!("releasing.md")]
pub mod releasing {}

#[cfg(feature = "axum08")]
#[doc = include_str!("axum.md")]
pub mod axum {}

#[cfg(feature = "layer")]
#[doc = include_str!("testing.md")]
pub mod testing {}

#[cfg(feature = "tls")]
#[doc = include_str!("crawlers.md")]
pub mod crawlers {}

#[doc = include_str!("semantics.md")]
pub mod semantics {}

#[doc = include_str!("lints.md")]
pub mod lints {}

#[cfg(feature = "verify")]
#[doc = include_str!("rate.md")]
pub mod rate {}

#[doc = include_str!("reload.md")]
pub mod reload {}

#[cfg(feature = "tls")]
#[doc = include_str!("fetch.md")]
pub mod fetch {}

#[cfg(feature = "verify")]
#[doc = include_str!("identity.md")]
pub mod identity {}
