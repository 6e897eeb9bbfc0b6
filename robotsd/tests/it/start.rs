//! Starting: what a bad config, a missing file and a taken port get.

use std::net::TcpListener;

use crate::harness::{
    Ended, FIREFOX, GPTBOT, Kept, LISTENER, Origin, Running, folder, message, project, robotsd, run, serving,
    wait_until,
};

const GOOD: &str = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"a\"\nroot = \".\"\n";

/// What `serve` says first of a config: the place of the problem and the problem. Its line stands below, with a caret.
fn said(config: &str) -> String {
    let folder = folder(&[("robotsd.toml", config), ("robots.txt", "# open\n")]);
    let path = folder.at("robotsd.toml");
    let error = run(robotsd().args(["serve", "--config"]).arg(&path)).failed(2);
    let mut lines = error.lines();
    let message = lines.next().and_then(|line| line.strip_prefix("error: ")).unwrap_or_else(|| panic!("{error}"));
    let place = lines.next().and_then(|line| line.trim_start().strip_prefix(&format!("--> {}:", path.display())));
    assert!(lines.any(|line| line.trim_start_matches([' ', '|']).starts_with('^')), "{error}");
    format!("{}: {message}", place.unwrap_or_else(|| panic!("{error}")))
}

/// What stands below the name of the only site, line by line, and how what is said of it begins.
const BAD_SITES: &str = r##"
root = "nope"
    5:8: …
root = "." | upstreams = ["http://127.0.0.1:1"]
    5:8: a site has upstreams or a root, not both
upstreams = []
    3:1: upstreams is empty
upstreams = ["ftp://127.0.0.1:1"]
    5:14: "ftp://127.0.0.1:1" is not an upstream: …
upstreams = ["unix:"]
    5:14: "unix:" is not an upstream: the path of the socket is missing
upstreams = ["http://a"] | [site.upstream] | server_name = "a"
    7:15: this is for TLS, and no upstream of the site begins with "https://"
upstreams = ["https://a"] | [site.upstream] | server_name = "a b"
    7:15: "a b" is no name
upstreams = ["https://a"] | [site.upstream] | ca = "nope.pem"
    7:6: …
upstreams = ["http://a"] | [site.upstream] | eject = "0s"
    7:9: eject is no time at all
upstreams = ["http://127.0.0.1:1/x"]
    5:14: "http://127.0.0.1:1/x" is not an upstream: …
upstreams = ["http://127.0.0.1:1"]
    4:8: the site "a" has no robots.txt: write [site.robots]
upstreams = ["http://127.0.0.1:1"] | dotfiles = "hide"
    6:12: dotfiles is for static files
root = "." | dotfiles = "show"
    6:12: "show" is not a value of dotfiles: write "hide" or "serve"
root = "." | hosts = ["http://x"]
    6:10: "http://x" is not a host: …
root = "." | hosts = ["x", "X."]
    6:15: "X." stands here twice
root = "." | [site.robots] | source = "directory"
    7:10: source = "directory" needs the folder of the files in path
root = "." | [site.robots] | source = "directory" | path = "nope"
    8:8: …
root = "." | [site.robots] | source = "directory" | path = "." | fallback = "a/b"
    9:12: "a/b" is not the name of a file in the folder
root = "." | [site.robots] | fallback = "x"
    7:12: fallback goes with source = "directory"
root = "." | [site.robots] | refresh = "1h"
    7:11: refresh goes with source = "upstream" or
root = "." | [site.robots] | source = "upstream"
    7:10: source = "upstream" needs upstreams, and the site has none
upstreams = ["http://a"] | [site.robots] | source = "upstream"
    7:10: source = "upstream" needs a host to request: write host = "example.com"
upstreams = ["http://a"] | hosts = ["*.a"] | [site.robots] | source = "upstream"
    8:10: source = "upstream" needs a host to request
upstreams = ["http://a"] | [site.robots] | source = "upstream" | host = "a/b"
    8:8: "a/b" is not a host: write one such as
root = "." | [site.robots] | source = "url"
    7:10: source = "url" needs url
root = "." | [site.robots] | url = "ftp://a/robots.txt"
    7:7: "ftp://a/robots.txt" cannot be fetched: ftp is not spoken here; use http or https
root = "." | [site.robots] | url = "http://a/" | ca = "x.pem"
    8:6: this is for TLS, and the url does not begin with
