//! From a path to the candidate that wins: built once for a file, used at every request.
//!
//! Every rule of the file has a place in one order of precedence ([`candidates`]), so every part below answers with a
//! rank, and the lowest rank wins. A set of groups that apply together has one trie ([`trie`]), or one a group where
//! merging them would cost too much ([`candidates`]): one walk finds the best literal pattern whatever their number.
//! Wildcards with the same literal prefix hang on a node of the trie as a short list or, where they are many, are
//! filed by [`grams`]. Which of them match is judged by the same exact comparison as everywhere
//! ([`text`](super::text)); the structures here only avoid comparisons that cannot match.
//!
//! Automata were tried and rejected: a lazy DFA is filled and emptied by the client, who chooses the paths, a dense one takes
//! seconds and tens of megabytes to build.

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

/// Octets of a file that are compiled at most, so that 32 bits hold every index and offset: a text is at most three
/// times as long as the pattern it was written from, and no more than four copies of its octets are kept.
pub(super) const MAX_READ: usize = 256 << 20;

/// The compiled rules of a file.
pub(super) struct RuleIndex {
    /// The rules' indexes in the document, by rank.
    rules: Box<[u32]>,
    patterns: Patterns,
    tries: Tries,
    lists: Vec<WildcardList>,
    wildcards: Vec<Wildcard>,
    grams: Vec<Grams>,
    roots: Box<[SearchRoot]>,
    /// The roots of each set of groups.
    sections: Box<[Run]>,
    /// The first rule that disallows in each set of groups, for what there is no work left to judge.
    first_disallows: Box<[Rank]>,
}

/// The start of the candidates of some groups.
#[derive(Clone, Copy)]
struct SearchRoot {
    trie: Trie,
    /// In `grams`, or past its end.
    grams: u32,
}

/// Wildcards with the same literal prefix.
struct WildcardList {
    wildcards: Run,
    /// The length of the prefix.
    prefix: u32,
    /// The nearest list with a shorter prefix.
    above: u32,
}

impl RuleIndex {
    /// The rank that decides about a path for a set of groups, within the budget that is left.
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

    /// The rule of a rank, by its index in the document.
    pub(super) fn rule(&self, rank: Rank) -> usize {
        self.rules[rank.index()] as usize
    }

    /// Octets of memory in use.
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
