//! Chapters for operators: what they decide, where to put `robotsd`, and how to have another proxy ask it. The meaning of
//! rules, and how reloading and fetching work, are in those of the library, [`tower_robots::docs`].

#[doc = include_str!("install.md")]
pub mod install {}

#[doc = include_str!("ci.md")]
pub mod ci {}

#[doc = include_str!("commands.md")]
pub mod commands {}

#[doc = include_str!("operating.md")]
pub mod operating {}

#[allow(rustdoc::bare_urls, reason = "the table holds messages as they are printed")]
#[doc = include_str!("answers.md")]
pub mod answers {}

#[doc = include_str!("rate.md")]
pub mod rate {}

#[doc = include_str!("board.md")]
pub mod board {}

#[doc = include_str!("data.md")]
pub mod data {}

#[doc = include_str!("log.md")]
pub mod log {}

#[doc = include_str!("monitoring.md")]
pub mod monitoring {}

#[doc = include_str!("promises.md")]
pub mod promises {}

#[doc = include_str!("fleet.md")]
pub mod fleet {}

#[doc = include_str!("beside.md")]
pub mod beside {}

#[doc = include_str!("deployment.md")]
pub mod deployment {}
