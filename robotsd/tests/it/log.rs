//! Causes every event of the log, and checks that its line matches the schema.
//!
//! Every other test checks its lines against the schema as well, when its `Running` value is
//! dropped.

use super::log_schema;
use super::tls::certify;
use crate::harness::*;

/// Events that a test must not cause, or that the library does not cause at present.
const NOT_DRIVEN: [(&str, &str); 8] = [
    (
        "clock",
        "a clock before 1970: `start::robotsd_starts_even_if_the_clock_is_before_1970`, where there is a faketime",
    ),
    ("descriptors", "a limit of descriptors that cannot be raised although it says so"),
    ("log-overflow", "a reader of standard output that is slower than the events"),
    ("panic", "a fault: `watchdog` and `start::robotsd_starts_even_if_the_clock_is_before_1970`"),
    ("registry-gated", "a registry that is published over TLS: `registry_url`"),
    ("reloaded", "an outcome that a later version of the library may add"),
    ("stalled", "a thread that `strace` holds up: `watchdog`"),
    ("watch", "a system without any watch left"),
];

const ROBOTS: &str = "User-agent: GPTBot\nUser-agent: CCBot\nUser-agent: Googlebot\nCrawl-delay: 30\nDisallow: /private/\n\
                      Noindex: /x\n";

fn config(origin: SocketAddr) -> String {
    format!(
        r#"mode = "refuse"
state_dir = "state"
workers = 1
rate.store = "redis://127.0.0.1:1"
[[listener]]
address = "127.0.0.1:0"
[[listener]]
address = "127.0.0.1:0"
kind = "decision"
[[listener]]
address = "127.0.0.1:0"
[[listener.certificate]]
chain = "a.pem"
key = "a.key"
[[site]]
name = "a"
hosts = ["a.test"]
root = "."
robots.expectations = "expected.toml"
robots.append = [{{ path = "ai.txt" }}]
robots.on_publish = [{{ url = "http://127.0.0.1:1/" }}]
rate = {{ mode = "refuse", burst = 1 }}
[site.modes]
"agent:CCBot" = {{ mode = "tag", rate = "observe" }}
"agent:Googlebot" = "observe"
[[site]]
name = "each"
hosts = []
root = "."
robots.source = "directory"
robots.path = "each"
[[site]]
name = "fetched"
hosts = ["fetched.test"]
upstreams = ["http://127.0.0.1:1"]
robots.url = "http://{origin}/robots.txt"
[[notify]]
on = ["enforcement"]
url = "http://127.0.0.1:1/"
[agents]
registry_extra = "crawlers.toml"
suspect_human = "exempt"
session_cookies = ["session"]
[admin]
socket = "admin.sock"
[log]
access = "json"
"#
    )
}

fn ask(running: &Running, host: &str, agent: &str, cookie: &str) -> Answer {
    running.request("GET", "/private/x", &[("Host", host), ("User-Agent", agent), ("Cookie", cookie)])
}

