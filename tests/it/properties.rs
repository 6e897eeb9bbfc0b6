//! Property tests for arbitrary files and paths.

use proptest::prelude::*;
use tower_robots::rules::{
    Directive, Fallback, Line, LineKind, Meaning, PathPattern, ProductToken, Reading, RequestPath, RobotsTxt,
};

use crate::slow;

const READINGS: [Reading; 3] = [Reading::Standard, Reading::Reference, Reading::Legacy];

/// Returns one of a few pieces with common prefixes, so that patterns match paths.
fn piece() -> impl Strategy<Value = &'static str> {
    let pieces = "a|b|c|ab|ba|abc|/|/|/|a/|?|=|&|.|..|//|%|%2|%61|%2f|%2F|%2A|%24|%5c|\\|\u{e9}|%C3|%c3%A9|\
        index.htm|index.html|/index.htm|A|;|%3B|%3a|:|%40|@|%20|%u0061|x.html|sort|some-longer-part| |{|$";
    prop::sample::select(pieces.split('|').collect::<Vec<_>>())
}

fn pattern() -> impl Strategy<Value = String> {
    let wild = prop_oneof![4 => piece(), 2 => Just("*"), 1 => Just("**")];
    let start = prop::sample::select(vec!["/", "/", "/", "/", "/a", "/ab/", "*", "/*", "", "a", "$"]);
    let end = prop::sample::select(vec!["", "", "", "$", "*", "*$", "$$", "#x"]);
    (start, prop::collection::vec(wild, 0..7), end)
        .prop_map(|(start, pieces, end)| format!("{start}{}{end}", pieces.concat()))
}

fn path() -> impl Strategy<Value = String> {
    let start = prop::sample::select(vec!["/", "/", "/", "/a", "/ab/", "//", ""]);
    (start, prop::collection::vec(prop_oneof![8 => piece(), 1 => Just("*")], 0..10))
        .prop_map(|(start, pieces)| format!("{start}{}", pieces.concat()))
}

fn line() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "A", "b", "c", "ab", "a b", "a/1", "*", "* x", "*a", "", "\u{e9}"]);
    prop_oneof![
        2 => name.prop_map(|name| format!("User-agent: {name}")),
        6 => pattern().prop_map(|pattern| format!("Disallow: {pattern}")),
        6 => pattern().prop_map(|pattern| format!("Allow: {pattern}")),
        1 => prop::sample::select(vec!["", "# x", "Sitemap: /x", "x", "Crawl-delay: 1"]).prop_map(str::to_owned),
    ]
}

fn file() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::collection::vec(line(), 0..20),
        prop::collection::vec(line(), 40..160),
        // One group with many wildcards that share few prefixes.
        prop::collection::vec((prop::bool::ANY, pattern()), 20..120).prop_map(|rules| {
            let rule = |(allow, pattern)| format!("{}: {pattern}", if allow { "Allow" } else { "Disallow" });
            std::iter::once("User-agent: a".to_owned()).chain(rules.into_iter().map(rule)).collect()
        }),
    ]
    .prop_map(|lines| lines.join("\n"))
}

const CHAINS: [&[&str]; 5] = [&["a"], &["ab", "b"], &["a b", "c"], &[""], &[]];

