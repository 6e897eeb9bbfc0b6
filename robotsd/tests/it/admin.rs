//! Asking and telling a running proxy: over its address, over its socket, with the commands.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use crate::harness::{
    ADMIN, ADMIN_SOCKET, Answer, Folder, GPTBOT, LISTENER, Origin, PATIENCE, Running, exchange, folder, free, message,
    replace_file, response, robotsd, run, serving, wait_until,
};

const ROBOTS: &str = "User-agent: GPTBot\nDisallow: /private/\n";

/// One site with a file, and an admin address.
const CONFIG: &str = "mode = \"refuse\"\n[[listener]]\nname = \"web\"\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"a site\"\n\
                      hosts = [\"site.test\"]\nroot = \".\"\n[admin]\naddress = \"127.0.0.1:0\"\n";

impl Running {
    pub(super) fn admin(&self) -> SocketAddr {
        let listening = self.wait_for_message("admin-listening", "http://");
        message(&listening).trim_start_matches("http://").parse().unwrap()
    }
}

pub(super) fn ask(address: SocketAddr, request: &str, fields: &str) -> Answer {
    exchange(address, format!("{request} HTTP/1.1\r\n{fields}\r\n"))
}

pub(super) fn local(address: SocketAddr, request: &str) -> Answer {
    ask(address, request, &format!("Host: {address}\r\nRobotsd-Admin: 1\r\n"))
}

fn json(answer: &Answer) -> Value {
    assert_eq!(answer.field("content-type"), Some("application/json"), "{answer:?}");
    serde_json::from_str(&answer.body).unwrap()
}

#[test]
fn probes_and_status_say_what_is_served() {
    let (_folder, running) =
        serving(&[("robotsd.toml", CONFIG), ("robots.txt", "User-agent: *\nDisallow: /x/\nNoindex: /x\n")]);
    let admin = running.admin();
    let live = local(admin, "GET /livez");
    assert_eq!((live.status, &*live.body), (200, "alive\n"));
    for (name, value) in [
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
        ("content-type", "text/plain; charset=utf-8"),
    ] {
        assert_eq!(live.field(name), Some(value));
    }
    let ready = local(admin, "GET /readyz");
    assert_eq!((ready.status, &*ready.body), (200, "ready\n"));
    let head = local(admin, "HEAD /readyz");
    assert_eq!((head.status, head.field("content-length"), &*head.body), (200, Some("6"), ""));
    let status = json(&local(admin, "GET /status"));
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(status["state"], "serving");
    assert_eq!(status["pid"], running.id());
    assert!(status["connections"].as_u64().unwrap() > 0, "{status}");
    let listener = &status["listeners"][0];
    assert_eq!(listener["address"], running.address.to_string());
    assert_eq!(
        (&listener["name"], &listener["kind"], &listener["socket"]),
        (&"web".into(), &"proxy".into(), &"bound".into())
    );
    let site = &status["sites"][0];
    assert_eq!(
        (&site["name"], &site["hosts"][0], &site["mode"]),
        (&"a site".into(), &"site.test".into(), &"refuse".into())
    );
    assert_eq!(site["state"], "live");
    assert!(site["hash"].as_str().unwrap().starts_with("sha256:"), "{site}");
    assert!(site["origin"].as_str().unwrap().ends_with("robots.txt"), "{site}");
    assert!(site["age_seconds"].is_u64() && site["since"].is_string(), "{site}");
    let found = |severity: &str| site["findings"][severity].as_u64().unwrap();
    assert!(found("errors") + found("warnings") > 0, "{site}");
    assert_eq!(site["last_reload"]["cause"], "start");
    assert!(site["last_reload"]["when"].is_string(), "{site}");
    assert_eq!((&site["enforcement"], &site["pending"], &site["faults"]), (&"on".into(), &Value::Null, &0.into()));
    assert_eq!(local(admin, "GET /nothing").status, 404);
    // Nothing of it on the listener for everyone.
    assert_eq!(running.get("/status", GPTBOT).status, 404);
    assert_eq!(running.get("/livez", crate::harness::FIREFOX).status, 404);
}