root = "." | [site.robots] | url = "https://a/" | ca = "x.pem"
    8:6: …
root = "." | [site.robots] | url = "http://a/" | refresh = "5s"
    8:11: refresh may be from "1m" to "24h"
root = "." | [site.robots] | max_age = "25h"
    7:11: max_age is longer than crawlers may keep
root = "." | [site.robots] | max_age = "soon"
    7:11: "soon" is not a length of time: write one
root = "." | [site.robots] | source = "inline"
    7:10: source = "inline" needs the robots.txt itself
root = "." | [exempt] | paths = ["healthz"]
    7:10: "healthz" is not a path pattern
root = "." | [exempt] | cookies = ["staff", "sid="]
    7:21: "sid=" is not a cookie's name: write the part before "="
root = "." | [agents] | ignore = [""]
    7:11: "" is not a crawler's name
root = "." | [[site.override]] | pattern = "private/" | mode = "tag"
    7:11: "private/" is not a path pattern
root = "." | [agents] | star_methods = ["G T"]
    7:17: "G T" is not a method: write one such as "GET"
root = "." | [site.enforcement] | forms = ["merged", "standard"]
    7:20: "standard" is always judged: forms lists the others
root = "." | [site.enforcement] | forms = ["params"]
    7:10: "params" is not a value of forms: write "verbatim"
root = "." | [check] | deny = ["no-such-lint"]
    7:9: there is no lint "no-such-lint"
root = "." | [limits] | connections = 0
    7:15: …
root = "." | [limits] | body_idle = "500000000000y"
    7:13: "500000000000y" is longer than a year
root = "." | [limits] | connections = 99999999999
    7:15: 99999999999 connections are more than 10000000
root = "." | [limits] | first_byte = "0s"
    7:14: first_byte is no time at all: write one such as "10s"
root = "." | [limits] | keep_alive = "0s"
    7:14: keep_alive is no time at all
root = "." | [limits] | head_size = "4KiB"
    7:13: head_size is "4KiB": it may be from "8KiB" to "1MiB"
root = "." | [limits] | head_size = "64K"
    7:13: "64K" is not a size: write "64KiB"
root = "." | [limits] | head_size = -1
    7:13: head_size is -1: write a size such as 65536 or "64KiB"
root = "." | [limits] | target_size = "65KiB"
    7:15: target_size "65KiB" is more than head_size "64KiB", of which it is a part
root = "." | [limits] | buffer = "2MiB" | buffer_total = "1MiB"
    8:16: buffer "2MiB" is more than buffer_total "1MiB", of which it is a part: 0 turns buffering off
root = "." | [limits] | buffer = "1GiB"
    7:10: buffer is "1GiB": it may be from
root = "." | [limits] | fields = 0
    7:10: fields is 0: it may be from 16 to 1000
root = "." | [limits] | streams = 0
    7:11: streams is 0: it may be from 1 to 10000
root = "." | [limits] | window = "1GiB"
    7:10: window is "1GiB": it may be from "16KiB"
root = "." | [admin] | address = "0.0.0.0:9145"
    7:11: 0.0.0.0:9145 can be reached from other machines, and any client of the admin interface can change what is
root = "." | [admin] | hosts = ["http://x"]
    7:10: "http://x" is not a host name
root = "." | [site.robots] | path = ""
    7:8: the path of the robots.txt is empty
root = "." | [site.robots] | text = " "
    7:8: the text is empty: to restrict nothing
upstreams = ["http://127.0.0.1:99999"]
    5:14: "http://127.0.0.1:99999" is not an upstream: …
upstreams = ["http://127.0.0.1:0"]
    5:14: "http://127.0.0.1:0" is not an upstream: the port is a number
upstreams = ["127.0.0.1:3000"]
    5:14: "127.0.0.1:3000" is not an upstream: …
root = "." | hosts = ["*.x.test:80"]
    6:10: "*.x.test:80" is not a host: …
root = "." | [exempt] | cidrs = ["10.0.0.1/8"]
    7:10: "10.0.0.1/8" is not a network: bits after
root = "." | [[site.override]] | mode = "tag"
    6:1: an override has exactly one of category, agent, pattern and index = true
root = "." | [[site.override]] | mode = "tag" | category = "serch"
    8:12: "serch" is not a value of category: write "search"
