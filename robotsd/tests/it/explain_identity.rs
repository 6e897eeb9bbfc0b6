//! Asks `explain --batch` who sent a request. The evidence is part of the question.

use crate::harness::*;

const CASES: &str = include_str!("../../../tests/cases/web_bot_auth.json");

const GOOGLE: &str = "https://developers.google.com/static/crawling/ipranges/common-crawlers.json";
const BROWSER: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0 Safari/537.36";

/// Returns the answers to questions. Each question is completed with a robots.txt and a URL.
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

fn identity(question: &Value) -> Value {
    identities(std::slice::from_ref(question)).remove(0)
}

/// Asks each question, and compares the answer with the expected one.
fn identified(expected: Vec<(Value, Value)>) {
    let (questions, expected): (Vec<_>, Vec<_>) = expected.into_iter().unzip();
    for ((question, expected), found) in questions.iter().zip(expected).zip(identities(&questions)) {
        assert_eq!(found, expected, "{question}");
    }
}

fn is(outcome: &str, method: Option<&str>, reason: Option<&str>, crawler: Option<&str>) -> Value {
    json!({ "outcome": outcome, "method": method, "reason": reason, "crawler": crawler })
}

/// Returns the key directories as they are in the situation of a case.
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
fn signed_requests_are_identified_as_their_case_says() {
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
fn a_request_that_only_its_signature_names_is_judged_as_that_crawlers() {
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
    // This is a crawler of the same operator.
    assert_eq!(found[2], is("verified", Some("signature"), None, Some("Googlebot")));
}

#[test]
fn ranges_verify_and_refute() {
    let question = |user_agent: &str, address: Option<&str>, evidence: Value| json!({ "user_agent": user_agent, "address": address, "now": 1_735_689_660, "evidence": evidence });
    let lists = || json!({ "ranges": { GOOGLE: ["66.249.64.0/27", "2001:4860:4801:10::/64"] } });
    let google = |address: &str| question("Googlebot/2.1", Some(address), lists());
    let verified = is("verified", Some("range"), None, Some("Googlebot"));
    let refuted = is("refuted", Some("range"), Some("not-listed"), Some("Googlebot"));
    let address = is("undecided", None, Some("address"), Some("Googlebot"));
    let expected = [
        (google("66.249.64.1"), verified.clone()),
        (google("::ffff:66.249.64.31"), verified.clone()),
        (google("2001:4860:4801:10::7"), verified.clone()),
        (google("66.249.64.32"), refuted.clone()),
        (google("2001:4860:4801:11::"), refuted.clone()),
        (google("10.0.0.1"), address.clone()),
        (google("100.64.0.1"), address.clone()),
        (google("::1"), address.clone()),
        (question("Googlebot/2.1", None, lists()), address),
        (
            question("Googlebot/2.1", Some("66.249.64.1"), json!({})),
            is("undecided", None, Some("not-loaded"), Some("Googlebot")),
        ),
        // Without other evidence, the embedded lists can verify claims, but cannot refute them.
        (json!({ "user_agent": "Googlebot/2.1", "address": "66.249.66.1" }), verified),
        (
            json!({ "user_agent": "Googlebot/2.1", "address": "8.8.8.8" }),
            is("undecided", None, Some("stale"), Some("Googlebot")),
        ),
        // Fetchers on behalf of people may run anywhere.
        (
            question(
                "ChatGPT-User/1.0",
                Some("8.8.8.8"),
                json!({ "ranges": { "https://openai.com/chatgpt-user.json": ["1.1.1.0/24"] } }),
            ),
            is("unverifiable", None, None, Some("ChatGPT-User")),
        ),
        (question(BROWSER, Some("8.8.8.8"), lists()), is("unclaimed", None, None, None)),
    ];
    identified(expected.into());
}

#[test]
fn names_verify_and_refute() {
    let question = |address: &str, names: Value, forward: Value| {
        let evidence = json!({ "names": names, "forward": forward });
        json!({ "user_agent": "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)",
            "address": address, "evidence": evidence })
    };
    let refuted = |reason| is("refuted", Some("rdns"), Some(reason), Some("YandexBot"));
    let verified = is("verified", Some("rdns"), None, Some("YandexBot"));
    let (here, spider) = ("5.45.207.1", "spider.yandex.com");
    let many: Vec<String> = (0..100).map(|number| format!("{number}.example")).collect();
    let expected = [
        (question(here, json!({ here: [spider] }), json!({ spider: [here] })), verified.clone()),
        (question(here, json!({ here: ["Spider.YANDEX.com."] }), json!({ spider: [here] })), verified.clone()),
        (question("2a02:6b8::1", json!({ "2a02:6b8::1": [spider] }), json!({ spider: ["2a02:6b8::1"] })), verified),
        (question(here, json!({}), json!({ spider: [here] })), refuted("no-name")),
        (question(here, json!({ here: ["xyandex.com"] }), json!({ "xyandex.com": [here] })), refuted("other-name")),
        (
            question(here, json!({ here: ["yandex.com.evil.example"] }), json!({ "yandex.com.evil.example": [here] })),
            refuted("other-name"),
        ),
        (question(here, json!({ here: [spider] }), json!({})), refuted("not-confirmed")),
        // One name matches, but only the other one resolves back to the address.
        (
            question(here, json!({ here: [spider, "evil.example"] }), json!({ "evil.example": [here] })),
            refuted("not-confirmed"),
        ),
        (question(here, json!({ here: many }), json!({})), is("undecided", None, Some("truncated"), Some("YandexBot"))),
        (
            json!({ "user_agent": "YandexBot/3.0", "address": here, "evidence": {} }),
            is("undecided", None, Some("unproven-resolver"), Some("YandexBot")),
        ),
    ];
    identified(expected.into());
}

#[test]
fn unreadable_evidence_is_an_error_of_its_query() {
    for (evidence, message) in [
        (json!({ "ranges": { GOOGLE: ["66.249.64.1/27"] } }), "bits after the length must be zero"),
        (json!({ "directories": { "http://a.example": null } }), "the URL of a key directory must begin with"),
        (json!({ "directories": { "https://a.example": {} } }), "neither a JWK Set"),
        (json!({ "names": { "example": [] } }), "IP address"),
        (json!({ "range": {} }), "unknown field `range`"),
    ] {
        let answer = answers(&[json!({ "user_agent": "Googlebot", "evidence": evidence })]).remove(0);
        assert!(answer["error"].as_str().is_some_and(|error| error.contains(message)), "{answer}");
    }
    assert_eq!(identity(&json!({ "user_agent": "Googlebot" })), Value::Null, "a question without a sender");
}

#[test]
fn the_config_decides_how_impostors_are_handled() {
    let actions = |identity: &str| -> Vec<Value> {
        let tables = "[agents]\nignore = [\"GPTBot\"]\n[exempt]\ncidrs = [\"8.8.4.0/24\"]";
        let config = Config::refusing().site("a", "root = \".\"\nrobots.path = \"robots.txt\"").tables(tables);
        let folder = config.tables(identity).robots("User-agent: *\nDisallow: /private/\n").folder();
        let mut questions = String::new();
        for (user_agent, address, target) in [
            ("Googlebot/2.1", "66.249.64.1", "/private/"),
            ("Googlebot/2.1", "8.8.8.8", "/private/"),
            ("Googlebot/2.1", "8.8.8.8", "/"),
            ("Googlebot/2.1", "8.8.4.4", "/"),
            ("GPTBot/1.3", "66.249.64.1", "/private/"),
            ("GPTBot/1.3", "10.0.0.1", "/private/"),
        ] {
            let ranges = json!({ GOOGLE: ["66.249.64.0/27"], "https://openai.com/gptbot.json": ["66.249.64.0/27"] });
            let question = json!({ "user_agent": user_agent, "address": address, "url": target,
                "evidence": { "ranges": ranges } });
            questions.push_str(&format!("{question}\n"));
        }
        let mut command = folder.robotsd();
        command.args(["explain", "--batch", "--config", "robotsd.toml"]);
        let answers = run_with(&mut command, questions.as_bytes()).json_lines();
        answers.into_iter().map(|mut answer| answer["action"].take()).collect()
    };
    let (mode, everywhere) = (actions(""), actions("[identity]\nimpostors = \"refuse\"\n"));
    assert_eq!(mode, ["tag", "refuse", "pass", "pass", "pass", "pass"]);
    assert_eq!(everywhere, ["tag", "refuse", "refuse", "pass", "pass", "pass"]);
    let verified = actions("[identity]\nneeded = \"verified\"\n");
    assert_eq!(verified, ["tag", "refuse", "pass", "pass", "pass", "refuse"]);
    assert_eq!(actions("[identity]\nneeded = \"undecided\"\n"), mode);
}
