//! Tests that the server and the commands agree about a site, because they use the same registry,
//! policy and checks.

use serde_json::json as object;
use tower_robots::agent::Registry;

use crate::harness::*;

/// A crawler that is not in the built-in registry. Its header contains `Acme-Fetcher`, and it obeys
/// the group `acmebot`.
const REGISTRY: &str = "[[crawler]]\nname = \"AcmeBot\"\nheader = [\"Acme-Fetcher\"]\ntokens = [\"AcmeBot\"]\n\
                        operator = \"Acme\"\ncategory = \"ai-training\"\n";
const ROBOTS: &str = "User-agent: AcmeBot\nDisallow: /drafts/\n";
const ACME: &str = "Acme-Fetcher/2.0";

const SITE: &str = "[[site]]\nname = \"shop\"\nhosts = [\"shop.test\", \"site.test\"]\nroot = \"root\"\nrobots.path = \"robots.txt\"\n\
                    robots.expectations = \"shop.test.toml\"\n";
const EXPECTATIONS: &str = "[[disallow]]\nagents = [\"AcmeBot\", \"Acme-Fetcher/2.0\"]\npaths = [\"/drafts/x\"]\n";

fn config(sites: &str) -> Config {
    let config = Config::refusing().tables("[agents]\nregistry_extra = \"crawlers.toml\"").tables(sites);
    config.file("crawlers.toml", REGISTRY).robots(ROBOTS)
}

fn site_folder(sites: &str) -> Folder {
    let config = config(sites).file("shop.test.toml", EXPECTATIONS).file("access.log", log_line(ACME));
    let decision = config.clone().listener("kind = \"decision\"").to_string();
    let folder = config.file("decision.toml", decision).folder();
    fs::create_dir(folder.at("root")).unwrap();
    folder
}

fn log_line(agent: &str) -> String {
    format!("192.0.2.1 - - [01/Nov/2026:01:00:00 +0000] \"GET /drafts/x HTTP/1.1\" 200 9 \"-\" \"{agent}\"\n")
}

#[test]
fn the_server_and_every_command_recognize_a_crawler_of_registry_extra() {
    let folder = site_folder(SITE);
    let serving = folder.start();
    assert_eq!((serving.get("/drafts/x", ACME).status, serving.get("/", ACME).status), (403, 404));
    let deciding = Running::start_with(&folder.at("decision.toml"));
    let question = |agent| {
        let fields = [("X-Original-URI", "/drafts/x"), ("X-Original-Method", "GET"), ("User-Agent", agent)];
        deciding.request("GET", "/-/auth/nginx", &fields).status
    };
    assert_eq!((question(ACME), question(GPTBOT)), (403, 200));

    let explained = folder.with_config(&["explain", "--json", "--user-agent", ACME, "/drafts/x"]).json();
    assert_part(&explained, &object!({"agent": {"crawler": "AcmeBot"}, "action": "refuse"}));
    let replayed = folder.with_config(&["replay", "access.log", "--format", "json"]).json();
    assert_eq!(replayed["crawlers"][0]["name"], "AcmeBot");
    assert_eq!(replayed["totals"]["disallowed"], 1);
    let test = folder.with_config(&["test"]).ends_with(0);
    assert_eq!((&*test.out, &*test.error), ("2 expected, all met\n", ""));
    let identify = ["agents", "--format", "json", "--robots", "robots.txt", "--identify", ACME];
    assert_eq!(folder.with_config(&identify).json()["crawler"], "AcmeBot");

    // Another file must be judged with the same settings.
    folder.write("new.txt", "User-agent: *\nDisallow: /private/\n");
    let diff = folder.with_config(&["diff", "--format", "json", "new.txt"]).json();
    let crawlers = diff["effects"].as_array().unwrap().iter().flat_map(|effect| effect["crawlers"].as_array().unwrap());
    assert!(crawlers.into_iter().any(|crawler| crawler["name"] == "AcmeBot"), "{diff}");
    let test = folder.with_config(&["test", "--robots", "new.txt"]).out;
    assert!(test.ends_with("2 expected, 2 not met\n"), "{test}");
}

#[test]
fn check_and_server_report_a_refused_search_engine_of_registry_extra() {
    let folder = site_folder(&format!("{SITE}[site.modes]\n\"index\" = \"refuse\"\n"));
    let registry = REGISTRY.replace("ai-training", "search") + "index = true\n";
    folder.write("crawlers.toml", registry);
    assert_has(folder.with_config(&["check", "--format", "json"]).out, &["search-engine-refused"]);
    let serving = folder.start();
    serving.wait_for_event("finding", |line| line["reason"] == "search-engine-refused");
}

