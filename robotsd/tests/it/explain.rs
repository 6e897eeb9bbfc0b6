//! `explain`, one question at a time and in bulk.

use serde_json::{Value, json};

use crate::harness::{Ended, FIREFOX, Folder, GPTBOT, folder, robotsd, run, run_with};

/// The answers to questions, of which some cannot be answered.
fn batch_with_failures(questions: &str) -> Vec<Value> {
    batch_ending(questions, 2)
}

fn batch(questions: &str) -> Vec<Value> {
    batch_ending(questions, 0)
}

fn batch_ending(questions: &str, code: i32) -> Vec<Value> {
    let output = run_with(robotsd().args(["explain", "--batch"]), questions.as_bytes());
    assert_eq!(output.code, Some(code));
    output.json_lines()
}

#[test]
fn a_batch_answers_in_order_and_survives_bad_lines() {
    let folder =
        folder(&[("robots.txt", "User-agent: GPTBot\nDisallow: /drafts/\n\nUser-agent: *\nDisallow: /a%62\n")]);
    let robots = folder.at("robots.txt").display().to_string();
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
    let two_names = json!({"id": 13, "user_agent": "ClaudeBot/1.0 GPTBot/1.2", "url": "/drafts/y"});
    let questions = questions.into_iter().chain([question(two_names).to_string()]).collect::<Vec<_>>();
    let answers = batch_with_failures(&questions.join("\n"));
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
    assert_eq!((&answers[12]["access"], &answers[12]["agent"]["crawler"]), (&"disallow".into(), &"GPTBot".into()));
    assert_eq!(answers[2], json!({"id": null, "line": 3, "error": "expected ident at column 2"}));
    assert_eq!((&answers[3]["access"], &answers[3]["line"]), (&json!("disallow"), &json!(5)));
    assert_eq!((&answers[4]["access"], &answers[4]["form"]), (&json!("allow"), &json!("verbatim")));
    assert_eq!(answers[5]["access"], "disallow");
    assert_eq!(answers[6], json!({"id": 7, "line": 7, "error": "a question has a \"url\" or a \"url_base64\""}));
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
    let robots = folder.at("robots.txt");
    let target = "//h;a/x//..;/%2E%5C..//y%2F..%5C../%2F../private/x";
    let text = run(robotsd().args(["explain", "--robots"]).arg(&robots).args(["--user-agent", GPTBOT, target])).out;
    let forms = text.lines().filter(|line| line.starts_with("  read as ")).count();
    assert!((20..=21).contains(&forms), "{text}");
    assert_eq!(text.matches("/private/x  <- decides").count(), 1, "{text}");
    assert!(text.contains("  of ") && text.contains(" forms the first 20 are shown"), "{text}");
}

#[test]
fn an_explanation_shows_the_files_own_lines() {
    let folder = folder(&[("robots.txt", "User-agent: GPTBot\nDisallow: /drafts/  # not yet\n")]);
    let robots = folder.at("robots.txt");
    let text = run(robotsd().args(["explain", "--robots"]).arg(&robots).args(["--user-agent", GPTBOT, "/drafts/x"]))
        .succeeded();
    let want = "GPTBot may not fetch /drafts/x: line 2, `Disallow: /drafts/`, in the group for GPTBot\n";
    assert!(text.starts_with(want), "{text}");
    assert!(text.contains(":2: Disallow: /drafts/  # not yet  <- decides\n"), "{text}");
    let error = run(robotsd().args(["explain", "--robots", "no-such-file", "--token", "x", "/"])).failed(2);
    assert!(error.starts_with("robotsd: no-such-file: "));
}

