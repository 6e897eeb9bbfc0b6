//! Which groups are merged into one trie.
//!
//! A token can stand in many groups and a group can name many tokens, so to copy the candidates of every group for every
//! token could cost the square of the file: a thousand tokens in one group of a thousand rules, each also in a small
//! group of its own. So the candidates copied for merging are bounded by a multiple of all there are, and the sets of
//! groups that get no share of that are searched one group after the other, which costs no memory and compares the
//! answers. The sets of most groups gain most by merging and are merged first. In real files nearly every token has one
//! group.

use std::cmp::Reverse;

use super::candidates::Candidates;

/// How many candidates are copied for merging, for each there is.
const COPIES: usize = 2;

/// Which of the sets of groups get a trie of their own.
pub(super) fn merged(sets: &[Vec<usize>], candidates: &Candidates) -> Vec<bool> {
    let mut merged = vec![false; sets.len()];
    let mut left = COPIES * candidates.len();
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

    /// A file with a group of each of these sizes.
    fn candidates(sizes: &[usize]) -> Candidates {
        let rules = |size: usize| (0..size).map(|rule| format!("Disallow: /{rule}\n")).collect::<String>();
        let file: String = sizes.iter().map(|size| format!("User-agent: a\n{}", rules(*size))).collect();
        Candidates::read(&RobotsTxt::parse(file.into_bytes()), Reading::Standard, usize::MAX)
    }

    #[test]
    fn several_groups_are_merged_and_a_single_one_needs_no_copy() {
        let sets = [vec![0], vec![0, 1], vec![], vec![1, 2]];
        assert_eq!(merged(&sets, &candidates(&[3, 3, 3])), [false, true, false, true]);
    }

    #[test]
    fn copies_stay_within_twice_the_file_and_the_sets_of_most_groups_come_first() {
        // 13 rules: 26 may be copied. The set of three groups takes 13, then one of the others has room.
        let sets = [vec![0, 1], vec![0, 1, 2], vec![0, 2], vec![1, 2]];
        assert_eq!(merged(&sets, &candidates(&[10, 2, 1])), [true, true, false, false]);
        // Exactly as much as is left fits.
        assert_eq!(merged(&[vec![0, 1], vec![0, 1]], &candidates(&[1, 1])), [true, true]);
        assert_eq!(merged(&vec![vec![0, 1]; 3], &candidates(&[1, 1])), [true, true, false]);
    }
}
