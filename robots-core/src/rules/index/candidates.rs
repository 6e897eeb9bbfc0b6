//! Sorts all rules of a file by precedence. The position of a rule in this order is its rank. This
//! module also decides which groups share a trie.

use std::cmp::Reverse;
use std::ops::Range;

use crate::rules::Reading;
use crate::rules::document::RobotsTxt;
use crate::rules::pattern::{directory_of_index, priority};
use crate::rules::{Access, text};

/// The position of a candidate in the order of precedence, and whether the candidate allows or
/// disallows. Lower ranks take precedence. One number contains both values, so the best rank also
/// contains the verdict.
///
/// The longest pattern comes first. If patterns are equally long, allow comes before disallow. All
/// other ties are broken by the order of the file (RFC 9309, section 2.2.2, and the reference
/// parser). Empty patterns match every path and come last. An empty pattern allows the path, even
/// if its rule is a disallow line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::rules) struct Rank(u32);

impl Rank {
    /// A rank that is worse than the rank of every candidate.
    pub(super) const NONE: Self = Self(u32::MAX);

    const fn new(place: u32, access: Access) -> Self {
        Self(place << 1 | access as u32)
    }

    pub(in crate::rules) const fn access(self) -> Access {
        if self.0 & Access::Disallow as u32 == 0 { Access::Allow } else { Access::Disallow }
    }

    pub(super) const fn index(self) -> usize {
        (self.0 >> 1) as usize
    }
}

/// All candidates of a file, in the order of precedence. A candidate is a pattern of a rule; some
/// rules have several patterns.
pub(super) struct Candidates {
    /// All encoded patterns, concatenated.
    texts: Vec<u8>,
    /// The candidates in the order of their ranks.
    rules: Vec<CandidateRule>,
    /// The ranks of the candidates of all groups, group by group. Within a group, the best rank
    /// comes first.
    ranks: Vec<Rank>,
    /// Start of each group in `ranks`. The last element is the end of the last group.
    starts: Vec<usize>,
}

struct CandidateRule {
    /// Index of the rule in the document.
    rule: u32,
    access: Access,
    priority: u32,
    group: u32,
    text: Range<u32>,
}

impl Candidates {
    /// Creates the candidates of the rules that end within the first `limit` bytes. `limit` must
    /// not exceed [`MAX_READ`](super::MAX_READ), so that 32 bits are enough for every index and
    /// offset.
    pub(super) fn read(document: &RobotsTxt, reading: Reading, limit: usize) -> Self {
        let mut texts = Vec::with_capacity(document.bytes().len().min(limit));
        let mut rules: Vec<CandidateRule> = Vec::new();
        for rule in document.groups().flat_map(|group| group.rules()).take_while(|rule| rule.range().end <= limit) {
            let written = rule.pattern();
            let mut add = |written: &[u8]| {
                let (group, priority) = (rule.group().index as u32, priority(written) as u32);
                for query in text::queries(written, reading) {
                    let start = texts.len() as u32;
                    text::write(&mut texts, written, reading, query);
                    let (number, text) = (rule.index as u32, start..texts.len() as u32);
                    rules.push(CandidateRule { rule: number, access: rule.access(), priority, group, text });
                }
            };
            add(written);
            if rule.access() == Access::Allow
                && let Some(directory) = directory_of_index(written)
            {
                add(&directory);
            }
        }
        rules.sort_unstable_by_key(|candidate| {
            (Reverse(candidate.priority), candidate.access == Access::Disallow, candidate.rule)
        });
        let (ranks, starts) = by_group(&rules, document.groups().len());
        Self { texts, rules, ranks, starts }
    }

    pub(super) fn len(&self) -> usize {
        self.rules.len()
    }

    /// Returns the ranks of a group's candidates, best first.
    pub(super) fn of_group(&self, group: usize) -> &[Rank] {
        &self.ranks[self.starts[group]..self.starts[group + 1]]
    }

    /// For each set of groups, returns the rank of the first rule in the file that belongs to one
    /// of these groups and disallows something; [`Rank::NONE`] if there is no such rule.
    pub(super) fn first_disallows(&self, sets: &[Vec<usize>]) -> Box<[Rank]> {
        let first = |ranks: &mut dyn Iterator<Item = Rank>| {
            let disallows = ranks.filter(|rank| *rank != Rank::NONE && rank.access() == Access::Disallow);
            disallows.min_by_key(|rank| self.rules[rank.index()].rule).unwrap_or(Rank::NONE)
        };
        // Each group is searched only once, because a large group may be in many sets.
        let groups = 0..self.starts.len() - 1;
        let of_group: Vec<Rank> = groups.map(|group| first(&mut self.of_group(group).iter().copied())).collect();
        sets.iter().map(|set| first(&mut set.iter().map(|group| of_group[*group]))).collect()
    }

