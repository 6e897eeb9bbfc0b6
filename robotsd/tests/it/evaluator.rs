//! One site, one answer: the server and every command judge by the same registry, policy and checks.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json as object};
use tower_robots::agent::Registry;

use crate::harness::{
    Ended, Folder, GOOGLEBOT, GPTBOT, LISTENER, PATIENCE, Running, ended, folder, message, robotsd, run, wait_for,
};

/// A crawler that the built-in registry does not know: its header says `Acme-Fetcher`, and it obeys `acmebot`.
const REGISTRY: &str = "[[crawler]]\nname = \"AcmeBot\"\nheader = [\"Acme-Fetcher\"]\ntokens = [\"AcmeBot\"]\n\
                        operator = \"Acme\"\ncategory = \"ai-training\"\n";
const ROBOTS: &str = "User-agent: AcmeBot\nDisallow: /drafts/\n";
const ACME: &str = "Acme-Fetcher/2.0";

const SITE: &str = "[[site]]\nname = \"shop\"\nhosts = [\"shop.test\", \"site.test\"]\nroot = \"root\"\nrobots.path = \"robots.txt\"\n\
                    robots.expectations = \"shop.test.toml\"\n";
const EXPECTATIONS: &str = "[[disallow]]\nagents = [\"AcmeBot\", \"Acme-Fetcher/2.0\"]\npaths = [\"/drafts/x\"]\n";

fn config(kind: &str, sites: &str) -> String {
    format!("mode = \"refuse\"\n[agents]\nregistry_extra = \"crawlers.toml\"\n{LISTENER}kind = \"{kind}\"\n{sites}")
}

fn site_folder(sites: &str) -> Folder {
    let folder = folder(&[
        ("robotsd.toml", &config("proxy", sites)),
        ("decision.toml", &config("decision", sites)),
        ("crawlers.toml", REGISTRY),
        ("robots.txt", ROBOTS),
        ("shop.test.toml", EXPECTATIONS),
        ("access.log", &log_line(ACME)),
    ]);
    std::fs::create_dir(folder.at("root")).unwrap();
    folder
}

fn log_line(agent: &str) -> String {
    format!("192.0.2.1 - - [01/Nov/2026:01:00:00 +0000] \"GET /drafts/x HTTP/1.1\" 200 9 \"-\" \"{agent}\"\n")
}

/// What a command writes, and its exit status.
fn command(folder: &Folder, arguments: &[&str]) -> (String, String, Option<i32>) {
    let Ended { code, out, error } = folder.run(arguments);
    (out, error, code)
}

fn json(folder: &Folder, arguments: &[&str]) -> Value {
    let (out, error, _) = command(folder, arguments);
    serde_json::from_str(&out).unwrap_or_else(|_| panic!("{arguments:?}: {out}{error}"))
}

#[test]
fn a_row_of_registry_extra_counts_for_the_server_and_for_every_command() {
    let folder = site_folder(SITE);
    let path = folder.path();

    let serving = folder.start();
    assert_eq!((serving.get("/drafts/x", ACME).status, serving.get("/", ACME).status), (403, 404));
    let deciding = Running::start_with(&path.join("decision.toml"));
    let question = |agent| {
        let fields = [("X-Original-URI", "/drafts/x"), ("X-Original-Method", "GET"), ("User-Agent", agent)];
        deciding.request("GET", "/-/auth/nginx", &fields).status
    };
    assert_eq!((question(ACME), question(GPTBOT)), (403, 200));

    let explained =
        json(&folder, &["explain", "--json", "--config", "robotsd.toml", "--user-agent", ACME, "/drafts/x"]);
    assert_eq!((&explained["agent"]["crawler"], &explained["action"]), (&"AcmeBot".into(), &"refuse".into()));
    let replayed = json(&folder, &["replay", "access.log", "--config", "robotsd.toml", "--format", "json"]);
    assert_eq!((&replayed["crawlers"][0]["name"], &replayed["totals"]["disallowed"]), (&"AcmeBot".into(), &1.into()));
    let (out, error, code) = command(&folder, &["test", "--config", "robotsd.toml"]);
    assert_eq!((&*out, &*error, code), ("2 expected, all met\n", "", Some(0)));
    let identified = json(
        &folder,
        &["agents", "--format", "json", "--config", "robotsd.toml", "--robots", "robots.txt", "--identify", ACME],
    );
    assert_eq!(identified["crawler"], "AcmeBot");

    // Another file is judged by the same settings.
    std::fs::write(path.join("new.txt"), "User-agent: *\nDisallow: /private/\n").unwrap();
    let diff = json(&folder, &["diff", "--config", "robotsd.toml", "--format", "json", "new.txt"]);
    let crawlers = diff["effects"].as_array().unwrap().iter().flat_map(|effect| effect["crawlers"].as_array().unwrap());
    assert!(crawlers.into_iter().any(|crawler| crawler["name"] == "AcmeBot"), "{diff}");
    let test = ["test", "--config", "robotsd.toml", "--robots", "new.txt"];
    assert!(command(&folder, &test).0.ends_with("2 expected, 2 not met\n"));
}

