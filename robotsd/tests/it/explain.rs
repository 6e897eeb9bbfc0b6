//! Tests `explain`, with single questions and with many.

use std::collections::HashSet;

use crate::harness::*;

/// Returns the answers to questions. With exit status 2, some questions cannot be answered.
fn batch(questions: &str, code: i32) -> Vec<Value> {
    run_with(robotsd().args(["explain", "--batch"]), questions.as_bytes()).ends_with(code).json_lines()
}

#[test]
fn a_batch_answers_in_order_and_survives_bad_lines() {
    let folder =
        folder(&[("robots.txt", "User-agent: GPTBot\nDisallow: /drafts/\n\nUser-agent: *\nDisallow: /a%62\n")]);
    let robots = folder.at("robots.txt").display().to_string();
    let error_of = |answer: &Value, part: &str| assert_has(answer["error"].as_str().unwrap(), &[part]);
    let gptbot = json!({"class": "registered", "crawler": "GPTBot", "category": "ai-training", "tokens": ["gptbot"],
        "held_to_star": true});
    let browser = json!({"class": "browser", "crawler": null, "category": null, "tokens": [], "held_to_star": false});
    let no_group = json!({"access": "allow", "line": null, "pattern": null, "group": null, "form": "standard"});
    let rows = [
        (
            json!({"id": 1, "user_agent": GPTBOT, "url": "https://x.test/drafts/y"}),
            json!({"access": "disallow", "line": 2, "pattern": "/drafts/", "group": ["GPTBot"], "form": "standard",
                "agent": gptbot}),
        ),
        (json!({"id": "two", "user_agent": FIREFOX, "url": "/drafts/y"}), no_group),
        (json!("no question"), json!({"id": null, "line": 3, "error": "expected ident at column 2"})),
        (json!({"id": 4, "token": "foobot", "url": "/ab"}), json!({"access": "disallow", "line": 5})),
        (
            json!({"id": 5, "token": "foobot", "url": "/ab", "reading": "reference"}),
            json!({"access": "allow", "form": "verbatim"}),
        ),
        (json!({"id": 6, "token": "foobot", "url_base64": "L2Fi"}), json!({"access": "disallow"})),
        (
            json!({"id": 7, "token": "foobot"}),
            json!({"line": 7, "error": "a question must contain either \"url\" or \"url_base64\""}),
        ),
        (json!({"id": 8, "robots": "/no/such/file", "token": "x", "url": "/"}), json!({})),
        (
            json!({"id": 9, "robots": null, "robots_base64": "VXNlci1hZ2VudDogKgpEaXNhbGxvdzogLwo=", "token": "x",
                "url": "/"}),
            json!({"access": "disallow", "group": ["*"]}),
        ),
        (
            json!({"id": 10, "user_agent": "NewBot/1.0 (+https://x.test/bot)", "method": "POST", "url": "/ab"}),
            json!({"access": "allow", "agent": {"held_to_star": true}}),
        ),
        (json!({"id": 11, "token": "gptbot", "url": "/drafts/", "colour": "red"}), json!({})),
        (json!({"id": 12, "token": "x", "url": "/b/../ab"}), json!({"access": "disallow", "form": "resolved"})),
        (
            json!({"id": 13, "user_agent": "ClaudeBot/1.0 GPTBot/1.2", "url": "/drafts/y"}),
            json!({"access": "disallow", "agent": {"crawler": "GPTBot"}}),
        ),
    ];
    let line = |question: &Value| {
        let Some(fields) = question.as_object() else { return question.as_str().unwrap().to_owned() };
        let mut whole = json!({"robots": robots}).as_object().unwrap().clone();
        whole.extend(fields.clone());
        whole.retain(|_, value| !value.is_null());
        Value::from(whole).to_string()
    };
    let answers = batch(&rows.iter().map(|(question, _)| line(question)).collect::<Vec<_>>().join("\n"), 2);
    assert_eq!(answers.len(), rows.len());
    for (answer, (question, want)) in answers.iter().zip(&rows) {
        assert_part(answer, want);
        assert_eq!(answer["id"], question["id"], "{answer}");
    }
    assert_eq!(answers[1]["agent"], browser);
    // The answers must be complete, without additional fields.
    let fields = [0, 1, 2, 6].map(|at| answers[at].as_object().unwrap().len());
    assert_eq!(fields, [7, 7, 3, 3]);
    assert_eq!(answers[0]["agent"], gptbot);
    assert!(answers[7]["error"].as_str().unwrap().starts_with("/no/such/file: "));
    error_of(&answers[10], "colour");
}

