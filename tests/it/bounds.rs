//! Files and paths crafted to be slow. Their cost grows linearly with their size.
//!
//! The limits are generous, for busy machines and unoptimised builds; `benches/README.md` has
//! measured figures.

use std::fmt::Write as _;
use std::time::Duration;

use super::clock::within;
use tower_robots::rules::{Access, Fallback, ProductToken, Reading, RequestPath, RobotsTxt, RuleSet};

/// The size limit of the standard reading, in bytes, which the test files fill.
const SIZE: usize = 500 * 1024;

/// How much slower than the target this build may be.
const SLACK: u32 = if cfg!(debug_assertions) { 60 } else { 10 };

fn compile(file: &str) -> RuleSet {
    let robots = RobotsTxt::parse(file.as_bytes());
    let rules = within(Duration::from_millis(15) * SLACK, "compiling", || robots.compile(Reading::Standard));
    assert!(rules.memory() < 20 * file.len(), "{} bytes for {}", rules.memory(), file.len());
    rules
}

fn disallows(rules: &RuleSet, token: &str, path: &str) -> bool {
    let path = RequestPath::verbatim(path.as_bytes());
    rules.select(&[ProductToken::new(token)], Fallback::Star).verdict(&path).access() == Access::Disallow
}

/// Appends lines until the file has its maximum size.
fn filled(mut file: String, mut line: impl FnMut(usize) -> String) -> String {
    let mut at = 0;
    loop {
        let next = line(at);
        if file.len() + next.len() > SIZE {
            return file;
        }
        file.push_str(&next);
        at += 1;
    }
}

#[test]
fn a_large_group_is_not_copied_for_each_of_its_user_agents() {
    // The file has one group with many tokens and many rules, and a small group for each token.
    let mut file = String::new();
    for token in 0..5000 {
        writeln!(file, "User-agent: bot{token}").unwrap();
    }
    for rule in 0..10_000 {
        writeln!(file, "Disallow: /shared/{rule}/").unwrap();
    }
    let file =
        filled(file, |token| format!("User-agent: bot{token}\nAllow: /shared/77/{token}\nDisallow: /own{token}\n"));
    let rules = compile(&file);
    for token in ["bot0", "bot1234", "bot2000"] {
        let number = &token[3..];
        assert!(disallows(&rules, token, "/shared/9999/x"), "{token}");
        assert!(disallows(&rules, token, &format!("/own{number}")), "{token}");
        assert!(disallows(&rules, token, "/shared/77/x"), "{token}");
        assert!(!disallows(&rules, token, &format!("/shared/77/{number}")), "{token}");
        assert!(!disallows(&rules, token, "/own9999"), "{token}");
    }
}

#[test]
fn usage_lines_of_a_large_group_are_not_compiled_again_for_each_user_agent() {
    for (line, count) in [
        ("License: x\n".to_owned(), 12_000),
        ("License: https://example.com/license\n".to_owned(), 4000),
        ("Content-Usage: train-ai=n\n".to_owned(), 6000),
        ("Content-Usage: train-ai=n\n".to_owned(), 900),
        (format!("Content-Usage: /{} train-ai=n\n", "a".repeat(200_000)), 1),
    ] {
        let mut file: String = (0..7000).map(|token| format!("User-agent: b{token}\n")).collect();
        file.push_str(&line.repeat(count));
        compile(&filled(file, |token| format!("User-agent: b{token}\nAllow: /{token}\n")));
    }
}

#[test]
fn many_different_sets_of_groups_compile_in_limited_time_and_memory() {
    // Each token is missing from another group, so no two tokens have the same set of groups.
    let mut file = String::new();
    for group in 0..150 {
        for token in (0..145).filter(|token| *token != group) {
            writeln!(file, "User-agent: b{token}").unwrap();
        }
        writeln!(file, "Disallow: /{group}/").unwrap();
    }
    let rules = compile(&file);
    for token in [0, 17, 144] {
        for group in [0, 17, 144, 149] {
            let want = token != group;
            assert_eq!(disallows(&rules, &format!("b{token}"), &format!("/{group}/")), want, "{token} {group}");
        }
    }
}