"##;

#[test]
fn a_bad_config_is_refused_with_its_place_and_what_would_be_right() {
    let site = |text: &str| format!("{LISTENER}[[site]]\nname = \"a\"\n{text}\n");
    let rows = [
        (String::new(), "1:1: there is no [[listener]]: write one with an address such as \"127.0.0.1:8080\""),
        ("[[listener]]\naddress = \"127.0.0.1:0\"\n".to_owned(), "1:1: there is no [[site]]"),
        (
            "mode = \"strict\"\n".to_owned(),
            "1:8: \"strict\" is not a value of mode: write \"off\", \"observe\", \"tag\" or \"refuse\"",
        ),
        ("mode = \n".to_owned(), "1:"),
        ("modus = \"off\"\n".to_owned(), "1:1: the config has no key \"modus\""),
        (format!("workers = 0\n{GOOD}"), "1:11: "),
        (format!("workers = 5000\n{GOOD}"), "1:11: 5000 workers are more than 1024: one a core is right"),
        (
            "[[listener]]\naddress = \"nowhere\"\n".to_owned(),
            "2:11: \"nowhere\" is not an address to listen on: write one such as \"127.0.0.1:8080\"",
        ),
        (site(""), "4:8: the site \"a\" has no backend: give it upstreams or a root"),
        (
            "[[listener]]\naddress = \"0.0.0.0:8080\"\n[[site]]\nname = \"a\"\nupstreams = [\"http://localhost:8080\"]\nrobots.text = \"# a\"\n".to_owned(),
            "5:14: the upstream \"http://localhost:8080\" is the listener 0.0.0.0:8080 of this config",
        ),
        (
            site("root = \".\"").replace("address", "name = \"\"\naddress"),
            "2:8: the name is empty: it selects a socket of the supervisor",
        ),
        (site("root = \".\"").replace("name = \"a\"", "name = \"\""), "4:8: the name is empty"),
        (
            format!("{GOOD}[[site]]\nname = \"a\"\nroot = \".\"\nhosts = [\"b\"]\n"),
            "7:8: the name \"a\" is taken by another site",
        ),
        (
            format!("{GOOD}[[site]]\nname = \"b\"\nroot = \".\"\n"),
            "7:8: an earlier site has no hosts, so it matches every host",
        ),
    ];
    let sites = BAD_SITES.lines().skip(1).collect::<Vec<_>>();
    let sites =
        sites.chunks(2).map(|row| (site(&row[0].replace(" | ", "\n")), row[1].trim_start().trim_end_matches('…')));
    for (config, want) in rows.into_iter().chain(sites) {
        let said = said(&config);
        assert!(said.starts_with(want), "{config}\nsaid {said:?}\nwant {want:?}");
    }
}

#[test]
fn a_config_that_is_not_there_is_named() {
    let error = run(robotsd().args(["serve", "--config", "no/such/file.toml"])).failed(2);
    assert!(error.starts_with("robotsd: no/such/file.toml: the config file cannot be read: "), "{error}");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let folder =
        folder(&[("robotsd.toml", &GOOD.replace("127.0.0.1:0", &address.to_string())), ("robots.txt", "# open\n")]);
    let error = folder.configured(["serve", "--config"]).failed(2);
    assert!(error.starts_with(&format!("robotsd: {address}: cannot listen here: ")), "{error}");
}

#[test]
fn a_start_that_fails_publishes_nothing_and_begins_no_grace() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = GOOD.replace("127.0.0.1:0", &taken.local_addr().unwrap().to_string());
    let config = format!("state_dir = \"state\"\n{config}enforcement.grace = \"1h\"\n");
    let folder = folder(&[("robotsd.toml", &config), ("robots.txt", "# open\n")]);
    let Ended { code, out: log, .. } = folder.configured(["serve", "--config"]);
    assert_eq!(code, Some(2));
    assert!(!log.contains("\"published\""), "{log}");
    assert!(!folder.at("state").exists());
}

