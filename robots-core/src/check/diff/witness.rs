//! Witnesses: paths that may have different verdicts under two sets of rules.
//!
//! The verdict on a path can change only if the path matches a changed rule: a rule that only one
//! of the files has. So paths are generated from the patterns of the changed rules, with nothing or
//! a filler instead of each `*`.
//!
//! Two rules affect each other only on paths that both match. So the pattern of each changed rule
//! is also combined with the patterns of all other rules: for each pair, the shortest path that
//! both patterns match is generated. Two plain patterns (without `*` and `%`) need not be combined:
//! if both match a path, one begins with the other, and the longer one is itself a path that both
//! match.

use std::collections::{HashSet, VecDeque};

use crate::check::pattern::with_normal_escapes;
use crate::rules::{Access, Group, PathPattern, Reading, Rule, Selection};

/// Maximum number of paths that are tried for one class of crawlers, to bound the cost.
const MAX_PATHS: usize = 50_000;

/// Text that replaces each `*` if a pattern is converted to a path.
const FILLER: &[u8] = b"x";

/// Maximum number of pairs of patterns that are examined, to bound the cost.
const MAX_PAIRS: usize = 1_000_000;

/// Maximum number of search states for all pairs of patterns, to bound the cost.
const MAX_STATES: usize = 10_000_000;

/// Returns a URL for the reference parser. In patterns, the parser escapes bytes ≥ 0x80 and
/// upper-cases the digits of escapes, but it does not change the path of a URL. So this function
/// makes these changes in the path.
pub(super) fn as_url(path: &[u8]) -> Vec<u8> {
    [b"http://x", with_normal_escapes(path).as_slice()].concat()
}

/// Returns one path for each rule with this access: the shortest path that the rule matches.
pub(super) fn paths_of_rules(selection: Selection<'_>, access: Access) -> impl Iterator<Item = Vec<u8>> {
    let counts = move |rule: &Rule<'_>| rule.access() == access && matches!(rule.pattern(), [b'/' | b'*', ..]);
    selection.groups().flat_map(Group::rules).filter(counts).map(|rule| shortest(rule.pattern()))
}

pub(in crate::check) fn shortest(pattern: &[u8]) -> Vec<u8> {
    let path = fill(body(pattern).0, b"");
    if path.starts_with(b"/") { path } else { [b"/", path.as_slice()].concat() }
}

/// Returns paths whose verdicts may differ between `before` and `after`, and paths that match the
/// patterns in `own`.
pub(super) fn paths(
    before: Selection<'_>,
    after: Selection<'_>,
    own: &[&[u8]],
    goes_on: &dyn Fn() -> bool,
) -> Vec<Vec<u8>> {
    let (old, new) = (rules(before), rules(after));
    let changed: Vec<&[u8]> =
        old.symmetric_difference(&new).map(|(_, pattern)| *pattern).chain(own.iter().copied()).collect();
    if changed.len() == own.len() {
        return Vec::new();
    }
    let mut every: Vec<&[u8]> = old.union(&new).map(|(_, pattern)| *pattern).chain(own.iter().copied()).collect();
    every.sort_unstable();
    every.dedup();
    let mut paths = Paths { other_filler: unused_text(&every), ..Paths::default() };
    paths.add(b"/".to_vec());
    for pattern in changed.iter().take_while(|_| goes_on()) {
        paths.add_all(pattern);
        if paths.is_full() {
            break;
        }
    }
    // A pattern with a leading `*` can match the end of a path whose beginning matches another
    // pattern. So paths are generated that begin with one pattern and end with another pattern.
    let loose: Vec<&[u8]> = every.iter().copied().filter(|pattern| is_loose(pattern)).collect();
    for pattern in &changed {
        let others = loose.iter().map(|other| (*pattern, *other));
        let is_start = |_: &&&[u8]| is_loose(pattern);
        for (start, end) in others.chain(every.iter().filter(is_start).map(|other| (*other, *pattern))) {
            if paths.is_full() || !goes_on() {
                break;
            }
            paths.add_joined_paths(start, end);
        }
        if paths.is_full() || !goes_on() {
            break;
        }
    }
    let as_compared = |pattern: &&[u8]| {
        let is_plain = pattern.starts_with(b"/") && !pattern.iter().any(|byte| matches!(byte, b'*' | b'%'));
        (comparable_form(pattern, before.rules.reading()), is_plain)
    };
    let (every, changed): (Vec<_>, Vec<_>) =
        (every.iter().map(as_compared).collect(), changed.iter().map(as_compared).collect());
    let all: Vec<&[u8]> = every.iter().map(|(text, _)| &**text).collect();
    let not_plain: Vec<&[u8]> = every.iter().filter(|(_, is_plain)| !is_plain).map(|(text, _)| &**text).collect();
    let pairs = changed.iter().flat_map(|(text, is_plain)| {
        let others = if *is_plain { &not_plain } else { &all };
        others.iter().map(move |other| (&**text, *other))
    });
    let mut states = MAX_STATES;
    for (pattern, other) in pairs.take(MAX_PAIRS) {
        if paths.is_full() || !goes_on() {
            break;
        }
        paths.add_common_path(pattern, other, &mut states);
    }
    paths.list
}

