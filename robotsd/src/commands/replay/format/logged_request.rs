//! A request, whatever the format of its line.

use std::borrow::Cow;

/// A request, as a line of a log has it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LoggedRequest<'a> {
    /// The virtual host, where the log has it.
    pub(crate) host: Option<Cow<'a, [u8]>>,
    pub(crate) address: Cow<'a, [u8]>,
    /// Seconds since 1970, where the line has a time.
    pub(crate) time: Option<i64>,
    pub(crate) method: Cow<'a, [u8]>,
    pub(crate) target: Cow<'a, [u8]>,
    /// Empty where the log has none or `-`.
    pub(crate) referer: Cow<'a, [u8]>,
    pub(crate) agent: Cow<'a, [u8]>,
}
