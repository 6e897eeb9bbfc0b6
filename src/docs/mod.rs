//! The documentation of the lints. Each finding of a check links to the description of its lint.
//! All other documentation is in the
//! [handbook](https://github.com/OWNER/tower-robots/blob/main/docs/src/index.md).

#[doc = include_str!("lints.md")]
pub mod lints {}
