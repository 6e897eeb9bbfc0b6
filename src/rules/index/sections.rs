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