/// The file has rules for every crawler, and the mode is `refuse`, as is typical of a site that
/// begins to enforce.
#[test]
fn server_and_commands_tag_search_engines_unless_an_override_refuses_them() {
    const WOTBOX: &str = "Wotbox/2.0 (+http://www.wotbox.com/bot/)";
    let sites = |over: &str| {
        format!("[[site]]\nname = \"shop\"\nroot = \"root\"\nrobots.path = \"robots.txt\"\n[site.modes]\n{over}")
    };
    let robots = "User-agent: *\nDisallow: /search\nDisallow: /cart\n";
    let category = |mode: &str| format!("\"category:search\" = \"{mode}\"\n");
    let index = |mode: &str| format!("\"index\" = \"{mode}\"\n");
    let pattern = "\"pattern:/cart\" = \"refuse\"\n";
    for (over, google, wotbox, finding) in [
        (String::new(), ("tag", "search-engine", 404), 403, None),
        (category("tag"), ("tag", "disallowed", 404), 404, None),
        (category("refuse"), ("refuse", "disallowed", 403), 403, Some(2)),
        (category("refuse") + &index("tag"), ("tag", "disallowed", 404), 403, None),
        (index("refuse"), ("refuse", "disallowed", 403), 403, Some(2)),
        (pattern.to_owned(), ("tag", "search-engine", 404), 403, Some(3)),
    ] {
        let folder = site_folder(&sites(&over));
        folder.write("robots.txt", robots);
        let logged = [GOOGLEBOT, WOTBOX].map(log_line).concat().replace("/drafts/x", "/search?q=1");
        folder.write("access.log", logged);

        let explained = folder.with_config(&["explain", "--json", "--user-agent", GOOGLEBOT, "/search?q=1"]).json();
        assert_part(&explained, &object!({"action": google.0, "reason": google.1}));
        let replayed = folder.with_config(&["replay", "access.log", "--format", "json"]).json();
        assert_eq!(replayed["totals"]["disallowed"], 2, "what the rules say is the same for all: {over}: {replayed}");

        // There must be one finding for all search engines. The check, the check of the config, the
        // log and the status must show the same text.
        let found = folder.with_config(&["check", "--format", "json"]).json_lines();
        assert_eq!(found.first().map(|found| found["line"].as_u64().unwrap()), finding, "{over}: {found:?}");
        assert!(found.len() < 2, "{over}: {found:?}");
        let problems = folder.run(["config", "check", "robotsd.toml"]).failed(0);
        assert_eq!(problems.matches("warning").count(), found.len(), "{over}: {problems}");
        if let Some(found) = found.first() {
            assert!(problems.contains(message(found)), "{problems}");
        }

        let serving = folder.start();
        // One line at the start must name the search engines that are not refused.
        let spared = serving.all("search-engines");
        let names_google = spared.iter().any(|line| message(line).contains(": Googlebot, "));
        assert_eq!((spared.len() < 2, names_google), (true, google.1 == "search-engine"), "{over}: {spared:?}");
        assert_eq!(serving.get("/search?q=1", GOOGLEBOT).status, google.2, "{over}");
        assert_eq!(serving.get("/search?q=1", WOTBOX).status, wotbox, "{over}");
        if google.2 == 404 {
            let tagged = serving.wait_for_event("tagged", |line| line["agent"] == "Googlebot");
            assert_eq!(tagged["reason"], google.1, "{over}");
        }
        let findings = serving.all("finding");
        assert_eq!(findings.len(), found.len(), "{over}: {findings:?}");
        if let (Some(found), Some(logged)) = (found.first(), findings.first()) {
            assert!(message(logged).contains(message(found)), "{logged}");
        }
        if over == index("refuse") {
            // An edit of the file must also cause only one finding.
            folder.replace("robots.txt", format!("{robots}Disallow: /basket\n"));
            serving.wait_for_event("published", |line| line["reason"] != "start");
            wait_until("the finding about the edit", || serving.events("finding") == 2);
        }
    }
}

const TWO: &str = "[[site]]\nname = \"shop\"\nhosts = [\"shop.test\"]\nroot = \"root\"\nrobots.path = \"robots.txt\"\n\
                   [[site]]\nname = \"pages\"\nhosts = [\"*.pages.test\"]\nroot = \"root\"\n\
                   [site.robots]\nsource = \"directory\"\npath = \"hosts\"\n";

