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
mod rule_index;
mod trie;

#[cfg(test)]
mod tests;

pub(super) use self::candidates::Rank;
pub(crate) use self::patterns::MatchBudget;
pub(super) use self::rule_index::{MAX_READ, RuleIndex};