/// Returns a filler that no pattern contains, so that no rule matches the filler by accident.
fn unused_text(patterns: &[&[u8]]) -> Vec<u8> {
    let is_unused = |byte: &u8| !patterns.iter().any(|pattern| pattern.contains(byte));
    let byte = (b'a'..=b'z').rev().chain(b'0'..=b'9').chain(b'A'..=b'Z').find(is_unused);
    byte.map_or_else(|| b"~-~".to_vec(), |byte| vec![byte])
}

/// Returns the rules of the selected groups, each as a flag and its pattern. The flag is true for
/// an allow rule.
fn rules(selection: Selection<'_>) -> HashSet<(bool, &[u8])> {
    let is_legacy = selection.rules.reading() == Reading::Legacy;
    let counts = |rule: &Rule<'_>| match rule.pattern() {
        [] => false,
        pattern => is_legacy || matches!(pattern, [b'/' | b'*', ..]),
    };
    let rules = selection.groups().flat_map(Group::rules).filter(counts);
    rules.map(|rule| (rule.access() == Access::Allow, rule.pattern())).collect()
}

/// Returns a pattern in the form that is compared with paths.
fn comparable_form(pattern: &[u8], reading: Reading) -> Vec<u8> {
    if reading == Reading::Reference {
        return pattern.to_vec();
    }
    let mut text = PathPattern::new(pattern, reading).with_wildcards_as(b'*').next().unwrap_or_default();
    // A `*` at the end is dropped, because a pattern without `$` matches any continuation.
    if text.pop_if(|last| *last == b'*').is_none() {
        text.push(b'$');
    }
    text
}

/// Reports whether a pattern begins with `*` or `/*`, for example `*.pdf` or `/*?sort=`. The rest
/// of such a pattern can match anywhere in a path.
fn is_loose(pattern: &[u8]) -> bool {
    matches!(pattern, [b'*', ..] | [b'/', b'*', ..])
}

#[derive(Default)]
struct Paths {
    /// A second filler, which no pattern contains. `FILLER` may be part of a pattern.
    other_filler: Vec<u8>,
    list: Vec<Vec<u8>>,
    known: HashSet<Vec<u8>>,
}

impl Paths {
    fn is_full(&self) -> bool {
        self.list.len() >= MAX_PATHS
    }

    fn add(&mut self, path: Vec<u8>) {
        let path = if path.starts_with(b"/") { path } else { [b"/", path.as_slice()].concat() };
        if !self.is_full() && self.known.insert(path.clone()) {
            self.list.push(path);
        }
    }

    /// Adds paths that a pattern matches: the shortest path, paths with a filler instead of each
    /// `*`, and paths that continue after the match.
    fn add_all(&mut self, pattern: &[u8]) {
        let (body, anchored) = body(pattern);
        // An allow rule for an index page, such as `/a/index.html`, also allows the folder `/a/`.
        if let Some(index) = memchr::memmem::rfind(body, b"/index.htm") {
            self.add(fill(&body[..=index], FILLER));
            self.add(fill(&body[..=index], b""));
        }
        let other = self.other_filler.clone();
        for (filler, end) in [(&b""[..], FILLER), (FILLER, FILLER), (&other[..], &other[..])] {
            let path = fill(body, filler);
            if !anchored {
                self.add([&path, end].concat());
            }
            self.add(path);
        }
    }

    /// Adds the shortest path that both patterns match. Also adds a continuation of this path,
    /// unless one of the patterns ends with `$`.
    fn add_common_path(&mut self, pattern: &[u8], other: &[u8], budget: &mut usize) {
        let Some(path) = shortest_of_both(pattern, other, budget) else { return };
        if !body(pattern).1 && !body(other).1 {
            self.add([&path, &*self.other_filler].concat());
        }
        self.add(path);
    }

