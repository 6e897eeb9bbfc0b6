//! Names in a message, of which there may be thousands.

use std::fmt;

/// Names that a message lists.
const LISTED: usize = 8;

/// As in `"a", "b" and 3 more`.
#[derive(Debug)]
pub(super) struct QuotedList(Vec<String>);

impl QuotedList {
    pub(super) fn of(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().collect())
    }
}

impl fmt::Display for QuotedList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.0.iter().take(LISTED).enumerate() {
            write!(f, "{}{name:?}", if at == 0 { "" } else { ", " })?;
        }
        match self.0.len().saturating_sub(LISTED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}
