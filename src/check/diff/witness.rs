//! Witnesses: paths that show a difference between two sets of rules.
//!
//! A verdict can only change where a rule matches that one side lacks. So each such rule's pattern is made into paths,
//! once with nothing and once with something for its `*`, and joined with the patterns of the other rules, because an
//! exception only shows where what it is excepted from matches too.

use std::collections::HashSet;

use crate::rules::{Access, Group, Rule, Selection};

/// Paths that are tried for one pair of groups: a bound on the cost.
const MOST: usize = 50_000;

/// Stands for any run of octets.
const FILLER: &[u8] = b"x";

/// Paths that may have another verdict under the one than under the other.
pub(super) fn paths(before: Selection<'_>, after: Selection<'_>) -> Vec<Vec<u8>> {
    witnesses(before, after, &[])
}

/// As [`paths`], with a pattern of one's own to look under.
pub(super) fn paths_within(before: Selection<'_>, after: Selection<'_>, pattern: &[u8]) -> Vec<Vec<u8>> {
    witnesses(before, after, &[pattern])
}

/// The shortest path that each disallow rule matches.
pub(super) fn disallowed(selection: Selection<'_>) -> impl Iterator<Item = Vec<u8>> {
    of_rules(selection, Access::Disallow)
}

/// The shortest path that each allow rule matches.
pub(super) fn allowed(selection: Selection<'_>) -> impl Iterator<Item = Vec<u8>> {
    of_rules(selection, Access::Allow)
}

fn of_rules(selection: Selection<'_>, access: Access) -> impl Iterator<Item = Vec<u8>> {
    let counts = move |rule: &Rule<'_>| rule.access() == access && matches!(rule.pattern(), [b'/' | b'*', ..]);
    selection.groups().flat_map(Group::rules).filter(counts).map(|rule| {
        let path = fill(body(rule.pattern()).0, b"");
        if path.starts_with(b"/") { path } else { [b"/", path.as_slice()].concat() }
    })
}

fn witnesses(before: Selection<'_>, after: Selection<'_>, own: &[&[u8]]) -> Vec<Vec<u8>> {
    let (old, new) = (rules(before), rules(after));
    let changed: Vec<&[u8]> =
        old.symmetric_difference(&new).map(|(_, pattern)| *pattern).chain(own.iter().copied()).collect();
    if changed.len() == own.len() {
        return Vec::new();
    }
    let mut every: Vec<&[u8]> = old.union(&new).map(|(_, pattern)| *pattern).chain(own.iter().copied()).collect();
    every.sort_unstable();
    every.dedup();
    let mut paths = Paths::default();
    paths.add(b"/".to_vec());
    for pattern in &changed {
        paths.add_all(pattern);
    }
    // Joined: the literal beginning of one with what another wants behind a `*`.
    let loose: Vec<&[u8]> = every.iter().copied().filter(|pattern| is_loose(pattern)).collect();
    for pattern in &changed {
        for other in &loose {
            paths.join(pattern, other);
        }
        if is_loose(pattern) {
            for other in &every {
                paths.join(other, pattern);
            }
        }
        if paths.is_full() {
            break;
        }
    }
    paths.list
}

/// What the selected rules say, without where they stand.
fn rules(selection: Selection<'_>) -> HashSet<(bool, &[u8])> {
    let says = |rule: Rule<'_>| rule.access() == Access::Allow;
    let counts = |rule: &Rule<'_>| matches!(rule.pattern(), [b'/' | b'*', ..]);
    selection.groups().flat_map(Group::rules).filter(counts).map(|rule| (says(rule), rule.pattern())).collect()
}

/// Whether a pattern can begin to match anywhere in a path: `*.pdf`, `/*?sort=`.
fn is_loose(pattern: &[u8]) -> bool {
    matches!(pattern, [b'*', ..] | [b'/', b'*', ..])
}

#[derive(Default)]
struct Paths {
    list: Vec<Vec<u8>>,
    known: HashSet<Vec<u8>>,
}

impl Paths {
    fn is_full(&self) -> bool {
        self.list.len() >= MOST
    }

    fn add(&mut self, path: Vec<u8>) {
        let path = if path.starts_with(b"/") { path } else { [b"/", path.as_slice()].concat() };
        if !self.is_full() && self.known.insert(path.clone()) {
            self.list.push(path);
        }
    }

    /// Paths that a pattern matches: the shortest, ones with something for each `*`, and one that goes on.
    fn add_all(&mut self, pattern: &[u8]) {
        let (body, anchored) = body(pattern);
        for filler in [&b""[..], FILLER] {
            let path = fill(body, filler);
            if !anchored {
                self.add([&path, FILLER].concat());
            }
            self.add(path);
        }
    }

    /// A path that begins as the one pattern wants and ends as the other, which is loose, wants.
    fn join(&mut self, start: &[u8], loose: &[u8]) {
        let (start, anchored) = body(start);
        if anchored {
            return;
        }
        let (end, _) = body(loose);
        let end = end.strip_prefix(b"/").unwrap_or(end);
        let end = fill(end.strip_prefix(b"*").unwrap_or(end), FILLER);
        let start = fill(start, FILLER);
        self.add([start.as_slice(), &end].concat());
        self.add([start.as_slice(), FILLER, &end].concat());
    }
}

/// A pattern without its last `$`, and whether it had one.
fn body(pattern: &[u8]) -> (&[u8], bool) {
    match pattern {
        [body @ .., b'$'] => (body, true),
        _ => (pattern, false),
    }
}

fn fill(body: &[u8], filler: &[u8]) -> Vec<u8> {
    body.split(|octet| *octet == b'*').collect::<Vec<_>>().join(filler)
}
