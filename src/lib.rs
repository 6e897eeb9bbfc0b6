//! Serve, check, reload and enforce a site's robots.txt.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod check;
pub mod rules;