    pub(super) fn text(&self, rank: Rank) -> &[u8] {
        let Range { start, end } = self.rules[rank.index()].text;
        &self.texts[start as usize..end as usize]
    }

    /// Returns the index of each candidate's rule in the document, in the order of the ranks.
    pub(super) fn into_rules(self) -> Box<[u32]> {
        self.rules.into_iter().map(|candidate| candidate.rule).collect()
    }
}

fn by_group(rules: &[CandidateRule], groups: usize) -> (Vec<Rank>, Vec<usize>) {
    let mut starts = vec![0; groups + 1];
    for candidate in rules {
        starts[candidate.group as usize + 1] += 1;
    }
    for group in 0..groups {
        starts[group + 1] += starts[group];
    }
    let (mut next, mut ranks) = (starts.clone(), vec![Rank::NONE; rules.len()]);
    for (place, candidate) in (0..).zip(rules) {
        let at = &mut next[candidate.group as usize];
        ranks[*at] = Rank::new(place, if candidate.priority == 0 { Access::Allow } else { candidate.access });
        *at += 1;
    }
    (ranks, starts)
}

/// Maximum number of copies of candidates in merged groups, as a multiple of the number of all
/// candidates.
const MAX_COPIES: usize = 2;

/// Decides, for each set of groups that apply together, whether the groups are merged into one
/// trie.
///
/// A token can occur in many groups, and a group can name many tokens. If every token had its own
/// copy of the candidates of its groups, the memory could be quadratic in the size of the file. So
/// the number of copies is limited.
///
/// If merging a set of groups would exceed the limit, the groups of the set are searched one after
/// the other. Merging saves the most time for sets with many groups, so these sets are merged
/// first. In real files, almost every token has only one group.
pub(super) fn merged(sets: &[Vec<usize>], candidates: &Candidates) -> Vec<bool> {
    let mut merged = vec![false; sets.len()];
    let mut left = MAX_COPIES * candidates.len();
    let mut several: Vec<usize> = (0..sets.len()).filter(|set| sets[*set].len() > 1).collect();
    several.sort_by_key(|set| Reverse(sets[*set].len()));
    for set in several {
        let size = sets[set].iter().map(|group| candidates.of_group(*group).len()).sum();
        if let Some(rest) = left.checked_sub(size) {
            (left, merged[set]) = (rest, true);
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Reading, RobotsTxt};

    /// Returns the candidates of a file with one group per element of `sizes`, which is the number
    /// of rules in the group.
    fn candidates(sizes: &[usize]) -> Candidates {
        let rules = |size: usize| (0..size).map(|rule| format!("Disallow: /{rule}\n")).collect::<String>();
        let file: String = sizes.iter().map(|size| format!("User-agent: a\n{}", rules(*size))).collect();
        Candidates::read(&RobotsTxt::parse(file.into_bytes()), Reading::Standard, usize::MAX)
    }

    #[test]
    fn sets_of_several_groups_are_merged_and_a_single_group_is_not_copied() {
        let sets = [vec![0], vec![0, 1], vec![], vec![1, 2]];
        assert_eq!(merged(&sets, &candidates(&[3, 3, 3])), [false, true, false, true]);
    }

    #[test]
    fn copies_are_at_most_twice_the_file_and_sets_with_most_groups_come_first() {
        // The file has 13 rules, so at most 26 copies of rules are allowed. The set of three groups
        // needs half of them. The other half is enough for only one of the sets with two groups.
        let sets = [vec![0, 1], vec![0, 1, 2], vec![0, 2], vec![1, 2]];
        assert_eq!(merged(&sets, &candidates(&[10, 2, 1])), [true, true, false, false]);
        // A set that needs exactly the remaining number of copies is merged.
        assert_eq!(merged(&[vec![0, 1], vec![0, 1]], &candidates(&[1, 1])), [true, true]);
        assert_eq!(merged(&vec![vec![0, 1]; 3], &candidates(&[1, 1])), [true, true, false]);
    }
}