#[test]
fn without_a_robots_txt_the_site_runs_and_enforces_nothing() {
    let origin = Origin::start();
    for (on_missing, status) in [("last-good", 503), ("upstream", 200)] {
        let config = format!(
            "mode = \"refuse\"\n{LISTENER}[[site]]\nname = \"a\"\nupstreams = [\"http://{origin}\"]\n[site.robots]\n\
             path = \"robots.txt\"\non_missing = \"{on_missing}\"\n"
        );
        let (folder, running) = serving(&[("robotsd.toml", &config)]);
        let rejected = running.event("rejected");
        let message = message(&rejected);
        assert!(
            message.ends_with("robots.txt: there is no such file; nothing is live, so nothing is enforced"),
            "{message}"
        );
        let answer = running.get("/robots.txt", GPTBOT);
        assert_eq!(answer.status, status, "{on_missing}");
        assert_eq!(answer.field("retry-after").is_some(), status == 503);
        assert_eq!(running.get("/private/x", GPTBOT).status, 200);
        // And it is taken as soon as it is there.
        folder.write("new", "User-agent: GPTBot\nDisallow: /private/\n");
        std::fs::rename(folder.at("new"), folder.at("robots.txt")).unwrap();
        running.event("published");
        assert_eq!(running.get("/private/x", GPTBOT).status, 403);
    }
}

#[test]
fn strict_and_on_missing_fail_refuse_to_start_without_a_robots_txt() {
    let fail = format!("{GOOD}[site.robots]\non_missing = \"fail\"\n");
    for (config, arguments) in [(GOOD, &["--strict"][..]), (&fail, &[])] {
        let folder = folder(&[("robotsd.toml", config)]);
        let error = run(robotsd().args(["serve", "--config"]).arg(folder.at("robotsd.toml")).args(arguments)).failed(2);
        assert!(
            error.starts_with("robotsd: site \"a\": ") && error.contains("robots.txt: there is no such file"),
            "{error}"
        );
    }
}

/// A start that fails because of a later site has published nothing of an earlier one, and written nothing down.
#[test]
fn a_start_that_fails_publishes_no_site() {
    let with = |later: &str| {
        let first = GOOD
            .replace("[[listener]]", "state_dir = \"state\"\n[[listener]]")
            .replace("name = \"a\"\n", "name = \"a\"\nhosts = [\"a.test\"]\n");
        format!(
            "{first}robots.path = \"robots.txt\"\n[[site]]\nname = \"b\"\nroot = \".\"\nrobots.path = \"missing.txt\"\n{later}"
        )
    };
    let missing = "missing.txt: there is no such file";
    for (config, arguments, why) in [
        (with(""), &["--strict"][..], missing),
        (with("robots.on_missing = \"fail\"\n"), &[], missing),
        (with("robots.expectations = \"typo.toml\"\n"), &[], "typo.toml"),
    ] {
        let folder = folder(&[("robotsd.toml", &config), ("robots.txt", "User-agent: GPTBot\nDisallow: /private/\n")]);
        let Ended { out, error, .. } =
            run(robotsd().args(["serve", "--config"]).arg(folder.at("robotsd.toml")).args(arguments));
        assert!(error.starts_with("robotsd: site \"b\": ") && error.contains(why), "{error}");
        assert!(!out.contains("\"event\":\"started\"") && !out.contains("\"event\":\"published\""), "{out}");
        assert!(!folder.at("state/sites").exists());
    }
}

/// The same where a later site has servers that cannot be called: the system trusts no certificate authority.
#[test]
fn a_start_without_trust_publishes_no_site() {
    let first = GOOD.replace("name = \"a\"\n", "name = \"a\"\nhosts = [\"a.test\"]\n");
    let config = format!(
        "state_dir = \"state\"\n{first}robots.path = \"robots.txt\"\n[[site]]\nname = \"b\"\n\
         upstreams = [\"https://127.0.0.1:1\"]\nrobots.text = \"# b\"\n"
    );
    let folder = folder(&[("robotsd.toml", &config), ("robots.txt", "# a\n"), ("empty.pem", "")]);
    let empty = folder.at("empty.pem");
    let mut serve = robotsd();
    serve.env("SSL_CERT_FILE", &empty).env("SSL_CERT_DIR", folder.at("none"));
    let Ended { out, error, .. } = run(serve.args(["serve", "--config"]).arg(folder.at("robotsd.toml")));
    assert!(error.starts_with("robotsd: site \"b\": the system trusts no certificate authority"), "{error}");
    assert!(!out.contains("\"event\":\"started\"") && !out.contains("\"event\":\"published\""), "{out}");
    assert!(!folder.at("state/sites").exists());
}

