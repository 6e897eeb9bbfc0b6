//! Tests `explain`, with single questions and with batches.

use std::collections::HashSet;

use crate::harness::*;

/// Returns the answers to questions. The exit status must be `code`: 2 if some questions cannot be
/// answered.
fn batch(questions: &str, code: i32) -> Vec<Value> {
    run_with(robotsd().args(["explain", "--batch"]), questions.as_bytes()).ends_with(code).json_lines()
}

#[test]
fn explain_batch_agrees_with_the_shared_verdicts() {
    use crate::shared::cases;
    use base64::Engine as _;
    let (files, mut cases) = (cases("robots_files.jsonl.gz"), cases("verdicts.jsonl.gz"));
    let (mut kinds, mut number) = (HashSet::new(), 0);
    // The library is tested with all cases. This test takes the first case of each kind, and one in
    // fifty of the other cases, or one in five in a long run.
    let step = if is_long() { 5 } else { 50 };
    cases.retain(|case| {
        number += 1;
        kinds.insert(case["kind"].to_string()) || number % step == 0
    });
    let folder = folder(&[]);
    let path = |name: &str| folder.at(name.replace('/', "_"));
    for file in files {
        let body = base64::engine::general_purpose::STANDARD.decode(file["body_base64"].as_str().unwrap()).unwrap();
        fs::write(path(file["robots"].as_str().unwrap()), body).unwrap();
    }
    let question = |(id, case): (usize, &Value)| {
        let robots = path(case["robots"].as_str().unwrap());
        let mut question = json!({"id": id, "robots": robots, "token": case["agent"], "reading": "reference"});
        let key = if case.get("url_base64").is_some() { "url_base64" } else { "url" };
        question[key] = case[key].clone();
        question.to_string()
    };
    let answers = batch(&cases.iter().enumerate().map(question).collect::<Vec<_>>().join("\n"), 0);
    assert_eq!(answers.len(), cases.len());
    let agree = |(answer, case): &(&Value, &Value)| {
        let line = answer["line"].as_u64().unwrap_or(0);
        (answer["access"] == "allow") == case["allowed"] && line == case["line"].as_u64().unwrap()
    };
    let agreed = answers.iter().zip(&cases).filter(agree).count();
    println!("{agreed} of {} verdicts agree in access and line", cases.len());
    assert_eq!(agreed, cases.len());
}

fn explain(folder: &Folder, arguments: &[&str]) -> (String, String) {
    let output = folder.run([&["explain", "--robots", "f"], arguments].concat()).ends_with(0);
    (output.out, output.error)
}

#[test]
fn explain_accepts_the_registered_name_of_a_crawler_as_user_agent() {
    let file = "User-agent: Stripe\nUser-agent: Google-Extended\nDisallow: /\n\nUser-agent: *\nDisallow: /a\n";
    let folder = folder(&[("f", file)]);
    // The header of these crawlers contains more than the name, or does not contain it.
    let names = r"Buck Calibre Daum Devin Expanse Google-Extended Mastodon Meltwater NewsBlur Pingdom sentry Shodan Sogou
        Stripe testssl.sh Tumblr Vigil Webzio-Extended";
    for name in names.split_whitespace() {
        let (out, error) = explain(&folder, &["--user-agent", name, "/x"]);
        assert!(out.contains(&format!("  agent:  registered {name}, ")) && error.is_empty(), "{name}: {out}{error}");
    }
    let (out, _) = explain(&folder, &["--user-agent", "Stripe", "/x"]);
    assert!(out.starts_with("Stripe may not fetch /x: line 3, `Disallow: /`, in the group for Stripe\n"), "{out}");
    let (out, _) = explain(&folder, &["--user-agent", "google-extended", "/x"]);
    assert_has(&out, &["; a control token, never sent in a request\n"]);
    let (out, error) = explain(&folder, &["--user-agent", "*", "/a"]);
    assert!(
        out.starts_with("A crawler that is not named in any group may not fetch /a: line 6, ") && error.is_empty(),
        "{out}"
    );
}

