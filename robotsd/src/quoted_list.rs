//! Names in a message, of which there may be thousands.

use std::fmt;

/// Names that a message lists.
const LISTED: usize = 8;

/// As in `"a", "b" and 3 more`.
#[derive(Debug)]
pub(crate) struct QuotedList<N>(Vec<N>);

impl<N> QuotedList<N> {
    pub(crate) fn of(names: impl IntoIterator<Item = N>) -> Self {
        Self(names.into_iter().collect())
    }
}

impl<N: AsRef<str>> fmt::Display for QuotedList<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.0.iter().take(LISTED).enumerate() {
            write!(f, "{}{:?}", if at == 0 { "" } else { ", " }, name.as_ref())?;
        }
        match self.0.len().saturating_sub(LISTED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_counted_past_the_eighth() {
        let list = |count: usize| QuotedList::of((0..count).map(|number| format!("s\u{1b}{number}"))).to_string();
        assert_eq!(list(0), "");
        assert_eq!(list(2), r#""s\u{1b}0", "s\u{1b}1""#);
        assert!(list(8).ends_with(r#", "s\u{1b}7""#), "{}", list(8));
        assert!(list(11).ends_with(r#", "s\u{1b}7" and 3 more"#), "{}", list(11));
    }
}
