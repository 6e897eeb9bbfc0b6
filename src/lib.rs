#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod rules;
pub mod agent;
pub mod check;
pub mod policy;
#[cfg(feature = "live")]
pub mod source;
#[cfg(feature = "layer")]
pub mod layer;
pub mod docs;