#[test]
fn a_reload_is_waited_for_and_says_what_came_of_it() {
    let (folder, running) = serving(&[("robotsd.toml", CONFIG), ("robots.txt", ROBOTS)]);
    let admin = running.admin();
    let outcome = |target: &str| json(&local(admin, &format!("POST {target}")))["sites"][0].clone();
    assert_eq!(outcome("/reload")["outcome"], "unchanged");
    // The watcher may be first to publish, but the request is answered when it is live.
    folder.replace("robots.txt", "User-agent: GPTBot\nDisallow: /other/\n");
    let answer = outcome("/reload?site=a%20site");
    assert!(answer["outcome"] == "published" || answer["outcome"] == "unchanged", "{answer}");
    assert_eq!(running.get("/other/x", GPTBOT).status, 403);
    let good = answer["hash"].clone();
    std::fs::remove_file(folder.at("robots.txt")).unwrap();
    let answer = outcome("/reload");
    assert_eq!((&answer["outcome"], &answer["hash"]), (&"kept".into(), &good));
    assert!(message(&answer).contains("there is no such file"), "{answer}");
    let status = json(&local(admin, "GET /status"));
    assert_eq!((&status["sites"][0]["state"], &status["sites"][0]["hash"]), (&"last-good".into(), &good));
    assert_eq!(local(admin, "GET /readyz").status, 200);
    let unknown = local(admin, "POST /reload?site=b");
    assert_eq!(
        (unknown.status, &json(&unknown)["error"]),
        (404, &"there is no site \"b\"; there is \"a site\"".into())
    );
    assert_eq!(local(admin, "POST /reload?sites=a").status, 400);
    running.wait_for_event("admin", |line| line["message"] == "POST /reload?site=a%20site");
}

#[test]
fn only_a_program_of_the_operators_gets_in() {
    let (_folder, running) = serving(&[("robotsd.toml", CONFIG), ("robots.txt", ROBOTS)]);
    let admin = running.admin();
    let own = format!("Host: {admin}\r\n");
    for (request, fields, status) in [
        ("GET /status", "Host: evil.test\r\n".to_owned(), 403),
        ("GET /status", String::new(), 400),
        ("GET /status", "Host: localhost\r\n".to_owned(), 200),
        ("GET /status", format!("{own}Origin: http://evil.test\r\n"), 403),
        ("GET /status", format!("{own}X-Forwarded-For: 192.0.2.1\r\n"), 403),
        ("POST /reload", own.clone(), 403),
        ("POST /reload", format!("{own}Origin: null\r\nRobotsd-Admin: 1\r\n"), 403),
        ("GET /reload", format!("{own}Robotsd-Admin: 1\r\n"), 405),
        ("OPTIONS /reload", format!("{own}Origin: http://evil.test\r\n"), 403),
        ("OPTIONS /reload", own.clone(), 405),
        ("POST /status", format!("{own}Robotsd-Admin: 1\r\n"), 405),
        ("GET http://evil.test/status", own.clone(), 400),
        ("POST /reload", format!("{own}Robotsd-Admin: 1\r\nContent-Length: 999999\r\n"), 413),
        ("GET /livez", format!("{own}X: {}\r\n", "x".repeat(20_000)), 431),
    ] {
        assert_eq!(ask(admin, request, &fields).status, status, "{request} {fields}");
    }
    assert_eq!(ask(admin, "GET /reload", &own).field("allow"), Some("POST"));
    assert!(!running.has_event("admin", |_| true), "something was changed");
}

