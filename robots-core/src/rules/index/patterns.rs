//! Patterns with wildcards. A pattern is stored only once, even if several rules and groups use it.
//!
//! Most patterns are excluded without a comparison, because they contain a byte that does not occur
//! in the path.
//!
//! **The work of a verdict is bounded** ([`MatchBudget`]). A request has one budget, which covers
//! all of its `User-Agent` lines, and all versions of the file that are compared during a grace
//! period. The unit of work is one compared byte, so the bound is the same on every machine.

use std::collections::HashMap;
use std::ops::Range;

use super::candidates::Rank;
use crate::rules::match_budget::MatchBudget;
use crate::rules::text::{self, Missing};

/// Fixed cost of a walk along a trie, in compared bytes. A walk also costs one compared byte for
/// every eight bytes of the path.
const WALK_COST: usize = 64;

/// Cost of excluding a pattern that cannot match, in compared bytes.
const EXCLUSION_COST: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Patterns {
    texts: Vec<u8>,
    patterns: Vec<StoredPattern>,
}

#[derive(Debug)]
struct StoredPattern {
    start: u32,
    /// Offset of the end of the literal prefix.
    behind: u32,
    end: u32,
    /// The byte classes of the literals after the prefix.
    bytes: ByteSet,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Wildcard {
    pub(super) rank: Rank,
    pub(super) pattern: u32,
}

/// A path that is compared with patterns.
pub(super) struct SearchedPath<'p, 'w> {
    pub(super) path: &'p [u8],
    bytes: Option<ByteSet>,
    missing: Missing<'p>,
    work: &'w mut MatchBudget,
}

/// Stores encoded patterns. Equal patterns are stored once.
#[derive(Default)]
pub(super) struct Interner<'t> {
    pub(super) patterns: Patterns,
    known: HashMap<&'t [u8], u32>,
}

impl<'t> Interner<'t> {
    pub(super) fn intern(&mut self, text: &'t [u8]) -> u32 {
        *self.known.entry(text).or_insert_with(|| self.patterns.add(text))
    }
}

impl Patterns {
    fn add(&mut self, text: &[u8]) -> u32 {
        let start = self.texts.len();
        let (prefix, rest) = text::split_prefix(text);
        self.texts.extend_from_slice(text);
        self.patterns.push(StoredPattern {
            start: start as u32,
            behind: (start + prefix.len()) as u32,
            end: self.texts.len() as u32,
            bytes: text::literals(rest).map(ByteSet::of).fold(ByteSet::default(), ByteSet::with),
        });
        self.patterns.len() as u32 - 1
    }

    pub(super) fn len(&self) -> usize {
        self.patterns.len()
    }

    pub(super) fn behind_prefix(&self, pattern: u32) -> &[u8] {
        let StoredPattern { behind, end, .. } = &self.patterns[pattern as usize];
        &self.texts[*behind as usize..*end as usize]
    }

    /// Returns the best rank of the patterns that match the path, or `best` if none of them is
    /// better. `wildcards` must be sorted, best first. `known` is the number of bytes at the start
    /// of each pattern that the caller has already compared.
    pub(super) fn best<'p, 'w>(
        &'p self,
        wildcards: impl IntoIterator<Item = &'w Wildcard>,
        path: &mut SearchedPath<'p, '_>,
        known: usize,
        best: Rank,
    ) -> Rank {
        wildcards
            .into_iter()
            .take_while(|wildcard| wildcard.rank < best)
            .find(|wildcard| self.matches(wildcard.pattern, path, known))
            .map_or(best, |wildcard| wildcard.rank)
    }

    fn matches<'p>(&'p self, pattern: u32, path: &mut SearchedPath<'p, '_>, known: usize) -> bool {
        let StoredPattern { start, behind, end, bytes } = &self.patterns[pattern as usize];
        if !path.work.take(EXCLUSION_COST) || !path.bytes().holds(*bytes) {
            return false;
        }
        let (prefix, rest) = (*start as usize + known..*behind as usize, *behind as usize..*end as usize);
        let left = path.path.get(known..).and_then(|path| path.strip_prefix(&self.texts[prefix]));
        left.is_some_and(|left| {
            path.work.take(left.len() + rest.len()) && text::fits(&self.texts[rest], left, &mut path.missing)
        })
    }

    pub(super) fn memory(&self) -> usize {
        self.texts.capacity() + self.patterns.capacity() * size_of::<StoredPattern>()
    }
}

impl<'p, 'w> SearchedPath<'p, 'w> {
    pub(super) fn new(path: &'p [u8], work: &'w mut MatchBudget) -> Self {
        Self { path, bytes: None, missing: Missing::default(), work }
    }

    /// Subtracts the cost of a walk along a trie from the budget. Returns `false` if the budget was
    /// not enough.
    pub(super) const fn take_walk(&mut self) -> bool {
        self.work.take(WALK_COST + self.path.len() / 8)
    }

    /// Subtracts the cost of a scan of the path from the budget. Returns `false` if the budget was
    /// not enough. A scan looks up three bytes at each position of the path, and each lookup takes
    /// up to 8 ns.
    pub(super) const fn take_scan(&mut self) -> bool {
        self.work.take(24 * self.path.len())
    }

    pub(super) fn holds(&mut self, byte: u8) -> bool {
        self.bytes().holds(ByteSet::of(&[byte])) && memchr::memchr(byte, self.path).is_some()
    }

    fn bytes(&mut self) -> ByteSet {
        *self.bytes.get_or_insert_with(|| ByteSet::of(self.path))
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Run {
    start: u32,
    end: u32,
}

impl Run {
    pub(super) const fn of(range: Range<usize>) -> Self {
        Self { start: range.start as u32, end: range.end as u32 }
    }

    pub(super) const fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A set of byte classes, with one bit for each of the 64 classes. Each digit and each punctuation
/// character that is common in paths has its own class. The two cases of a letter share a class.
/// All other bytes share one class. A pattern can match a path only if the path contains bytes of
/// all classes in the pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ByteSet(u64);

/// The bytes that have a class of their own. In a set, the bits of these classes follow the bits of
/// the letters.
const ALONE: &[u8; 37] = b"0123456789/?&=-_.%+~:;,!@$*#'()|[]{} ";

impl ByteSet {
    pub(super) fn of(bytes: &[u8]) -> Self {
        const CLASSES: [u64; 256] = classes();
        Self(bytes.iter().fold(0, |set, byte| set | CLASSES[usize::from(*byte)]))
    }

    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn holds(self, needed: Self) -> bool {
        needed.0 & !self.0 == 0
    }
}

const fn classes() -> [u64; 256] {
    let mut classes = [1 << 63; 256];
    let mut at = 0;
    while at < 26 {
        classes[b'a' as usize + at] = 1 << at;
        classes[b'A' as usize + at] = 1 << at;
        at += 1;
    }
    while at < 26 + ALONE.len() {
        classes[ALONE[at - 26] as usize] = 1 << at;
        at += 1;
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_set_contains_the_bytes_that_it_was_built_from() {
        let path = ByteSet::of(b"/shop/?sort=price");
        for held in ["/", "?sort=", "SHOP", ""] {
            assert!(path.holds(ByteSet::of(held.as_bytes())), "{held}");
        }
        for missing in ["/shop/1", "&", ".", "\u{7f}"] {
            assert!(!path.holds(ByteSet::of(missing.as_bytes())), "{missing}");
        }
    }
}
