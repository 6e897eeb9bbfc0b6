//! Builds the index of a file from its candidates, in linear time except for sorting.

use super::candidates::{Candidates, Rank, merged};
use super::grams::Grams;
use super::patterns::{Interner, Run, Wildcard};
use super::trie::{Key, KeyKind, NO_LIST, Tries};
use super::{MAX_READ, RuleIndex, SearchRoot, WildcardList};
use crate::rules::Reading;
use crate::rules::document::RobotsTxt;
use crate::rules::text::{self, Tail};

/// Maximum length of a list of patterns that contain wildcards and have the same literal prefix. A
/// search tries every pattern of a list, so the patterns of a longer list are stored in [`Grams`]
/// instead.
const SHORT_LIST: usize = 16;

/// Value of `SearchRoot::grams` if the search root has no grams.
const NO_GRAMS: u32 = u32::MAX;

/// Placeholder for an index that has not been assigned yet.
const UNKNOWN: u32 = u32::MAX;

struct IndexBuilder<'c> {
    candidates: &'c Candidates,
    interner: Interner<'c>,
    /// For each candidate, the index of its pattern. The candidates are in the order of their
    /// ranks.
    patterns: Vec<u32>,
    /// For each pattern, the index of the last search root that uses it.
    used: Vec<u32>,
    tries: Tries,
    lists: Vec<WildcardList>,
    wildcards: Vec<Wildcard>,
    grams: Vec<Grams>,
    roots: Vec<SearchRoot>,
}

impl RuleIndex {
    /// Compiles the rules that end within the first `limit` bytes.
    pub(in crate::rules) fn new(document: &RobotsTxt, reading: Reading, limit: usize, sets: &[Vec<usize>]) -> Self {
        let candidates = Candidates::read(document, reading, limit.min(MAX_READ));
        let merged = merged(sets, &candidates);
        let mut builder = IndexBuilder::new(&candidates);
        let mut of_group = vec![UNKNOWN; document.groups().len()];
        let (mut sections, mut roots) = (Vec::with_capacity(sets.len()), Vec::new());
        for (set, merged) in sets.iter().zip(merged) {
            let start = roots.len();
            if merged {
                let mut ranks: Vec<Rank> = set.iter().flat_map(|group| candidates.of_group(*group)).copied().collect();
                ranks.sort_unstable();
                roots.push(builder.root(&ranks));
            } else {
                for group in set.iter().filter(|group| !candidates.of_group(**group).is_empty()) {
                    if of_group[*group] == UNKNOWN {
                        of_group[*group] = builder.root(candidates.of_group(*group));
                    }
                    roots.push(of_group[*group]);
                }
            }
            sections.push(Run::of(start..roots.len()));
        }
        let IndexBuilder { interner, mut tries, mut lists, mut wildcards, grams, roots: all, .. } = builder;
        let patterns = interner.patterns;
        tries.shrink();
        lists.shrink_to_fit();
        wildcards.shrink_to_fit();
        let roots = roots.into_iter().map(|root| all[root as usize]).collect();
        let sections = sections.into();
        let first_disallows = candidates.first_disallows(sets);
        let rules = candidates.into_rules();
        Self { patterns, tries, lists, wildcards, grams, roots, sections, first_disallows, rules }
    }
}

impl<'c> IndexBuilder<'c> {
    fn new(candidates: &'c Candidates) -> Self {
        let (interner, used, tries, lists, wildcards, grams, roots) = Default::default();
        let patterns = vec![UNKNOWN; candidates.len()];
        Self { candidates, interner, patterns, used, tries, lists, wildcards, grams, roots }
    }

    /// Adds a search root and returns its index. The ranks must be sorted, best first.
    fn root(&mut self, ranks: &[Rank]) -> u32 {
        let (mut keys, mut wildcards) = (Vec::with_capacity(ranks.len()), Vec::new());
        for rank in ranks {
            let (bytes, rest) = text::split_prefix(self.candidates.text(*rank));
            match text::tail(rest) {
                Tail::Open => keys.push(Key { bytes, kind: KeyKind::Open(*rank) }),
                Tail::End => keys.push(Key { bytes, kind: KeyKind::End(*rank) }),
                Tail::Wild => wildcards.extend(self.first_of_its_pattern(*rank)),
            }
        }
        let many = self.short_lists(wildcards, &mut keys);
        let grams = if many.is_empty() { NO_GRAMS } else { self.grams.len() as u32 };
        if !many.is_empty() {
            self.grams.push(Grams::new(many, &self.interner.patterns));
        }
        let trie = self.tries.add(keys, |list, above| self.lists[list as usize].above = above);
        self.roots.push(SearchRoot { trie, grams });
        self.roots.len() as u32 - 1
    }

    /// Returns the [`Wildcard`] for the candidate with this rank. `None` if a better candidate of
    /// the same search root has the same pattern.
    fn first_of_its_pattern(&mut self, rank: Rank) -> Option<Wildcard> {
        let pattern = &mut self.patterns[rank.index()];
        if *pattern == UNKNOWN {
            *pattern = self.interner.intern(self.candidates.text(rank));
            self.used.resize(self.interner.patterns.len(), UNKNOWN);
        }
        let (root, used) = (self.roots.len() as u32, &mut self.used[*pattern as usize]);
        (*used != root).then(|| {
            *used = root;
            Wildcard { rank, pattern: *pattern }
        })
    }

    /// Stores patterns with the same literal prefix in a list. If more than [`SHORT_LIST`] patterns
    /// have the same prefix, returns them instead of storing them.
    fn short_lists(&mut self, mut wildcards: Vec<Wildcard>, keys: &mut Vec<Key<'c>>) -> Vec<Wildcard> {
        let prefix = |wildcard: &Wildcard| text::split_prefix(self.candidates.text(wildcard.rank)).0;
        wildcards.sort_by_key(prefix);
        let mut many = Vec::new();
        for same in wildcards.chunk_by(|one, other| prefix(one) == prefix(other)) {
            if same.len() > SHORT_LIST {
                many.extend_from_slice(same);
                continue;
            }
            let start = self.wildcards.len();
            self.wildcards.extend_from_slice(same);
            let bytes = prefix(&same[0]);
            keys.push(Key { bytes, kind: KeyKind::List(self.lists.len() as u32) });
            let wildcards = Run::of(start..self.wildcards.len());
            self.lists.push(WildcardList { wildcards, prefix: bytes.len() as u32, above: NO_LIST });
        }
        many.sort_unstable_by_key(|wildcard| wildcard.rank);
        many
    }
}
