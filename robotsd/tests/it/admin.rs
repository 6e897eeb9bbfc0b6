//! Tests the admin interface of a running proxy, over TCP, over its socket, and with commands.

use crate::harness::*;

const ROBOTS: &str = "User-agent: GPTBot\nDisallow: /private/\n";

/// Creates a config with an admin address and one site with a robots.txt file.
fn config() -> Config {
    let config = Config::refusing().listener("name = \"web\"").robots(ROBOTS);
    config.site("a site", "hosts = [\"site.test\"]\nroot = \".\"").admin()
}

pub(super) fn ask(address: SocketAddr, request: &str, fields: &str) -> Answer {
    exchange(address, format!("{request} HTTP/1.1\r\n{fields}\r\n"))
}

fn status_of(address: SocketAddr, request: &str) -> u16 {
    admin_answer(address, request).status
}

fn json(answer: &Answer) -> Value {
    assert_eq!(answer.field("content-type"), Some("application/json"), "{answer:?}");
    answer.json()
}

#[test]
fn probes_and_status_report_what_is_served() {
    let (_folder, running) = config().robots("User-agent: *\nDisallow: /x/\nNoindex: /x\n").start();
    let live = running.ask_admin("GET /livez");
    assert_eq!((live.status, &*live.body), (200, "alive\n"));
    for (name, value) in [
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
        ("content-type", "text/plain; charset=utf-8"),
    ] {
        assert_eq!(live.field(name), Some(value));
    }
    running.ask_admin("GET /readyz").comes_with(200, "ready\n");
    let head = running.ask_admin("HEAD /readyz");
    assert_eq!((head.status, head.field("content-length"), &*head.body), (200, Some("6"), ""));
    let status = json(&running.ask_admin("GET /status"));
    let version = env!("CARGO_PKG_VERSION");
    assert_part(&status, &json!({"version": version, "state": "serving", "pid": running.id()}));
    assert!(status["connections"].as_u64().unwrap() > 0, "{status}");
    let address = running.address.to_string();
    let listener = json!({"address": address, "name": "web", "kind": "proxy", "socket": "bound"});
    assert_part(&status["listeners"][0], &listener);
    let site = &status["sites"][0];
    let want = json!({
        "name": "a site", "hosts": ["site.test"], "mode": "refuse", "state": "live", "last_reload": {"cause": "start"},
        "enforcement": "on", "pending": null, "faults": 0,
    });
    assert_part(site, &want);
    assert!(site["hash"].as_str().unwrap().starts_with("sha256:"), "{site}");
    assert!(site["origin"].as_str().unwrap().ends_with("robots.txt"), "{site}");
    assert!(site["age_seconds"].is_u64() && site["since"].is_string(), "{site}");
    let found = |severity: &str| site["findings"][severity].as_u64().unwrap();
    assert!(found("errors") + found("warnings") > 0 && site["last_reload"]["when"].is_string(), "{site}");
    assert_eq!(running.ask_admin("GET /nothing").status, 404);
    // The public listener must not serve the paths of the admin interface.
    assert_eq!(running.get("/status", GPTBOT).status, 404);
    assert_eq!(running.get("/livez", FIREFOX).status, 404);
}

