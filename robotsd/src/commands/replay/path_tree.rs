//! Paths as patterns: a segment, or a name or value of a query, that varies becomes `*`.
//!
//! A tree of segments. What it loses is how often one of many values was requested, never a request: the counts of its
//! patterns add up to what was added.

/// Segments of a path and parts of a query that are distinguished; the rest of a target stays in one piece.
const DEEPEST: usize = 12;

/// So few values are shown one by one, and up to `SOME` where they are requested more than once or twice.
const FEW: usize = 3;
const SOME: usize = 6;
const REPEATED: u64 = 3;

/// Among more values than that, one is shown that has this many requests, and one of this many of all of them.
const FREQUENT: u64 = 10;
const FREQUENT_SHARE: u64 = 20;

/// What a part of a target begins with: a segment, the first name of a query, another name, a value.
const KINDS: [u8; 4] = *b"/?&=";

/// Requests by the parts of their targets.
#[derive(Clone, Debug, Default)]
pub(super) struct PathTree {
    /// A segment, name or value with what stands before it; empty at the root.
    part: Box<[u8]>,
    /// Requests that end here, and with those below.
    ends: u64,
    total: u64,
    /// Whether what follows is not distinguished any more.
    is_cut: bool,
    /// In the order of their parts.
    children: Vec<PathTree>,
}

impl PathTree {
    /// Adds a target, and returns how many nodes are new.
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

    /// Adds the counts of another tree at the same place.
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

    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// Nodes, with this one.
    pub(super) fn size(&self) -> usize {
        1 + self.children.iter().map(Self::size).sum::<usize>()
    }

    /// Keeps this many values at each place, those that are requested most.
    pub(super) fn keep_frequent(&mut self, limit: usize) {
        self.generalize(&|mut values| {
            values.totals.sort_unstable_by(|a, b| b.cmp(a));
            // Of equally frequent ones, all stay or none.
            values.totals.get(limit).map_or(0, |next| next + 1)
        });
    }

    /// Tells nothing apart below this many parts.
    pub(super) fn cut(&mut self, depth: usize) {
        if depth > 0 {
            self.children.iter_mut().for_each(|child| child.cut(depth - 1));
        } else if self.is_cut || !self.children.is_empty() {
            self.is_cut = true;
            self.ends = self.total;
            self.children = Vec::new();
        }
    }

    /// Patterns and their requests, the most frequent first.
    pub(super) fn patterns(&self) -> Vec<(Vec<u8>, u64)> {
        let mut tree = self.clone();
        tree.generalize(&|values| {
            let all: u64 = values.totals.iter().chain(&values.wildcard).sum();
            match values.totals.len() {
                0..=FEW if values.wildcard.is_none() => 0,
                0..=SOME if values.wildcard.is_none() => REPEATED,
                _ => FREQUENT.max(all.div_ceil(FREQUENT_SHARE)),
            }
        });
        let mut patterns = Vec::new();
        tree.collect(&mut Vec::new(), &mut patterns);
        patterns.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        patterns
    }

    /// At each place, puts a wildcard for the values with fewer requests than `least` gives for all of them.
    fn generalize(&mut self, least: &impl Fn(Values) -> u64) {
        // One child alone stays as it is; most nodes have no more.
        let kinds = if self.children.len() > 1 { KINDS.as_slice() } else { &[] };
        for &kind in kinds {
            let of_kind = |child: &&Self| child.is_value() && child.kind() == kind;
            if !self.children.iter().any(|child| of_kind(&child)) {
                continue;
            }
            let wildcard = [kind, b'*'];
            let at = self.children.binary_search_by(|child| (*child.part).cmp(&wildcard));
            let least = least(Values {
                totals: self.children.iter().filter(of_kind).map(|child| child.total).collect(),
                wildcard: at.ok().map(|at| self.children[at].total),
            });
            let is_rare = |child: &Self| of_kind(&child) && child.total < least;
            // One value alone says more than a wildcard.
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
        match self.part.first() {
            Some(first) if KINDS.contains(first) => *first,
            _ => b'/',
        }
    }

    /// Whether it is one of many values that may stand here: a wildcard is all of them, and a bare slash is the page of a
    /// folder itself.
    fn is_value(&self) -> bool {
        !matches!(&*self.part, [_] | [_, b'*'])
    }
}

/// Requests of the values at one place, and of those that are no longer distinguished.
struct Values {
    totals: Vec<u64>,
    wildcard: Option<u64>,
}

/// A target cut before each segment, before each name of its query and before each value.
fn parts(target: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = target;
    let mut count = 0;
    let mut in_query = false;
    std::iter::from_fn(move || {
        let (first, after) = rest.split_first()?;
        in_query |= *first == b'?';
        count += 1;
        let ends = |octet: &u8| match octet {
            b'/' | b'?' => !in_query,
            b'&' => in_query,
            // A value may hold the sign too.
            b'=' => in_query && *first != b'=',
            _ => false,
        };
        let end = if count == DEEPEST { None } else { after.iter().position(ends) };
        let (part, next) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
        rest = next;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!((parts(deep.as_bytes()).count(), parts(deep.as_bytes()).flatten().count()), (DEEPEST, deep.len()));
    }

    #[test]
    fn what_varies_becomes_a_wildcard() {
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
    fn a_tree_that_is_made_smaller_loses_no_request() {
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
