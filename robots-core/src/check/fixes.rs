//! Fixes of findings, and their edits.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::keyword_enum;

keyword_enum! {
    /// Whether a [`Fix`] may be applied without a review by a person.
    #[derive(PartialOrd, Ord)]
    Safety, "a safety", {
        /// The fix corrects the finding and has no other effect. In every
        /// [`Reading`](crate::rules::Reading), all verdicts, delays and other settings stay the
        /// same for every crawler.
        Safe = "safe",
        /// The fix changes the effect of the file, is one of two possible corrections, or would
        /// have taken too long to prove safe.
        Unsafe = "unsafe",
    }
}

/// The edits that correct a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fix {
    /// Whether the fix may be applied without a review by a person.
    pub safety: Safety,
    /// The edits in the order of the file. There is at least one, and they do not overlap.
    pub edits: Vec<Edit>,
}

/// The fixes of the findings of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fixes {
    /// All fixes, without duplicates. A fix may correct several findings.
    pub(super) fixes: Vec<Fix>,
    /// Maps the index of a finding that has a fix to the index of this fix.
    pub(super) by_finding: BTreeMap<usize, usize>,
}

impl Fixes {
    /// Returns the fix of the finding with this index in
    /// [`Report::findings`](super::Report::findings); `None` if the finding has no fix. If a fix
    /// corrects several findings, returns the same reference for all of them.
    pub fn get(&self, finding: usize) -> Option<&Fix> {
        self.fixes.get(*self.by_finding.get(&finding)?)
    }

    /// Returns the number of findings that have a fix with this safety.
    #[doc(hidden)]
    pub fn count(&self, safety: Safety) -> usize {
        self.by_finding.values().filter(|at| self.fixes[**at].safety == safety).count()
    }
}

/// Maximum number of separate edits that [`Edit::each`] returns. If there are more bytes to
/// replace, one edit replaces their whole range, because each edit takes about 80 bytes of memory.
const MAX_SEPARATE_EDITS: usize = 1 << 16;

/// The replacement of a byte range of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Edit {
    /// Start of the byte range.
    pub start: usize,
    /// End of the byte range, exclusive. Equal to `start` if the edit only inserts bytes.
    pub end: usize,
    /// Replacement bytes; empty if the edit only removes bytes.
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

    /// Returns the edits that replace each byte at the positions in `bytes` with `text`. The
    /// positions must be in ascending order.
    pub(super) fn each(file: &[u8], bytes: impl Iterator<Item = usize> + Clone, text: &str) -> Vec<Self> {
        let apart = bytes.clone().map(|at| Self::new(at..at + 1, text));
        let Some(start) = bytes.clone().nth(MAX_SEPARATE_EDITS).and_then(|_| bytes.clone().next()) else {
            return apart.collect();
        };
        let (mut end, mut replacement) = (start, Vec::new());
        for at in bytes {
            replacement.extend_from_slice(&file[end..at]);
            replacement.extend_from_slice(text.as_bytes());
            end = at + 1;
        }
        vec![Self::new(start..end, replacement)]
    }

    /// Reports whether two edits conflict: they overlap, or the result depends on their order.
    pub(super) const fn conflicts(&self, other: &Self) -> bool {
        if self.start == self.end || other.start == other.end {
            return self.start <= other.end && other.start <= self.end;
        }
        self.start < other.end && other.start < self.end
    }

    /// Returns the file with the edits applied. The edits may be in any order, but must not
    /// conflict with each other.
    #[doc(hidden)]
    pub fn apply<'e>(file: &[u8], edits: impl IntoIterator<Item = &'e Self>) -> Vec<u8> {
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
    fn edits_keep_all_bytes_outside_their_ranges() {
        let edits = [Edit::insert(6, "!"), Edit::remove(0..2), Edit::new(3..4, "XY")];
        assert_eq!(Edit::apply(b"abcdef", &edits), b"cXYef!");
        assert_eq!(Edit::apply(b"", &[Edit::insert(0, "a")]), b"a");
        assert_eq!(Edit::apply(b"abc", &[]), b"abc");
    }

    #[test]
    fn too_many_small_edits_are_merged_into_one() {
        for (times, want) in [(MAX_SEPARATE_EDITS, MAX_SEPARATE_EDITS), (MAX_SEPARATE_EDITS + 1, 1)] {
            let file = [b"a".as_slice(), &b"-b".repeat(times)].concat();
            let edits = Edit::each(&file, memchr::memchr_iter(b'-', &file), "+!");
            assert_eq!(edits.len(), want);
            assert_eq!(Edit::apply(&file, &edits), [b"a".as_slice(), &b"+!b".repeat(times)].concat());
        }
    }

    #[test]
    fn edits_conflict_if_their_order_would_matter() {
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