#[test]
fn every_event_is_written_as_documented() {
    use std::os::unix::fs::PermissionsExt;

    let origin = Origin::publishing(200, ROBOTS);
    let folder = folder(&[
        ("robotsd.toml", &config(origin.address)),
        ("robots.txt", ROBOTS),
        ("ai.txt", "User-agent: UnheardOfBot\nDisallow: /\n"),
        ("crawlers.toml", "# none\n"),
        ("expected.toml", "[[allow]]\nagents = [\"Googlebot\"]\npaths = [\"/\"]\n"),
        ("each/.not-a-host", ""),
        ("each/not a host.txt", ROBOTS),
    ]);
    certify(folder.path(), &["a.test"]);
    fs::set_permissions(folder.at("a.key"), PermissionsExt::from_mode(0o644)).unwrap();
    let mut running = Running::spawn(folder.serve().env("NOTIFY_SOCKET", folder.at("no-such-socket")));
    let seen = |events: &[&str]| events.iter().for_each(|event| drop(running.event(event)));
    seen(&["listening", "admin-listening", "connections", "published", "finding", "certificate"]);
    seen(&["certificate-warning", "directory", "supervisor"]);

    // Events about requests.
    assert_eq!(ask(&running, "a.test", GPTBOT, "").status, 403);
    ask(&running, "a.test", "CCBot/2.0 (https://commoncrawl.org/faq/)", "");
    ask(&running, "a.test", GOOGLEBOT, "");
    ask(&running, "a.test", GPTBOT, "session=1");
    ask(&running, "fetched.test", FIREFOX, "");
    for agent in [GPTBOT, GPTBOT, "CCBot/2.0", "CCBot/2.0"] {
        running.request("GET", "/nothing", &[("Host", "a.test"), ("User-Agent", agent)]);
    }
    running.send(b"no HTTP\r\n\r\n");
    let decisions = running.all("listening").into_iter().find_map(|line| {
        let address: SocketAddr = line["message"].as_str()?.strip_prefix("http://")?.parse().ok()?;
        (address != running.address).then_some(address)
    });
    let questions =
        b"GET /-/auth/envoy/x HTTP/1.1\r\nHost: a.test\r\n\r\nGET /-/auth/apache HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let _stream = sent(decisions.unwrap(), questions);
    seen(&["refused", "tagged", "observed", "passed", "request", "upstream", "problem"]);
    seen(&["no-user-agent", "undecided", "limited", "limit-observed"]);

    // Events about a robots.txt and the files next to it.
    let command = |words: &[&str]| drop(folder.with_config(words));
    origin.show(404, "gone");
    command(&["reload"]);
    seen(&["held", "unchanged"]);
    origin.show(500, "error");
    command(&["reload", "--site", "fetched"]);
    seen(&["unreachable"]);
    folder.replace("robots.txt", b"\0\x01\x02\xff\xfe");
    seen(&["rejected"]);
    folder.replace("robots.txt", "User-agent: *\nDisallow: /\n");
    let gated = running.event("gated");
    command(&["accept", "a", gated["robots_hash"].as_str().unwrap()]);
    seen(&["accept"]);
    command(&["rollback", "a"]);
    seen(&["rollback"]);
    for (file, text, event) in [
        ("expected.toml", "[[\n", "gate"),
        ("crawlers.toml", "[[crawler]\n", "registry-rejected"),
        ("crawlers.toml", "# some\n", "registry"),
    ] {
        folder.replace(file, text);
        seen(&[event]);
    }
    folder.write("a.key", "no key");
    running.signal("HUP");
    seen(&["reload", "certificate-rejected"]);

    // Events about the operator and the config.
    command(&["enforce", "off"]);
    seen(&["enforcement", "audit", "notify"]);
    certify(folder.path(), &["a.test"]);
    folder.configure("mode = 1\n");
    seen(&["config-rejected"]);
    running.signal("USR2");
    running.wait_for_event("upgrade", |line| line["level"] == "error");
    let other = config(origin.address).replace("mode = \"refuse\"\n", "mode = \"tag\"\n");
    folder.configure(other + "[limits]\ndrain = \"1s\"\n");
    seen(&["config-changed", "config"]);
    running.signal("TERM");
    running.wait_for_end();
    for event in ["stopping", "stopped"] {
        running.event(event);
    }
    let mut events = running.event_names();
    drop(running);
    events.extend(without_a_file());
    events.extend(with_little());
    events.extend(super::identity::events_of_an_impostor());

    let left_out = NOT_DRIVEN.map(|(event, _)| event);
    let documented: BTreeSet<String> =
        log_schema::events().filter(|event| !left_out.contains(event)).map(str::to_owned).collect();
    assert_eq!(documented.difference(&events).collect::<Vec<_>>(), Vec::<&String>::new(), "never written");
    assert!(left_out.iter().all(|event| log_schema::events().any(|known| known == *event)));
}

/// Returns the events of a site whose upstream responds that there is no robots.txt.
fn without_a_file() -> BTreeSet<String> {
    let origin = Origin::publishing(404, "none");
    let keys = format!("upstreams = [\"http://{origin}\"]\nrobots = {{ source = \"upstream\", host = \"a.test\" }}");
    let fleet = "fleet = { name = \"shop\", store = \"redis://127.0.0.1:1\" }";
    let (_folder, running) = Config::new().keys(fleet).site("a", keys).start();
    running.event("absent");
    running.event("fleet");
    running.event_names()
}

