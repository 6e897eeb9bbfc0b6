//! An index of the rules of a file, which finds the candidate that decides on a path. The index is
//! built once per file and is used for every request.
//!
//! Every rule of the file has a rank in one order of precedence ([`candidates`]). Every part of the
//! index returns a rank, and the lowest rank decides. A set of groups that apply together has one
//! trie ([`trie`]), or one trie per group if merging the groups would cost too much
//! ([`candidates`]). One walk along a trie finds the best literal pattern, however many patterns
//! there are.
//!
//! Patterns with wildcards are grouped by their literal prefix. A small group is a list at a node
//! of the trie. A large group is stored in [`grams`]. The index only skips patterns that cannot
//! match. An exact comparison ([`text`](super::text)) decides whether a pattern matches.
//!
//! Automata were tried and rejected. A client can choose paths that make a lazy DFA fill and empty
//! its cache again and again. A dense DFA takes seconds and tens of megabytes to build.

mod build;
mod candidates;
mod grams;
mod patterns;
mod trie;

#[cfg(test)]
mod tests;

pub(super) use self::candidates::Rank;
use self::grams::Grams;
pub(crate) use self::patterns::MatchBudget;
use self::patterns::{Patterns, Run, Tried, Wildcard};
use self::trie::{Trie, Tries};

/// Maximum size, in bytes, of the part of a file that is compiled. With this limit, 32 bits are
/// enough for every index and offset: an encoded pattern is at most three times as long as the
/// pattern, and at most four copies of its bytes are stored.
pub(super) const MAX_READ: usize = 256 << 20;

/// The compiled rules of a file.
pub(super) struct RuleIndex {
    /// Index of each candidate's rule in the document, by rank.
    rules: Box<[u32]>,
    patterns: Patterns,
    tries: Tries,
    lists: Vec<WildcardList>,
    wildcards: Vec<Wildcard>,
    grams: Vec<Grams>,
    roots: Box<[SearchRoot]>,
    /// The roots of each set of groups.
    sections: Box<[Run]>,
    /// For each set of groups, the disallow rule that comes first in the file. This rule decides if
    /// the work budget is used up.
    first_disallows: Box<[Rank]>,
}

/// The starting point of a search among the candidates of one or more groups.
#[derive(Clone, Copy)]
struct SearchRoot {
    trie: Trie,
    /// Index in `RuleIndex::grams`, or a number past the end of it for a root without grams.
    grams: u32,
}

/// Wildcards with the same literal prefix.
struct WildcardList {
    wildcards: Run,
    /// Length of the prefix.
    prefix: u32,
    /// Index of the list with the next shorter prefix, or a number past the end of
    /// `RuleIndex::lists`.
    above: u32,
}

impl RuleIndex {
    /// Returns the rank that decides on a path for a set of groups, within the remaining budget;
    /// `None` if no rule matches.
    pub(super) fn decide(&self, set: usize, path: &[u8], work: &mut MatchBudget) -> Option<Rank> {
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

    /// Returns the rule of a rank, by its index in the document.
    pub(super) fn rule(&self, rank: Rank) -> usize {
        self.rules[rank.index()] as usize
    }

    /// Returns the memory in use, in bytes.
    pub(super) fn memory(&self) -> usize {
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
