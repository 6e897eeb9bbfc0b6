//! The documentation of the lints. Each finding links to the entry of its lint. All other
//! documentation is in the
//! [handbook](https://github.com/OWNER/tower-robots/blob/main/docs/src/index.md).

#[doc = include_str!("lints.md")]
pub mod lints {}