#[test]
fn an_explanation_of_a_path_with_many_forms_is_short_and_shows_the_one_that_decides() {
    let folder = folder(&[("robots.txt", "User-agent: *\nDisallow: /private/\n")]);
    let target = "//h;a/x//..;/%2E%5C..//y%2F..%5C../%2F../private/x";
    let text = folder.run(["explain", "--robots", "robots.txt", "--user-agent", GPTBOT, target]).out;
    let forms = text.lines().filter(|line| line.starts_with("  read as ")).count();
    assert!((20..=21).contains(&forms), "{text}");
    assert_eq!(text.matches("/private/x  <- decides").count(), 1, "{text}");
    assert_has(text, &["  only the first 20 of ", " forms and the deciding one are shown"]);
}

#[test]
fn an_explanation_shows_the_files_own_lines() {
    let folder = folder(&[("f", "User-agent: GPTBot\nDisallow: /drafts/  # not yet\n")]);
    let (text, _) = explain(&folder, &["--user-agent", GPTBOT, "/drafts/x"]);
    let want = "GPTBot may not fetch /drafts/x: line 2, `Disallow: /drafts/`, in the group for GPTBot\n";
    assert!(text.starts_with(want), "{text}");
    assert_has(text, &[":2: Disallow: /drafts/  # not yet  <- decides\n"]);
    let error = run(robotsd().args(["explain", "--robots", "no-such-file", "--token", "x", "/"])).failed(2);
    assert!(error.starts_with("robotsd: no-such-file: "));
}