#[test]
fn a_command_needs_a_site_or_a_host_if_the_config_has_several_sites() {
    let folder = site_folder(TWO);
    folder.write("hosts/a.pages.test.txt", "User-agent: *\nDisallow: /a/\n");
    folder.write("hosts/b.pages.test.txt", "User-agent: *\nDisallow: /b/\n");
    let explain =
        |site: &[&str], url: &str| folder.with_config(&[&["explain"], site, &["--user-agent", ACME, url]].concat());
    let several = "robotsd.toml: the config has 2 sites, so choose one with --site: \"shop\", \"pages\"";
    assert_has(explain(&[], "/").failed(2), &[several]);
    // The host in a URL determines the site and, if the site has a folder of files, the file.
    assert_has(explain(&[], "https://shop.test/drafts/").succeeded(), &["AcmeBot may not fetch "]);
    assert_has(explain(&[], "https://b.pages.test/a/").succeeded(), &["AcmeBot may fetch "]);
    assert_has(explain(&[], "https://nobody.test/").failed(2), &[several]);
    // If a command names all of its files, a config from the environment must not affect it. A
    // config on the command line must be used.
    folder.write("access.log", log_line(GPTBOT));
    let files = [
        &["check", "robots.txt"][..],
        &["diff", "robots.txt", "robots.txt"],
        &["replay", "access.log", "--robots", "robots.txt", "--against", "robots.txt"],
        &["replay", "access.log", "--history", "robots.txt"],
    ];
    for command in files.iter().chain(&[&["edit", "--diff", "robots.txt", "--disallow", "AcmeBot"][..]]) {
        let ended = run(folder.robotsd().args(*command).env("ROBOTSD_CONFIG", "robotsd.toml"));
        assert!(
            ended.code != Some(2) && ended.error.contains("the config is ignored, because it has several sites"),
            "{command:?}: {}",
            ended.error
        );
        assert_has(folder.with_config(command).failed(2), &["choose one with --site"]);
    }
    let unnamed =
        run(folder.robotsd().args(["explain", "--user-agent", ACME, "/"]).env("ROBOTSD_CONFIG", "robotsd.toml"));
    assert_has(unnamed.failed(2), &["choose one with --site"]);
    for command in [&["check"][..], &["test"], &["replay", "access.log"], &["diff", "robots.txt"]] {
        assert_has(folder.with_config(command).failed(2), &["choose one with --site"]);
    }
    for (site, url, want) in [
        ("shop", "/drafts/", "AcmeBot may not fetch "),
        ("shop.test", "/drafts/", "AcmeBot may not fetch "),
        ("pages/a.pages.test", "/a/", "AcmeBot may not fetch "),
        ("a.pages.test", "/a/", "AcmeBot may not fetch "),
        ("pages/b.pages.test", "/a/", "AcmeBot may fetch "),
    ] {
        let out = explain(&["--site", site], url).succeeded();
        assert!(out.starts_with(want), "{site} {url}: {out}");
    }
    let hosts = "--site, one of \"pages/a.pages.test\", \"pages/b.pages.test\"";
    assert_has(explain(&["--site", "pages"], "/a/").failed(2), &[hosts]);
    let blog = explain(&["--site", "blog"], "/").error;
    assert_has(blog, &["there is no site \"blog\": the sites are \"shop\", \"pages\""]);
}

/// Returns the `User-Agent` lines of a generated request. They consist of names as clients send
/// them: crawlers, tools, devices and plain words.
fn generated_lines(names: &[String], at: usize) -> Vec<String> {
    let name = &names[at % names.len()];
    let other = &names[(at * 7_919 + 13) % names.len()];
    let line = match at / names.len() {
        0 => name.clone(),
        1 => format!("{name}/1.0"),
        2 => format!("{name} 2.3"),
        3 => format!("'{name}'"),
        4 => format!(
            "Mozilla/5.0 (Linux; Android 13; {name}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/115.0.0.0 Mobile Safari/537.36"
        ),
        5 => format!("Dalvik/2.1.0 (Linux; U; Android 9; {name} Build/PPR1.180610.011)"),
        6 => format!("Mozilla/5.0 (compatible; {name}/2.1; +http://www.site.example/bot.html)"),
        7 => name.to_uppercase(),
        8 => format!("  {name}\t"),
        9 => format!("{name} {other}/2"),
        10 => return vec![name.clone(), other.clone()],
        11 => return vec![String::new(), format!("{name}/1")],
        12 => format!("curl/8.5.0 {name}"),
        13 => format!("{name}@{other}"),
        14 => format!("\"{name}\""),
        15 => format!("{name}.{other}"),
        16 => format!("{name}Bot"),
        17 => format!("{name} (+https://{other}.example/about)"),
        18 => format!("{name}:{other}"),
        19 => return vec![format!("Mozilla/5.0 (X11; {name}) Gecko/20100101 Firefox/128.0"), name.clone()],
        20 => format!("python-requests/2.31.0 ({name})"),
        21 => format!("{name}, {other}"),
        22 => format!("{}-{name}", &other[..other.len().min(3)]),
        23 => format!("App/7 CFNetwork/1410 Darwin/22 {name}"),
        24 => format!("{name} {name}"),
        _ => format!("{name}_{at}"),
    };
    vec![line]
}