#[test]
fn reload_waits_and_reports_the_outcome() {
    let (folder, running) = config().start();
    let outcome = |target: &str| json(&running.ask_admin(&format!("POST {target}")))["sites"][0].clone();
    assert_eq!(outcome("/reload")["outcome"], "unchanged");
    // The watcher may publish the version first, but the command returns once it is live.
    folder.replace("robots.txt", "User-agent: GPTBot\nDisallow: /other/\n");
    let answer = outcome("/reload?site=a%20site");
    assert!(answer["outcome"] == "published" || answer["outcome"] == "unchanged", "{answer}");
    assert_eq!(running.get("/other/x", GPTBOT).status, 403);
    let good = answer["hash"].clone();
    folder.remove("robots.txt");
    let answer = outcome("/reload");
    assert_part(&answer, &json!({"outcome": "kept", "hash": good}));
    assert_has(message(&answer), &["the file does not exist"]);
    let failed = running.wait_for_event("audit", |line| line["action"] == "reload" && line["result"] == "failed");
    assert_has(message(&failed), &["the file does not exist"]);
    let status = json(&running.ask_admin("GET /status"));
    assert_part(&status["sites"][0], &json!({"state": "last-good", "hash": good}));
    assert_eq!(running.ask_admin("GET /readyz").status, 200);
    let unknown = running.ask_admin("POST /reload?site=b");
    assert_eq!(unknown.status, 404);
    assert_eq!(json(&unknown)["error"], "there is no site \"b\": the sites are \"a site\"");
    assert_eq!(running.ask_admin("POST /reload?sites=a").status, 400);
    running.wait_for_event("audit", |line| {
        (&line["action"], &line["site"], &line["result"]) == (&json!("reload"), &json!("a site"), &json!("done"))
    });
}

#[test]
fn foreign_and_malformed_admin_requests_are_rejected_and_change_nothing() {
    let (_folder, running) = config().start();
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
    assert!(!running.has_event("audit", |line| line["result"] != "refused"), "something was changed");
}

#[test]
fn a_site_whose_upstream_is_the_admin_interface_does_not_expose_it() {
    let (_inner_folder, inner) = config().start();
    let (_outer_folder, outer) = Config::new().upstream("a", inner.admin()).robots(ROBOTS).start();
    let fields = [("Host", "localhost"), ("Robotsd-Admin", "1")];
    assert_eq!(outer.request("GET", "/status", &fields).status, 403);
    assert_eq!(outer.request("POST", "/reload", &fields).status, 403);
}

/// Opens more idle connections than the interface accepts, over TCP and the socket. Some of the
/// connections send half a request.
#[test]
fn the_kill_switch_works_while_many_connections_are_idle() {
    use std::os::unix::net::UnixStream;
    const IDLE: u64 = 1000;
    let (folder, running) = config().tables("socket = \"admin.sock\"").start();
    let (address, socket) = (running.admin(), folder.at("admin.sock"));
    // Both ends of a connection need a file descriptor. If the process may not open enough
    // descriptors, the test opens fewer connections.
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
        run(robotsd().args(["enforce", to, "--admin", &place])).succeeded();
        assert_eq!(running.get("/private/x", GPTBOT).status, status);
    }
    assert_eq!(idle.len() as u64, number);
}

#[test]
fn the_kill_switch_works_during_a_flood_of_idle_connections() {
    let (_folder, running) = config().start();
    let admin = running.admin();
    let mut idle = std::collections::VecDeque::new();
    let flood: Client<'_> = Box::new(move || {
        idle.extend(TcpStream::connect(admin));
        if idle.len() > 300 {
            idle.pop_front();
        }
    });
    while_asking([flood], |asking| {
        asking.wait_for_more(500);
        for to in ["off", "on", "off", "on", "off"] {
            // On a busy machine, newer connections may displace the command's connection in each of
            // its five attempts.
            wait_until("a command that gets through", || running.command(&["enforce", to]).code == Some(0));
        }
        assert_eq!(running.get("/private/x", GPTBOT).status, 404);
    });
}

#[test]
fn a_site_without_robots_txt_is_reported_and_does_not_prevent_readiness() {
    let (folder, running) = Config::new().upstream("a", Origin::start()).admin().start();
    running.ask_admin("GET /readyz").comes_with(200, "ready\nsite \"a\" has no robots.txt: nothing is enforced\n");
    assert_eq!(running.ask_admin("GET /readyz?require=sites").status, 503);
    assert_eq!(running.ask_admin("GET /readyz?require=luck").status, 400);
    let status = json(&running.ask_admin("GET /status"));
    assert_part(&status["sites"][0], &json!({"state": "none", "hash": null}));
    folder.replace("robots.txt", ROBOTS);
    running.event("published");
    running.ask_admin("GET /readyz?require=sites").comes_with(200, "ready\n");
}

