//! How many rows of the registry were checked, and when.

use std::fmt;

/// As in `54 (7 %) checked with the words of their operator, the last on 2026-11-22`.
pub(in crate::commands) struct CheckedShare<'a> {
    pub(in crate::commands) rows: usize,
    pub(in crate::commands) checked: usize,
    pub(in crate::commands) last: Option<&'a str>,
}

impl fmt::Display for CheckedShare<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, checked, last } = self;
        let percent = checked * 100 / rows.max(&1);
        write!(f, "{checked} ({percent} %) checked with the words of their operator")?;
        last.map_or(Ok(()), |day| write!(f, ", the last on {day}"))
    }
}
