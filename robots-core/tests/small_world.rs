//! Exhaustive test of the matcher within bounds: every file, every path and every reading. The
//! verdicts are compared with those of the slow matcher (`tests/it/slow.rs`), which has its own
//! parser and its own standard form of paths.
//!
//! The bytes used are `/ a % 2 F * $`. They form escapes that stay (`%2F`, `%FF`), escapes that are
//! decoded (`%22`, and `%2a`, which is a literal star), and invalid escapes (`%a/`). Paths begin
//! with `/`. A verdict is one combination of file, reading, crawler and path:
//!
//! | world | rules | patterns, bytes | groups | paths, bytes | verdicts |
//! | --- | --- | --- | --- | --- | --- |
//! | one rule | 1 | 0 to 5 | `*` | 1 to 5 | 329,532,048 |
//! | two rules | 2 | 0 to 3 | `*` | 1 to 4 | 768,000,000 |
//! | two groups | 3 | 0 to 2 | `a` and `a`, `a` and `*`, `*` and `a` | 1 to 3 | 1,266,720,120 |
//! | in company | 1 and 132 that match nothing | 0 to 4 | `*` | 1 to 5 | 47,073,606 |
//!
//! With the extra rules, the index contains what only large files need: tables, jumps and grams. If
//! there is a group for `*`, a crawler that no group names is judged in addition to `a`. Files are
//! numbered, and a run tests the files whose number has a certain remainder: 3 modulo 1000 with
//! `SMALL_WORLD=3/1000`. To test all files, set `SMALL_WORLD=0/1` and use an optimised build.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "a test stops at the first surprise")]

use std::collections::HashMap;

use robots_core::rules;
use rules::{Access, Fallback, ProductToken, Reading, RequestPath, RobotsTxt};

#[expect(dead_code, reason = "the tests of the library ask for the rest")]
#[path = "../../tests/it/slow.rs"]
mod slow;

const OCTETS: &str = "/a%2F*$";

/// The default part, which takes a few seconds in an unoptimised build.
const PIECE: &str = "7/9001";

const READINGS: [Reading; 3] = [Reading::Standard, Reading::Reference, Reading::Legacy];

struct World {
    rules: usize,
    pattern: usize,
    /// The names of each group. The first group has the first rule, and the last group has all
    /// others.
    groups: &'static [&'static [&'static str]],
    company: String,
}

fn words(longest: usize) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut start = 0;
    for _ in 0..longest {
        let end = words.len();
        for at in start..end {
            words.extend(OCTETS.chars().map(|byte| format!("{}{byte}", words[at])).collect::<Vec<_>>());
        }
        start = end;
    }
    words
}

/// Returns every form of a path in this world: the results of all combinations of merging empty
/// segments, decoding `%2F`, cutting an authority, and merging again.
fn forms(path: &str) -> Vec<Vec<u8>> {
    let merge = |path: &str| {
        let mut path = path.to_owned();
        while path.contains("//") {
            path = path.replace("//", "/");
        }
        path
    };
    let authority = |path: &str| match path.strip_prefix("//") {
        Some(rest) => {
            rest.trim_start_matches('/').split_once('/').map_or("/".to_owned(), |(_, rest)| format!("/{rest}"))
        }
        None => path.to_owned(),
    };
    let decode = |path: &str| path.replace("%2F", "/");
    let steps: [&dyn Fn(&str) -> String; 4] = [&merge, &decode, &authority, &merge];
    let mut forms = vec![String::from_utf8(slow::standard(path.as_bytes())).unwrap()];
    for step in steps {
        forms.extend(forms.iter().map(|form| step(form)).collect::<Vec<_>>());
    }
    let mut spelled: Vec<Vec<u8>> = Vec::new();
    for form in forms.iter().map(|form| slow::standard(form.as_bytes())) {
        if !spelled.contains(&form) {
            spelled.push(form);
        }
    }
    spelled
}

/// Returns the path as the reference parser sees it: its bytes are unchanged, but two slashes begin
/// the authority of a URL.
fn of_url(target: &str) -> &str {
    match target.strip_prefix("//") {
        Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => target,
    }
}

/// The paths of a world.
struct Targets {
    targets: Vec<String>,
    /// The strings that are compared with patterns: the targets as the reference parser reads them,
    /// and then all of their forms.
    compared: Vec<Vec<u8>>,
    /// The forms of each target, as indexes into `compared`.
    of_target: Vec<Vec<usize>>,
}

impl Targets {
    fn up_to(longest: usize) -> Self {
        let targets: Vec<String> = words(longest).into_iter().filter(|path| path.starts_with('/')).collect();
        let mut compared: Vec<Vec<u8>> = targets.iter().map(|target| of_url(target).as_bytes().to_vec()).collect();
        let mut known: HashMap<Vec<u8>, usize> = HashMap::new();
        let mut number = |form: Vec<u8>| {
            *known.entry(form).or_insert_with_key(|form| {
                compared.push(form.clone());
                compared.len() - 1
            })
        };
        let of_target = targets.iter().map(|target| forms(target).into_iter().map(&mut number).collect()).collect();
        Self { targets, compared, of_target }
    }
}

