//! One site, one answer: the server and every command judge by the same registry, policy and checks.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use super::process::{GOOGLEBOT, GPTBOT, Running, folder, robotsd, run, wait_for};

/// A crawler that the built-in registry does not know: its header says `Acme-Fetcher`, and it obeys `acmebot`.
const REGISTRY: &str = "[[crawler]]\nname = \"AcmeBot\"\nheader = [\"Acme-Fetcher\"]\ntokens = [\"AcmeBot\"]\n\
                        operator = \"Acme\"\ncategory = \"ai-training\"\n";
const ROBOTS: &str = "User-agent: AcmeBot\nDisallow: /drafts/\n";
const ACME: &str = "Acme-Fetcher/2.0";

const SITE: &str = "[[site]]\nname = \"shop\"\nhosts = [\"shop.test\", \"site.test\"]\nroot = \"root\"\nrobots.path = \"robots.txt\"\n\
                    robots.expectations = \"shop.test.toml\"\n";
const EXPECTATIONS: &str = "[[disallow]]\nagents = [\"AcmeBot\", \"Acme-Fetcher/2.0\"]\npaths = [\"/drafts/x\"]\n";

fn config(kind: &str, sites: &str) -> String {
    format!(
        "mode = \"refuse\"\n[agents]\nregistry_extra = \"crawlers.toml\"\n\
         [[listener]]\naddress = \"127.0.0.1:0\"\nkind = \"{kind}\"\n{sites}"
    )
}

fn site_folder(sites: &str) -> TempDir {
    let folder = folder(&[
        ("robotsd.toml", &config("proxy", sites)),
        ("decision.toml", &config("decision", sites)),
        ("crawlers.toml", REGISTRY),
        ("robots.txt", ROBOTS),
        ("shop.test.toml", EXPECTATIONS),
        ("access.log", &log_line(ACME)),
    ]);
    std::fs::create_dir(folder.path().join("root")).unwrap();
    folder
}

fn log_line(agent: &str) -> String {
    format!("192.0.2.1 - - [01/Nov/2026:01:00:00 +0000] \"GET /drafts/x HTTP/1.1\" 200 9 \"-\" \"{agent}\"\n")
}

/// What a command writes, and its exit status.
fn command(folder: &Path, arguments: &[&str]) -> (String, String, Option<i32>) {
    let output = run(robotsd().current_dir(folder).args(arguments));
    let text = |octets: Vec<u8>| String::from_utf8(octets).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let (out, error, _) = command(folder, arguments);
    serde_json::from_str(&out).unwrap_or_else(|_| panic!("{arguments:?}: {out}{error}"))
}

#[test]
fn a_row_of_registry_extra_counts_for_the_server_and_for_every_command() {
    let folder = site_folder(SITE);
    let path = folder.path();

    let serving = Running::start(path);
    assert_eq!((serving.get("/drafts/x", ACME).status, serving.get("/", ACME).status), (403, 404));
    let deciding = Running::start_with(&path.join("decision.toml"));
    let question = |agent| {
        let fields = [("X-Original-URI", "/drafts/x"), ("X-Original-Method", "GET"), ("User-Agent", agent)];
        deciding.request("GET", "/-/auth/nginx", &fields).status
    };
    assert_eq!((question(ACME), question(GPTBOT)), (403, 200));

    let explained = json(path, &["explain", "--json", "--config", "robotsd.toml", "--user-agent", ACME, "/drafts/x"]);
    assert_eq!((&explained["agent"]["crawler"], &explained["action"]), (&"AcmeBot".into(), &"refuse".into()));
    let replayed = json(path, &["replay", "access.log", "--config", "robotsd.toml", "--format", "json"]);
    assert_eq!((&replayed["crawlers"][0]["name"], &replayed["totals"]["disallowed"]), (&"AcmeBot".into(), &1.into()));
    let (out, error, code) = command(path, &["test", "--config", "robotsd.toml"]);
    assert_eq!((&*out, &*error, code), ("2 expected, all met\n", "", Some(0)));
    let identified = json(
        path,
        &["agents", "--format", "json", "--config", "robotsd.toml", "--robots", "robots.txt", "--identify", ACME],
    );
    assert_eq!(identified["crawler"], "AcmeBot");

    // Another file is judged by the same settings.
    std::fs::write(path.join("new.txt"), "User-agent: *\nDisallow: /private/\n").unwrap();
    let diff = json(path, &["diff", "--config", "robotsd.toml", "--format", "json", "new.txt"]);
    let crawlers = diff["effects"].as_array().unwrap().iter().flat_map(|effect| effect["crawlers"].as_array().unwrap());
    assert!(crawlers.into_iter().any(|crawler| crawler["name"] == "AcmeBot"), "{diff}");
    let test = ["test", "--config", "robotsd.toml", "--robots", "new.txt"];
    assert!(command(path, &test).0.ends_with("2 expected, 2 not met\n"));
}