#[test]
fn a_site_in_front_of_the_admin_does_not_open_it() {
    let mut folders = Vec::new();
    let mut start = |config: &str| {
        let (folder, running) = serving(&[("robotsd.toml", config), ("robots.txt", ROBOTS)]);
        folders.push(folder);
        running
    };
    let inner = start(CONFIG);
    let outer = start(&format!(
        "{LISTENER}[[site]]\nname = \"a\"\nupstreams = [\"http://{}\"]\nrobots.path = \"robots.txt\"\n",
        inner.admin()
    ));
    let fields = [("Host", "localhost"), ("Robotsd-Admin", "1")];
    assert_eq!(outer.request("GET", "/status", &fields).status, 403);
    assert_eq!(outer.request("POST", "/reload", &fields).status, 403);
}

/// Far more idle connections than there are places, over TCP and over the socket: some silent, some with half a request.
#[cfg(unix)]
#[test]
fn the_kill_switch_works_however_many_connections_are_idle() {
    use std::os::unix::net::UnixStream;
    const IDLE: u64 = 1000;
    let config = CONFIG.replace("[admin]\n", "[admin]\nsocket = \"admin.sock\"\n");
    let (folder, running) = serving(&[("robotsd.toml", &config), ("robots.txt", ROBOTS)]);
    let (address, socket) = (running.admin(), folder.at("admin.sock"));
    // Both ends of the wire are files; without enough of them there are fewer connections.
    let files = rlimit::increase_nofile_limit(u64::MAX).unwrap();
    let number = IDLE.min(files.saturating_sub(200) / 2);
    let idle: Vec<(TcpStream, UnixStream)> = (0..number)
        .map(|at| {
            let (mut tcp, mut unix) = (TcpStream::connect(address).unwrap(), UnixStream::connect(&socket).unwrap());
            if at % 2 == 0 {
                let half = b"POST /enforce?to=off HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n";
                let _ = (tcp.write_all(half), unix.write_all(half));
            }
            (tcp, unix)
        })
        .collect();
    for (place, to, status) in [(address.to_string(), "off", 404), (socket.display().to_string(), "on", 403)] {
        let output = run(robotsd().args(["enforce", to, "--admin", &place]));
        assert!(output.code == Some(0), "over {place} beside {number} idle connections: {output:?}");
        assert_eq!(running.get("/private/x", GPTBOT).status, status);
    }
    assert_eq!(idle.len() as u64, number);
}

/// Connections that come without end, as fast as one client can make them, leave time for a request.
#[test]
fn the_kill_switch_works_while_idle_connections_come_without_end() {
    use crate::harness::StopAtEnd;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    let (_folder, running) = serving(&[("robotsd.toml", CONFIG), ("robots.txt", ROBOTS)]);
    let admin = running.admin();
    let (stop, made) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        scope.spawn(|| {
            let mut idle = std::collections::VecDeque::new();
            while !stop.load(Ordering::Relaxed) {
                idle.extend(TcpStream::connect(admin));
                made.fetch_add(1, Ordering::Relaxed);
                if idle.len() > 300 {
                    idle.pop_front();
                }
            }
        });
        wait_until("a flood", || made.load(Ordering::Relaxed) > 500);
        for to in ["off", "on", "off", "on", "off"] {
            run(robotsd().args(["enforce", to, "--admin", &admin.to_string()])).succeeded();
        }
        assert_eq!(running.get("/private/x", GPTBOT).status, 404);
    });
}

#[test]
fn a_site_without_robots_txt_is_named_and_takes_nothing_from_others() {
    let origin = Origin::start();
    let config = format!(
        "{LISTENER}[[site]]\nname = \"a\"\nupstreams = [\"http://{origin}\"]\nrobots.path = \"robots.txt\"\n{ADMIN}"
    );
    let (folder, running) = serving(&[("robotsd.toml", &config)]);
    let admin = running.admin();
    let ready = local(admin, "GET /readyz");
    assert_eq!((ready.status, &*ready.body), (200, "ready\nsite \"a\" has no robots.txt: nothing is enforced\n"));
    assert_eq!(local(admin, "GET /readyz?require=sites").status, 503);
    assert_eq!(local(admin, "GET /readyz?require=luck").status, 400);
    let site = json(&local(admin, "GET /status"))["sites"][0].clone();
    assert_eq!((&site["state"], &site["hash"]), (&"none".into(), &Value::Null));
    folder.replace("robots.txt", ROBOTS);
    running.event("published");
    let ready = local(admin, "GET /readyz?require=sites");
    assert_eq!((ready.status, &*ready.body), (200, "ready\n"));
}