#[test]
fn the_check_uses_the_registry_and_the_lints_of_the_site() {
    let sites = format!("{SITE}[exempt]\npaths = [\"/open/\"]\n[check]\ndeny = [\"rule-on-exempt-path\"]\n");
    let folder = site_folder(&sites);
    // The second name is near one that only the row of the registry knows.
    let robots = format!("{ROBOTS}Disallow: /open/x\n\nUser-agent: AcmeBott\nDisallow: /\n");
    folder.write("robots.txt", robots);
    let codes = |arguments: &[&str]| -> Vec<String> {
        let (out, error, _) = command(&folder, &[&["check", "--format", "json"], arguments].concat());
        assert_eq!(error, "");
        let code = |line: &str| {
            let finding: Value = serde_json::from_str(line).unwrap();
            format!("{} {}", finding["severity"].as_str().unwrap(), finding["code"].as_str().unwrap())
        };
        out.lines().map(code).collect()
    };
    for (what, arguments, is_the_sites) in [
        ("the site's own file", &["--config", "robotsd.toml"][..], true),
        ("a file on the command line", &["--config", "robotsd.toml", "robots.txt"], true),
        ("without a config", &["robots.txt"], false),
    ] {
        let codes = codes(arguments);
        for code in ["error rule-on-exempt-path", "warning unknown-crawler"] {
            assert_eq!(codes.iter().any(|found| found == code), is_the_sites, "{what}: {code}: {codes:?}");
        }
    }
    assert_eq!(command(&folder, &["check", "--config", "robotsd.toml"]).2, Some(1));
}

#[test]
fn a_search_engine_of_registry_extra_that_the_site_refuses_is_a_finding_for_check_and_server() {
    let folder = site_folder(&format!("{SITE}[[site.override]]\nindex = true\nmode = \"refuse\"\n"));
    let registry = REGISTRY.replace("ai-training", "search") + "index = true\n";
    folder.write("crawlers.toml", registry);
    let (out, _, _) = command(&folder, &["check", "--format", "json", "--config", "robotsd.toml"]);
    assert!(out.contains("search-engine-refused"), "{out}");
    let serving = folder.start();
    serving.wait_for_event("finding", |line| line["reason"] == "search-engine-refused");
}

