//! Tests how robotsd starts, and its messages about a bad config, a missing file and a port in use.

use std::os::unix::net::UnixListener;

use crate::harness::*;

fn good() -> Config {
    Config::new().files_of("a")
}

fn open() -> Config {
    good().robots("# open\n")
}

/// Returns the first message of `serve` about a config: the position and the problem. The faulty
/// line, with a caret, comes after it and is left out.
fn said(config: &str) -> String {
    let folder = folder(&[("robotsd.toml", config), ("robots.txt", "# open\n")]);
    let path = folder.at("robotsd.toml");
    let error = folder.configured(["serve", "--config"]).failed(2);
    let mut lines = error.lines();
    let message = lines.next().and_then(|line| line.strip_prefix("error: ")).unwrap_or_else(|| panic!("{error}"));
    let place = lines.next().and_then(|line| line.trim_start().strip_prefix(&format!("--> {}:", path.display())));
    assert!(lines.any(|line| line.trim_start_matches([' ', '|']).starts_with('^')), "{error}");
    format!("{}: {message}", place.unwrap_or_else(|| panic!("{error}")))
}

/// Lines of a config after the name of its only site, and how the message about them begins.
const BAD_SITES: &str = r##"
root = "nope" => 5:8: …
root = "." | upstreams = ["http://127.0.0.1:1"] => 5:8: a site cannot have both "upstreams" and "root": remove one of them
upstreams = [] => 3:1: "upstreams" is empty
upstreams = ["ftp://127.0.0.1:1"] => 5:14: "ftp://127.0.0.1:1" is not a valid upstream (…
upstreams = ["unix:"] => 5:14: "unix:" is not a valid upstream (the path of the socket is missing)
upstreams = ["http://a"] | [site.upstream] | server_name = "a" =>
    7:15: this key requires an upstream that begins with "https://"
upstreams = ["https://a"] | [site.upstream] | server_name = "a b" => 7:15: "a b" is not a valid server name
upstreams = ["https://a"] | [site.upstream] | ca = "nope.pem" => 7:6: …
upstreams = ["http://a"] | [site.upstream] | eject = "0s" => 7:9: "eject" is zero
upstreams = ["http://127.0.0.1:1/x"] => 5:14: "http://127.0.0.1:1/x" is not a valid upstream (…
upstreams = ["http://127.0.0.1:1"] => 4:8: the site "a" has no robots.txt: write [site.robots]
upstreams = ["http://127.0.0.1:1"] | dotfiles = "hide" => 6:12: "dotfiles" requires "root"
root = "." | dotfiles = "show" => 6:12: "show" is not a value of "dotfiles": write "hide" or "serve"
root = "." | hosts = ["http://x"] => 6:10: "http://x" is not a host: …
root = "." | hosts = ["x", "X."] => 6:15: "X." is listed twice
root = "." | [site.robots] | source = "directory" => 7:10: source = "directory" requires path = "…"
root = "." | [site.robots] | source = "directory" | path = "nope" => 8:8: …
root = "." | [site.robots] | source = "directory" | path = "." | fallback = "a/b" =>
    9:12: "a/b" is not the name of a file in the folder
root = "." | [site.robots] | fallback = "x" => 7:12: "fallback" requires source = "directory"
root = "." | [site.robots] | refresh = "1h" => 7:11: "refresh" requires source = "upstream" or
root = "." | [site.robots] | source = "upstream" => 7:10: source = "upstream" requires "upstreams", and the site has none
upstreams = ["http://a"] | [site.robots] | source = "upstream" =>
    7:10: source = "upstream" requires a host to request: write host = "example.com"
upstreams = ["http://a"] | hosts = ["*.a"] | [site.robots] | source = "upstream" =>
    8:10: source = "upstream" requires a host to request
upstreams = ["http://a"] | [site.robots] | source = "upstream" | host = "a/b" =>
    8:8: "a/b" is not a host: write one such as
root = "." | [site.robots] | source = "url" => 7:10: source = "url" requires url
root = "." | [site.robots] | url = "ftp://a/robots.txt" =>
    7:7: "ftp://a/robots.txt" cannot be fetched: ftp is not supported; use http or https
root = "." | [site.robots] | url = "http://a/" | ca = "x.pem" => 8:6: "ca" requires a url that begins with
root = "." | [site.robots] | url = "https://a/" | ca = "x.pem" => 8:6: …
root = "." | [site.robots] | url = "http://a/" | refresh = "5s" => 8:11: "refresh" is "5s": write a duration from "1m" to "24h"
root = "." | [site.robots] | max_age = "25h" => 7:11: "max_age" is "1day 1h": write at most "24h"
root = "." | [site.robots] | max_age = "soon" => 7:11: "soon" is not a duration: write one
root = "." | [site.robots] | source = "inline" => 7:10: source = "inline" requires text = "…"
root = "." | [exempt] | paths = ["healthz"] => 7:10: "healthz" is not a path pattern
root = "." | [exempt] | cookies = ["staff", "sid="] => 7:21: "sid=" is not a cookie's name: write the part before "="
root = "." | [agents] | ignore = [""] => 7:11: "" is not a crawler's name
root = "." | [site.modes] | "pattern:private/" = "tag" => 7:1: "private/" is not a path pattern
root = "." | [agents] | wildcard_methods = ["G T"] => 7:21: "G T" is not a method: write one such as "GET"
root = "." | [site.enforcement] | forms = ["merged", "standard"] =>
    7:20: "standard" cannot be disabled, so it does not belong in "forms": remove it
root = "." | [site.enforcement] | forms = ["params"] => 7:10: "params" is not a value of "forms": write "verbatim"
root = "." | [check] | deny = ["no-such-lint"] => 7:9: there is no lint "no-such-lint"
root = "." | [limits] | connections = 0 => 7:15: …
root = "." | [limits] | body_idle = "500000000000y" => 7:13: "500000000000y" is longer than a year: write a shorter duration
root = "." | [limits] | connections = 99999999999 => 7:15: "connections" is 99999999999: write at most 10000000
root = "." | [limits] | first_byte = "0s" => 7:14: "first_byte" is zero: write a duration such as "10s"
root = "." | [limits] | keep_alive = "0s" => 7:14: "keep_alive" is zero
root = "." | [limits] | head_size = "4KiB" => 7:13: "head_size" is "4KiB": write a value from "8KiB" to "1MiB"
root = "." | [limits] | head_size = "64K" => 7:13: "64K" is not a size: write "64KiB"
root = "." | [limits] | head_size = -1 => 7:13: "head_size" is -1: write a size such as 65536 or "64KiB"
root = "." | [limits] | target_size = "65KiB" =>
    7:15: "target_size" is "65KiB", more than "head_size" ("64KiB"), which includes it: reduce "target_size" or increase "head_size"
root = "." | [limits] | buffer = "2MiB" | buffer_total = "1MiB" =>
    8:16: "buffer" is "2MiB", more than "buffer_total" ("1MiB"), which includes it: reduce "buffer" or increase "buffer_total", or write 0 to disable buffering
root = "." | [limits] | buffer = "1GiB" => 7:10: "buffer" is "1GiB": write a value from
root = "." | [limits] | fields = 0 => 7:10: "fields" is 0: write a value from 16 to 1000
root = "." | [limits] | streams = 0 => 7:11: "streams" is 0: write a value from 1 to 10000
root = "." | [limits] | window = "1GiB" => 7:10: "window" is "1GiB": write a value from "16KiB"
root = "." | [admin] | address = "0.0.0.0:9145" =>
    7:11: other machines can reach 0.0.0.0:9145, and clients of the admin interface can change what is
root = "." | [admin] | hosts = ["http://x"] => 7:10: "http://x" is not a host name
root = "." | [site.robots] | path = "" => 7:8: the path is empty: write the path of the robots.txt
root = "." | [site.robots] | text = " " => 7:8: "text" is empty: write a comment such as
upstreams = ["http://127.0.0.1:99999"] => 5:14: "http://127.0.0.1:99999" is not a valid upstream (…
upstreams = ["http://127.0.0.1:0"] => 5:14: "http://127.0.0.1:0" is not a valid upstream (the port must be a number from 1 to 65535): write
upstreams = ["127.0.0.1:3000"] => 5:14: "127.0.0.1:3000" is not a valid upstream (…
root = "." | hosts = ["*.x.test:80"] => 6:10: "*.x.test:80" is not a host: …
root = "." | [exempt] | cidrs = ["10.0.0.1/8"] => 7:10: "10.0.0.1/8" is not a network: bits after
root = "." | [site.modes] | "category:serch" = "tag" => 7:1: "serch" is not a category of crawlers: write "search"
"##;

#[test]
fn a_bad_config_is_refused_with_its_place_and_what_would_be_right() {
    let site = |text: &str| Config::new().site("a", text).to_string();
    let listener = |keys: &str| Config::new().listener(keys).files_of("a").to_string();
    let good = good();
    let beside_decisions =
        Config::new().listener("kind = \"decision\"").tables("[[listener]]\naddress = \"127.0.0.1:0\"");
    let deciding = "kind = \"decision\"\ntrusted_proxies = [\"10.0.0.0/8\"]\nagent_header = \"X-Agent\"";
    let own = "[[listener]]\naddress = \"0.0.0.0:8080\"\n[[site]]\nname = \"a\"\nupstreams = [\"http://localhost:8080\"]\nrobots.text = \"# a\"\n";
    let rows = [
        (String::new(), "1:1: there is no [[listener]]: write one with an address such as \"127.0.0.1:8080\""),
        (Config::new().to_string(), "1:1: there is no [[site]]"),
        (
            "mode = \"strict\"\n".to_owned(),
            "1:8: \"strict\" is not a value of \"mode\": write \"off\", \"observe\", \"tag\" or \"refuse\"",
        ),
        ("mode = \n".to_owned(), "1:"),
        ("modus = \"off\"\n".to_owned(), "1:1: the config has no key \"modus\""),
        (format!("workers = 0\n{good}"), "1:11: "),
        (format!("workers = 5000\n{good}"), "1:11: \"workers\" is 5000: write at most 1024"),
        (
            "[[listener]]\naddress = \"nowhere\"\n".to_owned(),
            "2:11: \"nowhere\" is not an address to listen on: write one such as \"127.0.0.1:8080\"",
        ),
        (site(""), "4:8: the site \"a\" has no backend: write \"upstreams\" or \"root\""),
        (own.to_owned(), "5:14: the upstream \"http://localhost:8080\" is the listener 0.0.0.0:8080 of this config"),
        (
            site("root = \".\"").replace("address", "name = \"\"\naddress"),
            "2:8: the name is empty: write the name of a socket that the supervisor passes",
        ),
        (site("root = \".\"").replace("name = \"a\"", "name = \"\""), "4:8: the name is empty"),
        (
            good.clone().files_of("a").tables("hosts = [\"b\"]").to_string(),
            "7:8: another site has the name \"a\" already",
        ),
        (good.clone().files_of("b").to_string(), "7:8: an earlier site has no hosts, so it matches every host"),
        // This setting for trusted proxies is invalid.
        (listener("trusted_proxies = [\"10.0.0.1/8\"]"), "3:20: \"10.0.0.1/8\" is not a network"),
        (listener("trusted_proxies = [\"cdn.test\"]"), "3:20: \"cdn.test\" is not a network"),
        (listener("agent_header = \"X-Agent\""), "3:16: \"agent_header\" requires \"trusted_proxies\""),
        (
            listener("agent_header = \"a b\"\ntrusted_proxies = [\"10.0.0.0/8\"]"),
            "3:16: \"a b\" is not the name of a header field",
        ),
        (
            listener("agent_header = \"Host\"\ntrusted_proxies = [\"10.0.0.0/8\"]"),
            "3:16: \"Host\" is a header field with another meaning",
        ),
        // A listener for decision requests needs no backend, but the other listener does.
        (
            beside_decisions.site("a", "robots.text = \"# a\"").to_string(),
            "7:8: the site \"a\" has no backend: write \"upstreams\" or \"root\"",
        ),
        (listener("on_error = \"pass\""), "3:12: \"on_error\" requires kind = \"decision\""),
        (
            Config::new().listener(deciding).site("a", "robots.text = \"# a\"").to_string(),
            "5:16: \"agent_header\" requires kind = \"proxy\"",
        ),
    ];
    let bad_sites = BAD_SITES.replace(" =>\n    ", " => ");
    let sites = bad_sites.trim().lines().map(|row| {
        let (lines, want) = row.split_once(" => ").unwrap();
        (site(&lines.replace(" | ", "\n")), want.trim_end_matches('…'))
    });
    let rows: Vec<_> = rows.into_iter().chain(sites).collect();
    std::thread::scope(|scope| {
        for rows in rows.chunks(rows.len() / 4) {
            scope.spawn(move || {
                for (config, want) in rows {
                    let said = said(config);
                    assert!(said.starts_with(want), "{config}\nsaid {said:?}\nwant {want:?}");
                }
            });
        }
    });
}

#[test]
fn a_config_that_is_not_there_is_named() {
    let error = run(robotsd().args(["serve", "--config", "no/such/file.toml"])).failed(2);
    assert!(error.starts_with("robotsd: no/such/file.toml: the config file cannot be read: "), "{error}");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let (_taken, address, folder) = with_a_port_that_is_taken(&open());
    let error = folder.configured(["serve", "--config"]).failed(2);
    assert!(error.starts_with(&format!("robotsd: {address}: cannot listen here: ")), "{error}");
}

fn with_a_port_that_is_taken(config: &Config) -> (TcpListener, SocketAddr, Folder) {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, folder) = (taken.local_addr().unwrap(), config.folder());
    folder.configure(config.to_string().replace("127.0.0.1:0", &address.to_string()));
    (taken, address, folder)
}

/// Immediately after a `kill -9`, the system has not removed the process yet.
#[test]
fn a_start_waits_for_an_ending_process_and_names_a_running_one() {
    let folder = open().admin_socket().folder();
    let answering = UnixListener::bind(folder.at("admin.sock")).unwrap();
    let error = folder.configured(["serve", "--config"]).failed(2);
    assert_has(error, &["admin.sock: cannot listen here: another process already listens there"]);
    // The process ends after this start has noticed that it still responds.
    answering.set_nonblocking(true).unwrap();
    while answering.accept().is_ok() {}
    answering.set_nonblocking(false).unwrap();
    let ending = std::thread::spawn(move || {
        let _asked = answering.accept().unwrap();
        drop(answering);
    });
    let _running = folder.start();
    ending.join().unwrap();
    folder.with_config(&["status"]).succeeded();
}

#[test]
fn a_start_that_fails_publishes_nothing_and_begins_no_grace() {
    let config = open().keys("state_dir = \"state\"\ngrace = \"1h\"");
    let (_taken, _, folder) = with_a_port_that_is_taken(&config);
    assert_lacks(folder.configured(["serve", "--config"]).ends_with(2).out, &["\"published\""]);
    assert!(!folder.at("state").exists());
}

#[test]
fn without_a_robots_txt_the_site_runs_and_enforces_nothing() {
    let origin = Origin::start();
    for (on_missing, status) in [("503", 503), ("upstream", 200)] {
        let on_missing_key = format!("robots.on_missing = \"{on_missing}\"");
        let (folder, running) = Config::refusing().upstream("a", &origin).tables(on_missing_key).start();
        let rejected = running.event("rejected");
        let want = "robots.txt: there is no such file; nothing is live, so nothing is enforced";
        assert!(message(&rejected).ends_with(want), "{rejected}");
        let answer = running.get("/robots.txt", GPTBOT);
        assert_eq!(answer.status, status, "{on_missing}");
        assert_eq!(answer.field("retry-after").is_some(), status == 503);
        assert_eq!(running.get("/private/x", GPTBOT).status, 200);
        // The file must be used as soon as it exists.
        folder.replace("robots.txt", "User-agent: GPTBot\nDisallow: /private/\n");
        running.event("published");
        assert_eq!(running.get("/private/x", GPTBOT).status, 403);
    }
}

#[test]
fn strict_and_on_missing_fail_refuse_to_start_without_a_robots_txt() {
    let fail = good().tables("[site.robots]\non_missing = \"fail\"");
    for (config, arguments) in [(good(), &["--strict"][..]), (fail, &[])] {
        let error = run(config.folder().serve().args(arguments)).failed(2);
        assert!(error.starts_with("robotsd: site \"a\": "), "{error}");
        assert_has(error, &["robots.txt: there is no such file"]);
    }
}

#[test]
fn a_start_that_fails_publishes_no_site() {
    let with = |later: &str| {
        let first = "hosts = [\"a.test\"]\nroot = \".\"\nrobots.path = \"robots.txt\"";
        let config = Config::new().keys("state_dir = \"state\"").site("a", first);
        config.site("b", format!("root = \".\"\nrobots.path = \"missing.txt\"\n{later}"))
    };
    let missing = "missing.txt: there is no such file";
    for (config, arguments, why) in [
        (with(""), &["--strict"][..], missing),
        (with("robots.on_missing = \"fail\""), &[], missing),
        (with("robots.expectations = \"typo.toml\""), &[], "typo.toml"),
    ] {
        let folder = config.robots("User-agent: GPTBot\nDisallow: /private/\n").folder();
        fails_for_the_second_site(&folder, folder.serve().args(arguments), &[why]);
    }
}

/// Checks that a start fails for this reason, and has not published the first site.
fn fails_for_the_second_site(folder: &Folder, serve: &mut Command, why: &[&str]) {
    let Ended { out, error, .. } = run(serve);
    assert!(error.starts_with("robotsd: site \"b\": "), "{error}");
    assert_has(error, why);
    assert_lacks(out, &["\"event\":\"started\"", "\"event\":\"published\""]);
    assert!(!folder.at("state/sites").exists());
}

/// Like the previous test, but the system trusts no certificate authority.
#[test]
fn a_start_without_trust_publishes_no_site() {
    let config = Config::new().keys("state_dir = \"state\"").files_of("a");
    let config = config.tables("hosts = [\"a.test\"]\nrobots.path = \"robots.txt\"");
    let config = config.site("b", "upstreams = [\"https://127.0.0.1:1\"]\nrobots.text = \"# b\"");
    let folder = config.robots("# a\n").file("empty.pem", "").folder();
    let mut serve = folder.serve();
    serve.env("SSL_CERT_FILE", folder.at("empty.pem")).env("SSL_CERT_DIR", folder.at("none"));
    let why = "robotsd: site \"b\": the system trusts no certificate authority";
    fails_for_the_second_site(&folder, &mut serve, &[why]);
}

#[test]
fn the_shipped_configs_start() {
    for name in ["config/demo.toml", "config/robotsd.toml"] {
        let text = std::fs::read_to_string(project(name)).unwrap().replace("127.0.0.1:8080", "127.0.0.1:0");
        // Paths in the config are relative to it, so the copy must be in the same folder.
        let copy = tempfile::Builder::new().prefix(".test-").suffix(".toml").tempfile_in(project("config")).unwrap();
        // The log of the demo is for people, so its format is changed.
        std::fs::write(copy.path(), text.replace("format = \"text\"", "format = \"json\"")).unwrap();
        let running = Running::start_with(copy.path());
        assert_eq!(running.get("/robots.txt", GPTBOT).status, 200, "{name}");
        assert_eq!(running.events("finding"), 0, "{name}");
    }
}

#[test]
fn the_check_runs_at_start_and_on_reload_as_configured() {
    let more = "[site.modes]\n\"index\" = \"refuse\"\n[gate]\nenabled = false\n[check]\ndeny = [\"noindex\"]\nallow = [\"path-without-slash\"]";
    let robots = "User-agent: Googlebot\nDisallow: x\nDisallow: /products/\nNoindex: /y\n";
    let (folder, running) = Config::refusing().files_of("a").tables(more).robots(robots).start();
    let found = |code: &str| running.wait_for_event("finding", |line| line["reason"] == code);
    assert_has(message(&found("noindex")), &["robots.txt:4:1: error: "]);
    // Because of an override, the search engine is refused what the file disallows.
    found("search-engine-refused");
    folder.replace("robots.txt", "User-agent: *\nDisallow: /\n");
    found("whole-site-disallowed");
    assert!(!running.has_event("finding", |line| line["reason"] == "path-without-slash"));
    running.wait_for_event("published", |line| line["reason"] == "event");
}

/// Requires libfaketime (Debian: `faketime`), and is skipped if it is missing.
#[test]
fn a_clock_before_1970_ends_no_start() {
    let Some(library) = faketime() else { return super::programs::skip("libfaketime") };
    let config = Config::refusing().keys("state_dir = \"state\"");
    let config = config.tables("[log]\naccess = \"combined\"\naccess_path = \"access.log\"").files_of("shop");
    let robots = "User-agent: GPTBot\nDisallow: /page\n";
    let folder = config.robots(robots).file("page.html", "hello").folder();
    for start in 1..=2 {
        let mut command = folder.serve();
        command.env("LD_PRELOAD", &library).env("FAKETIME", "@1965-03-04 05:06:07");
        command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        let mut running = Running::spawn(&mut command);
        running.wait_for_event("clock", |line| message(line).starts_with("the clock is before 1970"));
        // Simple requests: for others, hyper would have to format the date, and cannot.
        let mut client = Kept::open(running.address, "site.test");
        assert_eq!(client.get("/robots.txt", FIREFOX), (200, robots.to_owned()));
        assert_eq!(client.get("/page.html", GPTBOT).0, 403);
        assert_eq!(client.get("/page.html", FIREFOX), (200, "hello".to_owned()));
        drop(client);
        // For these requests, hyper panics. The connection is closed, and the site continues.
        assert!(
            rest(sent(running.address, "GET /robots.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")).is_empty()
        );
        assert_has(message(&running.event("panic")), &["the thread robotsd-", " panicked at "]);
        let lines = || std::fs::read_to_string(folder.at("access.log")).unwrap_or_default().lines().count();
        wait_until("a line for each request", || lines() == 3 * start);
        running.end();
    }
}

/// Returns the path of libfaketime, if it works on this machine.
pub(super) fn faketime() -> Option<std::path::PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?.flatten();
    let library = folders.map(|folder| folder.path().join("faketime/libfaketime.so.1")).find(|path| path.exists())?;
    let mut date = Command::new("date");
    let date = date.arg("+%Y").env("LD_PRELOAD", &library).env("FAKETIME", "@1965-03-04 05:06:07").output().ok()?;
    (date.stdout == b"1965\n").then_some(library)
}
