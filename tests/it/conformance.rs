//! Tests the cases that are published for other parsers. This library returns the expected results,
//! and the file of cases matches its schema. `tests/conformance/make.py` writes the cases.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;
use tower_robots::rules::{Access, Reading, RobotsTxt};

/// Ids of the cases in which `Reading::Standard` differs from RFC 9309, with comments.
const DIFFERENCES: &str = include_str!("../conformance/differences.txt");

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn cases() -> Vec<Value> {
    let cases = json(include_str!("../conformance/cases.json"))["cases"].as_array().unwrap().clone();
    assert!(cases.len() > 300, "{} cases", cases.len());
    cases
}

/// Joins the parts of a string. A part is a string, or a string with the number of its repetitions.
fn expanded(text: &Value) -> String {
    let part = |part: &Value| match part.as_str() {
        Some(once) => once.to_owned(),
        None => part[0].as_str().unwrap().repeat(usize::try_from(part[1].as_u64().unwrap()).unwrap()),
    };
    text.as_array().map_or_else(|| part(text), |parts| parts.iter().map(part).collect())
}

fn robots(case: &Value) -> RobotsTxt {
    match case["robots_base64"].as_str() {
        Some(text) => RobotsTxt::parse(BASE64.decode(text).unwrap()),
        None => RobotsTxt::parse(expanded(&case["robots"])),
    }
}

#[test]
fn the_reading_reference_agrees_with_every_published_case() {
    for case in cases() {
        let rules = robots(&case).for_token(expanded(&case["agent"])).unwrap().with_reading(Reading::Reference);
        let verdict = rules.verdict(expanded(&case["url"]));
        assert_eq!(verdict.access().as_str(), case["reference"], "{case}");
    }
}

#[test]
fn the_reading_standard_agrees_with_rfc_9309_except_for_the_listed_cases() {
    let differs = |case: &Value| {
        let rules = robots(case).for_token(expanded(&case["agent"])).unwrap().with_reading(Reading::Standard);
        let access = if rules.allows(expanded(&case["url"])) { Access::Allow } else { Access::Disallow };
        !case["rfc9309"].is_null() && case["rfc9309"] != access.as_str()
    };
    let found: BTreeSet<String> =
        cases().iter().filter(|case| differs(case)).map(|case| case["id"].as_str().unwrap().to_owned()).collect();
    let listed = DIFFERENCES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    assert_eq!(found, listed.map(str::to_owned).collect());
}

fn keys(object: &Value) -> BTreeSet<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

fn is_text(value: &Value) -> bool {
    let is_part = |part: &Value| {
        let repeated = part.as_array().is_some_and(|part| part.len() == 2 && part[0].is_string() && part[1].is_u64());
        part.is_string() || repeated
    };
    value.is_string() || value.as_array().is_some_and(|parts| parts.iter().all(is_part))
}

#[test]
fn the_published_cases_match_their_schema() {
    let schema = json(include_str!("../conformance/schema.json"));
    let of_case = &schema["$defs"]["case"];
    let words = |list: &Value| -> BTreeSet<String> {
        list.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let kinds = words(&of_case["properties"]["kind"]["enum"]);
    let accesses = words(&schema["$defs"]["access"]["enum"]);
    let required = words(&of_case["required"]);
    let mut ids = BTreeSet::new();
    for case in cases() {
        let known = keys(&of_case["properties"]);
        assert!(keys(&case).is_subset(&known), "{case}");
        assert!(required.iter().all(|key| case.get(key).is_some()), "{case}");
        assert_ne!(case.get("robots").is_some(), case.get("robots_base64").is_some(), "{case}");
        assert!(["robots", "agent", "url"].iter().all(|key| case.get(key).is_none_or(is_text)), "{case}");
        assert!(kinds.contains(case["kind"].as_str().unwrap()), "{case}");
        assert!(accesses.contains(case["reference"].as_str().unwrap()), "{case}");
        assert!(case["rfc9309"].as_str().is_none_or(|access| accesses.contains(access)), "{case}");
        assert!(expanded(&case["url"]).starts_with("https://example.com/"), "{case}");
        assert!(ids.insert(case["id"].as_str().unwrap().to_owned()), "{case}: the id occurs twice");
    }
}
