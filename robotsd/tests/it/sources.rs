//! Where a robots.txt can come from: a folder with one for each host, the upstream itself, a URL.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use crate::harness::{
    ADMIN_SOCKET, Answer, FIREFOX, GPTBOT, LISTENER, Origin, Running, folder, free, replace_file, robotsd, run,
    serving, wait_for,
};

const REFUSES: &str = "User-agent: GPTBot\nDisallow: /private/\n";

fn asked(running: &Running, host: &str, path: &str, agent: &str) -> Answer {
    running.request("GET", path, &[("Host", host), ("User-Agent", agent)])
}

/// Whether GPTBot is refused a host's /private/.
fn refuses(running: &Running, host: &str) -> Option<()> {
    (asked(running, host, "/private/x", GPTBOT).status == 403).then_some(())
}

#[test]
fn a_folder_serves_each_host_its_own_and_one_bad_file_harms_no_other() {
    let folder = folder(&[(
        "robotsd.toml",
        "mode = \"refuse\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n[admin]\nsocket = \"admin.sock\"\n[[site]]\n\
         name = \"all\"\nroot = \".\"\n[site.robots]\nsource = \"directory\"\npath = \"sites\"\n",
    )]);
    let sites = folder.at("sites");
    fs::create_dir(&sites).unwrap();
    fs::write(sites.join("a.test.txt"), format!("# a\n{REFUSES}")).unwrap();
    fs::write(sites.join("b.test.txt"), "# b\nUser-agent: *\nAllow: /\n").unwrap();
    fs::write(sites.join("_wildcard.wild.test.txt"), format!("# wild\n{REFUSES}")).unwrap();
    fs::write(sites.join("bad.test.txt"), "<html>not found</html>").unwrap();
    fs::write(sites.join("no host.txt"), "# nobody's\n").unwrap();
    let running = folder.start();
    running.wait_for_event("rejected", |line| line["site"] == "all/bad.test");
    running.wait_for_message("directory", "no host.txt");
    assert_eq!(asked(&running, "a.test", "/robots.txt", FIREFOX).body, format!("# a\n{REFUSES}"));
    assert!(asked(&running, "b.test", "/robots.txt", FIREFOX).body.starts_with("# b\n"));
    assert!(asked(&running, "x.wild.test", "/robots.txt", FIREFOX).body.starts_with("# wild\n"));
    refuses(&running, "a.test").unwrap();
    refuses(&running, "x.wild.test").unwrap();
    assert_eq!(asked(&running, "b.test", "/private/x", GPTBOT).status, 404);
    // The bad one has no rules, and only its own host gets that answer.
    assert_eq!(asked(&running, "bad.test", "/robots.txt", FIREFOX).status, 503);
    assert_eq!(asked(&running, "bad.test", "/private/x", GPTBOT).status, 404);
    // One without a file is never shown another's.
    assert_eq!(asked(&running, "new.test", "/robots.txt", FIREFOX).status, 404);

    // Added, made good, and a fallback for everybody else, while running.
    replace_file(&sites.join("new.test.txt"), REFUSES);
    wait_for("the new host", || refuses(&running, "new.test"));
    replace_file(&sites.join("bad.test.txt"), REFUSES);
    wait_for("the bad one made good", || refuses(&running, "bad.test"));
    replace_file(&sites.join("default.txt"), REFUSES);
    wait_for("the fallback", || refuses(&running, "elsewhere.test"));
    assert_eq!(asked(&running, "b.test", "/private/x", GPTBOT).status, 404);

    // Each host has a line of the status, and can be reloaded by its name.
    let config = folder.at("robotsd.toml");
    let status = run(robotsd().args(["status", "--config"]).arg(&config));
    let status = status.out;
    for name in ["all/a.test", "all/b.test", "all/bad.test", "all/new.test", "all/*", "all/*.wild.test"] {
        assert!(status.contains(name), "{name}: {status}");
    }
    let reload = run(robotsd().args(["reload", "--site", "all/a.test", "--config"]).arg(&config));
    let reload = reload.out;
    assert!(reload.starts_with("all/a.test: unchanged") && reload.lines().count() == 1, "{reload}");
}

fn upstream_config(upstream: SocketAddr, more: &str) -> String {
    format!(
        "mode = \"refuse\"\n{LISTENER}{ADMIN_SOCKET}[[site]]\nname = \"shop\"\n\
         hosts = [\"*.site.test\", \"site.test\"]\nupstreams = [\"http://{upstream}\"]\n[site.robots]\n\
         source = \"upstream\"\n{more}"
    )
}

