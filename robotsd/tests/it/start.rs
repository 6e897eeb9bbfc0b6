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

/// A unit test covers all mistakes, with `tests/cases/config_mistakes.txt`.
#[test]
fn an_invalid_config_is_refused_with_its_position_and_a_suggestion() {
    let site = |text: &str| Config::new().site("a", text).to_string();
    for (config, want) in [
        (String::new(), "1:1: there is no [[listener]]: write one with an address such as \"127.0.0.1:8080\""),
        ("modus = \"off\"\n".to_owned(), "1:1: the config has no key \"modus\""),
        (site("root = \"nope\""), "5:8: "),
        (site("upstreams = [\"https://a\"]\n[site.upstream]\nca = \"nope.pem\""), "7:6: "),
        (site("root = \".\"\n[site.robots]\nsource = \"directory\"\npath = \"nope\""), "8:8: "),
        (site("root = \".\"\n[site.robots]\nurl = \"https://a/\"\nca = \"x.pem\""), "8:6: "),
    ] {
        let said = said(&config);
        assert!(said.starts_with(want), "{config}\nsaid {said:?}\nwant {want:?}");
    }
}

#[test]
fn the_error_for_a_missing_config_contains_its_path() {
    let error = run(robotsd().args(["serve", "--config", "no/such/file.toml"])).failed(2);
    assert!(error.starts_with("robotsd: no/such/file.toml: the config file cannot be read: "), "{error}");
}

#[test]
fn the_error_for_a_used_port_contains_the_address() {
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
fn a_start_waits_for_an_ending_process_and_reports_a_running_one() {
    let folder = open().admin_socket().folder();
    let answering = UnixListener::bind(folder.at("admin.sock")).unwrap();
    let error = folder.configured(["serve", "--config"]).failed(2);
    assert_has(error, &["admin.sock: cannot listen here: another process already listens there"]);
    // The process ends after this start has noticed that it still responds.
    answering.set_nonblocking(true).unwrap();
    while answering.accept().is_ok() {}
    answering.set_nonblocking(false).unwrap();
    let ending = thread::spawn(move || {
        let _asked = answering.accept().unwrap();
        drop(answering);
    });
    let _running = folder.start();
    ending.join().unwrap();
    folder.with_config(&["status"]).succeeded();
}

#[test]
fn a_start_that_fails_publishes_no_version_and_starts_no_grace_period() {
    let config = open().keys("state_dir = \"state\"\ngrace = \"1h\"");
    let (_taken, _, folder) = with_a_port_that_is_taken(&config);
    assert_lacks(folder.configured(["serve", "--config"]).ends_with(2).out, &["\"published\""]);
    assert!(!folder.at("state").exists());
}

#[test]
fn a_site_without_a_robots_txt_is_served_and_enforces_nothing_until_the_file_exists() {
    let origin = Origin::start();
    for (on_missing, status) in [("503", 503), ("upstream", 200)] {
        let on_missing_key = format!("robots.on_missing = \"{on_missing}\"");
        let (folder, running) = Config::refusing().upstream("a", &origin).tables(on_missing_key).start();
        let rejected = running.event("rejected");
        let want = "robots.txt: the file does not exist; no version is live, so nothing is enforced";
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
fn robotsd_with_strict_or_on_missing_fail_refuses_to_start_without_a_robots_txt() {
    let fail = good().tables("[site.robots]\non_missing = \"fail\"");
    for (config, arguments) in [(good(), &["--strict"][..]), (fail, &[])] {
        let error = run(config.folder().serve().args(arguments)).failed(2);
        assert!(error.starts_with("robotsd: site \"a\": "), "{error}");
        assert_has(error, &["robots.txt: the file does not exist"]);
    }
}

#[test]
fn a_start_that_fails_at_the_second_site_publishes_no_site() {
    let with = |later: &str| {
        let first = "hosts = [\"a.test\"]\nroot = \".\"\nrobots.path = \"robots.txt\"";
        let config = Config::new().keys("state_dir = \"state\"").site("a", first);
        config.site("b", format!("root = \".\"\nrobots.path = \"missing.txt\"\n{later}"))
    };
    let missing = "missing.txt: the file does not exist";
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

/// Like the previous test, but the machine has no trusted certificate authorities.
#[test]
fn a_start_without_trusted_certificate_authorities_publishes_no_site() {
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
        let text = fs::read_to_string(project(name)).unwrap().replace("127.0.0.1:8080", "127.0.0.1:0");
        // Paths in the config are relative to it, so the copy must be in the same folder.
        let copy = tempfile::Builder::new().prefix(".test-").suffix(".toml").tempfile_in(project("config")).unwrap();
        // The log of the demo is for people, so its format is changed.
        fs::write(copy.path(), text.replace("format = \"text\"", "format = \"json\"")).unwrap();
        let running = Running::start_with(copy.path());
        assert_eq!(running.get("/robots.txt", GPTBOT).status, 200, "{name}");
        assert_eq!(running.events("finding"), 0, "{name}");
    }
}

#[test]
fn the_configured_checks_run_at_start_and_after_a_change_of_the_file() {
    let more = "[site.modes]\n\"index\" = \"refuse\"\n[gate]\nenabled = false\n[check]\ndeny = [\"noindex\"]\nallow = [\"path-without-slash\"]";
    let robots = "User-agent: Googlebot\nDisallow: x\nDisallow: /products/\nNoindex: /y\n";
    let (folder, running) = Config::refusing().files_of("a").tables(more).robots(robots).start();
    let found = |code: &str| running.wait_for_event("finding", |line| line["reason"] == code);
    assert_has(message(&found("noindex")), &["robots.txt:4:1: error: "]);
    // Because of an override, disallowed requests of the search engine are refused.
    found("search-engine-refused");
    folder.replace("robots.txt", "User-agent: *\nDisallow: /\n");
    found("whole-site-disallowed");
    assert!(!running.has_event("finding", |line| line["reason"] == "path-without-slash"));
    running.wait_for_event("published", |line| line["reason"] == "event");
}

/// Requires libfaketime (Debian: `faketime`), and is skipped if it is missing.
#[test]
fn robotsd_starts_even_if_the_clock_is_before_1970() {
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
        running.wait_for_event("clock", |line| message(line).starts_with("the clock of this machine is before 1970"));
        // robotsd itself handles these simple requests. hyper handles all others, but cannot format
        // this date.
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
        let lines = || fs::read_to_string(folder.at("access.log")).unwrap_or_default().lines().count();
        wait_until("a line for each request", || lines() == 3 * start);
        running.end();
    }
}

/// Returns the path of libfaketime, if it works on this machine.
pub(super) fn faketime() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.flatten();
    let library = folders.map(|folder| folder.path().join("faketime/libfaketime.so.1")).find(|path| path.exists())?;
    let mut date = Command::new("date");
    let date = date.arg("+%Y").env("LD_PRELOAD", &library).env("FAKETIME", "@1965-03-04 05:06:07").output().ok()?;
    (date.stdout == b"1965\n").then_some(library)
}
