//! Finds the candidate that decides on a path; built once for a file, used for every request.
//!
//! Every rule of the file has a place in one order of precedence ([`candidates`]), so every part
//! below returns a rank, and the lowest rank wins. A set of groups that apply together has one trie
//! ([`trie`]), or one per group if merging them would cost too much ([`candidates`]). One walk
//! finds the best literal pattern, however many there are.
//!
//! Wildcards with the same literal prefix are attached to a node of the trie as a short list; if
//! there are many, they are stored by [`grams`]. Whether a wildcard matches is decided by the same
//! exact comparison as everywhere ([`text`](super::text)). The structures here only skip
//! comparisons that cannot match.
//!
//! Automata were tried and rejected. A lazy DFA is filled and emptied by the client, who chooses
//! the paths; a dense one takes seconds and tens of megabytes to build.

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

/// Maximum size of the compiled part of a file, in bytes, so that 32 bits are enough for every
/// index and offset. An encoded pattern is at most three times as long as the pattern, and at most
/// four copies of its bytes are stored.
pub(super) const MAX_READ: usize = 256 << 20;

/// The compiled rules of a file.
pub(super) struct RuleIndex {
    /// Indexes of the rules in the document, by rank.
    rules: Box<[u32]>,
    patterns: Patterns,
    tries: Tries,
    lists: Vec<WildcardList>,
    wildcards: Vec<Wildcard>,
    grams: Vec<Grams>,
    roots: Box<[SearchRoot]>,
    /// The roots of each set of groups.
    sections: Box<[Run]>,
    /// The first disallowing rule in each set of groups; it decides if the work budget is used up.
    first_disallows: Box<[Rank]>,
}

/// The start of the candidates of some groups.
#[derive(Clone, Copy)]
struct SearchRoot {
    trie: Trie,
    /// Index in `grams`, or a number past its end.
    grams: u32,
}

/// Wildcards with the same literal prefix.
struct WildcardList {
    wildcards: Run,
    /// Length of the prefix.
    prefix: u32,
    /// The nearest list with a shorter prefix.
    above: u32,
}

impl RuleIndex {
    /// Returns the rank that decides on a path for a set of groups, within the remaining budget.
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