#[test]
fn the_shared_verdicts_agree_in_bulk() {
    use crate::shared::cases;
    use base64::Engine as _;
    let (files, cases) = (cases("robots_files.jsonl.gz"), cases("verdicts.jsonl.gz"));
    let folder = folder(&[]);
    let path = |name: &str| folder.at(name.replace('/', "_"));
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

/// Standard output and standard error of an explanation.
fn explain(folder: &std::path::Path, arguments: &[&str]) -> (String, String) {
    let output = run(robotsd().current_dir(folder).args(["explain", "--robots", "f"]).args(arguments));
    assert_eq!(output.code, Some(0), "{output:?}");
    (output.out, output.error)
}

#[test]
fn a_name_is_looked_up_as_a_name() {
    let folder = folder(&[(
        "f",
        "User-agent: Stripe\nUser-agent: Google-Extended\nDisallow: /\n\nUser-agent: *\nDisallow: /a\n",
    )]);
    // Names whose headers must hold more than the word, or that are never sent.
    for name in
        r"Buck Calibre Daum Devin Expanse Google-Extended Mastodon Meltwater NewsBlur Pingdom sentry Shodan Sogou
        Stripe testssl.sh Tumblr Vigil Webzio-Extended"
            .split_whitespace()
    {
        let (out, error) = explain(folder.path(), &["--user-agent", name, "/x"]);
        assert!(out.contains(&format!("  agent:  registered {name}, ")) && error.is_empty(), "{name}: {out}{error}");
    }
    let (out, _) = explain(folder.path(), &["--user-agent", "Stripe", "/x"]);
    assert!(out.starts_with("Stripe may not fetch /x: line 3, `Disallow: /`, in the group for Stripe\n"), "{out}");
    let (out, _) = explain(folder.path(), &["--user-agent", "google-extended", "/x"]);
    assert!(out.contains("; a control token, which no request has\n"), "{out}");
    let (out, error) = explain(folder.path(), &["--user-agent", "*", "/a"]);
    assert!(out.starts_with("Any crawler that no group names may not fetch /a: line 6, ") && error.is_empty(), "{out}");
}

#[test]
fn a_name_that_no_crawler_has_is_said_with_what_was_meant_and_what_is_assumed() {
    let folder = folder(&[("f", "User-agent: HouseBot\nDisallow: /x\n\nUser-agent: *\nDisallow: /a\n")]);
    let assumed = "as a crawler that obeys the group of this name, or else the one for \"*\"";
    for (option, name, want) in [
        ("--user-agent", "Googelbot", Some("\"Googelbot\": did you mean \"Googlebot\"? The answer takes it")),
        ("--token", "Googelbot", Some("\"Googelbot\": did you mean \"Googlebot\"? The answer takes it")),
        ("--user-agent", "HuoseBot", Some("did you mean \"HouseBot\"?")),
        ("--token", "qqqqqqqq", Some("\"qqqqqqqq\": the answer takes it")),
        ("--user-agent", "HouseBot", None),
        ("--token", "housebot", None),
        ("--token", "Yandex", None),
        ("--user-agent", FIREFOX, None),
        ("--user-agent", "NewBot/1.0", None),
    ] {
        let (out, error) = explain(folder.path(), &[option, name, "/a"]);
        match want {
            Some(want) => {
                assert!(error.contains(want) && error.contains(assumed), "{name}: {error}");
                assert!(out.contains("may not fetch /a: line 5, "), "{name}: {out}");
            }
            None => assert_eq!(error, "", "{name}"),
        }
    }
}

#[test]
fn what_is_missing_is_said_with_every_way_to_name_it() {
    let folder = folder(&[("f", DRAFTS)]);
    for (arguments, want) in [
        (&["f", "--user-agent", "GPTBot", "/"][..], "name one with --robots f, or a site with --config FILE"),
        (&["--user-agent", "GPTBot", "/"], "name one with --robots FILE, or a site with --config FILE"),
        (&["--robots", "f", "/"], "name one with --user-agent NAME, or with --token TOKEN"),
        (&["--robots", "f", "--token", "GPTBot"], "there is no URL: write a path such as /"),
    ] {
        let Ended { code, error, .. } = run(folder.robotsd().arg("explain").args(arguments));
        assert!(code == Some(2) && error.contains(want), "{arguments:?}: {error}");
    }
}

#[test]
fn a_registered_token_has_the_further_groups_of_its_crawler() {
    let file = "User-agent: Googlebot\nDisallow: /g\n\nUser-agent: *\nDisallow: /a\n";
    let folder = folder(&[("f", file)]);
    let first = |token: &str, url: &str, reading: &str| {
        let (out, _) = explain(folder.path(), &["--token", token, "--reading", reading, url]);
        (out.lines().next().unwrap().to_owned(), out.lines().nth(1).unwrap().to_owned())
    };
    assert_eq!(
        first("Googlebot-Image", "/g", "standard"),
        (
            "Googlebot-Image may not fetch /g: line 2, `Disallow: /g`, in the group for Googlebot".to_owned(),
            "  agent:  the token of Googlebot-Image; obeys googlebot-image, then googlebot".to_owned(),
        )
    );
    assert!(
        first("AdsBot-Google", "/a", "standard").0.starts_with("AdsBot-Google may fetch /a: no group names it, and ")
    );
    // The reference parser has one token, and leaves the others to its caller.
    assert_eq!(
        first("Googlebot-Image", "/g", "reference"),
        (
            "Googlebot-Image may fetch /g: no rule in the group for every other crawler (`*`) matches".to_owned(),
            "  agent:  the token Googlebot-Image, taken as given".to_owned(),
        )
    );
}

/// What an expectation says of a name, `explain` says too.
#[test]
fn a_name_means_the_same_for_explain_and_test() {
    let file = "User-agent: Stripe\nUser-agent: HouseBot\nDisallow: /x\n\nUser-agent: Googlebot\nDisallow: /g\n\nUser-agent: *\nDisallow: /a\n";
    let names = [
        "Stripe",
        "HouseBot",
        "Googlebot-Image",
        "AdsBot-Google",
        "Googelbot",
        "*",
        "Firefox",
        "curl",
        "Sogou",
        GPTBOT,
    ];
    let folder = folder(&[("f", file)]);
    for name in names {
        for path in ["/x", "/g", "/a"] {
            let allowed = explain(folder.path(), &["--user-agent", name, path]).0.contains(" may fetch ");
            let table = if allowed { "allow" } else { "disallow" };
            let text = format!("[[{table}]]\nagents = [{name:?}]\npaths = [{path:?}]\n");
            folder.write("e.toml", text);
            let output = folder.run(["test", "e.toml", "--robots", "f"]);
            let text = output.out.clone();
            assert_eq!(text, "1 expected, all met\n", "{name} {path}: {output:?}");
        }
    }
}

const SHOP: &str = "User-agent: GPTBot\nDisallow: /\nAllow: /open/\nDisallow: /open/x\n\nUser-agent: *\nDisallow: /y\n";

#[test]
fn every_rule_that_matches_is_shown_with_the_one_that_decides() {
    let folder = folder(&[("robots.txt", SHOP)]);
    let robots = folder.at("robots.txt").display().to_string();
    let output = run(robotsd().args(["explain", "--robots", &robots, "--user-agent", GPTBOT, "/open/x/1"]));
    let text = output.out.replace(&robots, "R");
    let want = "GPTBot may not fetch /open/x/1: line 4, `Disallow: /open/x`, in the group for GPTBot\n  agent:  registered GPTBot, ai-training; obeys gptbot; is held to *\n  host:   any that serves this robots.txt\n  \
                group:  R:1: User-agent: GPTBot\n          because it names gptbot\n  \
                rule:   R:4: Disallow: /open/x  <- decides\n  rule:   R:3: Allow: /open/\n  rule:   R:2: Disallow: /\n";
    assert_eq!(text, want);
    let output = run(robotsd().args(["explain", "--robots", &robots, "--token", "foobot", "/y/../open", "/z"]));
    let text = output.out.replace(&robots, "R");
    assert!(text.contains("because no group names it, and \"*\" is for every other crawler\n"), "{text}");
    assert!(
        text.contains("  read as standard: /y/../open  <- decides\n  rule:   R:7: Disallow: /y  <- decides\n"),
        "{text}"
    );
    assert!(text.contains("  rule:   none of the group's rules matches, so the path is allowed\n"), "{text}");
}

#[test]
fn an_explanation_in_json_holds_the_same() {
    let folder = folder(&[("robots.txt", SHOP)]);
    let robots = folder.at("robots.txt").display().to_string();
    let said =
        run(robotsd().args(["explain", "--json", "--robots", &robots, "--user-agent", GPTBOT, "/open/x/1"])).json();
    assert_eq!(said["rule"], json!({"line": 4, "access": "disallow", "pattern": "/open/x"}));
    let lines: Vec<_> = said["forms"][0]["rules"].as_array().unwrap().iter().map(|rule| rule["line"].clone()).collect();
    assert_eq!(lines, [4, 3, 2]);
    assert_eq!(
        (&said["token"], &said["reason"], &said["action"]),
        (&json!("gptbot"), &json!("observed"), &json!("pass"))
    );
}

const DRAFTS: &str = "User-agent: GPTBot\nDisallow: /drafts/\n";

/// What follows `explain --robots`, and the first line of the answer.
const SENTENCES: &str = "
f --user-agent GPTBOT /drafts/x
    GPTBot may not fetch /drafts/x: line 3, `Disallow: /drafts/`, in the group for GPTBot
f --user-agent GPTBOT /drafts/open
    GPTBot may fetch /drafts/open: line 4, `Allow: /drafts/open`, in the group for GPTBot
f --user-agent GPTBOT /a
    GPTBot may fetch /a: no rule in the group for GPTBot matches
f --token CCBot /drafts/
    CCBot may not fetch /drafts/: line 3, `Disallow: /drafts/`, in the group for CCBot
f --token foobot /a
    foobot may not fetch /a: line 7, `Disallow: /a`, in the group for every other crawler (`*`)
f --token foobot /x/../a
    foobot may not fetch /x/../a: line 7, `Disallow: /a`, in the group for every other crawler (`*`); servers may read the path as /a
f --user-agent FIREFOX /a
    A browser may fetch /a: no group names it, and the group for `*` does not apply to it
named --token foobot /a
    foobot may fetch /a: no group of the file is for it
named --user-agent GPTBOT /a
    GPTBot may fetch /a: no rule in the group for GPTBot matches
f --token x /robots.txt
    x may fetch /robots.txt: every crawler may read robots.txt itself
f --user-agent bingbot/2.0 /.well-known/x
    bingbot may fetch /.well-known/x: robotsd exempts the path by default, though line 8, `Disallow: /.well-known/`, disallows it
f --user-agent bingbot --method POST /a
    bingbot may send POST to /a: no group names it, and the group for `*` does not hold for POST
f --user-agent ChatGPT-User /a
    ChatGPT-User may fetch /a: no group names it, and robotsd by default does not hold user-fetch agents to `*`, though line 7, `Disallow: /a`, is for every crawler without a group
f --user-agent AdsBot-Google /a
    AdsBot-Google may fetch /a: no group names it, and its operator says that it does not obey `*`
f --token foobot --method POST /a
    foobot may not send POST to /a: line 7, `Disallow: /a`, in the group for every other crawler (`*`)
";

#[test]
fn the_answer_is_a_sentence_first() {
    let file = "User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /drafts/\nAllow: /drafts/open\n\n\
                User-agent: *\nDisallow: /a\nDisallow: /.well-known/\n";
    let folder = folder(&[("f", file), ("named", "User-agent: GPTBot\nDisallow:\n")]);
    let lines: Vec<_> = SENTENCES.lines().skip(1).collect();
    for row in lines.chunks(2) {
        let words = row[0].split(' ').map(|word| match word {
            "GPTBOT" => GPTBOT,
            "FIREFOX" => FIREFOX,
            word => word,
        });
        let text = run(folder.robotsd().args(["explain", "--robots"]).args(words)).out;
        assert!(!text.contains("policy:"), "without a config there is no policy to show: {text}");
        assert_eq!(text.lines().next(), Some(row[1].trim_start()));
    }
}

#[test]
fn many_crawlers_and_urls_are_a_table() {
    let file = "User-agent: GPTBot\nUser-agent: =cmd\nDisallow: /drafts/\n\nUser-agent: *\nDisallow: /a,b\n";
    let folder = folder(&[("f", file)]);
    let table = |format: &str| {
        let agents = ["--user-agent", "GPTBot", "--user-agent", "Googlebot", "--token", "=cmd"];
        let arguments = ["explain", "--robots", "f", "--format", format, "/drafts/x", "/a,b"];
        let output = run(folder.robotsd().args(arguments).args(&agents[..if format == "csv" { 6 } else { 4 }]));
        (output.code, output.out)
    };
    let (code, matrix) = table("matrix");
    assert_eq!(
        (code, &*matrix),
        (
            Some(0),
            "GPTBot     Googlebot  URL\nno (3)     yes        /drafts/x\nyes        no (6)     /a,b\nno (N): line N of f disallows it\n"
        )
    );
    let (code, csv) = table("csv");
    assert!(code == Some(2) && csv.is_empty(), "crawlers are named by headers or by tokens: {csv}");
    let arguments =
        ["explain", "--robots", "f", "--format", "csv", "--token", "=cmd", "--token", "x", "/drafts/x", "/a,b"];
    let output = folder.run(arguments);
    let want = "url,crawler,access,line,rule,group\r\n\
                /drafts/x,\"'=cmd\",disallow,3,/drafts/,GPTBot =cmd\r\n/drafts/x,x,allow,,,*\r\n\
                \"/a,b\",\"'=cmd\",allow,,,GPTBot =cmd\r\n\"/a,b\",x,disallow,6,\"/a,b\",*\r\n";
    assert_eq!(output.out, want);
}

#[test]
fn no_column_of_a_matrix_is_cut_and_no_token_is_empty() {
    let folder = folder(&[("f", DRAFTS)]);
    let explained = |arguments: &[&str]| {
        let fixed = ["explain", "--robots", "f", "--format", "matrix", "/drafts/x"];
        let output = run(folder.robotsd().args(fixed).args(arguments));
        (output.code, output.said())
    };
    let (one, other) = ("a-crawler-with-a-long-name-1", "a-crawler-with-a-long-name-2");
    let (code, matrix) = explained(&["--token", one, "--token", other]);
    assert!(code == Some(0) && matrix.starts_with(&format!("{one}  {other}  URL\n")), "{matrix}");
    for token in ["", " "] {
        let (code, error) = explained(&["--token", token]);
        assert!(code == Some(2) && error.starts_with("robotsd: the token is empty: "), "{error}");
    }
}

/// With what each command needs besides the robots.txt that a test writes.
fn folder_for_every_command() -> Folder {
    folder(&[
        ("good", DRAFTS),
        ("robotsd.toml", "[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"shop\"\nroot = \".\"\n"),
        ("log", ""),
        ("e", "[[allow]]\nagents = [\"*\"]\npaths = [\"/\"]\n"),
    ])
}

#[test]
fn every_command_says_what_crawlers_do_not_read_of_a_file() {
    let long = format!("User-agent: *\nDisallow: /a\n{}Disallow: /late\n", "# filler, filler, filler\n".repeat(25_000));
    let folder = folder_for_every_command();
    for (text, want) in [
        (
            "<!DOCTYPE html>\n<html><body>Not found</body></html>\n",
            "robots.txt:1:1: error: the file begins with \"<!DOCTYPE\": it is a web page",
        ),
        ("404: Not Found\n", "robots.txt:1:1: error: "),
        (&long, "so the lines from here on do not count\n"),
    ] {
        folder.write("robots.txt", text);
        for arguments in [
            &["explain", "--robots", "robots.txt", "--token", "GPTBot", "/"][..],
            &["explain", "--config", "robotsd.toml", "--token", "GPTBot", "/"],
            &["diff", "robots.txt", "good"],
            &["diff", "good", "robots.txt"],
            &["replay", "log", "--robots", "robots.txt"],
            &["replay", "log", "--robots", "good", "--against", "robots.txt"],
            &["test", "e", "--robots", "robots.txt"],
        ] {
            let Ended { code, error, .. } = folder.run(arguments);
            assert!(error.contains(want), "{arguments:?}: {error}");
            // A page is no robots.txt; one that was published is compared with what takes its place.
            let is_error = text != long && arguments != ["diff", "robots.txt", "good"];
            assert_eq!(code, Some(if is_error { 2 } else { 0 }), "{arguments:?}: {error}");
        }
    }
}

#[test]
fn standard_input_is_not_read_twice() {
    let folder = folder(&[("good", DRAFTS)]);
    for arguments in [
        &["diff", "-", "-"][..],
        &["replay", "-", "--robots", "-"],
        &["replay", "-", "-", "--robots", "good"],
        &["replay", "good", "--robots", "-", "--against", "-"],
        &["test", "-", "--robots", "-"],
    ] {
        let Ended { code, error, .. } = folder.run(arguments);
        let want = "robotsd: standard input can be read once only: name a file in place of all but one \"-\"\n";
        assert_eq!((code, &*error), (Some(2), want), "{arguments:?}");
    }
}

#[test]
fn every_command_says_that_a_file_is_no_text() {
    let wide = |text: &str| text.bytes().flat_map(|octet| [octet, 0]).collect::<Vec<u8>>();
    let marked = [b"\xFF\xFE".to_vec(), wide(DRAFTS)].concat();
    let gzip = b"\x1F\x8B\x08\0\0\0\0\0\0\x03\xD3\xE2\xE2\x02\0\xF3".to_vec();
    let folder = folder_for_every_command();
    for (kind, bytes) in [("UTF-16", marked), ("UTF-16", wide(DRAFTS)), ("not text", gzip)] {
        folder.write("robots.txt", &bytes);
        for arguments in [
            &["explain", "--robots", "robots.txt", "--token", "x", "/"][..],
            &["explain", "--config", "robotsd.toml", "--token", "x", "/"],
            &["diff", "robots.txt", "good"],
            &["diff", "good", "robots.txt"],
            &["test", "e", "--robots", "robots.txt"],
            &["replay", "log", "--robots", "robots.txt"],
            &["replay", "log", "--robots", "good", "--against", "robots.txt"],
            &["agents", "--identify", "x", "--robots", "robots.txt"],
        ] {
            let Ended { code, out, error } = folder.run(arguments);
            assert_eq!((code, out.len()), (Some(2), 0), "{arguments:?}");
            assert!(error.contains("robots.txt: the file is ") && error.contains(kind), "{arguments:?}: {error}");
        }
        let Ended { code, out: text, .. } = folder.run(["check", "robots.txt"]);
        assert!(code == Some(1) && text.contains("crawlers find no rule in it"), "{text}");
        let question = json!({"id": 1, "robots": folder.at("robots.txt"), "token": "x", "url": "/"});
        let answer = batch_with_failures(&question.to_string());
        assert!(answer[0]["error"].as_str().unwrap().contains(kind), "{answer:?}");
    }
}

#[test]
fn a_word_without_a_scheme_or_a_slash_is_not_guessed() {
    let folder = folder(&[("f", DRAFTS)]);
    let explain = |words: &[&str]| {
        let output = run(folder.robotsd().args(["explain", "--robots", "f", "--user-agent", "GPTBot"]).args(words));
        (output.code, output.out, output.error)
    };
    // Nothing is answered, not even about the words that are clear.
    let (code, out, error) = explain(&["/", "drafts/x"]);
    assert_eq!((code, &*out), (Some(2), ""));
    let want = "robotsd: \"drafts/x\" is neither a path nor a URL: write \"/drafts/x\" for the path, or \
                \"https://HOST/drafts/x\" for a URL\n";
    assert_eq!(error, want);
    for word in ["/drafts/x", "https://shop.test/drafts/x", "HTTP://user:pw@shop.test:80/drafts/x"] {
        let (code, out, _) = explain(&[word]);
        assert!(code == Some(0) && out.contains("GPTBot may not fetch "), "{word}: {out}");
        let host = if word.starts_with('/') { "any that serves this robots.txt" } else { "shop.test" };
        assert!(out.contains(&format!("  host:   {host}")), "{word}: {out}");
    }
    let question = |url: &str, reading: &str| {
        json!({"id": 1, "robots_base64": "VXNlci1hZ2VudDogKgpEaXNhbGxvdzogLwo=", "token": "x", "url": url, "reading": reading}).to_string()
    };
    let answers =
        batch_with_failures(&[question("drafts/x", "standard"), question("drafts/x", "reference")].join("\n"));
    assert!(answers[0]["error"].as_str().unwrap().contains("\"/drafts/x\" for the path"), "{answers:?}");
    assert_eq!(answers[1]["access"], "disallow");
}

#[test]
fn urls_are_read_from_standard_input() {
    let folder = folder(&[("f", DRAFTS)]);
    let explain = |arguments: &[&str], input: &[u8]| {
        let fixed = ["explain", "--user-agent", "GPTBot", "--json", "--robots"];
        let output = run_with(folder.robotsd().args(fixed).args(arguments), input);
        (output.code, output.json_lines(), output.error)
    };
    let (code, answers, error) = explain(
        &["f", "/first", "-"],
        b"\xEF\xBB\xBF/drafts/1\r\n# a comment\n  drafts/2\nhttps://a.test/drafts/3 \n/end",
    );
    let urls: Vec<_> =
        answers.iter().map(|answer| (answer["url"].as_str().unwrap(), answer["access"].as_str().unwrap())).collect();
    let want =
        [("/first", "allow"), ("/drafts/1", "disallow"), ("https://a.test/drafts/3", "disallow"), ("/end", "allow")];
    assert_eq!(urls, want);
    assert_eq!((&answers[0]["host"], &answers[2]["host"]), (&Value::Null, &json!("a.test")));
    assert_eq!(code, Some(2), "a line was no URL");
    assert!(error.starts_with("robotsd: <stdin>:3: \"drafts/2\" is neither"), "{error}");
    let (code, answers, error) = explain(&["-", "-"], DRAFTS.as_bytes());
    assert!(code == Some(2) && answers.is_empty() && error.contains("either the robots.txt or the URLs"), "{error}");
    let (code, answers, error) = explain(&["f", "-"], b"# nothing\n");
    assert_eq!((code, answers.len()), (Some(0), 0));
    assert_eq!(error, "robotsd: <stdin>: the list is empty: write one URL a line\n");
}

#[test]
fn the_host_of_a_url_is_held_against_the_site() {
    let config = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"shop\"\nroot = \".\"\n\
                  hosts = [\"shop.test\"]\n";
    let folder = folder(&[("robots.txt", DRAFTS), ("robotsd.toml", config)]);
    for (url, want) in [
        ("/x", "shop.test, the host of the site \"shop\"\n"),
        ("https://shop.test/x", "shop.test, as the URL says\n"),
        (
            "https://other.test/x",
            "other.test, as the URL says; the site \"shop\" serves \"shop.test\", so another robots.txt",
        ),
    ] {
        let text = folder.run(["explain", "--config", "robotsd.toml", "--user-agent", "GPTBot", url]).out;
        assert!(text.contains(&format!("  host:   {want}")), "{url}: {text}");
    }
}

#[test]
fn the_policy_of_a_config_decides() {
    let config = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"shop\"\nroot = \".\"\n\
                  [site.enforcement]\nmode = \"refuse\"\n";
    let folder = folder(&[("robots.txt", SHOP), ("robotsd.toml", config)]);
    let config = folder.at("robotsd.toml").display().to_string();
    let text = run(robotsd().args(["explain", "--config", &config, "--user-agent", GPTBOT, "/x"])).out;
    assert!(text.ends_with("  policy: refuse\n"), "{text}");
    run(robotsd().args(["explain", "--config", &config, "--site", "x", "--token", "a", "/x"])).failed(2);
}

#[test]
fn the_delay_of_the_group_is_explained_with_its_line() {
    let text = "User-agent: *\nCrawl-delay: 5\nDisallow: /x\n\nUser-agent: ClaudeBot\nCrawl-delay: 0.5\nDisallow: /x\n\n\
                User-agent: GPTBot\nDisallow: /x\n";
    let folder = folder(&[("f", text)]);
    let (out, _) = explain(folder.path(), &["--user-agent", "ClaudeBot", "/a"]);
    assert!(
        out.contains(
            "  delay:  f:6: Crawl-delay: 0.5\n          one request in 0.5 s; its operator says that it keeps"
        ),
        "{out}"
    );
    let (out, _) = explain(folder.path(), &["--user-agent", "Googlebot", "/a"]);
    assert!(
        out.contains("f:2: Crawl-delay: 5\n          one request in 5 s; its operator says that it does not read it"),
        "{out}"
    );
    let (out, _) = explain(folder.path(), &["--user-agent", "GPTBot", "/a"]);
    assert!(!out.contains("delay:"), "{out}");
    let (out, _) = explain(folder.path(), &["--json", "--user-agent", "ClaudeBot", "/a"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["crawl_delay"], serde_json::json!({ "line": 6, "seconds": 0.5, "obeys": "yes" }));
}
