//! What holds for any file and any path.

use proptest::prelude::*;
use tower_robots::rules::{Fallback, PathPattern, ProductToken, Reading, RequestPath, RobotsTxt};

use crate::slow;

const READINGS: [Reading; 3] = [Reading::Standard, Reading::Reference, Reading::Legacy];

/// Few and colliding, so that patterns and paths meet.
fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a",
        "b",
        "c",
        "ab",
        "ba",
        "abc",
        "/",
        "/",
        "/",
        "a/",
        "?",
        "=",
        "&",
        ".",
        "..",
        "//",
        "%",
        "%2",
        "%61",
        "%2f",
        "%2F",
        "%2A",
        "%24",
        "%5c",
        "\\",
        "\u{e9}",
        "%C3",
        "%c3%A9",
        "index.htm",
        "index.html",
        "/index.htm",
        "A",
        ";",
        "x.html",
        "sort",
        "some-longer-part",
        " ",
        "{",
        "$",
    ])
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
        // One group with many wildcards behind few prefixes.
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
        let rules = robots.compile(reading);
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
                let want = slow::answer(&robots, reading, chain, fallback == Fallback::Star, &forms);
                prop_assert_eq!(have, want, "{:?} {:?} {:?}", reading, chain, path);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(300), ..ProptestConfig::default() })]

    #[test]
    fn the_index_agrees_with_the_slow_matcher(file in file(), paths in prop::collection::vec(path(), 8)) {
        agrees(&file, &paths)?;
    }

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

/// More where asked for.
fn cases(usual: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}