/// Rules for every crawler, and a mode that refuses: the file of nearly every site that begins to enforce.
#[test]
fn search_engines_are_tagged_by_server_and_commands_alike_unless_an_override_says_so() {
    const WOTBOX: &str = "Wotbox/2.0 (+http://www.wotbox.com/bot/)";
    let sites =
        |over: &str| format!("[[site]]\nname = \"shop\"\nroot = \"root\"\nrobots.path = \"robots.txt\"\n{over}");
    let robots = "User-agent: *\nDisallow: /search\nDisallow: /cart\n";
    let category = |mode: &str| format!("[[site.override]]\ncategory = \"search\"\nmode = \"{mode}\"\n");
    let index = |mode: &str| format!("[[site.override]]\nindex = true\nmode = \"{mode}\"\n");
    let pattern = "[[site.override]]\npattern = \"/cart\"\nmode = \"refuse\"\n";
    for (over, google, wotbox, finding) in [
        (String::new(), ("tag", "search-engine", 404), 403, None),
        (category("tag"), ("tag", "disallowed", 404), 404, None),
        (category("refuse"), ("refuse", "disallowed", 403), 403, Some(2)),
        (category("refuse") + &index("tag"), ("tag", "disallowed", 404), 403, None),
        (index("refuse"), ("refuse", "disallowed", 403), 403, Some(2)),
        (pattern.to_owned(), ("tag", "search-engine", 404), 403, Some(3)),
    ] {
        let folder = site_folder(&sites(&over));
        let path = folder.path();
        std::fs::write(path.join("robots.txt"), robots).unwrap();
        let logged = [GOOGLEBOT, WOTBOX].map(log_line).concat().replace("/drafts/x", "/search?q=1");
        std::fs::write(path.join("access.log"), logged).unwrap();

        let config = ["--config", "robotsd.toml"];
        let explained =
            json(&folder, &[&["explain", "--json", "--user-agent", GOOGLEBOT, "/search?q=1"][..], &config].concat());
        assert_eq!((&explained["action"], &explained["reason"]), (&google.0.into(), &google.1.into()), "{over}");
        let replayed = json(&folder, &[&["replay", "access.log", "--format", "json"][..], &config].concat());
        assert_eq!(replayed["totals"]["disallowed"], 2, "what the rules say is the same for all: {over}: {replayed}");

        // One finding for all engines, and the same one for the check, the check of the config, the log and the status.
        let (out, _, _) = command(&folder, &[&["check", "--format", "json"][..], &config].concat());
        let found: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(found.first().map(|found| found["line"].as_u64().unwrap()), finding, "{over}: {out}");
        assert!(found.len() < 2, "{over}: {out}");
        let (_, problems, code) = command(&folder, &["config", "check", "robotsd.toml"]);
        assert_eq!((problems.matches("warning").count(), code), (found.len(), Some(0)), "{over}: {problems}");
        if let Some(found) = found.first() {
            assert!(problems.contains(message(found)), "{problems}");
        }

        let serving = folder.start();
        // One line at start names what is spared.
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
            // An edit has one finding, too.
            std::fs::write(path.join("new"), format!("{robots}Disallow: /basket\n")).unwrap();
            std::fs::rename(path.join("new"), path.join("robots.txt")).unwrap();
            serving.wait_for_event("published", |line| line["reason"] == "event");
            let both = || (serving.events("finding") == 2).then_some(());
            wait_for("the finding about the edit", both);
        }
    }
}

const TWO: &str = "[[site]]\nname = \"shop\"\nhosts = [\"shop.test\"]\nroot = \"root\"\nrobots.path = \"robots.txt\"\n\
                   [[site]]\nname = \"pages\"\nhosts = [\"*.pages.test\"]\nroot = \"root\"\n\
                   [site.robots]\nsource = \"directory\"\npath = \"hosts\"\n";

