//! Groups the targets of disallowed requests by deciding rule, in bounded memory. In a comparison,
//! groups the targets of requests with different verdicts.

use std::collections::BTreeMap;

use serde::Serialize;

/// Minimum number of nodes per rule. The maximum number of rules is the capacity divided by this
/// number.
const MIN_NODES_PER_RULE: usize = 8;

/// Limits that make the trees smaller: the maximum number of different values after the same
/// prefix, and the maximum number of parts per target. The pairs of limits are applied one after
/// another until the trees are small enough.
const SHRINK_LIMITS: [(usize, usize); 8] = [(32, 12), (16, 8), (8, 6), (4, 4), (2, 3), (1, 2), (0, 1), (0, 0)];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Effect {
    /// In a replay of one file, the rule disallows the requests.
    Disallowed,
    /// In a comparison, the second file disallows the requests, and the first does not.
    ShutOut,
    /// In a comparison, the first file disallows the requests, and the second does not.
    LetIn,
}

/// The rule that disallows a request. In a comparison, this is a rule of the second file, or of the
/// first file if only the first file disallows the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DecidingRule {
    pub(super) effect: Effect,
    /// Line of the rule; `None` for the entry that contains the sum for several rules.
    pub(super) line: Option<usize>,
}

/// Requested targets, by deciding rule. Every request is counted, even if there are very many
/// targets and rules.
#[derive(Clone, Debug)]
pub(super) struct RulePaths {
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

    /// Returns the rules, sorted by effect and then by number of requests, largest first.
    pub(super) fn sorted(&self) -> Vec<(DecidingRule, &PathTree)> {
        let mut rules: Vec<_> = self.rules.iter().map(|(rule, tree)| (*rule, tree)).collect();
        rules.sort_by_key(|(rule, tree)| (rule.effect, std::cmp::Reverse(tree.total), *rule));
        rules
    }

