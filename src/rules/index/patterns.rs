//! Patterns with wildcards, each kept once whatever the number of rules and groups that use it.

use std::collections::HashMap;
use std::ops::Range;

use super::candidates::Rank;
use super::octets::OctetSet;
use crate::rules::text;

/// The patterns with wildcards of a file.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    texts: Vec<u8>,
    patterns: Vec<Pattern>,
}

#[derive(Debug)]
struct Pattern {
    start: u32,
    /// Where the literal prefix ends.
    behind: u32,
    end: u32,
    /// The octets behind the prefix.
    octets: OctetSet,
}

/// A pattern in the place of a candidate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wildcard {
    pub(super) rank: Rank,
    pub(super) pattern: u32,
}

/// What is left of a path behind some prefix, and what octets it holds once that was asked for.
pub(super) struct Remainder<'p> {
    path: &'p [u8],
    octets: Option<OctetSet>,
}

/// Makes patterns of texts, one of equal ones.
#[derive(Default)]
pub(super) struct Interner<'t> {
    patterns: Patterns,
    known: HashMap<&'t [u8], u32>,
}

impl<'t> Interner<'t> {
    pub(super) fn intern(&mut self, text: &'t [u8]) -> u32 {
        *self.known.entry(text).or_insert_with(|| self.patterns.add(text))
    }

    pub(super) fn patterns(&self) -> &Patterns {
        &self.patterns
    }

    pub(super) fn into_patterns(self) -> Patterns {
        self.patterns
    }
}

impl Patterns {
    fn add(&mut self, text: &[u8]) -> u32 {
        let start = self.texts.len();
        let (prefix, rest) = text::split_prefix(text);
        self.texts.extend_from_slice(text);
        self.patterns.push(Pattern {
            start: start as u32,
            behind: (start + prefix.len()) as u32,
            end: self.texts.len() as u32,
            octets: text::literals(rest).map(OctetSet::of).fold(OctetSet::default(), OctetSet::with),
        });
        self.patterns.len() as u32 - 1
    }

    pub(super) fn len(&self) -> usize {
        self.patterns.len()
    }

    pub(super) fn prefix(&self, pattern: u32) -> &[u8] {
        let Pattern { start, behind, .. } = &self.patterns[pattern as usize];
        &self.texts[*start as usize..*behind as usize]
    }

    pub(super) fn behind_prefix(&self, pattern: u32) -> &[u8] {
        let Pattern { behind, end, .. } = &self.patterns[pattern as usize];
        &self.texts[*behind as usize..*end as usize]
    }

    /// The best rank among `best` and those of the wildcards, best first, whose pattern fits what is behind its prefix.
    pub(super) fn best_behind_prefix(&self, wildcards: &[Wildcard], left: &mut Remainder<'_>, best: Rank) -> Rank {
        wildcards
            .iter()
            .take_while(|wildcard| wildcard.rank < best)
            .find(|wildcard| {
                left.octets().holds(self.patterns[wildcard.pattern as usize].octets)
                    && text::fits(self.behind_prefix(wildcard.pattern), left.path)
            })
            .map_or(best, |wildcard| wildcard.rank)
    }

    /// The same for whole patterns and a whole path.
    pub(super) fn best<'w>(
        &self,
        wildcards: impl IntoIterator<Item = &'w Wildcard>,
        path: &mut Remainder<'_>,
        best: Rank,
    ) -> Rank {
        wildcards
            .into_iter()
            .take_while(|wildcard| wildcard.rank < best)
            .find(|wildcard| {
                path.octets().holds(self.patterns[wildcard.pattern as usize].octets)
                    && path
                        .path
                        .strip_prefix(self.prefix(wildcard.pattern))
                        .is_some_and(|left| text::fits(self.behind_prefix(wildcard.pattern), left))
            })
            .map_or(best, |wildcard| wildcard.rank)
    }

    /// Octets of memory in use.
    pub(super) fn memory(&self) -> usize {
        self.texts.capacity() + self.patterns.capacity() * size_of::<Pattern>()
    }
}

impl<'p> Remainder<'p> {
    pub(super) const fn new(path: &'p [u8]) -> Self {
        Self { path, octets: None }
    }

    pub(super) const fn path(&self) -> &'p [u8] {
        self.path
    }

    pub(super) fn octets(&mut self) -> OctetSet {
        *self.octets.get_or_insert_with(|| OctetSet::of(self.path))
    }
}

/// A run of some vector, in 32 bits a side.
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