#[test]
fn commands_find_the_socket_of_the_process_that_uses_their_config() {
    use std::os::unix::fs::PermissionsExt;
    let config = Config::refusing().listener("name = \"web\"").robots(ROBOTS);
    let folder = config.site("a site", "hosts = [\"site.test\"]\nroot = \".\"").admin_socket().folder();
    let socket = folder.at("admin.sock");
    let command = |arguments: &[&str]| folder.configured([arguments, &["--config"]].concat());
    // No robotsd runs yet.
    let error = command(&["status"]).failed(2);
    assert_has(error, &["robotsd.toml: no running robotsd uses this config"]);

    let mut running = folder.start();
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let listener = format!("listener http://{} (web): proxy, bound\n", running.address);
    let parts = ["is serving (up for ", "site a site (site.test): live\n", &listener, "  mode:       refuse\n"];
    assert_has(command(&["status"]).succeeded(), &parts);
    assert_eq!(command(&["status", "--json"]).json()["sites"][0]["name"], "a site");
    let out = command(&["reload", "--site", "a site"]).succeeded();
    assert!(out.starts_with("a site: unchanged: "), "{out}");
    // With `--json`, `reload` must also exit with status 1 if a file is rejected.
    folder.remove("robots.txt");
    assert_eq!(command(&["reload", "--json"]).ends_with(1).json()["sites"][0]["outcome"], "kept");
    let error = command(&["reload", "--site", "b"]).failed(2);
    assert_eq!(error, "robotsd: robotsd answered 404: there is no site \"b\": the sites are \"a site\"\n");
    // `status` must also work with `--admin` instead of the config.
    let text = run(robotsd().args(["status", "--admin"]).arg(&socket)).ends_with(1).out;
    assert_has(text, &["site a site (site.test): last-good\n", "  not taken:  "]);
    running.end();
    assert!(!socket.exists(), "the socket is left behind");
    assert_has(command(&["status"]).failed(2), &["no running robotsd uses this config"]);
}

#[test]
fn a_command_explains_why_it_cannot_reach_robotsd() {
    let (folder, _running) = config().tables("enabled = false").start();
    let error = folder.with_config(&["status"]).failed(2);
    assert_has(error, &["no running robotsd uses this config", "its admin interface with --admin PLACE"]);
    run(robotsd().args(["status", "--admin", "somewhere"])).failed(2);
    // The server at this address is not robotsd.
    let error = run(robotsd().args(["status", "--admin", &Origin::start().to_string()])).failed(2);
    assert_has(error, &["this response does not come from robotsd"]);
}

#[test]
fn no_robots_txt_is_fetched_from_the_admin_interface() {
    let main = Config::new().files_of("main");
    let open = "[gate]\nenabled = false";
    let (_folder, running) = main.clone().admin().tables(open).robots(ROBOTS).start();
    let admin = running.admin();
    // The server at this address redirects to the status of a real robotsd.
    let origin = Origin::answering(move |_| redirect("302 Found", &format!("http://{admin}/status")));
    let url = format!("robots = {{ source = \"url\", url = \"http://{origin}/robots.txt\" }}");
    let (_folder, fetching) = main.tables(url).tables(open).start();
    assert_has(message(&fetching.event("absent")), &["403"]);
    assert_eq!(fetching.get("/robots.txt", GPTBOT).status, 404);
    let refused = ask(admin, "GET /status", &format!("Host: {admin}\r\nUser-Agent: robotsd/0.1.0\r\n"));
    assert_eq!(refused.status, 403);
    assert_has(refused.body, &["robotsd itself requested a robots.txt from its admin interface"]);
}

/// A web page must not get access, even through a relay that uses HTTP/1.0 and drops `Host`.
#[test]
fn requests_from_web_pages_are_refused_in_every_form() {
    let (_folder, running) = config().start();
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
    // The board's own page, and a probe without `Host`, must be served.
    let own = format!("Host: {admin}\r\nOrigin: http://{admin}\r\nSec-Fetch-Site: same-origin\r\n");
    assert_eq!(sent(format!("GET /board.json HTTP/1.1\r\nConnection: close\r\n{own}\r\n")).status, 200);
    assert_eq!(sent("GET /readyz HTTP/1.0\r\n\r\n".to_owned()).status, 200);
}