    fn shrink(&mut self) {
        if self.rules.len() > self.capacity / MIN_NODES_PER_RULE {
            self.join_rare_rules();
        }
        if self.nodes <= self.capacity {
            return;
        }
        // Half of the space is freed at once, because shrinking the trees takes time and should be
        // rare.
        for (limit, depth) in SHRINK_LIMITS {
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

    fn join_rare_rules(&mut self) {
        let mut totals: Vec<u64> = self.rules.values().map(|tree| tree.total).collect();
        let middle = totals.len() / 2;
        let (_, median, _) = totals.select_nth_unstable(middle);
        let most = *median;
        for (rule, tree) in std::mem::take(&mut self.rules) {
            let line = rule.line.filter(|_| tree.total > most);
            self.rules.entry(DecidingRule { line, ..rule }).or_default().merge(tree);
        }
        self.nodes = self.rules.values().map(PathTree::size).sum();
    }
}

/// Maximum number of path segments and query parts that are distinguished; all further parts of a
/// target are treated as one part.
const MAX_DEPTH: usize = 12;

/// If at most this many different values have the same prefix, every value is shown.
const FEW: usize = 3;
/// If at most this many different values have the same prefix, a value is shown only if it has at
/// least [`REPEATED`] requests.
const SOME: usize = 6;
const REPEATED: u64 = 3;

/// If more than [`SOME`] different values have the same prefix, a value is shown only if it has at
/// least this number of requests, and at least the fraction 1/[`FREQUENT_SHARE`] of all requests
/// for these values.
const FREQUENT: u64 = 10;
const FREQUENT_SHARE: u64 = 20;

/// First bytes of the parts of a target: path segments, the first parameter name in the query,
/// later parameter names, and values.
const KINDS: [u8; 4] = *b"/?&=";

/// A tree whose nodes are parts of request targets, with the number of requests for each node.
/// Patterns are formed from this tree: a path segment, or a name or value in the query, becomes `*`
/// if it varies.
///
/// To save memory, the tree may replace rare values with a wildcard and cut the last parts of
/// targets. The counts of all patterns still add up to the number of added targets.
#[derive(Clone, Debug, Default)]
pub(super) struct PathTree {
    /// Path segment, parameter name or value, with the preceding separator; empty at the root.
    part: Box<[u8]>,
    /// Number of requests whose target ends at this node.
    ends: u64,
    /// Number of requests whose target ends at this node or below it.
    pub(super) total: u64,
    /// Whether targets that differ only after this part are counted together.
    is_cut: bool,
    /// Nodes of the next parts, sorted by `part`.
    children: Vec<PathTree>,
}

impl PathTree {
    /// Adds a target, and returns the number of new nodes.
    pub(super) fn add(&mut self, target: &[u8]) -> usize {
        let mut new = 0;
        let mut node = self;
        node.total += 1;
        for part in parts(target) {
            if node.is_cut {
                break;
            }
            let at = node.children.binary_search_by(|child| (*child.part).cmp(part)).unwrap_or_else(|at| {
                node.children.insert(at, Self { part: part.into(), ..Self::default() });
                new += 1;
                at
            });
            node = &mut node.children[at];
            node.total += 1;
        }
        node.ends += 1;
        new
    }

    /// Adds the counts of another tree. Both trees must have the same `part`.
    pub(super) fn merge(&mut self, other: Self) {
        self.total += other.total;
        self.ends += other.ends;
        for child in other.children {
            match self.children.binary_search_by(|own| own.part.cmp(&child.part)) {
                Ok(at) => self.children[at].merge(child),
                Err(at) => self.children.insert(at, child),
            }
        }
        if self.is_cut || other.is_cut {
            self.cut(0);
        }
    }

    pub(super) fn size(&self) -> usize {
        1 + self.children.iter().map(Self::size).sum::<usize>()
    }

    /// At each node, keeps the `limit` children of each kind with the most requests.
    pub(super) fn keep_frequent(&mut self, limit: usize) {
        self.generalize(&|mut totals, _| {
            totals.sort_unstable_by(|a, b| b.cmp(a));
            // Values with the same number of requests are either all kept or all removed.
            totals.get(limit).map_or(0, |next| next + 1)
        });
    }

    /// Cuts the tree after `depth` parts. Targets that differ only after these parts are counted
    /// together.
    pub(super) fn cut(&mut self, depth: usize) {
        if depth > 0 {
            self.children.iter_mut().for_each(|child| child.cut(depth - 1));
        } else if self.is_cut || !self.children.is_empty() {
            self.is_cut = true;
            self.ends = self.total;
            self.children = Vec::new();
        }
    }

    pub(super) fn patterns(&self) -> Vec<(Vec<u8>, u64)> {
        let mut tree = self.clone();
        tree.generalize(&|totals, wildcard| {
            let all: u64 = totals.iter().chain(&wildcard).sum();
            match totals.len() {
                0..=FEW if wildcard.is_none() => 0,
                0..=SOME if wildcard.is_none() => REPEATED,
                _ => FREQUENT.max(all.div_ceil(FREQUENT_SHARE)),
            }
        });
        let mut patterns = Vec::new();
        tree.collect(&mut Vec::new(), &mut patterns);
        patterns.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        patterns
    }

    /// At each node, replaces rare children of one kind with a wildcard. A child is rare if it has
    /// fewer requests than the number that `least` returns. The arguments of `least` are the counts
    /// of all children of this kind, and the count of the wildcard if there is one.
    fn generalize(&mut self, least: &impl Fn(Vec<u64>, Option<u64>) -> u64) {
        // An only child is not replaced. Most nodes have at most one child.
        let kinds = if self.children.len() > 1 { KINDS.as_slice() } else { &[] };
        for &kind in kinds {
            // Wildcards are kept, because they already match all values. A part that is only a
            // slash is kept, too, because it represents the page of the folder itself.
            let of_kind = |child: &&Self| !matches!(&*child.part, [_] | [_, b'*']) && child.kind() == kind;
            if !self.children.iter().any(|child| of_kind(&child)) {
                continue;
            }
            let wildcard = [kind, b'*'];
            let at = self.children.binary_search_by(|child| (*child.part).cmp(&wildcard));
            let totals = self.children.iter().filter(of_kind).map(|child| child.total).collect();
            let least = least(totals, at.ok().map(|at| self.children[at].total));
            let is_rare = |child: &Self| of_kind(&child) && child.total < least;
            // A single rare value is kept, because it tells the reader more than a wildcard would.
            if self.children.iter().filter(|child| is_rare(child)).count() < 2 - usize::from(at.is_ok()) {
                continue;
            }
            let mut all = match at {
                Ok(at) => self.children.remove(at),
                Err(_) => Self { part: wildcard.into(), ..Self::default() },
            };
            for child in self.children.extract_if(.., |child| is_rare(child)) {
                all.merge(child);
            }
            let at = self.children.partition_point(|child| child.part < all.part);
            self.children.insert(at, all);
        }
        self.children.iter_mut().for_each(|child| child.generalize(least));
    }

    fn collect(&self, pattern: &mut Vec<u8>, patterns: &mut Vec<(Vec<u8>, u64)>) {
        let before = pattern.len();
        pattern.extend_from_slice(&self.part);
        if self.ends > 0 {
            let rest = if self.is_cut { "…" } else { "" };
            patterns.push(([pattern.as_slice(), rest.as_bytes()].concat(), self.ends));
        }
        self.children.iter().for_each(|child| child.collect(pattern, patterns));
        pattern.truncate(before);
    }

    fn kind(&self) -> u8 {
        self.part.first().copied().filter(|first| KINDS.contains(first)).unwrap_or(b'/')
    }
}

/// Splits a target into parts. A part begins at each path segment, and at each name and value in
/// the query.
fn parts(target: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = target;
    let mut count = 0;
    let mut in_query = false;
    std::iter::from_fn(move || {
        let (first, after) = rest.split_first()?;
        in_query |= *first == b'?';
        count += 1;
        let ends = |byte: &u8| match byte {
            b'/' | b'?' => !in_query,
            b'&' => in_query,
            b'=' => in_query && *first != b'=',
            _ => false,
        };
        let end = if count == MAX_DEPTH { None } else { after.iter().position(ends) };
        let (part, next) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
        rest = next;
        Some(part)
    })
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
    fn memory_is_bounded_and_every_request_is_counted() {
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
    fn merged_counts_of_several_chunks_are_bounded() {
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

    fn tree<S: AsRef<str>>(targets: impl IntoIterator<Item = S>) -> PathTree {
        let mut tree = PathTree::default();
        for target in targets {
            tree.add(target.as_ref().as_bytes());
        }
        tree
    }

    fn patterns(tree: &PathTree) -> Vec<(String, u64)> {
        let text = |(pattern, count): (Vec<u8>, u64)| (String::from_utf8(pattern).expect("text"), count);
        tree.patterns().into_iter().map(text).collect()
    }

    #[test]
    fn targets_are_cut_into_segments_names_and_values() {
        for (target, want) in [
            ("/", vec!["/"]),
            ("/a/b.html", vec!["/a", "/b.html"]),
            ("/a//b/", vec!["/a", "/", "/b", "/"]),
            ("/a?x=1/2?3=4&y&=z", vec!["/a", "?x", "=1/2?3=4", "&y", "&", "=z"]),
            ("a=b&c", vec!["a=b&c"]),
            ("", vec![]),
        ] {
            let cut: Vec<_> = parts(target.as_bytes()).map(|part| String::from_utf8_lossy(part).into_owned()).collect();
            assert_eq!(cut, want, "{target}");
            assert_eq!(cut.concat(), target);
        }
        let deep = "/x".repeat(50);
        assert_eq!((parts(deep.as_bytes()).count(), parts(deep.as_bytes()).flatten().count()), (MAX_DEPTH, deep.len()));
    }

    #[test]
    fn varying_parts_of_paths_become_wildcards() {
        let shop = (0..500).map(|at| format!("/p/{at}?color=*&size=*"));
        let few = ["/drafts/a", "/drafts/b", "/drafts/", "/drafts/a"].map(str::to_owned);
        let want = [("/p/*?color=*&size=*", 500), ("/drafts/a", 2), ("/drafts/", 1), ("/drafts/b", 1)];
        assert_eq!(patterns(&tree(shop.chain(few))), want.map(|(pattern, count)| (pattern.to_owned(), count)));
        let values = (0..500).map(|at| format!("/p?color=c{at}&page={}", at % 2));
        let want = [("/p?color=*&page=0", 250), ("/p?color=*&page=1", 250)];
        assert_eq!(patterns(&tree(values)), want.map(|(pattern, count)| (pattern.to_owned(), count)));
        let mut values = tree((0..100).map(|at| format!("/p/{at}")));
        values.keep_frequent(5);
        values.add(b"/p/new");
        assert_eq!(patterns(&values), [("/p/*".to_owned(), 101)]);
        let some = tree(["/a", "/a", "/a", "/b", "/c", "/d"]);
        assert_eq!(patterns(&some), [("/*".to_owned(), 3), ("/a".to_owned(), 3)]);
        let one = ["/a/b/c"; 9];
        assert_eq!(patterns(&tree(one)), [("/a/b/c".to_owned(), 9)]);
    }

    #[test]
    fn a_frequent_value_among_many_is_shown() {
        let many = (0..100).map(|at| format!("/p/{at}")).chain((0..100).map(|_| "/p/offer".to_owned()));
        assert_eq!(patterns(&tree(many)), [("/p/*".to_owned(), 100), ("/p/offer".to_owned(), 100)]);
    }

    #[test]
    fn pruning_a_path_tree_loses_no_requests() {
        let targets = (0..3000).map(|at| format!("/{}/{}/{at}?a{}=x", at % 7, at % 50, at % 90));
        let mut all = tree(targets);
        for limit in [32, 8, 1, 0] {
            let before = all.size();
            all.keep_frequent(limit);
            assert!(all.size() <= before);
            assert_eq!(patterns(&all).iter().map(|(_, count)| count).sum::<u64>(), 3000);
        }
        assert_eq!(patterns(&all), [("/*/*/*?*=x".to_owned(), 3000)]);
        all.cut(2);
        assert_eq!(patterns(&all), [("/*/*…".to_owned(), 3000)]);
        all.add(b"/1/2/3");
        all.merge(tree(["/*/*/9"]));
        assert_eq!(patterns(&all), [("/*/*…".to_owned(), 3002)]);
    }
}
