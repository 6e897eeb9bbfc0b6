//! Compares `Reading::Reference` with the answers of the reference parser.

use std::collections::{HashMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;
use tower_robots::rules::{Access, AgentRules, Reading, RobotsTxt};

use crate::shared::{cases, drawn};

fn answer(rules: &AgentRules, url: &[u8]) -> (bool, u64) {
    let verdict = rules.verdict(url);
    (verdict.access() == Access::Allow, verdict.line().map_or(0, |line| line as u64))
}

fn expected(case: &Value) -> (bool, u64) {
    (case["allowed"].as_bool().unwrap(), case["line"].as_u64().unwrap())
}

fn url(case: &Value) -> Vec<u8> {
    match case.get("url_base64") {
        Some(url) => BASE64.decode(url.as_str().unwrap()).unwrap(),
        None => case["url"].as_str().unwrap().as_bytes().to_vec(),
    }
}

#[test]
fn verdicts_and_lines_agree_with_the_reference_suite() {
    let cases = cases("reference_suite.jsonl");
    assert!(!cases.is_empty());
    let wrong: Vec<_> = cases
        .iter()
        .filter(|case| {
            let robots = RobotsTxt::parse(case["robots"].as_str().unwrap());
            let rules = robots.for_agent(case["agent"].as_str().unwrap()).with_reading(Reading::Reference);
            answer(&rules, &url(case)) != expected(case)
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {} disagree: {wrong:#?}", wrong.len(), cases.len());
}

#[test]
fn a_path_is_disallowed_for_an_agent_if_either_reading_disallows_it() {
    for case in cases("reference_suite.jsonl") {
        let (file, agent, url) = (case["robots"].as_str().unwrap(), case["agent"].as_str().unwrap(), url(&case));
        let ask = || RobotsTxt::parse(file).for_agent(agent);
        let disallows = |reading| !ask().with_reading(reading).allows(&url);
        let any = disallows(Reading::Reference) || disallows(Reading::Standard);
        assert_eq!(!ask().allows(&url), any, "{case}");
    }
}

#[test]
fn verdicts_and_lines_of_real_files_agree_with_the_reference_parser() {
    agree(&cases("robots_files.jsonl.gz"), &cases("verdicts.jsonl.gz"));
}

#[test]
fn the_drawn_files_agree_with_the_reference_parser_and_cover_every_kind_of_case() {
    let (files, verdicts) = (drawn("robots_files.jsonl.gz"), drawn("verdicts.jsonl.gz"));
    agree(&files, &verdicts);
    let held = |cases: &[Value]| -> HashSet<String> {
        let quirks = |case: &Value| case["quirks"].as_array().cloned().unwrap_or_default();
        let features = cases.iter().flat_map(|case| quirks(case).into_iter().chain([case["kind"].clone()]));
        features.map(|feature| feature.to_string()).collect()
    };
    assert_eq!(held(&verdicts), held(&cases("verdicts.jsonl.gz")));
}

fn agree(files: &[Value], cases: &[Value]) {
    let files: HashMap<&str, RobotsTxt> = files
        .iter()
        .map(|file| {
            let body = BASE64.decode(file["body_base64"].as_str().unwrap()).unwrap();
            (file["robots"].as_str().unwrap(), RobotsTxt::parse(body))
        })
        .collect();
    assert!(!cases.is_empty());
    // The cases are sorted by file and agent, so that each file is compiled once per agent.
    let asked = |case: &&Value| ["robots", "agent"].map(|key| case[key].as_str().unwrap().to_owned());
    let mut sorted: Vec<_> = cases.iter().collect();
    sorted.sort_by_cached_key(asked);
    let of_agents = sorted.chunk_by(|one, other| asked(one) == asked(other));
    let wrong: Vec<_> = of_agents
        .flat_map(|cases| {
            let [robots, agent] = asked(&cases[0]);
            let rules = files[robots.as_str()].for_agent(agent).with_reading(Reading::Reference);
            cases.iter().filter(move |case| answer(&rules, &url(case)) != expected(case))
        })
        .collect();
    let shown = &wrong[..wrong.len().min(5)];
    assert!(wrong.is_empty(), "{} of {} disagree, such as {shown:#?}", wrong.len(), cases.len());
}