#[cfg(unix)]
#[test]
fn the_commands_ask_over_the_socket_that_the_config_names() {
    use std::os::unix::fs::PermissionsExt;
    let config = CONFIG
        .replace("address = \"127.0.0.1:0\"\n", "")
        .replace("[[listener]]", "[[listener]]\naddress = \"127.0.0.1:0\"")
        + "socket = \"admin.sock\"\n";
    let folder = folder(&[("robotsd.toml", &config), ("robots.txt", ROBOTS)]);
    let path = folder.at("robotsd.toml");
    let socket = folder.at("admin.sock");
    let command = |arguments: &[&str]| run(robotsd().args(arguments).arg("--config").arg(&path));
    // Before it runs.
    let output = command(&["status"]);
    assert_eq!(output.code, Some(2));
    let error = output.error;
    let want = format!("robotsd: {}: no process listens there: robotsd does not run", socket.display());
    assert!(error.starts_with(&want), "{error}");

    let mut running = folder.start();
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let output = command(&["status"]);
    let text = output.out;
    assert!(output.code == Some(0), "{text}");
    assert!(text.contains("is serving for ") && text.contains("site a site (site.test): live\n"), "{text}");
    assert!(text.contains(&format!("listener http://{} (web): proxy, bound\n", running.address)), "{text}");
    assert!(text.contains("  mode:       refuse\n"), "{text}");
    let status = command(&["status", "--json"]).json();
    assert_eq!(status["sites"][0]["name"], "a site");
    let output = command(&["reload", "--site", "a site"]);
    assert!(output.code == Some(0));
    assert!(output.out.starts_with("a site: unchanged: "));
    // What is not taken is an error for a script too.
    std::fs::remove_file(folder.at("robots.txt")).unwrap();
    let output = command(&["reload", "--json"]);
    assert_eq!(output.code, Some(1));
    let report: Value = output.json();
    assert_eq!(report["sites"][0]["outcome"], "kept");
    let error = command(&["reload", "--site", "b"]).failed(2);
    assert_eq!(error, "robotsd: robotsd answered 404: there is no site \"b\"; there is \"a site\"\n");
    // With --admin instead.
    let text = run(robotsd().args(["status", "--admin"]).arg(&socket)).succeeded();
    assert!(text.contains("site a site (site.test): last-good\n") && text.contains("  not taken:  "), "{text}");
    running.end();
    assert!(!socket.exists(), "the socket is left behind");
}

#[test]
fn a_command_says_where_no_server_can_be_reached() {
    let folder = folder(&[("robotsd.toml", "[[listener]]\naddress = \"127.0.0.1:0\"\n[admin]\nmode = \"off\"\n")]);
    let path = folder.at("robotsd.toml");
    let error = run(robotsd().args(["status", "--config"]).arg(&path)).failed(2);
    assert!(error.contains("[admin] has mode = \"off\", so a robotsd with this config cannot be reached"), "{error}");
    run(robotsd().args(["status", "--admin", "somewhere"])).failed(2);
    // Something that is no robotsd.
    let origin = Origin::start();
    let error = run(robotsd().args(["status", "--admin", &origin.address.to_string()])).failed(2);
    assert!(error.contains("this is not the answer of a robotsd"), "{error}");
}