#[test]
fn a_read_only_listener_answers_queries_and_changes_nothing() {
    let config = config().tables("[[admin.listener]]\naddress = \"127.0.0.1:0\"\naccess = \"read\"");
    let (_folder, running) = config.start();
    let listening = running.wait_for_message("admin-listening", " (read-only)");
    let address = message(&listening).trim_start_matches("http://").split(' ').next().unwrap();
    let reading: SocketAddr = address.parse().unwrap();
    for path in ["/livez", "/readyz", "/status", "/metrics", "/history?site=a%20site"] {
        assert_eq!(status_of(reading, &format!("GET {path}")), 200, "{path}");
    }
    let message = "this admin listener is read-only: use the socket or another address of [admin] (with --config FILE, \
        commands find it themselves)";
    for path in ["/enforce?to=off", "/reload", "/rollback?site=a%20site", "/accept?site=a%20site&hash=sha256:00000000"]
    {
        let refused = admin_answer(reading, &format!("POST {path}"));
        assert_eq!((refused.status, &json(&refused)["error"]), (403, &message.into()), "{path}");
    }
    assert_eq!(running.get("/private/x", GPTBOT).status, 403, "enforcement is on");
    assert_eq!(running.ask_admin("POST /enforce?to=off").status, 200);
    assert_eq!(running.get("/private/x", GPTBOT).status, 404);
}

#[test]
fn the_local_token_is_rejected_once_the_config_has_a_token() {
    let further = free();
    let listener = format!("[[admin.listener]]\naddress = \"{further}\"\n");
    let of = |more: &str| config().tables(format!("{listener}{more}")).to_string();
    let token = format!("[[admin.token]]\nname = \"a\"\nhash = \"sha256:{}\"\nrole = \"admin\"\n", "0".repeat(64));
    let folder = config().folder();
    folder.configure(of(""));
    let running = folder.start();
    let local = running.local_token();
    let with = |fields: &str| {
        [running.admin(), further].map(|address| admin_answer_with(address, "POST /enforce?to=on", fields).status)
    };
    let both = || with(&local);
    assert_eq!(with(""), [401; 2]);
    assert_eq!(both(), [200; 2]);
    let follow = |text: &str, want: [u16; 2]| {
        folder.configure(text);
        wait_until("the config", || both() == want);
    };
    follow(&of(&token), [401; 2]);
    follow(&of(""), [200; 2]);
    follow(&of(&token), [401; 2]);
    // If the config names another admin address, the previous address must still require a token.
    folder.configure(of("").replace("[admin]\naddress = \"127.0.0.1:0\"", "[admin]\nsocket = \"admin.sock\""));
    running.wait_for_message("config", "admin.token[a]");
    running.wait_for_message("config", "take effect only after `robotsd upgrade` or a restart: admin");
    assert_eq!(with(""), [401; 2]);
    assert_eq!(status_of(further, "GET /status"), 401);
}

#[test]
fn the_root_path_redirects_to_the_board_if_enabled_and_otherwise_to_the_status() {
    for (board, place) in [("", "/board"), ("[board]\nenabled = false", "/status")] {
        let config = Config::new().admin().site("shop", "root = \".\"\nrobots.text = \"# open\"").tables(board);
        let (_folder, running) = config.start();
        for method in ["GET", "HEAD"] {
            let answer = running.ask_admin(&format!("{method} /"));
            assert_eq!((answer.status, answer.field("location")), (302, Some(place)));
        }
        assert_eq!(running.ask_admin(&format!("GET {place}")).status, 200);
        assert_eq!(running.ask_admin("POST /").status, 405);
        assert_eq!(running.ask_admin("GET //").status, 404);
        let evil = exchange(running.admin(), b"GET / HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n");
        assert_eq!(evil.status, 403);
    }
}