#[test]
fn a_cold_start_with_the_origin_down_invents_no_disallow_and_then_serves_the_origins_bytes() {
    // On which no server answers yet.
    let address = free();
    let (_folder, running) = serving(&[("robotsd.toml", &upstream_config(address, ""))]);
    running.wait_for_event("unreachable", |line| line["site"] == "shop");
    let answer = running.get("/robots.txt", GPTBOT);
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.field("retry-after").is_some(), "{answer:?}");
    assert!(!answer.body.to_ascii_lowercase().contains("disallow"), "{answer:?}");
    // Nothing is enforced: the failure is the upstream's own.
    assert_eq!(running.get("/private/x", GPTBOT).status, 502);

    let origin = Origin::publishing_on(TcpListener::bind(address).unwrap(), 200, REFUSES);
    wait_for("the origin's robots.txt", || refuses(&running, "site.test"));
    assert_eq!(running.get("/robots.txt", FIREFOX).body, REFUSES);
    assert_eq!(running.get("/page", GPTBOT).body, "hello");
    // It was asked for the first host that is no pattern.
    let heads = origin.requests().join("");
    assert!(heads.to_ascii_lowercase().contains("host: site.test\r\n"), "{heads}");
}

#[test]
fn an_upstream_that_loses_its_robots_txt_is_held_and_one_without_any_answers_for_itself() {
    let origin = Origin::publishing(200, REFUSES);
    let folder = folder(&[("robotsd.toml", &upstream_config(origin.address, ""))]);
    let config = folder.at("robotsd.toml");
    let reload = || run(robotsd().args(["reload", "--config"]).arg(&config));
    let running = folder.start();
    wait_for("the origin's robots.txt", || refuses(&running, "site.test"));
    origin.show(404, "gone");
    reload();
    running.wait_for_event("held", |line| line["site"] == "shop");
    assert_eq!(running.get("/robots.txt", FIREFOX).body, REFUSES);
    refuses(&running, "site.test").unwrap();
    origin.show(500, "trouble");
    reload();
    running.event("unreachable");
    assert_eq!(running.get("/robots.txt", FIREFOX).body, REFUSES);
    origin.show(200, "# another\nUser-agent: GPTBot\nDisallow: /other/\n");
    reload();
    assert!(running.get("/robots.txt", FIREFOX).body.starts_with("# another\n"));
    drop(running);

    origin.show(404, "no such page");
    let running = folder.start();
    running.wait_for_event("absent", |line| line["site"] == "shop");
    let answer = running.get("/robots.txt", FIREFOX);
    assert_eq!((answer.status, &*answer.body), (404, "no such page"));
    assert_eq!(running.get("/private/x", GPTBOT).body, "hello");
}

#[cfg(unix)]
#[test]
fn an_upstream_on_a_unix_socket_is_asked_for_its_robots_txt_too() {
    let folder = folder(&[(
        "robotsd.toml",
        "mode = \"refuse\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"shop\"\n\
         upstreams = [\"unix:app.sock\"]\n[site.robots]\nsource = \"upstream\"\nhost = \"Site.Test.\"\n",
    )]);
    let listener = std::os::unix::net::UnixListener::bind(folder.at("app.sock")).unwrap();
    let noted = Arc::new(Mutex::new(String::new()));
    let heads = noted.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut head = String::new();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
            heads.lock().unwrap().push_str(&head);
            let length = REFUSES.len();
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{REFUSES}");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let running = folder.start();
    wait_for("the socket's robots.txt", || refuses(&running, "any.test"));
    let heads = noted.lock().unwrap().to_ascii_lowercase();
    assert!(heads.contains("host: site.test\r\n"), "{heads}");
}

#[test]
fn a_robots_txt_at_a_url_is_fetched_enforced_and_kept() {
    let origin = Origin::publishing(200, REFUSES);
    let config = format!(
        "mode = \"refuse\"\nstate_dir = \"state\"\n{LISTENER}[[site]]\nname = \"a\"\nroot = \".\"\n\
         robots.url = \"http://{origin}/robots.txt\"\n"
    );
    let (folder, running) = serving(&[("robotsd.toml", &config)]);
    wait_for("the robots.txt", || refuses(&running, "site.test"));
    assert_eq!(running.get("/robots.txt", FIREFOX).body, REFUSES);
    let version = folder.at("state");
    wait_for("what is remembered", || fs::read_dir(version.join("sites")).ok()?.next().map(drop));
    drop(running);
    // The check fetches it, also where a version of it is remembered.
    folder.configured(["config", "check"]).succeeded();
    // Its server is in trouble when robotsd starts again: what was accepted is live at once.
    origin.show(503, "trouble");
    let running = folder.start();
    assert_eq!(running.get("/robots.txt", FIREFOX).body, REFUSES);
    running.event("unreachable");
    refuses(&running, "site.test").unwrap();
}

#[test]
fn a_config_is_tried_with_what_it_fetches() {
    let origin = Origin::publishing(200, REFUSES);
    let check = |more: &str| {
        let folder = folder(&[("robotsd.toml", &upstream_config(origin.address, more))]);
        let output = folder.configured(["config", "check"]);
        (output.code, output.error)
    };
    assert_eq!(check("").0, Some(0));
    origin.show(500, "trouble");
    let (code, error) = check("");
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("site \"shop\"") && error.contains("500"), "{error}");
}