/// Returns the events of a process with few descriptors, with a file in place of its state
/// directory, and with a log that cannot be reopened.
fn with_little() -> BTreeSet<String> {
    let config =
        Config::new().keys("state_dir = \"state\"").admin_socket().site("a", "root = \".\"\nrobots.text = \"# all\"");
    let config = config.tables("[limits]\nconnections = 100000").log_requests().tables("access_path = \"access.log\"");
    let folder = config.folder();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 200; exec \"$0\" serve --config \"$1\""]);
    command.arg(env!("CARGO_BIN_EXE_robotsd")).arg(folder.at("robotsd.toml"));
    let running = Running::spawn(&mut command);
    running.event("connections-bounded");
    let state = folder.at("state");
    wait_until("the state directory", || state.join("sites/a/state.json").exists());
    let aside = tempfile::tempdir().unwrap();
    wait_until("a file in its place", || {
        // robotsd may write to the folder at the same time, and thereby create it again.
        let _ = fs::rename(&state, aside.path().join("state")).or_else(|_| fs::remove_dir_all(&state));
        fs::write(&state, "a file").is_ok()
    });
    // The switch is written immediately. Everything else is only checked every few seconds.
    folder.with_config(&["enforce", "off"]);
    running.event("state");
    // The audit log is in the state directory, so this must fail.
    folder.with_config(&["enforce", "on"]).failed(2);
    running.event("admin");
    let log = folder.at("access.log");
    wait_until("the access log", || log.exists());
    fs::remove_file(&log).unwrap();
    fs::create_dir(&log).unwrap();
    running.signal("HUP");
    running.event("access-log");
    running.event_names()
}

/// If the length of a body is known, the HTTP server does not poll for its end. The request must be
/// logged as complete.
#[test]
fn a_completely_sent_response_is_logged_as_complete() {
    let config = Config::new().site("shop", "root = \"pages\"\nrobots.text = \"# nothing\"").log_requests();
    let config = config.file("pages/small.html", "a page\n").file("pages/large.html", "x".repeat(300_000));
    let (_folder, running) = config.start();
    let pages = [("/small.html", 200, 7), ("/large.html", 200, 300_000), ("/none", 404, 0)];
    let mut open = Kept::open(running.address, "site.test");
    for (path, status, _) in pages {
        assert_eq!((running.get(path, FIREFOX).status, open.get(path, FIREFOX).0), (status, status));
        running.request("HEAD", path, &[("User-Agent", FIREFOX)]);
    }
    let lines = wait_for("a line of each request", || Some(running.all("request")).filter(|lines| lines.len() == 9));
    for line in lines {
        let (_, _, bytes) = pages.into_iter().find(|(path, ..)| line["path"] == *path).unwrap();
        let bytes = if line["method"] == "HEAD" { 0 } else { bytes };
        assert_eq!((&line["whole"], &line["octets"]), (&true.into(), &bytes.into()), "{line}");
    }
}

#[test]
fn a_rotated_access_log_is_reopened_by_a_reload() {
    let log = "[log]\naccess = \"combined\"\naccess_path = \"access.log\"";
    let config = Config::new().admin_socket().files_of("a").robots(ROBOTS).tables(log);
    let (folder, running) = config.file("page.html", "a page").start();
    let lines = |name: &str| fs::read_to_string(folder.at(name)).unwrap_or_default().lines().count();
    running.get("/page.html", FIREFOX);
    wait_until("a line", || lines("access.log") == 1);
    fs::rename(folder.at("access.log"), folder.at("moved.log")).unwrap();
    folder.with_config(&["reload"]).succeeded();
    wait_until("another file", || folder.at("access.log").exists());
    running.get("/page.html", FIREFOX);
    wait_until("a line in another file", || lines("access.log") == 1);
    assert_eq!(lines("moved.log"), 1);
}
