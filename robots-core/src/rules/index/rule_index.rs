//! The compiled rules of a file, and the walk that finds the one that decides.

use super::candidates::Rank;
use super::grams::Grams;
use super::patterns::{MatchBudget, Patterns, Run, Tried, Wildcard};
use super::trie::{Trie, Tries};

/// Octets of a file that are compiled at most, so that 32 bits hold every index and offset: a text is at most three
/// times as long as what it was written from, and no more than four copies of its octets are kept.
pub(in crate::rules) const MAX_READ: usize = 256 << 20;

/// The compiled rules of a file.
pub(in crate::rules) struct RuleIndex {
    /// The rules' indexes in the document, by rank.
    pub(super) rules: Box<[u32]>,
    pub(super) patterns: Patterns,
    pub(super) tries: Tries,
    pub(super) lists: Vec<WildcardList>,
    pub(super) wildcards: Vec<Wildcard>,
    pub(super) grams: Vec<Grams>,
    pub(super) roots: Box<[SearchRoot]>,
    /// The roots of each set of groups.
    pub(super) sections: Box<[Run]>,
    /// The first rule that disallows in each set of groups, for what there is no work left to judge.
    pub(super) first_disallows: Box<[Rank]>,
}

/// Where the candidates of some groups begin.
#[derive(Clone, Copy)]
pub(super) struct SearchRoot {
    pub(super) trie: Trie,
    /// In `grams`, or past its end.
    pub(super) grams: u32,
}

/// Wildcards with the same literal prefix.
pub(super) struct WildcardList {
    pub(super) wildcards: Run,
    /// The length of the prefix.
    pub(super) prefix: u32,
    /// The nearest list with a shorter prefix.
    pub(super) above: u32,
}

impl RuleIndex {
    /// The rank that decides about a path for a set of groups, within the budget that is left.
    pub(in crate::rules) fn decide(&self, set: usize, path: &[u8], work: &mut MatchBudget) -> Option<Rank> {
        let (mut best, mut tried) = (Rank::NONE, Tried::new(path, work));
        for root in &self.roots[self.sections[set].range()] {
            if !tried.take_walk() {
                break;
            }
            let stop = self.tries.walk(root.trie, path);
            best = best.min(stop.rank);
            let mut list = stop.list;
            while let Some(WildcardList { wildcards, prefix, above }) = self.lists.get(list as usize) {
                let wildcards = &self.wildcards[wildcards.range()];
                best = self.patterns.best(wildcards, &mut tried, *prefix as usize, best);
                list = *above;
            }
            if let Some(grams) = self.grams.get(root.grams as usize) {
                best = grams.best(&self.patterns, &mut tried, best);
            }
        }
        let first_disallow = self.first_disallows[set];
        if work.is_spent() && first_disallow != Rank::NONE {
            best = first_disallow;
        }
        (best != Rank::NONE).then_some(best)
    }

    /// The rule of a rank, by its index in the document.
    pub(in crate::rules) fn rule(&self, rank: Rank) -> usize {
        self.rules[rank.index()] as usize
    }

    /// Octets of memory in use.
    pub(in crate::rules) fn memory(&self) -> usize {
        size_of_val(&*self.rules)
            + self.patterns.memory()
            + self.tries.memory()
            + self.lists.capacity() * size_of::<WildcardList>()
            + self.wildcards.capacity() * size_of::<Wildcard>()
            + self.grams.iter().map(Grams::memory).sum::<usize>()
            + size_of_val(&*self.roots)
            + size_of_val(&*self.sections)
            + size_of_val(&*self.first_disallows)
    }
}