#[test]
fn explain_lists_a_verdict_for_each_crawler_of_a_category() {
    let folder = folder(&[("f", "User-agent: GPTBot\nDisallow: /\n")]);
    let (out, error) = explain(&folder, &["--user-agent", "category:ai-training", "--format", "csv", "/x"]);
    let verdict = |crawler: &str| out.lines().find(|row| row.contains(&format!(",{crawler},"))).map(str::to_owned);
    assert!(verdict("GPTBot").is_some_and(|row| row.contains("disallow")) && error.is_empty(), "{out}{error}");
    assert!(verdict("ClaudeBot").is_some_and(|row| row.contains("allow") && !row.contains("disallow")), "{out}");
    assert_eq!(verdict("Googlebot"), None);
    let unknown = ["explain", "--robots", "f", "--user-agent", "operator:Nobody", "/x"];
    assert_has(folder.run(unknown).failed(2), &["--user-agent \"operator:Nobody\": no crawler of the registry has"]);
}

/// For a name, `test` must use the same verdict as `explain`.
#[test]
fn explain_and_test_give_the_same_verdict_for_a_name() {
    let file = "User-agent: Stripe\nUser-agent: HouseBot\nDisallow: /x\n\nUser-agent: Googlebot\nDisallow: /g\n\nUser-agent: *\nDisallow: /a\n";
    let names = "Stripe HouseBot Googlebot-Image AdsBot-Google * curl Sogou".split(' ');
    let folder = folder(&[("f", file)]);
    let mut expected = String::new();
    for name in names.chain([GPTBOT]) {
        for path in ["/x", "/g", "/a"] {
            let allowed = explain(&folder, &["--user-agent", name, path]).0.contains(" may fetch ");
            let table = if allowed { "allow" } else { "disallow" };
            expected += &format!("[[{table}]]\nagents = [{name:?}]\npaths = [{path:?}]\n");
        }
    }
    folder.write("e.toml", expected);
    assert_eq!(folder.run(["test", "e.toml", "--robots", "f"]).out, "24 expected, all met\n");
}

const SHOP: &str = "User-agent: GPTBot\nDisallow: /\nAllow: /open/\nDisallow: /open/x\n\nUser-agent: *\nDisallow: /y\n";

#[test]
fn an_explanation_in_json_contains_the_rules_the_reason_and_the_action() {
    let folder = folder(&[("f", SHOP)]);
    let said: Value =
        serde_json::from_str(&explain(&folder, &["--json", "--user-agent", GPTBOT, "/open/x/1"]).0).unwrap();
    assert_eq!(said["rule"], json!({"line": 4, "access": "disallow", "pattern": "/open/x"}));
    let lines: Vec<_> = said["forms"][0]["rules"].as_array().unwrap().iter().map(|rule| rule["line"].clone()).collect();
    assert_eq!(lines, [4, 3, 2]);
    assert_part(&said, &json!({"token": "gptbot", "reason": "observed", "action": "pass"}));
}

const DRAFTS: &str = "User-agent: GPTBot\nDisallow: /drafts/\n";

