//! Disallowed and changed targets by the rule that decides about them, in bounded memory.

use std::collections::BTreeMap;

use serde::Serialize;

use super::path_tree::PathTree;

/// Of the nodes of its trees, one in this many may be a rule.
const NODES_A_RULE: usize = 8;

/// How trees are made smaller, until that suffices: the values that are kept at each place, and the parts of a target.
const KEPT: [(usize, usize); 8] = [(32, 12), (16, 8), (8, 6), (4, 4), (2, 3), (1, 2), (0, 1), (0, 0)];

/// What a rule does to requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Effect {
    /// One file: it disallows them.
    Disallowed,
    /// Two files: the second disallows them, the first does not.
    ShutOut,
    /// Two files: the first disallows them, the second does not.
    LetIn,
}

/// The rule that disallows, in the first file where a change lets in, else in the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DecidingRule {
    pub(super) effect: Effect,
    /// `None` stands for the rules that are not distinguished.
    pub(super) line: Option<usize>,
}

/// Targets by rule. Every request is counted, however many targets and rules there are.
#[derive(Clone, Debug)]
pub(super) struct RulePaths {
    /// The most nodes of all trees together.
    capacity: usize,
    nodes: usize,
    rules: BTreeMap<DecidingRule, PathTree>,
}

impl RulePaths {
    pub(super) const fn new(capacity: usize) -> Self {
        Self { capacity, nodes: 0, rules: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, rule: DecidingRule, target: &[u8]) {
        let tree = self.rules.entry(rule).or_insert_with(|| {
            self.nodes += 1;
            PathTree::default()
        });
        self.nodes += tree.add(target);
        self.shrink();
    }

    pub(super) fn merge(&mut self, other: Self) {
        for (rule, tree) in other.rules {
            self.rules.entry(rule).or_default().merge(tree);
        }
        self.nodes = self.rules.values().map(PathTree::size).sum();
        self.shrink();
    }

    /// By effect, and the rules that decide about the most requests first.
    pub(super) fn sorted(&self) -> Vec<(DecidingRule, &PathTree)> {
        let mut rules: Vec<_> = self.rules.iter().map(|(rule, tree)| (*rule, tree)).collect();
        rules.sort_by_key(|(rule, tree)| (rule.effect, std::cmp::Reverse(tree.total()), *rule));
        rules
    }

    fn shrink(&mut self) {
        if self.rules.len() > self.capacity / NODES_A_RULE {
            self.join_rare_rules();
        }
        if self.nodes <= self.capacity {
            return;
        }
        // Half is made free, so that this is seldom done.
        for (limit, depth) in KEPT {
            self.rules.values_mut().for_each(|tree| {
                tree.keep_frequent(limit);
                tree.cut(depth);
            });
            self.nodes = self.rules.values().map(PathTree::size).sum();
            if self.nodes <= self.capacity / 2 {
                return;
            }
        }
    }

    /// Tells the less frequent half of the rules apart no more.
    fn join_rare_rules(&mut self) {
        let mut totals: Vec<u64> = self.rules.values().map(PathTree::total).collect();
        let middle = totals.len() / 2;
        let (_, median, _) = totals.select_nth_unstable(middle);
        let most = *median;
        for (rule, tree) in std::mem::take(&mut self.rules) {
            let line = rule.line.filter(|_| tree.total() > most);
            self.rules.entry(DecidingRule { line, ..rule }).or_default().merge(tree);
        }
        self.nodes = self.rules.values().map(PathTree::size).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn rule(line: usize) -> DecidingRule {
        DecidingRule { effect: Effect::Disallowed, line: Some(line) }
    }

    fn total(paths: &RulePaths) -> u64 {
        paths.sorted().iter().flat_map(|(_, tree)| tree.patterns()).map(|(_, count)| count).sum()
    }

    #[test]
    fn memory_is_bounded_and_every_request_counted() {
        let mut paths = RulePaths::new(512);
        for at in 0..20_000_usize {
            let target = match at % 4 {
                0 => "/same".to_owned(),
                1 => format!("/{at}/{}", at * 7),
                2 => "/x".repeat(at % 90),
                _ => format!("/q?{}", "a=1&".repeat(at % 40)),
            };
            paths.add(rule(if at % 4 == 0 { 1 } else { at % 500 }), target.as_bytes());
            assert!(paths.nodes <= 512 && paths.rules.len() <= 64, "{at}: {paths:?}");
            assert_eq!(paths.nodes, paths.rules.values().map(PathTree::size).sum::<usize>());
        }
        assert_eq!(total(&paths), 20_000);
        let frequent = paths.sorted().into_iter().find(|(found, _)| *found == rule(1)).expect("a frequent rule stays");
        assert_eq!(frequent.1.patterns()[0], (b"/same".to_vec(), 5_000));
    }

    #[test]
    fn counts_of_several_chunks_are_bounded_too() {
        let mut all = RulePaths::new(64);
        for chunk in 0..100 {
            let mut one = RulePaths::new(64);
            (0..30).for_each(|at| one.add(rule(at % 3), format!("/p/{chunk}-{at}").as_bytes()));
            all.merge(one);
            assert!(all.nodes <= 64);
        }
        assert_eq!(total(&all), 3_000);
        let lines: Vec<_> = all.sorted().iter().map(|(rule, tree)| (rule.line, tree.patterns())).collect();
        let want = [0, 1, 2].map(|line| (Some(line), vec![(b"/p/*".to_vec(), 1_000)]));
        assert_eq!(lines, want);
    }
}