/// Judges part of a world's files, each with every path. Returns the number of verdicts, and how
/// many of them disallow.
fn judge(world: &World, targets: &Targets, piece: usize, pieces: usize) -> (usize, usize) {
    let Targets { targets, compared, of_target } = targets;
    let paths =
        READINGS.map(|reading| targets.iter().map(|target| reading.path(target)).collect::<Vec<RequestPath<'_>>>());
    let patterns = words(world.pattern);
    let tokens = [[ProductToken::new("a")], [ProductToken::new("b")]];
    let mut matched: HashMap<(Vec<u8>, usize), Vec<bool>> = HashMap::new();
    let (mut verdicts, mut disallows) = (0, 0);
    let choices = 2 * patterns.len();
    let files = world.groups.len() * choices.pow(u32::try_from(world.rules).unwrap());
    for file in (piece..files).step_by(pieces) {
        let (groups, mut rest) = (world.groups[file % world.groups.len()], file / world.groups.len());
        let mut text = format!("User-agent: {}\n", groups[0]);
        for rule in 0..world.rules {
            if rule == 1 && groups.len() == 2 {
                text += &format!("User-agent: {}\n", groups[1]);
            }
            let (pattern, choice) = (&patterns[rest % patterns.len()], rest / patterns.len() % 2);
            text += &format!("{}: {pattern}\n", ["Allow", "Disallow"][choice]);
            rest /= choices;
        }
        text += &world.company;
        let (robots, slow) = (RobotsTxt::parse(text.as_bytes()), slow::read(&text));
        if matched.len() > 4000 {
            matched.clear();
        }
        for (at, reading) in READINGS.into_iter().enumerate() {
            let rules = robots.compile(reading);
            for rule in slow.iter().flat_map(|group| &group.rules) {
                matched.entry((rule.pattern.clone(), at)).or_insert_with(|| {
                    let texts = slow::texts(&rule.pattern, reading);
                    compared.iter().map(|path| texts.iter().any(|text| slow::covers(text, path))).collect()
                });
            }
            for (chain, tokens) in ["a", "b"].iter().zip(&tokens).skip(usize::from(!groups.contains(&"a"))) {
                if *chain == "b" && !groups.contains(&"*") {
                    continue;
                }
                let obeyed = slow::rules_of(&slow, reading, &[*chain], true).unwrap_or_default();
                let obeyed: Vec<_> = obeyed
                    .into_iter()
                    .map(|rule| (rule, slow::length(&rule.pattern), &matched[&(rule.pattern.clone(), at)]))
                    .filter(|(_, _, matched)| matched.contains(&true))
                    .collect();
                let selection = rules.select(tokens, Fallback::Star);
                for (target, path) in paths[at].iter().enumerate() {
                    let verdict = selection.verdict(path);
                    let have = (verdict.access(), verdict.line().unwrap_or(0));
                    let answer = |form: &usize| {
                        let matching = obeyed.iter().filter(|(_, _, matched)| matched[*form]);
                        slow::judge(matching.map(|(rule, length, _)| (*rule, *length)))
                    };
                    let forms = if reading == Reading::Reference { &[target][..] } else { &of_target[target] };
                    let mut answers = forms.iter().map(answer).filter(|(access, _)| *access == Access::Disallow);
                    // If several forms are disallowed, any may be reported, the sent path first.
                    let agrees = match answer(&forms[0]) {
                        (Access::Allow, line) if have.0 == Access::Allow => line == have.1 && answers.next().is_none(),
                        (Access::Allow, _) => answers.any(|answer| answer == have),
                        sent => sent == have,
                    };
                    assert!(agrees, "{have:?} of {chain} for {} in {reading:?} of\n{text}", targets[target]);
                    verdicts += 1;
                    disallows += usize::from(have.0 == Access::Disallow);
                }
            }
        }
    }
    (verdicts, disallows)
}

/// Returns rules that match no path of the world, because each contains a `~`: literals that fill
/// tables and jumps, and more wildcards with one prefix than a list can hold.
fn company() -> String {
    let literals = (0..80).map(|at| format!("/{}~{at}~~~~", char::from(b'b' + at % 20)));
    let wildcards = (0..26).map(|at| format!("*{}~", char::from(b'a' + at)));
    let behind = (0..26).map(|at| format!("/a*a2{}~", char::from(b'a' + at)));
    literals.chain(wildcards).chain(behind).map(|pattern| format!("Disallow: {pattern}\n")).collect()
}

#[test]
fn verdicts_for_short_patterns_and_paths_equal_those_of_the_slow_matchers() {
    let piece = std::env::var("SMALL_WORLD").unwrap_or_else(|_| PIECE.to_owned());
    let (piece, pieces) = piece.split_once('/').expect("SMALL_WORLD=number/pieces");
    let (piece, pieces) = (piece.parse().unwrap(), pieces.parse().unwrap());
    let mut total = (0, 0);
    let mut of_length: HashMap<usize, Targets> = HashMap::new();
    let star: &[&[&str]] = &[&["*"]];
    let two: &[&[&str]] = &[&["a", "a"], &["a", "*"], &["*", "a"]];
    for (rules, pattern, path, groups, company) in [
        (1, 4, 5, star, company()),
        (1, 5, 5, star, String::new()),
        (2, 3, 4, star, String::new()),
        (3, 2, 3, two, String::new()),
    ] {
        let world = World { rules, pattern, groups, company };
        let targets = of_length.entry(path).or_insert_with(|| Targets::up_to(path));
        let (verdicts, disallows) = judge(&world, targets, piece, pieces);
        println!("{rules} rules of {pattern} bytes, paths of {path}: {verdicts} verdicts, {disallows} disallow");
        total = (total.0 + verdicts, total.1 + disallows);
    }
    assert!(total.0 / 1000 < total.1 && total.1 < total.0, "{total:?}");
}