#[test]
fn the_check_uses_the_registry_and_the_lints_of_the_site() {
    let sites = format!("{SITE}[exempt]\npaths = [\"/open/\"]\n[check]\ndeny = [\"rule-on-exempt-path\"]\n");
    let folder = site_folder(&sites);
    // The second name is near one that only the row of the registry knows.
    let robots = format!("{ROBOTS}Disallow: /open/x\n\nUser-agent: AcmeBott\nDisallow: /\n");
    std::fs::write(folder.path().join("robots.txt"), robots).unwrap();
    let codes = |arguments: &[&str]| -> Vec<String> {
        let (out, error, _) = command(folder.path(), &[&["check", "--format", "json"], arguments].concat());
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
    assert_eq!(command(folder.path(), &["check", "--config", "robotsd.toml"]).2, Some(1));
}

#[test]
fn a_search_engine_of_registry_extra_that_the_site_refuses_is_a_finding_for_check_and_server() {
    let folder = site_folder(&format!("{SITE}[[site.override]]\nindex = true\nmode = \"refuse\"\n"));
    let registry = REGISTRY.replace("ai-training", "search") + "index = true\n";
    std::fs::write(folder.path().join("crawlers.toml"), registry).unwrap();
    let (out, _, _) = command(folder.path(), &["check", "--format", "json", "--config", "robotsd.toml"]);
    assert!(out.contains("search-engine-refused"), "{out}");
    let serving = Running::start(folder.path());
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
            json(path, &[&["explain", "--json", "--user-agent", GOOGLEBOT, "/search?q=1"][..], &config].concat());
        assert_eq!((&explained["action"], &explained["reason"]), (&google.0.into(), &google.1.into()), "{over}");
        let replayed = json(path, &[&["replay", "access.log", "--format", "json"][..], &config].concat());
        assert_eq!(replayed["totals"]["disallowed"], 2, "what the rules say is the same for all: {over}: {replayed}");

        // One finding for all engines, and the same one for the check, the check of the config, the log and the status.
        let (out, _, _) = command(path, &[&["check", "--format", "json"][..], &config].concat());
        let found: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(found.first().map(|found| found["line"].as_u64().unwrap()), finding, "{over}: {out}");
        assert!(found.len() < 2, "{over}: {out}");
        let (_, problems, code) = command(path, &["config", "check", "robotsd.toml"]);
        assert_eq!((problems.matches("warning").count(), code), (found.len(), Some(0)), "{over}: {problems}");
        if let Some(found) = found.first() {
            assert!(problems.contains(found["message"].as_str().unwrap()), "{problems}");
        }

        let serving = Running::start(path);
        // One line at start names what is spared.
        let spared = serving.all("search-engines");
        let names_google = spared.iter().any(|line| line["message"].as_str().unwrap().contains(": Googlebot, "));
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
            assert!(logged["message"].as_str().unwrap().contains(found["message"].as_str().unwrap()), "{logged}");
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
        command(path, &arguments)
    };
    let (_, error, code) = explain(&[], "/");
    assert_eq!(code, Some(2));
    assert!(error.contains("robotsd.toml: it has 2 sites: name one with --site: \"shop\", \"pages\""), "{error}");
    for command in [&["check"][..], &["test"], &["replay", "access.log"], &["diff", "robots.txt"]] {
        let output = run(robotsd().current_dir(path).args(command).args(["--config", "robotsd.toml"]));
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && error.contains("name one with --site"), "{command:?}: {error}");
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