/// Returns the status and body of each response. Many requests are sent at a time on one
/// connection.
fn answers_of(address: SocketAddr, requests: &[Vec<String>]) -> Vec<(u16, String)> {
    let mut kept = Kept::open(address, "shop.test");
    let field = |line: &String| format!("User-Agent: {line}\r\n");
    let request = |lines: &Vec<String>| {
        format!("GET /p HTTP/1.1\r\nHost: shop.test\r\n{}\r\n", lines.iter().map(field).collect::<String>())
    };
    let mut answers = Vec::new();
    for some in requests.chunks(50) {
        kept.send(some.iter().map(request).collect::<String>());
        answers.extend(some.iter().map(|_| kept.receive()).map(|answer| (answer.status, answer.body)));
    }
    answers
}

/// `explain --batch` must treat a word in a header as the server does: as the name of a crawler
/// only if there is such a crawler.
#[test]
fn explain_batch_and_the_server_agree_on_every_user_agent_header() {
    let folder = site_folder(SITE);
    let robots = "User-agent: AcmeBot\nUser-agent: Foo Bar\nUser-agent: Foo\nDisallow: /p\nDisallow: /drafts/\n\nUser-agent: *\nDisallow: /p\n";
    folder.write("robots.txt", robots);
    let registry = Registry::builtin();
    let own = registry.crawlers().flat_map(|crawler| {
        let names = [crawler.name.to_owned()].into_iter().chain(crawler.header_names.iter().cloned());
        names.chain(crawler.tokens.iter().map(|token| token.to_string())).collect::<Vec<_>>()
    });
    let words = "* x Foo Foo-Bar AcmeBot Acme-Fetcher Googelbot NeverSeenBot SM-G991B moto Pixel-7 Redmi CPH2269 iPhone Kindle PlayStation \
                 SmartTV Roku AppleTV HeadlessChrome curl Wget okhttp Firefox Safari spider crawler Stripe checker url monitor Nokia6100 \
                 BlackBerry9700 V2027 vivo-1904 KFONWI Infinix-X650 itel-A48 TECNO-KD7 JMW-NOTE Archos50d HUAWEI-Y9 RMX3195 DoCoMo";
    let mut names: Vec<String> = own.chain(words.split_whitespace().map(str::to_owned)).collect();
    names.sort();
    names.dedup();
    // By default, about fifty names are tried in each kind of line, and about 200 in a long run.
    let step = if is_long() { 7 } else { 23 };
    let requests: Vec<_> = (0..36_000).step_by(step).map(|at| generated_lines(&names, at)).collect();

    let question = |lines: &Vec<String>| {
        let fields: Vec<_> = lines.iter().map(|line| ("user-agent", line)).collect();
        format!("{}\n", object!({ "url": "/p", "headers": fields }))
    };
    let questions: String = requests.iter().map(question).collect();
    let mut explain = folder.robotsd();
    explain.args(["explain", "--batch", "--config", "robotsd.toml"]);
    let output = run_with(&mut explain, questions.as_bytes());
    let explained = output.json_lines();
    assert_eq!(explained.len(), requests.len(), "{}", output.error);

    let serving = folder.start();
    let address = serving.address;
    let served: Vec<_> = thread::scope(|scope| {
        let some = requests.chunks(requests.len() / 4).map(|some| scope.spawn(move || answers_of(address, some)));
        some.collect::<Vec<_>>().into_iter().flat_map(|some| some.join().unwrap()).collect()
    });
    let is_same = |answer: &Value, status: u16, body: &str| {
        let agent = &answer["agent"];
        // For a crawler without a registered name, the message uses the token that a group names.
        let name = agent["crawler"].as_str().or(agent["tokens"][0].as_str()).unwrap_or("this client");
        let is_refused = answer["action"] == "refuse";
        (status == 403) == is_refused && (!is_refused || body.contains(&format!("let {name} fetch")))
    };
    let pairs = requests.iter().zip(&explained).zip(&served);
    let different = pairs.filter(|((_, answer), (status, body))| !is_same(answer, *status, body));
    let different: Vec<_> = different.map(|pair| format!("{pair:?}")).collect();
    let shown = different.iter().take(5).cloned().collect::<Vec<_>>().join("\n");
    assert!(different.is_empty(), "{} of {} differ, such as:\n{shown}", different.len(), requests.len());
    let refused = explained.iter().filter(|answer| answer["action"] == "refuse").count();
    assert!((5_000..31_000).contains(&(refused * step)), "{refused} of {} are refused", requests.len());
}