#[test]
fn several_crawlers_and_urls_are_shown_as_a_table() {
    let file = "User-agent: GPTBot\nUser-agent: =cmd\nDisallow: /drafts/\n\nUser-agent: *\nDisallow: /a,b\n";
    let folder = folder(&[("f", file)]);
    let table = |format: &str, agents: &str| {
        let fixed = ["explain", "--robots", "f", "--format", format, "/drafts/x", "/a,b"];
        folder.run(fixed.into_iter().chain(agents.split(' ')))
    };
    let headers = "--user-agent GPTBot --user-agent Googlebot";
    let want = "GPTBot     Googlebot  URL\nno (3)     yes        /drafts/x\nyes        no (6)     /a,b\nno (N): line N of f disallows the URL\n";
    assert_eq!(table("matrix", headers).succeeded(), want);
    let both = table("csv", &format!("{headers} --token =cmd"));
    assert_eq!((both.code, &*both.out), (Some(2), ""), "crawlers are named by headers or by tokens");
    let want = "url,crawler,access,line,rule,group\r\n\
                /drafts/x,\"'=cmd\",disallow,3,/drafts/,GPTBot =cmd\r\n/drafts/x,x,allow,,,*\r\n\
                \"/a,b\",\"'=cmd\",allow,,,GPTBot =cmd\r\n\"/a,b\",x,disallow,6,\"/a,b\",*\r\n";
    assert_eq!(table("csv", "--token =cmd --token x").out, want);
}

/// Creates a folder with everything that the commands need. The test writes the robots.txt.
fn folder_for_every_command() -> Folder {
    let config = Config::new().files_of("shop").file("good", DRAFTS).file("log", "");
    config.file("e", "[[allow]]\nagents = [\"*\"]\npaths = [\"/\"]\n").folder()
}

/// Commands that read the robots.txt. The last command finds no published version to compare the
/// file with.
const READING: [&[&str]; 8] = [
    &["explain", "--robots", "robots.txt", "--token", "GPTBot", "/"],
    &["explain", "--config", "robotsd.toml", "--token", "GPTBot", "/"],
    &["diff", "robots.txt", "good"],
    &["diff", "good", "robots.txt"],
    &["replay", "log", "--robots", "robots.txt"],
    &["replay", "log", "--robots", "good", "--against", "robots.txt"],
    &["test", "e", "--robots", "robots.txt"],
    &["agents", "--identify", "x", "--robots", "robots.txt"],
];

#[test]
fn every_command_reports_a_web_page_or_the_unread_part_of_a_long_file() {
    let filler = format!("# {}\n", "filler, ".repeat(100));
    let long = format!("User-agent: *\nDisallow: /a\n{}Disallow: /late\n", filler.repeat(700));
    let folder = folder_for_every_command();
    let page = "<!DOCTYPE html>\n<html><body>Not found</body></html>\n";
    for (text, want) in [
        (page, "robots.txt:1:1: error: the file begins with \"<!DOCTYPE\": it is a web page"),
        ("404: Not Found\n", "robots.txt:1:1: error: "),
        (&long, "so they may ignore this line and all lines below it\n"),
    ] {
        folder.write("robots.txt", text);
        for arguments in &READING[..7] {
            // A web page is not a robots.txt. `diff` accepts one as the old file.
            let is_error = text != long && *arguments != ["diff", "robots.txt", "good"];
            assert_has(folder.run(*arguments).failed(if is_error { 2 } else { 0 }), &[want]);
        }
    }
}

#[test]
fn every_command_rejects_a_file_that_is_utf_16_or_not_text() {
    let wide = |text: &str| text.bytes().flat_map(|byte| [byte, 0]).collect::<Vec<u8>>();
    let marked = [b"\xFF\xFE".to_vec(), wide(DRAFTS)].concat();
    let gzip = b"\x1F\x8B\x08\0\0\0\0\0\0\x03\xD3\xE2\xE2\x02\0\xF3".to_vec();
    let folder = folder_for_every_command();
    for (kind, bytes) in [("UTF-16", marked), ("UTF-16", wide(DRAFTS)), ("not text", gzip)] {
        folder.write("robots.txt", &bytes);
        for arguments in READING {
            let output = folder.run(arguments).ends_with(2);
            assert_eq!(output.out, "", "{arguments:?}");
            assert_has(output.error, &["robots.txt: the file is ", kind]);
        }
        assert_has(folder.run(["check", "robots.txt"]).ends_with(1).out, &["crawlers find no rules in it"]);
        let question = json!({"id": 1, "robots": folder.at("robots.txt"), "token": "x", "url": "/"});
        assert_has(batch(&question.to_string(), 2)[0]["error"].as_str().unwrap(), &[kind]);
    }
}

