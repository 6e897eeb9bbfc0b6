#![cfg_attr(all(feature = "layer", feature = "watch"), doc = include_str!("../README.md"))]
#![cfg_attr(
    not(all(feature = "layer", feature = "watch")),
    doc = "Serve, check, reload and enforce a site's robots.txt."
)]
#![cfg_attr(docsrs, feature(doc_cfg))]
//!
//! # Where things are
//!
//! What a first program needs is exported here: a file as [`RobotsTxt`], what to do about crawlers as [`Policy`] and its
//! [`Mode`], and with the default features the published file as `LiveRobots`, the middleware as `RobotsLayer`, and several
//! sites by host as `HostMap` and `Sites`. Everything else is in its room: [`rules`], [`agent`], [`check`], [`policy`],
//! `live`, `source`, `layer`.

pub mod agent;
pub mod check;
#[cfg(all(feature = "layer", feature = "watch"))]
pub mod docs;
#[cfg(feature = "layer")]
pub mod layer;
#[cfg(feature = "live")]
pub mod live;
pub mod policy;
pub mod rules;
#[cfg(feature = "live")]
pub mod source;

#[cfg(feature = "layer")]
#[doc(no_inline)]
pub use crate::layer::RobotsLayer;
#[cfg(feature = "live")]
#[doc(no_inline)]
pub use crate::live::LiveRobots;
#[doc(no_inline)]
pub use crate::policy::{Mode, Policy};
#[doc(no_inline)]
pub use crate::rules::RobotsTxt;
#[cfg(feature = "live")]
#[doc(no_inline)]
pub use crate::source::{HostMap, Sites};