#[test]
fn the_shipped_configs_start() {
    for name in ["config/demo.toml", "config/robotsd.toml"] {
        let text = std::fs::read_to_string(project(name)).unwrap().replace("127.0.0.1:8080", "127.0.0.1:0");
        // Paths are relative to the config, so the copy on another port stands beside it.
        let copy = tempfile::Builder::new().prefix(".test-").suffix(".toml").tempfile_in(project("config")).unwrap();
        // The log of the demo is for people.
        std::fs::write(copy.path(), text.replace("format = \"text\"", "format = \"json\"")).unwrap();
        let running = Running::start_with(copy.path());
        assert_eq!(running.get("/robots.txt", GPTBOT).status, 200, "{name}");
        assert_eq!(running.events("finding"), 0, "{name}");
    }
}

#[test]
fn the_check_runs_at_start_and_on_reload_as_configured() {
    let config = GOOD.replace("[[listener]]", "mode = \"refuse\"\n[[listener]]")
        + "[[site.override]]\nindex = true\nmode = \"refuse\"\n[gate]\nmode = \"off\"\n[check]\ndeny = [\"noindex\"]\nallow = [\"path-without-slash\"]\n";
    let robots = "User-agent: Googlebot\nDisallow: x\nDisallow: /products/\nNoindex: /y\n";
    let (folder, running) = serving(&[("robotsd.toml", &config), ("robots.txt", robots)]);
    let found = |code: &str| running.wait_for_event("finding", |line| line["reason"] == code);
    assert!(found("noindex")["message"].as_str().unwrap().contains("robots.txt:4:1: error: "));
    // The search engine is refused what the file disallows, because an override says so.
    found("search-engine-refused");
    folder.write("new", "User-agent: *\nDisallow: /\n");
    std::fs::rename(folder.at("new"), folder.at("robots.txt")).unwrap();
    found("whole-site-disallowed");
    assert!(!running.has_event("finding", |line| line["reason"] == "path-without-slash"));
    running.wait_for_event("published", |line| line["reason"] == "event");
}

/// With libfaketime (Debian: `faketime`), where it is installed.
#[cfg(target_os = "linux")]
#[test]
fn a_clock_before_1970_ends_no_start() {
    let Some(library) = faketime() else { return super::programs::skip("libfaketime") };
    let config = "mode = \"refuse\"\nstate_dir = \"state\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
                  [log]\naccess = \"combined\"\naccess_path = \"access.log\"\n[[site]]\nname = \"shop\"\nroot = \".\"\n";
    let robots = "User-agent: GPTBot\nDisallow: /page\n";
    let folder = folder(&[("robotsd.toml", config), ("robots.txt", robots), ("page.html", "hello")]);
    for start in 1..=2 {
        let mut command = robotsd();
        command.args(["serve", "--config"]).arg(folder.at("robotsd.toml"));
        command.env("LD_PRELOAD", &library).env("FAKETIME", "@1965-03-04 05:06:07");
        command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        let mut running = Running::spawn(&mut command);
        running.wait_for_event("clock", |line| message(line).starts_with("the clock is before 1970"));
        // Plain requests: hyper, which answers others, has no words for such a date.
        let mut client = Kept::open(running.address, "site.test");
        assert_eq!(client.get("/robots.txt", FIREFOX), (200, robots.to_owned()));
        assert_eq!(client.get("/page.html", GPTBOT).0, 403);
        assert_eq!(client.get("/page.html", FIREFOX), (200, "hello".to_owned()));
        drop(client);
        let lines = || std::fs::read_to_string(folder.at("access.log")).unwrap_or_default().lines().count();
        wait_until("a line for each request", || lines() == 3 * start);
        running.end();
    }
}

/// Where the library is, if it does its work here.
#[cfg(target_os = "linux")]
pub(super) fn faketime() -> Option<std::path::PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?.flatten();
    let library = folders.map(|folder| folder.path().join("faketime/libfaketime.so.1")).find(|path| path.exists())?;
    let mut date = std::process::Command::new("date");
    let date = date.arg("+%Y").env("LD_PRELOAD", &library).env("FAKETIME", "@1965-03-04 05:06:07").output().ok()?;
    (date.stdout == b"1965\n").then_some(library)
}