#[test]
fn urls_are_read_from_standard_input() {
    let folder = folder(&[("f", DRAFTS)]);
    let explain = |arguments: &[&str], input: &[u8]| {
        let fixed = ["explain", "--user-agent", "GPTBot", "--json", "--robots"];
        let output = run_with(folder.robotsd().args(fixed).args(arguments), input);
        (output.code, output.json_lines(), output.error)
    };
    let lines = b"\xEF\xBB\xBF/drafts/1\r\n# a comment\n  drafts/2\nhttps://a.test/drafts/3 \n/end";
    let (code, answers, error) = explain(&["f", "/first", "-"], lines);
    let urls: Vec<_> =
        answers.iter().map(|answer| (answer["url"].as_str().unwrap(), answer["access"].as_str().unwrap())).collect();
    let want =
        [("/first", "allow"), ("/drafts/1", "disallow"), ("https://a.test/drafts/3", "disallow"), ("/end", "allow")];
    assert_eq!(urls, want);
    assert_eq!((&answers[0]["host"], &answers[2]["host"]), (&Value::Null, &json!("a.test")));
    assert_eq!(code, Some(2), "a line was no URL");
    assert!(error.starts_with("robotsd: <stdin>:3: \"drafts/2\" could be a path or a URL"), "{error}");
    let (code, answers, error) = explain(&["-", "-"], DRAFTS.as_bytes());
    assert!(code == Some(2) && answers.is_empty() && error.contains("both the robots.txt and the URLs"), "{error}");
    let (code, answers, error) = explain(&["f", "-"], b"# nothing\n");
    assert_eq!((code, answers.len()), (Some(0), 0));
    assert_eq!(error, "robotsd: <stdin>: the list is empty: write one URL per line\n");
}

/// `explain` must give the current answer of the server, also while a rule is new and while
/// enforcement is off.
#[test]
fn explain_applies_the_servers_grace_period_and_kill_switch() {
    const OLD: &str = "User-agent: *\nDisallow: /cart/\n";
    let config = Config::refusing().keys("state_dir = \"state\"\ngrace = \"24h\"").files_of("shop").admin().robots(OLD);
    let (folder, mut running) = config.start();
    folder.replace("robots.txt", format!("{OLD}Disallow: /new\n"));
    running.command(&["reload"]).succeeded();
    let end = running.json(&["status"])["sites"][0]["grace_end"].as_str().unwrap().to_owned();
    let agent = [("User-Agent", GPTBOT)];
    let explain =
        |more: &[&str]| folder.with_config(&[&["explain", "--user-agent", GPTBOT, "/new"], more].concat()).out;
    let policy = |text: &str| text.lines().last().unwrap().to_owned();
    assert_eq!(running.request("GET", "/new", &agent).status, 404);
    let grace = format!("2 rules are enforced from {end} at the latest");
    let want = format!("  policy: let pass, and record (the rule is new, and in its grace period: {grace})");
    assert_eq!(policy(&explain(&[])), want);
    let json: Value = serde_json::from_str(&explain(&["--json"])).unwrap();
    assert_eq!((&json["action"], &json["reason"], &json["grace_end"]), (&json!("pass"), &json!("grace"), &json!(end)));
    assert_eq!(json["grace_rules"], 2);
    // Another file is not a version of the site, so the age of its rules must not be mentioned.
    folder.write("other.txt", format!("{OLD}Disallow: /new\nDisallow: /x\n"));
    assert_eq!(policy(&explain(&["--robots", folder.at("other.txt").to_str().unwrap()])), "  policy: refuse, with 403");

    for site in [&["--site", "shop"][..], &[]] {
        running.command(&[&["enforce", "off"], site].concat()).succeeded();
        assert_eq!(policy(&explain(&[])), "  policy: let pass (enforcement is switched off)");
        let json: Value = serde_json::from_str(&explain(&["--json"])).unwrap();
        let wanted = (&json!("disallow"), &json!("pass"), &json!("kill-switch"));
        assert_eq!((&json["access"], &json["action"], &json["reason"]), wanted);
        assert!(json.get("grace_end").is_none(), "{json}");
        running.command(&[&["enforce", "on"], site].concat()).succeeded();
    }
    running.end();
    assert_eq!(policy(&explain(&[])), want);
    // If the state cannot be read, this must be reported. The answer then depends only on the
    // policy.
    let switch = folder.at("state/enforcement");
    fs::remove_file(&switch).unwrap();
    fs::create_dir(&switch).unwrap();
    let unread = folder.with_config(&["explain", "--user-agent", GPTBOT, "/new"]);
    let parts =
        ["a server that cannot read its kill switch enforces nothing; the answers below assume that enforcement is on"];
    assert_has(&unread.error, &parts);
    assert_eq!(policy(&unread.out), "  policy: refuse, with 403");
}