#[test]
fn a_file_with_one_kind_of_line_compiles_in_limited_time_and_space() {
    let group = "User-agent: *\n".to_owned();
    compile(&filled(group.clone(), |at| format!("Allow:/{:x}\n", at)));
    compile(&filled(group.clone(), |at| format!("Allow:/*{:x}\n", at)));
    compile(&filled(group.clone(), |at| format!("Allow:/{0:x}*{0:x}\n", at)));
    compile(&filled(group.clone(), |at| format!("Allow:/{}\n", "a".repeat(at % 1000))));
    compile(&filled(group.clone(), |at| format!("Allow:/{}*b\n", "a".repeat(at % 1000))));
    compile(&filled(group.clone(), |at| format!("Allow:/{}b{at}\n", "*a".repeat(250))));
    compile(&filled(group, |_| "Allow:/index.htm\n".to_owned()));
    compile(&filled(String::new(), |at| format!("User-agent:{:x}\nAllow:/\n", at)));
    compile(&filled(String::new(), |at| format!("User-agent:{:x}\n", at)));
    compile(&filled(String::new(), |at| format!("User-agent:a\nAllow:/{:x}\n", at)));
    compile(&filled(String::new(), |at| format!("User-agent:{:x}\nLicense:x\n", at)));
    compile(&"*".repeat(SIZE));
    compile(&format!("User-agent: *\nDisallow: /{}", "*a".repeat(SIZE / 2 - 20)));
}

#[test]
fn hostile_wildcards_get_exact_verdicts_in_limited_time() {
    // Ten bits, encoded in each pattern, make all rules different. The final literal occurs in the
    // path only at the start.
    let either = |at: usize| (0..10).map(|bit| if at >> bit & 1 == 0 { "*a" } else { "*aa" }).collect::<String>();
    let rules: String = (0..1000).map(|at| format!("Disallow: /{}{}*b\n", either(at), "*a".repeat(230))).collect();
    let rules = compile(&format!("User-agent: *\n{rules}"));
    assert_eq!(rules.costly().len(), 1001);
    let path = format!("/b{}", "a".repeat(8190));
    assert!(!within(Duration::from_millis(5) * SLACK, "a verdict", || disallows(&rules, "any", &path)));
    assert!(disallows(&rules, "any", &format!("{path}b")));
}

#[test]
fn a_path_with_many_forms_is_judged_by_hostile_rules_in_limited_time() {
    let target = "/%5Ca%2F/%/;/%2F../0//..;%2Fu/%5C0%u002e/2/.%/u/..%2FF/.;//../../../%//.%2F..";
    let long = target.replacen("/2/", &format!("/{}/", "ab".repeat(4000)), 1);
    let near: String = (0..16_000).map(|at| format!("Allow: /*a{at:04x}*b\n")).collect();
    let groups: String =
        (0..9000).map(|at| format!("User-agent: a\nUser-agent: b{}\nAllow: /{at:x}\n", at % 3)).collect();
    for file in [format!("User-agent: *\n{near}Disallow: /x\n"), format!("{groups}User-agent: a\nDisallow: /x\n")] {
        let rules = compile(&file);
        let selection = rules.select(&[ProductToken::new("a")], Fallback::Star);
        within(Duration::from_millis(10) * SLACK, "a verdict", || {
            let path = RequestPath::new(long.as_bytes());
            let verdict = selection.verdict(&path);
            assert!(verdict.rule().is_none_or(|rule| rule.pattern() == b"/x"), "{verdict:?}");
        });
        assert!(RequestPath::new(long.as_bytes()).forms().count() > 400);
    }
}

#[test]
fn bytes_that_are_in_no_pattern_do_not_match() {
    // There are two groups, so that the second group has a trie. Fuzzing found this case.
    let rules = compile("User-agent: a\nDisallow: /x\n\nUser-agent: *\nAllow: /\n");
    for path in ["/\0\0\0\0\0\0\0\0\0", "/\0", "/x\0\0\0\0\0\0\0\0", "/\u{80}", "/\u{7f}"] {
        assert_eq!(disallows(&rules, "a", path), path.starts_with("/x"), "{path:?}");
    }
}

#[test]
fn the_matching_wildcard_is_found_if_the_path_contains_a_part_of_every_wildcard() {
    for count in [10, 17, 30, 60, 300] {
        let part = |at: usize| format!("-{at:03}");
        let vain: String = (0..count).map(|at| format!("Disallow: /*{}*and a longer end\n", part(at))).collect();
        let rules = compile(&format!("User-agent: *\n{vain}Disallow: /*last$\n"));
        let path: String = (0..count).map(part).collect();
        assert!(disallows(&rules, "any", &format!("/{path}last")), "{count}");
        assert!(!disallows(&rules, "any", &format!("/{path}last?")), "{count}");
    }
}
