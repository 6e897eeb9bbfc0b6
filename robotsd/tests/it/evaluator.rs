//! One site, one answer: the server and every command judge by the same registry, policy and checks.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use super::process::{GPTBOT, Running, folder, robotsd, run};

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
    let folder = site_folder(SITE);
    let registry = REGISTRY.replace("ai-training", "search");
    std::fs::write(folder.path().join("crawlers.toml"), registry).unwrap();
    let (out, _, _) = command(folder.path(), &["check", "--format", "json", "--config", "robotsd.toml"]);
    assert!(out.contains("search-engine-refused"), "{out}");
    let serving = Running::start(folder.path());
    serving.wait_for_event("finding", |line| line["reason"] == "search-engine-refused");
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
        ("shop", "/drafts/", "disallowed"),
        ("shop.test", "/drafts/", "disallowed"),
        ("pages/a.pages.test", "/a/", "disallowed"),
        ("a.pages.test", "/a/", "disallowed"),
        ("pages/b.pages.test", "/a/", "allowed"),
    ] {
        let (out, error, code) = explain(&["--site", site], url);
        assert_eq!((out.split(':').next(), code), (Some(want), Some(0)), "{site} {url}: {error}");
    }
    let (_, error, code) = explain(&["--site", "pages"], "/a/");
    assert_eq!(code, Some(2));
    assert!(error.contains("--site: \"pages/a.pages.test\", \"pages/b.pages.test\""), "{error}");
    let (_, error, _) = explain(&["--site", "blog"], "/");
    assert!(error.contains("there is no site \"blog\"; there is \"shop\", \"pages\""), "{error}");
}
