//! The corrections of findings, and the edits of the file's octets that make them.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::keyword_enum;

keyword_enum! {
    /// Whether a [`Fix`] may be made without a person looking at it.
    #[derive(PartialOrd, Ord)]
    Safety, "a safety", {
        /// No verdict, delay or other line changes for any crawler under any reading, and the finding is gone.
        Safe = "safe",
        /// The effect changes, another correction may be meant, or the proof would have cost too much.
        Unsafe = "unsafe",
    }
}

/// The edits that correct a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fix {
    /// Whether it may be made without a person looking at it.
    pub safety: Safety,
    /// The changes, in the order of the file; never empty. No two share octets.
    pub edits: Vec<Edit>,
}

/// The fixes of the findings of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fixes {
    /// Each once, however many findings it corrects.
    pub(super) fixes: Vec<Fix>,
    /// The place of the fix of each finding that has one.
    pub(super) by_finding: BTreeMap<usize, usize>,
}

impl Fixes {
    /// The fix of a finding, by its place in [`Report::findings`](super::Report::findings); `None` where only a person can
    /// correct it. Findings that the same edits correct have one fix, which is the same reference for each.
    pub fn get(&self, finding: usize) -> Option<&Fix> {
        self.fixes.get(*self.by_finding.get(&finding)?)
    }

    /// How many findings have a fix of this safety.
    #[doc(hidden)]
    pub fn count(&self, safety: Safety) -> usize {
        self.by_finding.values().filter(|at| self.fixes[**at].safety == safety).count()
    }
}

/// Octets of a file that get an edit each where the same text takes the place of them all; more get one together, because an edit
/// takes some eighty octets of memory.
const MOST_APART: usize = 1 << 16;

/// Octets of a file, and what takes their place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Edit {
    /// The octet of the file that it begins at.
    pub start: usize,
    /// The octet that it ends before: the same as `start` where it only adds some.
    pub end: usize,
    /// The octets that take the place of those between; empty where it only removes some.
    pub replacement: Vec<u8>,
}

impl Edit {
    pub(super) fn new(range: Range<usize>, replacement: impl Into<Vec<u8>>) -> Self {
        Self { start: range.start, end: range.end.max(range.start), replacement: replacement.into() }
    }

    pub(super) fn remove(range: Range<usize>) -> Self {
        Self::new(range, "")
    }

    pub(super) fn insert(at: usize, text: impl Into<Vec<u8>>) -> Self {
        Self::new(at..at, text)
    }

    /// One text in the place of each of these octets of a file, which are in its order.
    pub(super) fn each(file: &[u8], octets: impl Iterator<Item = usize> + Clone, text: &str) -> Vec<Self> {
        let apart = octets.clone().map(|at| Self::new(at..at + 1, text));
        let Some(start) = octets.clone().nth(MOST_APART).and_then(|_| octets.clone().next()) else {
            return apart.collect();
        };
        let (mut end, mut replacement) = (start, Vec::new());
        for at in octets {
            replacement.extend_from_slice(&file[end..at]);
            replacement.extend_from_slice(text.as_bytes());
            end = at + 1;
        }
        vec![Self::new(start..end, replacement)]
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
    fn many_small_edits_are_one() {
        for (times, want) in [(MOST_APART, MOST_APART), (MOST_APART + 1, 1)] {
            let file = [b"a".as_slice(), &b"-b".repeat(times)].concat();
            let edits = Edit::each(&file, memchr::memchr_iter(b'-', &file), "+!");
            assert_eq!(edits.len(), want);
            assert_eq!(Edit::apply(&file, &edits), [b"a".as_slice(), &b"+!b".repeat(times)].concat());
        }
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