fn agrees(file: &str, paths: &[String]) -> Result<(), TestCaseError> {
    let robots = RobotsTxt::parse(file.as_bytes());
    for reading in READINGS {
        let (rules, slow) = (robots.compile(reading), slow::of_parsed(&robots, reading));
        for (chain, path) in CHAINS.iter().flat_map(|chain| paths.iter().map(move |path| (*chain, path))) {
            let path = match reading {
                Reading::Reference => RequestPath::verbatim(path.as_bytes()),
                _ => RequestPath::new(path.as_bytes()),
            };
            let tokens: Vec<_> = chain.iter().map(ProductToken::new).collect();
            for fallback in [Fallback::Star, Fallback::Nothing] {
                let verdict = rules.select(&tokens, fallback).verdict(&path);
                let have = (verdict.access(), verdict.line().unwrap_or(0));
                let forms: Vec<&[u8]> = path.forms().map(|(_, form)| form).collect();
                let want = slow::answer(&slow, reading, chain, fallback == Fallback::Star, &forms);
                prop_assert_eq!(have, want, "{:?} {:?} {:?}", reading, chain, path);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(20), ..ProptestConfig::default() })]

    #[test]
    fn the_index_agrees_with_the_slow_matcher(file in file(), paths in prop::collection::vec(path(), 8)) {
        agrees(&file, &paths)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(300), ..ProptestConfig::default() })]

    #[test]
    fn a_pattern_agrees_with_the_slow_matcher(pattern in pattern(), paths in prop::collection::vec(path(), 8)) {
        for reading in READINGS {
            let compiled = PathPattern::new(pattern.as_bytes(), reading);
            for path in &paths {
                let path = RequestPath::verbatim(path.as_bytes());
                let want = slow::matches(pattern.as_bytes(), reading, path.as_bytes());
                prop_assert_eq!(compiled.matches(path.as_bytes()), want, "{:?} {:?}", reading, path);
            }
        }
    }
}

/// Returns so many rules that the matcher looks up the first bytes of a path, and paths that begin
/// like these rules.
fn large() -> impl Strategy<Value = (String, Vec<String>)> {
    let long = prop::collection::vec(piece(), 3..9).prop_map(|pieces| format!("/{}", pieces.concat()));
    let rules = prop::collection::vec((prop::bool::ANY, long), 150..300);
    let ends = prop::collection::vec((any::<prop::sample::Index>(), 1..40usize, piece()), 6);
    (rules, ends).prop_map(|(rules, ends)| {
        let rule =
            |(allow, pattern): &(bool, String)| format!("{}: {pattern}", if *allow { "Allow" } else { "Disallow" });
        let lines: Vec<_> = std::iter::once("User-agent: a".to_owned()).chain(rules.iter().map(rule)).collect();
        let path = |(at, length, piece): &(prop::sample::Index, usize, &str)| {
            let along: String = at.get(&rules).1.chars().take(*length).collect();
            along + piece
        };
        (lines.join("\n"), ends.iter().map(path).collect())
    })
}

/// Returns wildcards with many different grams, and paths that contain more grams than the matcher
/// remembers.
fn wild() -> impl Strategy<Value = (String, Vec<String>)> {
    // Most patterns need a byte that is not in the path, so they are tried without a match.
    let end = prop::sample::select(vec!["*x", "*x", "*x", "*x", "*x", "*x", "$", ""]);
    let rule = ("[abcd]{0,1}", prop::collection::vec("[abcd]{1,5}", 1..3), end, prop::bool::ANY);
    let rules = prop::collection::vec(rule, 40..120).prop_map(|rules| {
        let rule = |(prefix, literals, end, allow): (String, Vec<String>, &str, bool)| {
            format!("{}: /{prefix}*{}{end}", if allow { "Allow" } else { "Disallow" }, literals.join("*"))
        };
        let lines: Vec<_> = std::iter::once("User-agent: a".to_owned()).chain(rules.into_iter().map(rule)).collect();
        lines.join("\n")
    });
    (rules, prop::collection::vec("/[abcd]{1,20}|/[ab]{30,120}|/[abcd]{60,150}", 6))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(6), ..ProptestConfig::default() })]

    #[test]
    fn many_wildcards_agree_with_the_slow_matcher((file, paths) in wild()) {
        agrees(&file, &paths)?;
    }

    #[test]
    fn a_large_file_agrees_with_the_slow_matcher((file, paths) in large()) {
        agrees(&file, &paths)?;
    }
}