#[test]
fn a_site_is_named_where_a_config_has_several() {
    let folder = site_folder(TWO);
    let path = folder.path();
    std::fs::create_dir(path.join("hosts")).unwrap();
    std::fs::write(path.join("hosts/a.pages.test.txt"), "User-agent: *\nDisallow: /a/\n").unwrap();
    std::fs::write(path.join("hosts/b.pages.test.txt"), "User-agent: *\nDisallow: /b/\n").unwrap();
    let explain = |site: &[&str], url: &str| {
        let arguments = [&["explain", "--config", "robotsd.toml"], site, &["--user-agent", ACME, url]].concat();
        command(&folder, &arguments)
    };
    let (_, error, code) = explain(&[], "/");
    assert_eq!(code, Some(2));
    assert!(error.contains("robotsd.toml: it has 2 sites: name one with --site: \"shop\", \"pages\""), "{error}");
    for command in [&["check"][..], &["test"], &["replay", "access.log"], &["diff", "robots.txt"]] {
        let Ended { code, error, .. } =
            run(robotsd().current_dir(path).args(command).args(["--config", "robotsd.toml"]));
        assert!(code == Some(2) && error.contains("name one with --site"), "{command:?}: {error}");
    }
    for (site, url, want) in [
        ("shop", "/drafts/", "AcmeBot may not fetch "),
        ("shop.test", "/drafts/", "AcmeBot may not fetch "),
        ("pages/a.pages.test", "/a/", "AcmeBot may not fetch "),
        ("a.pages.test", "/a/", "AcmeBot may not fetch "),
        ("pages/b.pages.test", "/a/", "AcmeBot may fetch "),
    ] {
        let (out, error, code) = explain(&["--site", site], url);
        assert!(out.starts_with(want) && code == Some(0), "{site} {url}: {out}{error}");
    }
    let (_, error, code) = explain(&["--site", "pages"], "/a/");
    assert_eq!(code, Some(2));
    assert!(error.contains("--site: \"pages/a.pages.test\", \"pages/b.pages.test\""), "{error}");
    let (_, error, _) = explain(&["--site", "blog"], "/");
    assert!(error.contains("there is no site \"blog\"; there is \"shop\", \"pages\""), "{error}");
}

/// The lines of `User-Agent` of one request, made of names as clients wear them: crawlers', tools', devices' and plain words.
fn generated_lines(names: &[String], at: usize) -> Vec<String> {
    let name = &names[at % names.len()];
    let other = &names[(at * 7_919 + 13) % names.len()];
    let lines = |line: String| vec![line];
    match at / names.len() {
        0 => lines(name.clone()),
        1 => lines(format!("{name}/1.0")),
        2 => lines(format!("{name} 2.3")),
        3 => lines(format!("'{name}'")),
        4 => lines(format!(
            "Mozilla/5.0 (Linux; Android 13; {name}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/115.0.0.0 Mobile Safari/537.36"
        )),
        5 => lines(format!("Dalvik/2.1.0 (Linux; U; Android 9; {name} Build/PPR1.180610.011)")),
        6 => lines(format!("Mozilla/5.0 (compatible; {name}/2.1; +http://www.site.example/bot.html)")),
        7 => lines(name.to_uppercase()),
        8 => lines(format!("  {name}\t")),
        9 => lines(format!("{name} {other}/2")),
        10 => vec![name.clone(), other.clone()],
        11 => vec![String::new(), format!("{name}/1")],
        12 => lines(format!("curl/8.5.0 {name}")),
        13 => lines(format!("{name}@{other}")),
        14 => lines(format!("\"{name}\"")),
        15 => lines(format!("{name}.{other}")),
        16 => lines(format!("{name}Bot")),
        17 => lines(format!("{name} (+https://{other}.example/about)")),
        18 => lines(format!("{name}:{other}")),
        19 => vec![format!("Mozilla/5.0 (X11; {name}) Gecko/20100101 Firefox/128.0"), name.clone()],
        20 => lines(format!("python-requests/2.31.0 ({name})")),
        21 => lines(format!("{name}, {other}")),
        22 => lines(format!("{}-{name}", &other[..other.len().min(3)])),
        23 => lines(format!("App/7 CFNetwork/1410 Darwin/22 {name}")),
        24 => lines(format!("{name} {name}")),
        _ => lines(format!("{name}_{at}")),
    }
}

/// Status and body of each request's answer, many requests at a time on one connection.
fn answers_of(address: std::net::SocketAddr, requests: &[Vec<String>]) -> Vec<(u16, String)> {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut reader, mut writer) = (BufReader::new(stream.try_clone().unwrap()), stream);
    let mut answers = Vec::new();
    for some in requests.chunks(50) {
        let field = |line: &String| format!("User-Agent: {line}\r\n");
        let request = |lines: &Vec<String>| {
            format!("GET /p HTTP/1.1\r\nHost: shop.test\r\n{}\r\n", lines.iter().map(field).collect::<String>())
        };
        writer.write_all(some.iter().map(request).collect::<String>().as_bytes()).unwrap();
        for _ in some {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                assert_ne!(reader.read_until(b'\n', &mut head).unwrap(), 0, "the connection ends");
            }
            let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            let mut body = vec![0; length.parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            answers.push((head[9..12].parse().unwrap(), String::from_utf8(body).unwrap()));
        }
    }
    answers
}

