//! The pages about lints. The findings of the check contain links to them. All other documentation
//! is in the [handbook](https://github.com/OWNER/tower-robots/blob/main/docs/src/index.md).

#[doc = include_str!("lints.md")]
pub mod lints {}
