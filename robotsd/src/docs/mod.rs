//! Explains the findings of `robotsd check` about the responses of live sites. Each finding links
//! to its explanation. All other documentation of this program is in the
//! [handbook](https://github.com/OWNER/tower-robots/blob/main/docs/src/index.md).

#[allow(rustdoc::bare_urls, reason = "the table holds messages as they are printed")]
#[doc = include_str!("answers.md")]
pub mod answers {}
