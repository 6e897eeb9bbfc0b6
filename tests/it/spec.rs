//! Tests the acceptance cases of the specification pages. Each dialect is tested with its own
//! reading.

use serde_json::Value;
use tower_robots::rules::{
    Access, Fallback, NoteKind, ProductToken, Reading, RequestPath, RobotsTxt, RuleSet, Verdict,
};

fn spec(section: &str) -> Vec<Value> {
    let spec: Value = serde_json::from_str(include_str!("../cases/spec.json")).unwrap();
    let cases = spec[section].as_array().unwrap().clone();
    assert!(!cases.is_empty());
    cases
}

fn texts(case: &Value, key: &str) -> Vec<String> {
    case[key].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn verdict<'r>(rules: &'r RuleSet, tokens: &[ProductToken], url: &str) -> Verdict<'r> {
    rules.select(tokens, Fallback::Star).verdict(&RequestPath::new(url.as_bytes()))
}

fn disallows(rules: &RuleSet, tokens: &[ProductToken], url: &str) -> bool {
    verdict(rules, tokens, url).access() == Access::Disallow
}

#[test]
fn patterns_match_the_paths_of_the_acceptance_cases() {
    for case in spec("path_match") {
        let pattern = case["pattern"].as_str().unwrap();
        let reading = match case["dialect"].as_str().unwrap() {
            "standard" => Reading::Standard,
            "legacy" => Reading::Legacy,
            other => panic!("unknown dialect {other}"),
        };
        let rules = RobotsTxt::parse(format!("user-agent: *\ndisallow: {pattern}\n").into_bytes()).compile(reading);
        for url in texts(&case, "matches") {
            assert!(disallows(&rules, &[], &url), "{pattern} matches {url} ({reading:?})");
        }
        for url in texts(&case, "not_matches") {
            assert!(!disallows(&rules, &[], &url), "{pattern} does not match {url} ({reading:?})");
        }
    }
}

#[test]
fn rules_have_the_precedence_of_the_acceptance_cases() {
    for case in spec("precedence") {
        let lines = texts(&case, "rules");
        let file = format!("user-agent: *\n{}\n", lines.join("\n"));
        for reading in [Reading::Standard, Reading::Reference, Reading::Legacy] {
            let rules = RobotsTxt::parse(file.clone().into_bytes()).compile(reading);
            let verdict = verdict(&rules, &[], case["url"].as_str().unwrap());
            assert_eq!(verdict.access().as_str(), case["verdict"].as_str().unwrap(), "{case}");
            if let Some(rule) = case["rule"].as_str() {
                let at = lines.iter().position(|line| line == rule).unwrap();
                assert_eq!(verdict.line(), Some(at + 2), "{case}");
            }
        }
    }
}

#[test]
fn groups_apply_as_in_the_acceptance_cases() {
    for case in spec("groups") {
        let robots = RobotsTxt::parse(case["robots"].as_str().unwrap().as_bytes());
        let tokens: Vec<_> = texts(&case, "tokens").into_iter().map(ProductToken::new).collect();
        let rules = robots.compile(Reading::Standard);
        for url in texts(&case, "disallowed") {
            assert!(disallows(&rules, &tokens, &url), "{url} is disallowed: {case}");
        }
        for url in texts(&case, "allowed") {
            assert!(!disallows(&rules, &tokens, &url), "{url} is allowed: {case}");
        }
    }
}

#[test]
fn host_lines_are_read_as_in_the_acceptance_cases() {
    let directives = spec("other_directives");
    let hosts = directives.iter().find(|directive| directive["field"] == "host").unwrap();
    for case in hosts["cases"].as_array().unwrap() {
        let (value, origin) = (case[0].as_str().unwrap(), case[1].as_str().unwrap());
        let robots = RobotsTxt::parse(format!("user-agent: *\ndisallow:\nhost: {value}\n").into_bytes());
        assert_eq!(robots.host().unwrap().to_string(), origin);
        assert_eq!(robots.notes(), []);
    }
    for value in texts(hosts, "bad") {
        // The first valid value counts, wherever it is; later ones are reported.
        let file = format!("host: {value}\nhost: a.example\nhost: b.example\nhost: a.example\n");
        let robots = RobotsTxt::parse(file.into_bytes());
        assert_eq!(robots.host().unwrap().to_string(), "http://a.example", "{value}");
        let notes: Vec<_> = robots.notes().iter().map(|note| (note.line, note.kind)).collect();
        let want = [(1, NoteKind::InvalidHost), (3, NoteKind::RepeatedHost), (4, NoteKind::RepeatedHost)];
        assert_eq!(notes, want, "{value}");
    }
}
