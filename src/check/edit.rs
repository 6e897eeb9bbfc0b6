//! A change of some octets of a file.

use std::ops::Range;

/// Octets of a file, and what takes their place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edit {
    start: usize,
    end: usize,
    replacement: Vec<u8>,
}

impl Edit {
    pub(super) fn new(range: Range<usize>, replacement: impl Into<Vec<u8>>) -> Self {
        Self { start: range.start, end: range.end.max(range.start), replacement: replacement.into() }
    }

    pub(super) const fn remove(range: Range<usize>) -> Self {
        Self { start: range.start, end: range.end, replacement: Vec::new() }
    }

    pub(super) fn insert(at: usize, text: impl Into<Vec<u8>>) -> Self {
        Self::new(at..at, text)
    }

    /// The octets of the file that it replaces; empty where it only adds some.
    #[must_use]
    pub const fn range(&self) -> Range<usize> {
        self.start..self.end
    }

    /// The octets that take their place; empty where it only removes some.
    #[must_use]
    pub fn replacement(&self) -> &[u8] {
        &self.replacement
    }

    /// Whether two edits cannot both be made: they share octets, or their order is not clear.
    pub(super) const fn conflicts(&self, other: &Self) -> bool {
        if self.start == self.end || other.start == other.end {
            return self.start <= other.end && other.start <= self.end;
        }
        self.start < other.end && other.start < self.end
    }

    /// A file with edits of which no two conflict, in any order.
    pub(super) fn apply<'e>(file: &[u8], edits: impl IntoIterator<Item = &'e Self>) -> Vec<u8> {
        let mut edits: Vec<&Self> = edits.into_iter().collect();
        edits.sort_unstable();
        let mut out = Vec::with_capacity(file.len());
        let mut at = 0;
        for edit in edits {
            out.extend_from_slice(file.get(at..edit.start).unwrap_or_default());
            out.extend_from_slice(&edit.replacement);
            at = at.max(edit.end);
        }
        out.extend_from_slice(file.get(at..).unwrap_or_default());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_keep_what_they_do_not_name() {
        let edits = [Edit::insert(6, "!"), Edit::remove(0..2), Edit::new(3..4, "XY")];
        assert_eq!(Edit::apply(b"abcdef", &edits), b"cXYef!");
        assert_eq!(Edit::apply(b"", &[Edit::insert(0, "a")]), b"a");
        assert_eq!(Edit::apply(b"abc", &[]), b"abc");
    }

    #[test]
    fn edits_conflict_where_the_order_would_count() {
        for (one, other, want) in [
            (0..2, 2..4, false),
            (0..3, 2..4, true),
            (2..2, 2..4, true),
            (2..2, 2..2, true),
            (0..2, 2..2, true),
            (0..2, 3..3, false),
            (0..4, 1..2, true),
        ] {
            let [one, other] = [one, other].map(|range| Edit::new(range, "x"));
            assert_eq!((one.conflicts(&other), other.conflicts(&one)), (want, want), "{one:?} {other:?}");
        }
    }
}
