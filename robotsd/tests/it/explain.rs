//! `explain`, one question at a time and in bulk.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use super::process::{FIREFOX, GPTBOT, folder, robotsd, run};

fn batch(questions: &str) -> Vec<Value> {
    let mut child =
        robotsd().args(["explain", "--batch"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let questions = questions.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(questions.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_batch_answers_in_order_and_survives_bad_lines() {
    let folder =
        folder(&[("robots.txt", "User-agent: GPTBot\nDisallow: /drafts/\n\nUser-agent: *\nDisallow: /a%62\n")]);
    let robots = folder.path().join("robots.txt").display().to_string();
    let question = |more: Value| {
        let mut question = json!({"robots": robots});
        question.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        question
    };
    let questions = [
        question(json!({"id": 1, "user_agent": GPTBOT, "url": "https://x.test/drafts/y"})).to_string(),
        question(json!({"id": "two", "user_agent": FIREFOX, "url": "/drafts/y"})).to_string(),
        "no question".to_owned(),
        question(json!({"id": 4, "token": "foobot", "url": "/ab"})).to_string(),
        question(json!({"id": 5, "token": "foobot", "url": "/ab", "reading": "reference"})).to_string(),
        question(json!({"id": 6, "token": "foobot", "url_base64": "L2Fi"})).to_string(),
        question(json!({"id": 7, "token": "foobot"})).to_string(),
        json!({"id": 8, "robots": "/no/such/file", "token": "x", "url": "/"}).to_string(),
        json!({"id": 9, "robots_base64": "VXNlci1hZ2VudDogKgpEaXNhbGxvdzogLwo=", "token": "x", "url": "/"}).to_string(),
        question(json!({"id": 10, "user_agent": "NewBot/1.0 (+https://x.test/bot)", "method": "POST", "url": "/ab"}))
            .to_string(),
        question(json!({"id": 11, "token": "gptbot", "url": "/drafts/", "colour": "red"})).to_string(),
        question(json!({"id": 12, "token": "x", "url": "/b/../ab"})).to_string(),
    ];
    let answers = batch(&questions.join("\n"));
    assert_eq!(answers.len(), questions.len());
    assert_eq!(
        answers[0],
        json!({"id": 1, "access": "disallow", "line": 2, "pattern": "/drafts/", "group": ["GPTBot"], "form": "standard",
            "agent": {"class": "registered", "crawler": "GPTBot", "category": "ai-training", "tokens": ["gptbot"],
                "held_to_star": true}})
    );
    assert_eq!(
        answers[1],
        json!({"id": "two", "access": "allow", "line": null, "pattern": null, "group": null, "form": "standard",
            "agent": {"class": "browser", "crawler": null, "category": null, "tokens": [], "held_to_star": false}})
    );
    assert!(answers[2]["id"].is_null() && answers[2]["error"].is_string());
    assert_eq!((&answers[3]["access"], &answers[3]["line"]), (&json!("disallow"), &json!(5)));
    assert_eq!((&answers[4]["access"], &answers[4]["form"]), (&json!("allow"), &json!("verbatim")));
    assert_eq!(answers[5]["access"], "disallow");
    assert_eq!(answers[6], json!({"id": 7, "error": "a question has a \"url\" or a \"url_base64\""}));
    assert_eq!(answers[7]["id"], 8);
    assert!(answers[7]["error"].as_str().unwrap().starts_with("/no/such/file: "));
    assert_eq!((&answers[8]["access"], &answers[8]["group"]), (&json!("disallow"), &json!(["*"])));
    assert_eq!((&answers[9]["access"], &answers[9]["agent"]["held_to_star"]), (&json!("allow"), &json!(true)));
    assert_eq!(answers[10]["id"], 11);
    assert!(answers[10]["error"].as_str().unwrap().contains("colour"));
    assert_eq!((&answers[11]["access"], &answers[11]["form"]), (&json!("disallow"), &json!("resolved")));
}

#[test]
fn an_explanation_of_a_path_with_many_forms_is_short_and_shows_the_one_that_decides() {
    let folder = folder(&[("robots.txt", "User-agent: *\nDisallow: /private/\n")]);
    let robots = folder.path().join("robots.txt");
    let target = "//h;a/x//..;/%2E%5C..//y%2F..%5C../%2F../private/x";
    let output = run(robotsd().args(["explain", "--robots"]).arg(&robots).args(["--user-agent", GPTBOT, target]));
    let text = String::from_utf8(output.stdout).unwrap();
    let forms = text.lines().filter(|line| line.starts_with("  read as ")).count();
    assert!((20..=21).contains(&forms), "{text}");
    assert_eq!(text.matches("/private/x  <- decides").count(), 1, "{text}");
    assert!(text.contains("  of ") && text.contains(" forms the first 20 are shown"), "{text}");
}

#[test]
fn an_explanation_shows_the_files_own_lines() {
    let folder = folder(&[("robots.txt", "User-agent: GPTBot\nDisallow: /drafts/  # not yet\n")]);
    let robots = folder.path().join("robots.txt");
    let output = run(robotsd().args(["explain", "--robots"]).arg(&robots).args(["--user-agent", GPTBOT, "/drafts/x"]));
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("disallowed: GET /drafts/x\n"), "{text}");
    assert!(text.contains(":2: Disallow: /drafts/  # not yet  <- decides\n"), "{text}");
    let output = run(robotsd().args(["explain", "--robots", "no-such-file", "--token", "x", "/"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("robotsd: no-such-file: "));
}

#[test]
fn the_shared_verdicts_agree_in_bulk() {
    use crate::shared::cases;
    use base64::Engine as _;
    let (files, cases) = (cases("robots_files.jsonl.gz"), cases("verdicts.jsonl.gz"));
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name.replace('/', "_"));
    for file in files {
        let body = base64::engine::general_purpose::STANDARD.decode(file["body_base64"].as_str().unwrap()).unwrap();
        std::fs::write(path(file["robots"].as_str().unwrap()), body).unwrap();
    }
    let questions: Vec<_> = cases
        .iter()
        .enumerate()
        .map(|(id, case)| {
            let robots = path(case["robots"].as_str().unwrap()).display().to_string();
            let mut question = json!({"id": id, "robots": robots, "token": case["agent"], "reading": "reference"});
            let key = if case.get("url_base64").is_some() { "url_base64" } else { "url" };
            question[key] = case[key].clone();
            question.to_string()
        })
        .collect();
    let answers = batch(&questions.join("\n"));
    assert_eq!(answers.len(), cases.len());
    let agree = |(answer, case): &(&Value, &Value)| {
        let allowed = answer["access"] == "allow";
        allowed == case["allowed"].as_bool().unwrap()
            && answer["line"].as_u64().unwrap_or(0) == case["line"].as_u64().unwrap()
    };
    let agreed = answers.iter().zip(&cases).filter(agree).count();
    println!("{agreed} of {} verdicts agree in access and line", cases.len());
    assert_eq!(agreed, cases.len());
}

const SHOP: &str = "User-agent: GPTBot\nDisallow: /\nAllow: /open/\nDisallow: /open/x\n\nUser-agent: *\nDisallow: /y\n";

#[test]
fn every_rule_that_matches_is_shown_with_the_one_that_decides() {
    let folder = folder(&[("robots.txt", SHOP)]);
    let robots = folder.path().join("robots.txt").display().to_string();
    let output = run(robotsd().args(["explain", "--robots", &robots, "--user-agent", GPTBOT, "/open/x/1"]));
    let text = String::from_utf8(output.stdout).unwrap().replace(&robots, "R");
    let want = "disallowed: GET /open/x/1\n  agent:  registered GPTBot, ai-training; obeys gptbot; is held to *\n  \
                group:  R:1: User-agent: GPTBot\n          because it names gptbot\n  \
                rule:   R:4: Disallow: /open/x  <- decides\n  rule:   R:3: Allow: /open/\n  rule:   R:2: Disallow: /\n  \
                policy: let pass, and record (the mode is observe)\n";
    assert_eq!(text, want);
    let output = run(robotsd().args(["explain", "--robots", &robots, "--token", "foobot", "/y/../open", "/z"]));
    let text = String::from_utf8(output.stdout).unwrap().replace(&robots, "R");
    assert!(text.contains("because no group names it, and \"*\" is for everyone else\n"), "{text}");
    assert!(
        text.contains("  read as standard: /y/../open  <- decides\n  rule:   R:7: Disallow: /y  <- decides\n"),
        "{text}"
    );
    assert!(text.contains("  rule:   none of the group's rules matches, so the path is allowed\n"), "{text}");
}

#[test]
fn an_explanation_in_json_holds_the_same() {
    let folder = folder(&[("robots.txt", SHOP)]);
    let robots = folder.path().join("robots.txt").display().to_string();
    let output = run(robotsd().args(["explain", "--json", "--robots", &robots, "--user-agent", GPTBOT, "/open/x/1"]));
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["rule"], json!({"line": 4, "access": "disallow", "pattern": "/open/x"}));
    let lines: Vec<_> = said["forms"][0]["rules"].as_array().unwrap().iter().map(|rule| rule["line"].clone()).collect();
    assert_eq!(lines, [4, 3, 2]);
    assert_eq!(
        (&said["token"], &said["reason"], &said["action"]),
        (&json!("gptbot"), &json!("observed"), &json!("pass"))
    );
}

#[test]
fn the_policy_of_a_config_decides() {
    let config = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"shop\"\nroot = \".\"\n\
                  [site.enforcement]\nmode = \"refuse\"\n";
    let folder = folder(&[("robots.txt", SHOP), ("robotsd.toml", config)]);
    let config = folder.path().join("robotsd.toml").display().to_string();
    let output = run(robotsd().args(["explain", "--config", &config, "--user-agent", GPTBOT, "/x"]));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.ends_with("  policy: refuse\n"), "{text}");
    let output = run(robotsd().args(["explain", "--config", &config, "--site", "x", "--token", "a", "/x"]));
    assert_eq!(output.status.code(), Some(2));
}