#[test]
fn no_robots_txt_is_fetched_from_the_admin_interface() {
    let config = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"main\"\nroot = \".\"\n[admin]\n\
                  address = \"127.0.0.1:0\"\n[gate]\nmode = \"off\"\n";
    let (_folder, running) = serving(&[("robotsd.toml", config), ("robots.txt", ROBOTS)]);
    let admin = running.admin();
    // A second robotsd, whose URL redirects to the first one's status.
    let location = format!("Location: http://{admin}/status");
    let redirecting = Origin::answering(move |_| response("302 Found", &[&location], ""));
    let url = format!("http://{}/robots.txt", redirecting.address);
    let config = format!(
        "{LISTENER}[[site]]\nname = \"main\"\nroot = \".\"\n[site.robots]\nsource = \"url\"\nurl = \"{url}\"\n\
         [gate]\nmode = \"off\"\n"
    );
    let (_folder, fetching) = serving(&[("robotsd.toml", &config)]);
    let absent = fetching.event("absent");
    assert!(message(&absent).contains("403"), "{absent}");
    assert_eq!(fetching.get("/robots.txt", GPTBOT).status, 404);
    let refused = ask(admin, "GET /status", &format!("Host: {admin}\r\nUser-Agent: robotsd/0.1.0\r\n"));
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("fetching a robots.txt"), "{refused:?}");
}

/// HTTP/1.0 needs no Host, and a relay that speaks it drops one: a page gets no further for that.
#[test]
fn a_page_changes_nothing_whatever_form_its_request_has() {
    let (_folder, running) = serving(&[("robotsd.toml", CONFIG), ("robots.txt", ROBOTS)]);
    let admin = running.admin();
    let sent = |request: String| exchange(admin, request);
    let off = "enforce?to=off";
    let forms = [
        format!("POST /{off} HTTP/1.0\r\n"),
        format!("POST /{off} HTTP/1.0\r\nHost: {admin}\r\n"),
        format!("POST /{off} HTTP/1.1\r\nConnection: close\r\nHost: {admin}\r\n"),
        format!("POST /{off} HTTP/1.1\r\nConnection: close\r\nHost:\r\n"),
        format!("POST http://{admin}/{off} HTTP/1.1\r\nConnection: close\r\nHost: {admin}\r\n"),
        format!("POST http://{admin}/{off} HTTP/1.0\r\n"),
    ];
    let pages = [
        "Origin: http://evil.test\r\n".to_owned(),
        "Origin: null\r\n".to_owned(),
        format!("Origin: http://{admin}\r\nOrigin: http://evil.test\r\n"),
        "Sec-Fetch-Site: cross-site\r\n".to_owned(),
        "Sec-Fetch-Site: none\r\nSec-Fetch-Site: same-site\r\n".to_owned(),
    ];
    for form in &forms {
        for page in &pages {
            let answer = sent(format!("{form}{page}Robotsd-Admin: 1\r\nContent-Length: 0\r\n\r\n"));
            assert_eq!(answer.status, 403, "{form}{page}: {answer:?}");
        }
    }
    assert_eq!(running.get("/private/x", GPTBOT).status, 403, "it is enforced still");
    // The board's own page, and a probe without a Host.
    let own = format!("Host: {admin}\r\nOrigin: http://{admin}\r\nSec-Fetch-Site: same-origin\r\n");
    assert_eq!(sent(format!("GET /board.json HTTP/1.1\r\nConnection: close\r\n{own}\r\n")).status, 200);
    assert_eq!(sent("GET /readyz HTTP/1.0\r\n\r\n".to_owned()).status, 200);
}

