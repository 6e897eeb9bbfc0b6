//! The lints, which the findings of the check link to. Everything else about this project is in its
//! [handbook](https://github.com/OWNER/tower-robots/blob/main/docs/src/index.md).

#[doc = include_str!("lints.md")]
pub mod lints {}