    /// Adds two paths that begin with the text of `start` and end with the text of `loose`. In one
    /// path, the two strings are adjacent; in the other path, a filler separates them. Adds nothing
    /// if `start` ends with `$`.
    fn add_joined_paths(&mut self, start: &[u8], loose: &[u8]) {
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

/// Returns the shortest path that both patterns match. `None` if there is no such path or the
/// budget of search states is used up.
fn shortest_of_both(one: &[u8], other: &[u8], budget: &mut usize) -> Option<Vec<u8>> {
    let literal = |pattern: &[u8]| pattern.iter().take_while(|byte| !matches!(byte, b'*' | b'$')).count();
    let common = literal(one).min(literal(other));
    if one[..common] != other[..common] {
        return None;
    }
    let prefix = &one[..common];
    let (one, other) = (full_path_pattern(&one[common..]), full_path_pattern(&other[common..]));
    let width = other.len() + 1;
    let states = (one.len() + 1) * width;
    *budget = budget.checked_sub(states)?;
    let (start, end) = (0, states - 1);
    // For each reached state, its predecessor, and the byte that the step from the predecessor adds
    // to the path, if any. Steps that add no byte are taken first.
    let mut from: Vec<Option<(usize, Option<u8>)>> = vec![None; states];
    let mut open = VecDeque::from([(start, None)]);
    while let Some((state, came)) = open.pop_front() {
        if from[state].is_some() {
            continue;
        }
        from[state] = Some(came.unwrap_or((start, None)));
        if state == end {
            break;
        }
        let (at, other_at) = (one.get(state / width), other.get(state % width));
        if at == Some(&b'*') {
            open.push_front((state + width, Some((state, None))));
        }
        if other_at == Some(&b'*') {
            open.push_front((state + 1, Some((state, None))));
        }
        match (at, other_at) {
            (Some(b'*'), Some(b'*')) => {}
            (Some(b'*'), Some(byte)) => open.push_back((state + 1, Some((state, Some(*byte))))),
            (Some(byte), Some(b'*')) => open.push_back((state + width, Some((state, Some(*byte))))),
            (Some(byte), Some(same)) if byte == same => {
                open.push_back((state + width + 1, Some((state, Some(*byte)))));
            }
            _ => {}
        }
    }
    let mut rest = Vec::new();
    let mut state = end;
    while state != start {
        let (before, byte) = from[state]?;
        rest.extend(byte);
        state = before;
    }
    Some(prefix.iter().copied().chain(rest.into_iter().rev()).collect())
}

/// Converts a pattern to the form that must match a path to its end: removes the `$` at the end, or
/// adds a `*` if there is none.
fn full_path_pattern(pattern: &[u8]) -> Vec<u8> {
    match pattern {
        [body @ .., b'$'] => body.to_vec(),
        _ => [pattern, b"*"].concat(),
    }
}

/// Returns a pattern without the `$` at its end, and whether the pattern had such a `$`.
fn body(pattern: &[u8]) -> (&[u8], bool) {
    match pattern {
        [body @ .., b'$'] => (body, true),
        _ => (pattern, false),
    }
}

fn fill(body: &[u8], filler: &[u8]) -> Vec<u8> {
    body.split(|byte| *byte == b'*').collect::<Vec<_>>().join(filler)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_a_url_with_the_escapes_of_the_reference_parser() {
        for (path, url) in [
            ("/a", "http://x/a"),
            ("/%c3%a9/%zz%", "http://x/%C3%A9/%zz%"),
            ("/\u{e9}", "http://x/%C3%A9"),
            ("//a", "http://x//a"),
        ] {
            assert_eq!(as_url(path.as_bytes()), url.as_bytes(), "{path}");
        }
    }

    #[test]
    fn the_shortest_path_that_matches_two_patterns_is_found() {
        for (one, other, shortest) in [
            ("/shop*sort=", "/shop*color=red", Some("/shopcolor=redsort=".len())),
            ("/shop/", "/s*checkout", Some("/shop/checkout".len())),
            ("/blog*page=", "/blog/category/", Some("/blog/category/page=".len())),
            ("/a*b", "/a*c", Some(4)),
            ("/*.pdf$", "/drafts/", Some("/drafts/.pdf".len())),
            ("/*.pdf$", "/*.pdfs", Some("/.pdfs.pdf".len())),
            ("/*.pdf$", "/a.pdfs$", None),
            ("/a", "/b*", None),
            ("/a$", "/a*", Some(2)),
            ("/a*", "/a*", Some(2)),
            ("*", "/", Some(1)),
        ] {
            let found = shortest_of_both(one.as_bytes(), other.as_bytes(), &mut 10_000);
            assert_eq!(found.as_ref().map(Vec::len), shortest, "{one} {other}: {found:?}");
        }
    }
}