#[test]
fn a_listener_for_reading_answers_questions_and_changes_nothing() {
    let config = format!("{CONFIG}[[admin.listener]]\naddress = \"127.0.0.1:0\"\naccess = \"read\"\n");
    let (_folder, running) = serving(&[("robotsd.toml", &config), ("robots.txt", ROBOTS)]);
    let listening = running.wait_for_message("admin-listening", " (for reading)");
    let address = message(&listening).trim_start_matches("http://").split(' ').next().unwrap();
    let reading: SocketAddr = address.parse().unwrap();
    for path in ["/livez", "/readyz", "/status", "/metrics", "/history?site=a%20site"] {
        assert_eq!(local(reading, &format!("GET {path}")).status, 200, "{path}");
    }
    for path in ["/enforce?to=off", "/reload", "/rollback?site=a%20site", "/accept?site=a%20site&hash=sha256:00000000"]
    {
        let refused = local(reading, &format!("POST {path}"));
        let message =
            "this listener of the admin interface changes nothing: use one with access = \"full\", or the socket";
        assert_eq!((refused.status, &json(&refused)["error"]), (403, &message.into()), "{path}");
    }
    assert_eq!(running.get("/private/x", GPTBOT).status, 403, "enforcement is on");
    assert_eq!(local(running.admin(), "POST /enforce?to=off").status, 200);
    assert_eq!(running.get("/private/x", GPTBOT).status, 404);
}

#[test]
fn further_listeners_come_and_go_with_the_config() {
    let (first, second) = (free(), free());
    let listener = |address: SocketAddr, access: &str| format!("[[admin.listener]]\naddress = \"{address}\"\n{access}");
    let (folder, running) =
        serving(&[("robotsd.toml", &format!("{CONFIG}{}", listener(first, ""))), ("robots.txt", ROBOTS)]);
    let configure = |listeners: &str, want: &str| {
        folder.replace("robotsd.toml", format!("{CONFIG}{listeners}"));
        let says = |line: &Value| line["message"].as_str().is_some_and(|message| message.contains(want));
        running.wait_for_event("config", says);
        assert!(!running.has_event("config-changed", |line| line["applies"] == "next-start"));
    };
    let enforce = |address| local(address, "POST /enforce?to=on").status;
    assert_eq!(enforce(first), 200);

    // What it is for changes, and its port is open all the while.
    configure(&listener(first, "access = \"read\"\n"), &format!("listens on http://{first} (for reading)"));
    assert_eq!((enforce(first), local(first, "GET /status").status), (403, 200));
    let both = listener(first, "access = \"full\"\n") + &listener(second, "");
    configure(&both, &format!("listens on http://{second}"));
    assert_eq!((enforce(first), enforce(second)), (200, 200));
    // Every address with the port that one address gives up.
    let any = SocketAddr::from(([0, 0, 0, 0], second.port()));
    configure(&listener(any, ""), &format!("does not listen on {second} any more"));
    assert_eq!((enforce(second), local(second, "GET /status").status), (403, 200));
    assert!(TcpStream::connect(first).is_err(), "still listening");

    // A port that another has is said, and tried again with the next config.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let other = taken.local_addr().unwrap();
    configure(&listener(other, ""), &format!("{other}: cannot listen here for [admin]"));
    drop(taken);
    configure(&(listener(other, "") + "access = \"read\"\n"), &format!("listens on http://{other}"));
    configure("", &format!("does not listen on {other} any more"));
    assert!(TcpStream::connect(other).is_err(), "still listening");
    assert_eq!(local(running.admin(), "GET /status").status, 200);
}

/// A running process whose `[admin]` is replaced.
struct Reconfigured {
    folder: Folder,
    running: Running,
}

impl Reconfigured {
    fn start(admin: &str) -> Self {
        let (folder, running) = serving(&[("robotsd.toml", &Self::config(admin)), ("robots.txt", ROBOTS)]);
        Self { folder, running }
    }

    fn config(admin: &str) -> String {
        CONFIG.replace("[admin]\naddress = \"127.0.0.1:0\"\n", admin)
    }

    /// Waits until the config with this `[admin]` is in force, and something is said of it.
    fn follow(&self, admin: &str, want: &str) {
        replace_file(&self.folder.at("robotsd.toml"), Self::config(admin));
        self.running.wait_for_message("config", want);
    }
}

