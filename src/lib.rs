#![cfg_attr(all(feature = "layer", feature = "watch"), doc = include_str!("../README.md"))]
#![cfg_attr(
    not(all(feature = "layer", feature = "watch")),
    doc = "Serve, check, reload and enforce a site's robots.txt."
)]
#![cfg_attr(docsrs, feature(doc_cfg))]

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