#[test]
fn the_shared_verdicts_agree_in_bulk() {
    use crate::shared::cases;
    use base64::Engine as _;
    let (files, mut cases) = (cases("robots_files.jsonl.gz"), cases("verdicts.jsonl.gz"));
    let (mut kinds, mut number) = (HashSet::new(), 0);
    // The library is tested with all cases. This test takes the first case of each kind, and one in
    // fifty of the others.
    cases.retain(|case| {
        number += 1;
        kinds.insert(case["kind"].to_string()) || is_long() || number % 50 == 0
    });
    let folder = folder(&[]);
    let path = |name: &str| folder.at(name.replace('/', "_"));
    for file in files {
        let body = base64::engine::general_purpose::STANDARD.decode(file["body_base64"].as_str().unwrap()).unwrap();
        std::fs::write(path(file["robots"].as_str().unwrap()), body).unwrap();
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

/// Returns standard output and standard error of `explain`.
fn explain(folder: &Folder, arguments: &[&str]) -> (String, String) {
    let output = folder.run([&["explain", "--robots", "f"], arguments].concat()).ends_with(0);
    (output.out, output.error)
}

#[test]
fn a_name_is_looked_up_as_a_name() {
    let file = "User-agent: Stripe\nUser-agent: Google-Extended\nDisallow: /\n\nUser-agent: *\nDisallow: /a\n";
    let folder = folder(&[("f", file)]);
    // For these names, a header must contain more than the name, or no header contains the name.
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
    assert!(out.starts_with("Any crawler that no group names may not fetch /a: line 6, ") && error.is_empty(), "{out}");
}

#[test]
fn a_category_stands_for_its_crawlers() {
    let folder = folder(&[("f", "User-agent: GPTBot\nDisallow: /\n")]);
    let (out, error) = explain(&folder, &["--user-agent", "category:ai-training", "--format", "csv", "/x"]);
    let verdict = |crawler: &str| out.lines().find(|row| row.contains(&format!(",{crawler},"))).map(str::to_owned);
    assert!(verdict("GPTBot").is_some_and(|row| row.contains("disallow")) && error.is_empty(), "{out}{error}");
    assert!(verdict("ClaudeBot").is_some_and(|row| row.contains("allow") && !row.contains("disallow")), "{out}");
    assert_eq!(verdict("Googlebot"), None);
    let unknown = ["explain", "--robots", "f", "--user-agent", "operator:Nobody", "/x"];
    assert_has(folder.run(unknown).failed(2), &["--user-agent \"operator:Nobody\": no crawler of the registry has"]);
}

#[test]
fn an_unknown_crawler_is_reported_with_a_suggestion_and_the_assumption() {
    let folder = folder(&[("f", "User-agent: HouseBot\nDisallow: /x\n\nUser-agent: *\nDisallow: /a\n")]);
    let assumed = "as a crawler that obeys the group of this name, or else the one for \"*\"";
    for (option, name, want) in [
        ("--token", "Googelbot", Some("\"Googelbot\": did you mean \"Googlebot\"? The answer treats it")),
        ("--token", "Bing", Some("did you mean \"bingbot\"?")),
        ("--token", "qqqqqqqq", Some("\"qqqqqqqq\": the answer treats it")),
        ("--user-agent", "qqqqqqqq", Some("\"qqqqqqqq\": the answer treats it")),
        ("--user-agent", "HouseBot", None),
        ("--token", "housebot", None),
        ("--token", "Yandex", None),
        ("--user-agent", FIREFOX, None),
        ("--user-agent", "NewBot/1.0", None),
    ] {
        let (out, error) = explain(&folder, &[option, name, "/a"]);
        match want {
            Some(want) => {
                assert_has(error, &[want, assumed]);
                assert_has(out, &["may not fetch /a: line 5, "]);
            }
            None => assert_eq!(error, "", "{name}"),
        }
    }
    // An answer about the wrong client is easily overlooked, so the answer must name the client.
    for (name, want) in [
        ("Bing", "did you mean \"bingbot\"? Or use --token"),
        ("Googelbot", "did you mean \"Googlebot\"?"),
        ("HuoseBot", "did you mean \"HouseBot\"?"),
        ("Firefox", "neither the name of a crawler nor a whole header"),
    ] {
        let ended = folder.run(["explain", "--robots", "f", "--user-agent", name, "/a"]);
        assert_eq!(ended.out, "", "{name}");
        assert_has(ended.failed(2), &[want]);
    }
}

#[test]
fn a_missing_argument_is_reported_with_every_way_to_name_it() {
    let folder = folder(&[("f", DRAFTS)]);
    let usual = "name a file, a URL such as https://example.com, or a site with --config FILE";
    for (arguments, want) in [
        (
            &["f", "--user-agent", "GPTBot", "/"][..],
            "\"f\" is a file, not a URL: if it is the robots.txt, write --robots f",
        ),
        (&["--user-agent", "GPTBot", "/"], usual),
        (&["--robots", "f", "/"], "name one with --user-agent NAME, or with --token TOKEN"),
        (&["--robots", "f", "--token", "GPTBot"], "no URL is given: write a path such as /"),
    ] {
        assert_has(folder.run([&["explain"], arguments].concat()).failed(2), &[want]);
    }
    // The same as for `check`, `test` and `diff`.
    assert_has(folder.run(["check"]).failed(2), &[usual]);
    folder.write("robots.txt", DRAFTS);
    assert_has(folder.run(["explain", "--user-agent", "GPTBot", "/drafts/"]).out, &["may not fetch /drafts/: line "]);
}

#[test]
fn the_handling_of_rate_limited_requests_is_explained() {
    let robots = "User-agent: *\nCrawl-delay: 5\nDisallow: /x\n\nUser-agent: GPTBot\nDisallow: /x\n";
    let says = |rate: &str, agent: &str| {
        let site = format!("robots.path = \"robots.txt\"\n[site.rate]\nmode = \"{rate}\"");
        let folder = Config::deciding().site("shop", site).robots(robots).folder();
        folder.with_config(&["explain", "--user-agent", agent, "/"]).out
    };
    assert_has(
        says("refuse", "NewBot/1.0 (+https://new.example/bot)"),
        &["  rate:   one request in 5 s; a request that exceeds this is answered with 429\n"],
    );
    assert_has(says("observe", "NewBot/1.0 (+https://new.example/bot)"), &["exceeds this is allowed, and recorded\n"]);
    assert_has(
        says("off", "NewBot/1.0 (+https://new.example/bot)"),
        &["not limited: the config does not enforce the Crawl-delay"],
    );
    assert_has(says("refuse", "GPTBot"), &["  rate:   not limited: no Crawl-delay applies to the request\n"]);
}

#[test]
fn a_registered_token_has_the_further_groups_of_its_crawler() {
    let file = "User-agent: Googlebot\nDisallow: /g\n\nUser-agent: *\nDisallow: /a\n";
    let folder = folder(&[("f", file)]);
    for (token, url, reading, want) in [
        (
            "Googlebot-Image",
            "/g",
            "standard",
            "Googlebot-Image may not fetch /g: line 2, `Disallow: /g`, in the group for Googlebot\n  agent:  the token of \
             Googlebot-Image; obeys googlebot-image, then googlebot\n",
        ),
        ("AdsBot-Google", "/a", "standard", "AdsBot-Google may fetch /a: no group names it, and "),
        // The reference parser takes only one token. The caller would have to handle the others.
        (
            "Googlebot-Image",
            "/g",
            "reference",
            "Googlebot-Image may fetch /g: no rule in the group for every other crawler (`*`) matches\n  agent:  the token \
             Googlebot-Image, used as given\n",
        ),
    ] {
        let (out, _) = explain(&folder, &["--token", token, "--reading", reading, url]);
        assert!(out.starts_with(want), "{out}");
    }
}

/// The verdict of an expectation about a name must be the same as that of `explain`.
#[test]
fn a_name_means_the_same_for_explain_and_test() {
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
fn every_rule_that_matches_is_shown_with_the_one_that_decides() {
    let folder = folder(&[("f", SHOP)]);
    let (text, _) = explain(&folder, &["--user-agent", GPTBOT, "/open/x/1"]);
    let want = "GPTBot may not fetch /open/x/1: line 4, `Disallow: /open/x`, in the group for GPTBot\n  agent:  registered GPTBot, \
    ai-training; obeys gptbot, else *\n  host:   any that serves this robots.txt\n  \
                group:  f:1: User-agent: GPTBot\n          because it names gptbot\n  \
                rule:   f:4: Disallow: /open/x  <- decides\n  rule:   f:3: Allow: /open/\n  rule:   f:2: Disallow: /\n";
    assert_eq!(text, want);
    let parts = [
        "because no group names it, and \"*\" is for every other crawler\n",
        "  read as standard: /y/../open  <- decides\n  rule:   f:7: Disallow: /y  <- decides\n",
        "  rule:   none of the group's rules matches, so the path is allowed\n",
    ];
    assert_has(explain(&folder, &["--token", "foobot", "/y/../open", "/z"]).0, &parts);
}

#[test]
fn an_explanation_in_json_contains_the_same() {
    let folder = folder(&[("f", SHOP)]);
    let said: Value =
        serde_json::from_str(&explain(&folder, &["--json", "--user-agent", GPTBOT, "/open/x/1"]).0).unwrap();
    assert_eq!(said["rule"], json!({"line": 4, "access": "disallow", "pattern": "/open/x"}));
    let lines: Vec<_> = said["forms"][0]["rules"].as_array().unwrap().iter().map(|rule| rule["line"].clone()).collect();
    assert_eq!(lines, [4, 3, 2]);
    assert_part(&said, &json!({"token": "gptbot", "reason": "observed", "action": "pass"}));
}

const DRAFTS: &str = "User-agent: GPTBot\nDisallow: /drafts/\n";

/// The arguments of `explain --robots`, and the first line of the answer.
const SENTENCES: &str = "
f --user-agent GPTBOT /drafts/x
    GPTBot may not fetch /drafts/x: line 3, `Disallow: /drafts/`, in the group for GPTBot
f --user-agent GPTBOT /drafts/open
    GPTBot may fetch /drafts/open: line 4, `Allow: /drafts/open`, in the group for GPTBot
f --user-agent GPTBOT /a
    GPTBot may fetch /a: no rule in the group for GPTBot matches; `*` would have disallowed it, line 7
f --user-agent GPTBOT /b/../a
    GPTBot may fetch /b/../a: no rule in the group for GPTBot matches; `*` would have disallowed it, line 7
f --user-agent GPTBOT /b
    GPTBot may fetch /b: no rule in the group for GPTBot matches
f --user-agent GPTBOT --method POST /a
    GPTBot may send POST to /a: no rule in the group for GPTBot matches
f --token CCBot /drafts/
    CCBot may not fetch /drafts/: line 3, `Disallow: /drafts/`, in the group for CCBot
f --token foobot /a
    foobot may not fetch /a: line 7, `Disallow: /a`, in the group for every other crawler (`*`)
f --token foobot /x/../a
    foobot may not fetch /x/../a: line 7, `Disallow: /a`, in the group for every other crawler (`*`); servers may read the path as /a
f --user-agent FIREFOX /a
    A browser may fetch /a: no group names it, and the group for `*` does not apply to it
named --token foobot /a
    foobot may fetch /a: no group in the file applies to it
named --user-agent GPTBOT /a
    GPTBot may fetch /a: no rule in the group for GPTBot matches
f --token x /robots.txt
    x may fetch /robots.txt: every crawler may read robots.txt itself
f --user-agent bingbot/2.0 /.well-known/x
    bingbot may fetch /.well-known/x: paths below /.well-known/ are always exempt, though line 8, `Disallow: /.well-known/`, disallows it
f --user-agent bingbot --method POST /a
    bingbot may send POST to /a: no group names it, and the group for `*` does not apply to POST
f --user-agent ChatGPT-User /a
    ChatGPT-User may fetch /a: no group names it, and robotsd by default does not apply `*` to user-fetch agents, though line 7, \
    `Disallow: /a`, is for every crawler without a group
f --user-agent AdsBot-Google /a
    AdsBot-Google may fetch /a: no group names it, and its operator says that it does not obey `*`
f --token foobot --method POST /a
    foobot may not send POST to /a: line 7, `Disallow: /a`, in the group for every other crawler (`*`)
";

#[test]
fn the_answer_begins_with_a_sentence() {
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
    let table = |format: &str, agents: &str| {
        let fixed = ["explain", "--robots", "f", "--format", format, "/drafts/x", "/a,b"];
        folder.run(fixed.into_iter().chain(agents.split(' ')))
    };
    let headers = "--user-agent GPTBot --user-agent Googlebot";
    let want = "GPTBot     Googlebot  URL\nno (3)     yes        /drafts/x\nyes        no (6)     /a,b\nno (N): line N of f disallows it\n";
    assert_eq!(table("matrix", headers).succeeded(), want);
    let both = table("csv", &format!("{headers} --token =cmd"));
    assert_eq!((both.code, &*both.out), (Some(2), ""), "crawlers are named by headers or by tokens");
    let want = "url,crawler,access,line,rule,group\r\n\
                /drafts/x,\"'=cmd\",disallow,3,/drafts/,GPTBot =cmd\r\n/drafts/x,x,allow,,,*\r\n\
                \"/a,b\",\"'=cmd\",allow,,,GPTBot =cmd\r\n\"/a,b\",x,disallow,6,\"/a,b\",*\r\n";
    assert_eq!(table("csv", "--token =cmd --token x").out, want);
}

#[test]
fn no_column_of_a_matrix_is_cut_and_no_token_is_empty() {
    let folder = folder(&[("f", DRAFTS)]);
    let matrix = ["explain", "--robots", "f", "--format", "matrix", "/drafts/x"];
    let explained = |arguments: &[&str]| folder.run([&matrix[..], arguments].concat());
    let (one, other) = ("a-crawler-with-a-long-name-1", "a-crawler-with-a-long-name-2");
    let shown = explained(&["--token", one, "--token", other]).succeeded();
    assert!(shown.starts_with(&format!("{one}  {other}  URL\n")), "{shown}");
    for token in ["", " "] {
        let error = explained(&["--token", token]).failed(2);
        assert!(error.starts_with("robotsd: the token is empty: "), "{error}");
    }
}

/// Creates a folder with everything that the commands need. The test writes the robots.txt.
fn folder_for_every_command() -> Folder {
    let config = Config::new().files_of("shop").file("good", DRAFTS).file("log", "");
    config.file("e", "[[allow]]\nagents = [\"*\"]\npaths = [\"/\"]\n").folder()
}

/// Commands that read the file. The last one finds no published version to compare the file with.
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
fn every_command_reports_the_unread_part_of_a_file() {
    let filler = format!("# {}\n", "filler, ".repeat(100));
    let long = format!("User-agent: *\nDisallow: /a\n{}Disallow: /late\n", filler.repeat(700));
    let folder = folder_for_every_command();
    let page = "<!DOCTYPE html>\n<html><body>Not found</body></html>\n";
    for (text, want) in [
        (page, "robots.txt:1:1: error: the file begins with \"<!DOCTYPE\": it is a web page"),
        ("404: Not Found\n", "robots.txt:1:1: error: "),
        (&long, "so they may ignore the lines from this line on\n"),
    ] {
        folder.write("robots.txt", text);
        for arguments in &READING[..7] {
            // A web page is not a robots.txt. `diff` accepts one as the old file, because that is
            // what it replaces.
            let is_error = text != long && *arguments != ["diff", "robots.txt", "good"];
            assert_has(folder.run(*arguments).failed(if is_error { 2 } else { 0 }), &[want]);
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
        let want = "robotsd: standard input can be read only once: write \"-\" for one file only\n";
        assert_eq!(folder.run(arguments).failed(2), want, "{arguments:?}");
    }
}

#[test]
fn every_command_reports_that_a_file_is_not_text() {
    let wide = |text: &str| text.bytes().flat_map(|octet| [octet, 0]).collect::<Vec<u8>>();
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
        assert_has(folder.run(["check", "robots.txt"]).ends_with(1).out, &["crawlers find no rule in it"]);
        let question = json!({"id": 1, "robots": folder.at("robots.txt"), "token": "x", "url": "/"});
        assert_has(batch(&question.to_string(), 2)[0]["error"].as_str().unwrap(), &[kind]);
    }
}

#[test]
fn a_word_without_a_scheme_or_a_slash_is_not_guessed() {
    let folder = folder(&[("f", DRAFTS)]);
    let gptbot = ["explain", "--robots", "f", "--user-agent", "GPTBot"];
    // Nothing may be answered, not even about the arguments that are valid.
    let output = folder.run(gptbot.into_iter().chain(["/", "drafts/x"])).ends_with(2);
    let want = "robotsd: \"drafts/x\" is neither a path nor a URL: write \"/drafts/x\" for the path, or \
                \"https://HOST/drafts/x\" for a URL\n";
    assert_eq!((&*output.out, &*output.error), ("", want));
    for word in ["/drafts/x", "https://shop.test/drafts/x", "HTTP://user:pw@shop.test:80/drafts/x"] {
        let host = if word.starts_with('/') { "any that serves this robots.txt" } else { "shop.test" };
        let out = folder.run(gptbot.into_iter().chain([word])).succeeded();
        assert_has(out, &["GPTBot may not fetch ", &format!("  host:   {host}")]);
    }
    let question = |url: &str, reading: &str| {
        json!({"id": 1, "robots_base64": "VXNlci1hZ2VudDogKgpEaXNhbGxvdzogLwo=", "token": "x", "url": url, "reading": reading}).to_string()
    };
    let answers = batch(&["standard", "reference"].map(|reading| question("drafts/x", reading)).join("\n"), 2);
    assert_has(answers[0]["error"].as_str().unwrap(), &["\"/drafts/x\" for the path"]);
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
    let lines = b"\xEF\xBB\xBF/drafts/1\r\n# a comment\n  drafts/2\nhttps://a.test/drafts/3 \n/end";
    let (code, answers, error) = explain(&["f", "/first", "-"], lines);
    let urls: Vec<_> =
        answers.iter().map(|answer| (answer["url"].as_str().unwrap(), answer["access"].as_str().unwrap())).collect();
    let want =
        [("/first", "allow"), ("/drafts/1", "disallow"), ("https://a.test/drafts/3", "disallow"), ("/end", "allow")];
    assert_eq!(urls, want);
    assert_eq!((&answers[0]["host"], &answers[2]["host"]), (&Value::Null, &json!("a.test")));
    assert_eq!(code, Some(2), "a line was no URL");
    assert!(error.starts_with("robotsd: <stdin>:3: \"drafts/2\" is neither"), "{error}");
    let (code, answers, error) = explain(&["-", "-"], DRAFTS.as_bytes());
    assert!(code == Some(2) && answers.is_empty() && error.contains("both the robots.txt and the URLs"), "{error}");
    let (code, answers, error) = explain(&["f", "-"], b"# nothing\n");
    assert_eq!((code, answers.len()), (Some(0), 0));
    assert_eq!(error, "robotsd: <stdin>: the list is empty: write one URL per line\n");
}

#[test]
fn the_host_of_a_url_is_compared_with_the_site() {
    let folder = Config::new().files_of("shop").tables("hosts = [\"shop.test\"]").robots(DRAFTS).folder();
    let other = "other.test, as in the URL; the site \"shop\" serves \"shop.test\", so another robots.txt";
    for (url, want) in [
        ("/x", "shop.test, the host of the site \"shop\"\n"),
        ("https://shop.test/x", "shop.test, as in the URL\n"),
        ("https://other.test/x", other),
    ] {
        let text = folder.with_config(&["explain", "--user-agent", "GPTBot", url]).out;
        assert_has(text, &[&format!("  host:   {want}")]);
    }
}

#[test]
fn the_policy_of_a_config_decides_and_its_override_is_named() {
    let modes = "[site.modes]\nindex = \"refuse\"\n\"agent:CCBot\" = \"observe\"\n\"agent:bingbot\" = { mode = \"tag\", until = 2020-01-01 }";
    let config = Config::refusing().files_of("shop").tables(modes);
    let folder = config.robots("User-agent: *\nDisallow: /x\n\nUser-agent: GPTBot\nDisallow: /x\n").folder();
    for (agent, path, want) in [
        (GPTBOT, "/x", "refuse, with 403"),
        ("bingbot", "/x", "refuse, with 403, by the override for index engines in [site.modes]"),
        ("bingbot", "/", "let pass"),
        (
            "CCBot",
            "/x",
            "let pass, and record (the mode is observe), by the override for agent \"ccbot\" in [site.modes]",
        ),
    ] {
        let text = folder.with_config(&["explain", "--user-agent", agent, path]).out;
        assert!(text.ends_with(&format!("  policy: {want}\n")), "{text}");
    }
    folder.with_config(&["explain", "--site", "x", "--token", "a", "/x"]).failed(2);
    // The same as for other commands.
    let short = folder.run(["explain", "-c", "robotsd.toml", "--user-agent", GPTBOT, "/x"]).out;
    assert_eq!(short, folder.with_config(&["explain", "--user-agent", GPTBOT, "/x"]).out);
}

/// `explain` must answer as the server would at this moment: while a rule is new, and while
/// enforcement is off.
#[test]
fn the_explained_policy_has_the_servers_grace_period_and_switch() {
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
    let grace = format!("2 rules only observe until {end} at the latest");
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
        assert_eq!(
            (&json["access"], &json["action"], &json["reason"]),
            (&json!("disallow"), &json!("pass"), &json!("kill-switch"))
        );
        assert!(json.get("grace_end").is_none(), "{json}");
        running.command(&[&["enforce", "on"], site].concat()).succeeded();
    }
    running.end();
    assert_eq!(policy(&explain(&[])), want);
    // If the state cannot be read, this must be reported. The answer is then based on the policy
    // only.
    let switch = folder.at("state/enforcement");
    std::fs::remove_file(&switch).unwrap();
    std::fs::create_dir(&switch).unwrap();
    let unread = folder.with_config(&["explain", "--user-agent", GPTBOT, "/new"]);
    assert_has(
        &unread.error,
        &["a server with the same problem enforces nothing; this answer ignores the switch and grace periods"],
    );
    assert_eq!(policy(&unread.out), "  policy: refuse, with 403");
}

#[test]
fn a_pending_version_is_not_taken_for_live_and_kept_ones_can_be_named() {
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
        "this version is pending since {}; the live version is {live}",
        status["pending"]["since"].as_str().unwrap()
    );
    let text = explain(&[]);
    assert_has(&text.out, &["GPTBot may not fetch /", &format!("\n  live:   {about}, which answers allow\n")]);
    assert_has(&text.error, &[&about]);
    for other in [&["--json"][..], &["--format", "csv"]] {
        assert_has(explain(other).error, &[&about]);
    }
    assert_has(folder.with_config(&["check"]).error, &[&format!("robots.txt: {about}\n")]);
    for (version, want) in
        [(&*live, "GPTBot may fetch /"), (&waits, "GPTBot may not fetch /"), (&live[..12], "may fetch")]
    {
        let Ended { out, error, .. } = explain(&["--version", version]).ends_with(0);
        assert_has(&out, &[want]);
        assert_lacks(&out, &["live:"]);
        assert_eq!(error, "", "nothing is said about the file");
    }
    assert_has(
        explain(&["--version", "0123456789ab"]).failed(2),
        &["no version of the site that this user can read", " 0123456789ab\n"],
    );
    // The files that a process leaves must give the same answer, until the version is rolled back.
    running.end();
    assert_has(explain(&[]).out, &[&about]);
    folder.replace("robots.txt", OPEN);
    assert_lacks(explain(&[]).out, &["live:"]);
    folder.replace("robots.txt", "User-agent: *\nDisallow: /a\n");
    assert_has(
        explain(&[]).out,
        &[&format!("  live:   this version is not live; the live version is {live}, which answers allow\n")],
    );
    assert_lacks(explain(&["--robots", "robots.txt"]).out, &["live:"]);
}

#[test]
fn the_delay_of_the_group_is_explained_with_its_line() {
    let text = "User-agent: *\nCrawl-delay: 5\nDisallow: /x\n\nUser-agent: ClaudeBot\nCrawl-delay: 0.5\nDisallow: /x\n\n\
                User-agent: GPTBot\nDisallow: /x\n";
    let folder = folder(&[("f", text)]);
    let said = |agent: &str| explain(&folder, &["--user-agent", agent, "/a"]).0;
    let keeps = "  delay:  f:6: Crawl-delay: 0.5\n          one request in 0.5 s; its operator says that it obeys";
    assert_has(said("ClaudeBot"), &[keeps]);
    let unread = "f:2: Crawl-delay: 5\n          one request in 5 s; its operator says that it ignores the delay";
    assert_has(said("Googlebot"), &[unread]);
    assert_lacks(said("GPTBot"), &["delay:"]);
    let (out, _) = explain(&folder, &["--json", "--user-agent", "ClaudeBot", "/a"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["crawl_delay"], json!({ "line": 6, "seconds": 0.5, "obeys": "yes" }));
}