#[test]
fn an_address_that_gets_another_use_has_the_access_of_that() {
    let address = free();
    let commands = format!("{ADMIN_SOCKET}address = \"{address}\"\n");
    let reading = format!("{ADMIN_SOCKET}[[admin.listener]]\naddress = \"{address}\"\naccess = \"read\"\n");
    let server = Reconfigured::start(&commands);
    let enforce = || local(address, "POST /enforce?to=on").status;
    assert_eq!(enforce(), 200);
    // Accepted with full access, and not asked for anything yet.
    let mut idle = TcpStream::connect(address).unwrap();
    idle.set_read_timeout(Some(PATIENCE)).unwrap();
    server.follow(&reading, &format!("the admin interface listens on http://{address} (for reading)"));
    assert_eq!((enforce(), local(address, "GET /status").status), (403, 200));
    let request = format!("POST /enforce?to=off HTTP/1.1\r\nHost: {address}\r\nRobotsd-Admin: 1\r\n\r\n");
    let mut answer = Vec::new();
    let _ = idle.write_all(request.as_bytes()).and_then(|()| idle.read_to_end(&mut answer));
    assert_eq!(answer, b"", "a connection kept the access it was accepted with");
    assert_eq!(server.running.get("/private/x", GPTBOT).status, 403, "enforcement is on");

    replace_file(&server.folder.at("robotsd.toml"), Reconfigured::config(&commands));
    let message = format!("the admin interface listens on http://{address}");
    server.running.wait_for_event("config", |line| {
        line["message"].as_str().is_some_and(|said| said.contains(&message) && !said.contains("(for reading)"))
    });
    assert_eq!((enforce(), local(address, "GET /status").status), (200, 200));
    // Every address with that port, to be read only.
    let any = SocketAddr::from(([0, 0, 0, 0], address.port()));
    server.follow(&reading.replace(&address.to_string(), &any.to_string()), &format!("listens on http://{any} (for"));
    assert_eq!((enforce(), local(address, "GET /status").status), (403, 200));
}

#[test]
fn no_further_listener_is_open_where_the_interface_is_off() {
    let address = free();
    let server = Reconfigured::start(&format!("[[admin.listener]]\naddress = \"{address}\"\n"));
    assert_eq!(local(address, "GET /status").status, 200);
    server.follow("[admin]\nmode = \"off\"\n", &format!("does not listen on {address} any more"));
    assert!(TcpStream::connect(address).is_err(), "still listening");
}

#[test]
fn a_listener_stays_until_the_one_in_its_place_can_be_opened() {
    let (address, taken) = (free(), std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let other = taken.local_addr().unwrap();
    let further = |address: SocketAddr| format!("{ADMIN_SOCKET}[[admin.listener]]\naddress = \"{address}\"\n");
    let server = Reconfigured::start(&further(address));
    server.follow(&further(other), &format!("the admin interface goes on on {address} until"));
    assert_eq!(local(address, "GET /status").status, 200);
    // It is tried again without another config.
    drop(taken);
    server.running.wait_for_message("config", &format!("does not listen on {address} any more"));
    assert_eq!(local(other, "GET /status").status, 200);
    assert!(TcpStream::connect(address).is_err(), "still listening");
}

#[test]
fn every_listener_takes_other_names_at_once() {
    let (address, further) = (free(), free());
    let admin = |hosts: &str| {
        format!("[admin]\naddress = \"{address}\"\nhosts = [{hosts}]\n[[admin.listener]]\naddress = \"{further}\"\n")
    };
    let server = Reconfigured::start(&admin("\"before.test\""));
    let asked_as =
        |name: &str| [address, further].map(|at| ask(at, "GET /status", &format!("Host: {name}\r\n")).status);
    assert_eq!((asked_as("before.test"), asked_as("after.test")), ([200; 2], [403; 2]));
    server.follow(&admin("\"after.test\""), "the admin interface takes other names in Host");
    assert_eq!((asked_as("before.test"), asked_as("after.test")), ([403; 2], [200; 2]));
    assert!(!server.running.has_event("config-changed", |line| line["applies"] == "next-start"));
}