#[test]
fn explain_reports_a_pending_version_and_accepts_the_hash_of_a_kept_version() {
    const OPEN: &str = "User-agent: *\nDisallow: /cart/\n";
    let config = Config::refusing().keys("state_dir = \"state\"").files_of("shop").admin().robots(OPEN);
    let (folder, mut running) = config.start();
    let explain = |more: &[&str]| folder.with_config(&[&["explain", "--user-agent", "GPTBot", "/"], more].concat());
    assert_lacks(explain(&[]).succeeded(), &["live:"]);
    folder.replace("robots.txt", "User-agent: *\nDisallow: /\n");
    running.command(&["reload"]).failed(1);
    let status = running.json(&["status"])["sites"][0].clone();
    let short = |hash: &Value| hash.as_str().unwrap().trim_start_matches("sha256:")[..16].to_owned();
    let (live, waits) = (short(&status["hash"]), short(&status["pending"]["hash"]));
    let about = format!(
        "this version has been pending since {}; the live version is {live}",
        status["pending"]["since"].as_str().unwrap()
    );
    let text = explain(&[]);
    assert_has(&text.out, &["GPTBot may not fetch /", &format!("\n  live:   {about}, which answers allow\n")]);
    assert_has(&text.error, &[&about]);
    for other in [&["--json"][..], &["--format", "csv"]] {
        assert_has(explain(other).error, &[&about]);
    }
    assert_has(folder.with_config(&["check"]).error, &[&format!("robots.txt: {about}\n")]);
    let cases = [(&*live, "GPTBot may fetch /"), (&waits, "GPTBot may not fetch /"), (&live[..12], "may fetch")];
    for (version, want) in cases {
        let Ended { out, error, .. } = explain(&["--version", version]).ends_with(0);
        assert_has(&out, &[want]);
        assert_lacks(&out, &["live:"]);
        assert_eq!(error, "", "nothing is said about the file");
    }
    let parts = [
        "the state_dir of the config contains no version of the site (or none that this user can read)",
        " 0123456789ab\n",
    ];
    assert_has(explain(&["--version", "0123456789ab"]).failed(2), &parts);
    // After the process has ended, its state files must lead to the same answer until the
    // robots.txt changes.
    running.end();
    assert_has(explain(&[]).out, &[&about]);
    folder.replace("robots.txt", OPEN);
    assert_lacks(explain(&[]).out, &["live:"]);
    folder.replace("robots.txt", "User-agent: *\nDisallow: /a\n");
    let wanted = format!("  live:   this version is not live; the live version is {live}, which answers allow\n");
    assert_has(explain(&[]).out, &[&wanted]);
    assert_lacks(explain(&["--robots", "robots.txt"]).out, &["live:"]);
}