/// A word in a header is read as the server reads it: as a crawler's name only where it is one.
#[test]
fn a_batch_and_a_listener_agree_on_every_header() {
    let folder = site_folder(SITE);
    let path = folder.path();
    let robots = "User-agent: AcmeBot\nUser-agent: Foo Bar\nUser-agent: Foo\nDisallow: /p\nDisallow: /drafts/\n\nUser-agent: *\nDisallow: /p\n";
    std::fs::write(path.join("robots.txt"), robots).unwrap();
    let registry = Registry::builtin();
    let own = registry.crawlers().flat_map(|crawler| {
        let tokens = crawler.tokens.iter().map(|token| token.to_string());
        [crawler.name.to_owned()]
            .into_iter()
            .chain(crawler.header_names.iter().cloned())
            .chain(tokens)
            .collect::<Vec<_>>()
    });
    let words = "* x Foo Foo-Bar AcmeBot Acme-Fetcher Googelbot NeverSeenBot SM-G991B moto Pixel-7 Redmi CPH2269 iPhone Kindle PlayStation \
                 SmartTV Roku AppleTV HeadlessChrome curl Wget okhttp Firefox Safari spider crawler Stripe checker url monitor Nokia6100 \
                 BlackBerry9700 V2027 vivo-1904 KFONWI Infinix-X650 itel-A48 TECNO-KD7 JMW-NOTE Archos50d HUAWEI-Y9 RMX3195 DoCoMo";
    let mut names: Vec<String> = own.chain(words.split_whitespace().map(str::to_owned)).collect();
    names.sort();
    names.dedup();
    let requests: Vec<_> = (0..36_000).map(|at| generated_lines(&names, at)).collect();

    let questions: String = requests
        .iter()
        .map(|lines| {
            let fields: Vec<_> = lines.iter().map(|line| ("user-agent", line)).collect();
            format!("{}\n", object!({ "url": "/p", "headers": fields }))
        })
        .collect();
    std::fs::write(path.join("questions"), questions).unwrap();
    let questions = File::open(path.join("questions")).unwrap();
    let output = ended(folder.robotsd().args(["explain", "--batch", "--config", "robotsd.toml"]).stdin(questions), b"");
    let explained = output.json_lines();
    assert_eq!(explained.len(), requests.len(), "{}", output.error);

    let serving = folder.start();
    let address = serving.address;
    let served: Vec<_> = std::thread::scope(|scope| {
        let some = requests.chunks(requests.len() / 4).map(|some| scope.spawn(move || answers_of(address, some)));
        some.collect::<Vec<_>>().into_iter().flat_map(|some| some.join().unwrap()).collect()
    });
    let mut refused = 0;
    let mut differences = Vec::new();
    for ((lines, answer), (status, body)) in requests.iter().zip(&explained).zip(&served) {
        let is_refused = answer["action"] == "refuse";
        refused += usize::from(is_refused);
        let agent = &answer["agent"];
        // One without a name of its own is called by the token that a group names.
        let name = agent["crawler"].as_str().or(agent["tokens"][0].as_str()).unwrap_or("this client");
        let is_same = (*status == 403) == is_refused && (!is_refused || body.contains(&format!("let {name} fetch")));
        if !is_same {
            differences.push(format!("{lines:?}: {status} {body:?}, and {answer}"));
        }
    }
    let shown = differences.iter().take(5).cloned().collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} of {} differ, such as:\n{shown}", differences.len(), requests.len());
    assert!((5_000..31_000).contains(&refused), "{refused} are refused");
}
