//! Tests how `explain --batch` verifies who sent a request. The question contains the evidence.

use crate::harness::*;

const CASES: &str = include_str!("../../../tests/cases/web_bot_auth.json");

const GOOGLE: &str = "https://developers.google.com/static/crawling/ipranges/common-crawlers.json";
const BROWSER: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0 Safari/537.36";

/// Adds a robots.txt and a URL to each question, and returns the answers.
fn answers(questions: &[Value]) -> Vec<Value> {
    let complete = |question: &Value| {
        let mut whole = json!({ "robots_base64": "", "url": "https://example.com/" });
        whole.as_object_mut().unwrap().extend(question.as_object().unwrap().clone());
        format!("{whole}\n")
    };
    let lines: String = questions.iter().map(complete).collect();
    let answers = run_with(robotsd().args(["explain", "--batch"]), lines.as_bytes()).json_lines();
    assert_eq!(answers.len(), questions.len());
    answers
}

fn identities(questions: &[Value]) -> Vec<Value> {
    answers(questions)
        .into_iter()
        .map(|mut answer| {
            assert_eq!(answer.get("error"), None, "{answer}");
            answer["identity"].take()
        })
        .collect()
}

fn is(outcome: &str, method: Option<&str>, reason: Option<&str>, crawler: Option<&str>) -> Value {
    json!({ "outcome": outcome, "method": method, "reason": reason, "crawler": crawler })
}

/// Returns the key directories as the situation of a case requires.
fn directories(situation: &str, key: &Value) -> Value {
    let set = json!({ "keys": [key] });
    match situation {
        "known-at-jwks" => json!({ "https://signature-agent.test/jwks.json": set }),
        "known-at-agent.bot.goog" => json!({ "https://agent.bot.goog": set }),
        "empty" => json!({ "https://signature-agent.test": { "keys": [] } }),
        "unreachable" => json!({ "https://signature-agent.test": null }),
        "not-configured" => json!({}),
        _ => json!({ "https://signature-agent.test": set }),
    }
}

fn signed(case: &Value, key: &Value) -> Value {
    let (request, situation) = (&case["request"], case["directory"].as_str().unwrap());
    let text = |name: &str| request[name].as_str().unwrap();
    json!({
        "url": format!("{}://{}{}", text("scheme"), text("authority"), text("target")),
        "method": request["method"],
        "headers": request["headers"],
        "now": case["now"],
        "evidence": {
            "directories": directories(situation, key),
            "allow_test_keys": !situation.contains("production"),
        },
    })
}

#[test]
fn explain_batch_identifies_signed_requests_as_the_shared_cases_expect() {
    let cases: Value = serde_json::from_str(CASES).unwrap();
    let vectors = cases["vectors"].as_array().unwrap();
    for user_agent in [None, Some(""), Some(BROWSER), Some("ExampleBot/1.0 (+https://example.com/bot)")] {
        let question = |case: &Value| {
            let mut question = signed(case, &cases["key"]);
            if let Some(user_agent) = user_agent {
                question["user_agent"] = user_agent.into();
            }
            question
        };
        let questions: Vec<Value> = vectors.iter().map(question).collect();
        for (case, found) in vectors.iter().zip(identities(&questions)) {
            let is_crawler = user_agent.is_some_and(|text| text.starts_with("ExampleBot"));
            let crawler = match case["directory"].as_str() {
                _ if is_crawler && case["outcome"] != "verified" => Some("ExampleBot"),
                Some("known-at-agent.bot.goog") => Some("Google-Agent"),
                _ => is_crawler.then_some("ExampleBot"),
            };
            let reason = case["reason"].as_str();
            let expected = match case["outcome"].as_str().unwrap() {
                "verified" => is("verified", Some("signature"), None, crawler),
                "invalid" => is("refuted", Some("signature"), reason, crawler),
                "unverified" => is("undecided", None, reason, crawler),
                _ if is_crawler => is("unverifiable", None, None, crawler),
                _ => is("unclaimed", None, None, None),
            };
            assert_eq!(found, expected, "{} {user_agent:?}", case["id"]);
        }
    }
}

#[test]
fn a_request_identified_only_by_a_signature_is_judged_by_the_rules_for_the_crawler() {
    let cases: Value = serde_json::from_str(CASES).unwrap();
    let case = cases["vectors"].as_array().unwrap().iter().find(|case| case["id"] == "ok-label-g").unwrap();
    let mut question = signed(case, &cases["key"]);
    question["user_agent"] = BROWSER.into();
    // User-agent: Google-Agent / Disallow: /
    question["robots_base64"] = "VXNlci1hZ2VudDogR29vZ2xlLUFnZW50CkRpc2FsbG93OiAvCg==".into();
    let answer = answers(&[question.clone()]).remove(0);
    assert_eq!((&answer["access"], &answer["agent"]["crawler"]), (&json!("disallow"), &json!("Google-Agent")));
    question["evidence"] = json!({});
    assert_eq!(answers(&[question]).remove(0)["access"], "allow");
}

/// A signature of another operator must not prove a claim.
#[test]
fn a_valid_signature_does_not_verify_another_operators_crawler() {
    let cases: Value = serde_json::from_str(CASES).unwrap();
    let case = cases["vectors"].as_array().unwrap().iter().find(|case| case["id"] == "ok-label-g").unwrap();
    let question = |user_agent: &str, address: &str| {
        let mut question = signed(case, &cases["key"]);
        question["user_agent"] = user_agent.into();
        question["address"] = address.into();
        question["evidence"]["ranges"] = json!({
            GOOGLE: ["66.249.64.0/27"],
            "https://openai.com/gptbot.json": ["66.249.64.0/27"],
        });
        question
    };
    let found = identities(&[
        question("GPTBot/1.3", "8.8.8.8"),
        question("GPTBot/1.3", "66.249.64.1"),
        question("Googlebot/2.1", "8.8.8.8"),
    ]);
    assert_eq!(found[0], is("refuted", Some("range"), Some("not-listed"), Some("GPTBot")));
    assert_eq!(found[1], is("verified", Some("range"), None, Some("GPTBot")));
    // The operator of this crawler has made the signature.
    assert_eq!(found[2], is("verified", Some("signature"), None, Some("Googlebot")));
}
