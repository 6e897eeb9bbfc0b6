//! An index of the rules of a file, which finds the deciding rule for a path. The index is built
//! once per file and used for every request.
//!
//! Every rule of the file has a rank in the order of precedence ([`candidates`]). Each structure of
//! the index returns a rank, and the lowest rank decides. Groups that apply together share one trie
//! ([`trie`]). If merging these groups would cost too much memory, each group has its own trie
//! ([`candidates`]). One walk along a trie finds the best literal pattern. The cost of the walk
//! does not depend on the number of patterns.
//!
//! Patterns with wildcards are grouped by their literal prefix. If only a few patterns have the
//! same prefix, they are stored in a list at a node of the trie; otherwise, they are stored in
//! [`grams`]. The index only excludes patterns that cannot match; all others are compared exactly
//! ([`text`](super::text)).
//!
//! Automata were tried and rejected. With a lazy DFA, a client can choose paths that fill and empty
//! the cache of the DFA again and again (2.4 ms per verdict). A dense DFA takes seconds and tens of
//! megabytes to build.

mod build;
mod candidates;
mod grams;
mod patterns;
mod trie;

#[cfg(test)]
mod tests;

pub(super) use self::candidates::Rank;
use self::grams::Grams;
use self::patterns::{Patterns, Run, SearchedPath, Wildcard};
use self::trie::{Trie, Tries};
use super::match_budget::MatchBudget;

/// Maximum number of bytes of a file that are compiled. With this limit, 32 bits are enough for
/// every index and offset: an encoded pattern is at most three times as long as the pattern as
/// written, and is stored at most four times.
pub(super) const MAX_READ: usize = 256 << 20;

pub(super) struct RuleIndex {
    /// Indexes of the rules in the document, in the order of the candidates' ranks.
    rules: Box<[u32]>,
    patterns: Patterns,
    tries: Tries,
    lists: Vec<WildcardList>,
    wildcards: Vec<Wildcard>,
    grams: Vec<Grams>,
    roots: Box<[SearchRoot]>,
    /// For each set of groups, the range of its search roots in `roots`.
    sections: Box<[Run]>,
    /// For each set of groups, the disallow rule that comes first in the file. This rule decides if
    /// the work budget is used up.
    first_disallows: Box<[Rank]>,
}

/// The starting point of a search among the rules of one group, or of several groups that share a
/// trie.
#[derive(Clone, Copy)]
struct SearchRoot {
    trie: Trie,
    /// Index in `RuleIndex::grams`, or an index past the end if the search root has no grams.
    grams: u32,
}

/// Patterns with wildcards that have the same literal prefix.
struct WildcardList {
    wildcards: Run,
    /// Length of the prefix, in bytes.
    prefix: u32,
    /// Index in `RuleIndex::lists` of the list with the next shorter prefix, or an index past the
    /// end if there is no such list.
    above: u32,
}

impl RuleIndex {
    /// Returns the rank of the deciding rule for a path; `None` if no rule matches. `set` is the
    /// index of the set of groups that apply.
    pub(super) fn decide(&self, set: usize, path: &[u8], work: &mut MatchBudget) -> Option<Rank> {
        let (mut best, mut tried) = (Rank::NONE, SearchedPath::new(path, work));
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

    /// Returns the index in the document of the rule with this rank.
    pub(super) fn rule(&self, rank: Rank) -> usize {
        self.rules[rank.index()] as usize
    }

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
