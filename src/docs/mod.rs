//! The documentation pages of the lints. Each finding of the check contains a link to its lint's
//! page. All other documentation is in the
//! [handbook](https://github.com/OWNER/tower-robots/blob/main/docs/src/index.md).

#[doc = include_str!("lints.md")]
pub mod lints {}