/// Returns arbitrary bytes, in which special bytes are more frequent.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let telling = prop::sample::select(b"\r\n\0#: \t*$%/?\xEF\xBB\xBF\xFF".to_vec());
    let word =
        prop::sample::select(vec!["user-agent", "allow:", "disallow:", "host:", "crawl-delay:", "index.htm", "://"]);
    let part = prop_oneof![
        3 => telling.prop_map(|byte| vec![byte]),
        1 => word.prop_map(|word| word.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(500), ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_cause_a_panic_in_any_parser(file in bytes(), path in bytes()) {
        let robots = RobotsTxt::parse(file);
        for extension in robots.extensions() {
            prop_assert!(extension.meaning() != Meaning::Unknown || extension.field.directive == Directive::Other);
        }
        for reading in READINGS {
            let rules = robots.compile(reading);
            for path in [RequestPath::new(&path), RequestPath::verbatim(&path)] {
                for name in robots.groups().flat_map(|group| group.names()) {
                    let tokens = [ProductToken::new(name.value()), ProductToken::cut(name.value())];
                    let verdict = rules.select(&tokens, Fallback::Star).verdict(&path);
                    prop_assert!(verdict.line().is_none_or(|line| line <= robots.lines().count()));
                }
            }
        }
    }

    #[test]
    fn normalising_the_standard_form_of_a_path_again_changes_nothing(target in prop_oneof![bytes(), path().prop_map(String::into_bytes)]) {
        let target = [&b"/"[..], &target].concat();
        let path = RequestPath::new(&target);
        let forms: Vec<_> = path.forms().map(|(_, form)| form.to_vec()).collect();
        prop_assert!((1..=RequestPath::MAX_FORMS).contains(&forms.len()) && forms[0] == path.as_bytes());
        prop_assert!(forms.iter().all(|form| form.starts_with(b"/") && form.is_ascii()));
        prop_assert!((1..forms.len()).all(|at| !forms[..at].contains(&forms[at])), "{:?}", forms);
        let again = RequestPath::new(path.as_bytes());
        // A decoded `*` or `$` stays decoded, and decoding does not create another escape.
        prop_assert_eq!(again.as_bytes(), path.as_bytes());
        let borrowed = path.as_bytes().as_ptr() == target.as_ptr();
        prop_assert_eq!(borrowed, target.starts_with(path.as_bytes()));
    }

    #[test]
    fn a_built_file_is_parsed_into_the_same_lines(lines in prop::collection::vec((0..6u8, bytes()), 0..12)) {
        let (mut builder, mut written) = (RobotsTxt::builder(), Vec::new());
        for (kind, value) in &lines {
            let value = match kind {
                1 | 2 => [&b"/"[..], value].concat(),
                3 => [&b"https://a"[..], value].concat(),
                _ => value.clone(),
            };
            let next = builder.clone();
            let next = match kind {
                0 => next.user_agent(&value),
                1 => next.allow(&value),
                2 => next.disallow(&value),
                3 => next.sitemap(&value),
                4 => next.extension("Comment", &value),
                _ => next.comment(&String::from_utf8_lossy(&value)),
            };
            // Skip a rejected setting, so that a file can be built.
            if next.clone().build().is_ok() {
                builder = next;
                if *kind < 5 {
                    written.push((*kind, value));
                }
            }
        }
        let robots = builder.build().unwrap();
        prop_assert!(robots.notes().is_empty(), "{:?}", robots.notes());
        let read = |line: Line<'_>| match line.kind() {
            LineKind::Field(field) => {
                let kind = match field.directive {
                    Directive::UserAgent => 0,
                    Directive::Allow => 1,
                    Directive::Disallow => 2,
                    Directive::Sitemap => 3,
                    _ => 4,
                };
                Some((kind, field.value.to_vec()))
            }
            _ => None,
        };
        prop_assert_eq!(robots.lines().filter_map(read).collect::<Vec<_>>(), written);
    }
}

/// Returns the number of cases: ten times `usual` with `ROBOTSD_LONG`.
fn cases(usual: u32) -> u32 {
    let usual = if crate::is_long() { usual * 10 } else { usual };
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}
