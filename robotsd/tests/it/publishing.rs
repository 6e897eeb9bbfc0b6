//! Lists that are appended to a robots.txt, and requests that are sent when a version goes live.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{
    ADMIN_SOCKET, GOOGLEBOT, GPTBOT, LISTENER, Origin, Running, assert_has, folder, message, replace_file, robotsd,
    run, wait_for, wait_until,
};

const OWN: &str = "User-agent: *\nDisallow: /private/\n\nUser-agent: CCBot\nDisallow: /drafts/\n";
const LIST: &str = "User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n";
const CCBOT: &str = "CCBot/2.0 (https://commoncrawl.org/faq/)";

/// So many requests and no more. That none comes behind them shows with time only.
fn exactly(server: &Origin, count: usize) -> Vec<String> {
    wait_until("requests", || server.requests().len() >= count);
    std::thread::sleep(Duration::from_millis(500));
    let requests = server.requests();
    assert_eq!(requests.len(), count, "{requests:?}");
    requests
}

fn configure(folder: &Path, more: &str) {
    std::fs::create_dir_all(folder.join("root")).unwrap();
    let config = format!(
        "mode = \"refuse\"\nstate_dir = \"state\"\n{LISTENER}{ADMIN_SOCKET}[[site]]\nname = \"shop\"\n\
         hosts = [\"site.test\", \"www.site.test\"]\nroot = \"root\"\nrobots.path = \"robots.txt\"\n{more}"
    );
    replace_file(&folder.join("robotsd.toml"), config);
}

fn command(folder: &Path, arguments: &[&str]) -> (String, String) {
    let output = run(robotsd().current_dir(folder).args(arguments).args(["--config", "robotsd.toml"]));
    (output.out, output.error)
}

fn site_status(folder: &Path) -> Value {
    let status: Value = serde_json::from_str(&command(folder, &["status", "--json"]).0).unwrap();
    status["sites"][0].clone()
}

fn served(running: &Running) -> String {
    running.get("/robots.txt", GOOGLEBOT).body
}

#[test]
fn a_list_in_a_file_is_served_checked_enforced_and_followed() {
    let folder = folder(&[("robots.txt", OWN), ("ai.txt", LIST)]);
    let path = folder.path();
    configure(path, "[[site.robots.append]]\npath = \"ai.txt\"\n");
    let running = folder.start();
    let want =
        format!("{OWN}\n# From ai.txt\n# Named above, so left out here: CCBot\nUser-agent: GPTBot\nDisallow: /\n");
    assert_eq!(served(&running), want);
    let status = |target: &str, agent: &str| running.get(target, agent).status;
    assert_eq!((status("/x", GPTBOT), status("/x", CCBOT), status("/drafts/x", CCBOT)), (403, 404, 403));
    let explained = command(path, &["explain", "--user-agent", GPTBOT, "/x"]);
    assert!(explained.0.contains("Disallow: /"), "{explained:?}");
    assert!(explained.1.contains("robots.txt: lines from 6 on are appended, from \"ai.txt\""), "{explained:?}");
    assert_eq!(site_status(path)["append"][0]["state"], "appended");

    // Another list is another version, of whatever the file holds.
    let other = "User-agent: GPTBot\nDisallow: /\nDisallow: * # odd\nDisallow: secret\n";
    replace_file(&path.join("ai.txt"), other);
    running.wait_for_event("published", |line| line["reason"] == "append");
    assert!(served(&running).ends_with("Disallow: /\nDisallow: *\nDisallow: secret\n"));
    let finding = running.wait_for_message("finding", "appended:");
    assert!(message(&finding).ends_with("(appended: line 4 of ai.txt)"), "{finding}");
    // One that is none takes nothing away.
    let before = served(&running);
    replace_file(&path.join("ai.txt"), "<!doctype html><title>Not found</title>");
    let event = running.wait_for_event("append", |line| line["level"] == "error");
    assert!(message(&event).ends_with("this is an HTML page, not a robots.txt; the last good one stays"), "{event}");
    assert_eq!(served(&running), before);
    let troubled = site_status(path);
    assert_eq!(troubled["append"][0]["state"], "last-good");
    assert!(troubled["troubles"][0].as_str().unwrap().contains("HTML page"), "{troubled}");
    // The file itself is followed as before.
    replace_file(&path.join("robots.txt"), "User-agent: *\nDisallow: /private/\n# changed\n");
    wait_until("the other file", || served(&running).contains("# changed\n\n# From ai.txt"));
    drop(running);

    // A start without a list has the version that has it.
    std::fs::remove_file(path.join("ai.txt")).unwrap();
    let running = folder.start();
    assert!(served(&running).contains("# From ai.txt"));
    running.wait_for_message("append", "was never read");
    assert_eq!(site_status(path)["append"][0]["state"], "missing");
    assert_eq!(status_of(&running, "/x"), 403);
    replace_file(&path.join("ai.txt"), LIST);
    wait_until("the list", || served(&running).contains("User-agent: CCBot"));
}

fn status_of(running: &Running, target: &str) -> u16 {
    running.get(target, GPTBOT).status
}

#[test]
fn a_list_at_a_url_outlives_its_server() {
    let server = Origin::showing(200, LIST);
    let folder = folder(&[("robots.txt", OWN)]);
    let path = folder.path();
    let url = format!("http://127.0.0.1:{}/ai.txt", server.address.port());
    configure(path, &format!("[[site.robots.append]]\nurl = \"{url}?key=1\"\nname = \"AI crawlers\"\n"));
    let running = folder.start();
    // The start waits for the first fetch.
    assert!(served(&running).contains("\n# From AI crawlers\n"), "{}", served(&running));
    assert_eq!(running.all("published").len(), 1);
    assert_eq!(status_of(&running, "/x"), 403);
    drop(running);
    server.show(503, "");
    let running = folder.start();
    assert!(served(&running).contains("\n# From AI crawlers\n"));
    let event = running.wait_for_event("append", |line| line["level"] == "error");
    assert!(message(&event).contains("503"), "{event}");
    assert_eq!(site_status(path)["append"][0]["state"], "last-good");
    let checked = command(path, &["config", "check"]);
    assert!(!checked.0.contains("never read") && !checked.1.contains("never read"), "{checked:?}");
    assert!(command(path, &["explain", "--user-agent", GPTBOT, "/x"]).0.contains("Disallow: /"));
}

#[test]
fn a_version_is_announced_once_and_its_secret_is_never_shown() {
    let server = Origin::showing(200, "");
    let folder = folder(&[("robots.txt", OWN), ("token", "Bearer s3cr3t\n")]);
    let path = folder.path();
    let url = format!("http://127.0.0.1:{}/purge/h1dden", server.address.port());
    configure(
        path,
        &format!(
            "[[site.robots.on_publish]]\nurl = \"{url}\"\nheaders = {{ Authorization = {{ file = \"token\" }} }}\n\
             body = '{{\"files\":{{{{urls}}}},\"version\":\"{{{{version}}}}\"}}'\n"
        ),
    );
    let requests = |count: usize| exactly(&server, count);
    let running = folder.start();
    let first = requests(1).remove(0);
    assert!(first.starts_with("POST /purge/h1dden HTTP/1.1\r\n"), "{first}");
    assert_has(&first, &["authorization: Bearer s3cr3t\r\n"]);
    let files =
        "{\"files\":[\"https://site.test/robots.txt\",\"https://www.site.test/robots.txt\"],\"version\":\"sha256:";
    assert_has(&first, &[files]);
    running.wait_for_event("on-publish", |line| line["status"] == 200);
    replace_file(&path.join("robots.txt"), format!("{OWN}# changed\n"));
    let second = requests(2).remove(1);
    let version = |request: &str| request.rsplit("sha256:").next().unwrap().to_owned();
    assert_ne!(version(&first), version(&second));
    command(path, &["reload"]);
    command(path, &["enforce", "off"]);
    requests(2);
    command(path, &["rollback", "shop"]);
    assert_eq!(version(&requests(3)[2]), version(&first));
    let status = command(path, &["status", "--json"]).0;
    assert_eq!(site_status(path)["on_publish"][0]["state"], "delivered");
    let metrics = command(path, &["status"]).0;
    let config = command(path, &["config", "show"]).0;
    assert_has(&config, &["token"]);
    for shown in [status, metrics, config.clone(), format!("{:?}", running.all("on-publish"))] {
        assert!(!shown.contains("s3cr3t"), "{shown}");
        assert!(shown == config || !shown.contains("h1dden"), "{shown}");
    }
    drop(running);

    // A restart with what was announced sends nothing; one with another version does.
    let running = folder.start();
    requests(3);
    drop(running);
    replace_file(&path.join("robots.txt"), format!("{OWN}# changed while it was down\n"));
    let _running = folder.start();
    requests(4);
}

#[test]
fn another_config_announces_what_it_serves_and_one_that_is_dropped_nothing() {
    let server = Origin::showing(200, "");
    let folder = folder(&[("robots.txt", OWN), ("other.txt", "User-agent: *\nDisallow: /other\n")]);
    let path = folder.path();
    std::fs::create_dir(path.join("root")).unwrap();
    let config = |hosts: &str, robots: &str, more: &str| {
        let text = format!(
            "state_dir = \"state\"\n{LISTENER}{ADMIN_SOCKET}[[site]]\nname = \"shop\"\nhosts = [{hosts}]\n\
             root = \"root\"\n[site.robots]\npath = \"{robots}\"\n[[site.robots.on_publish]]\n\
             url = \"http://127.0.0.1:{}/purge/h1dden\"\nbody = \"{{{{urls}}}} {{{{version}}}}\"\n{more}",
            server.address.port()
        );
        replace_file(&path.join("robotsd.toml"), text);
    };
    let requests = |count: usize| exactly(&server, count);
    config("\"site.test\"", "robots.txt", "");
    let running = folder.start();
    let first = requests(1).remove(0);
    // Its source is opened before another site turns out to be unusable.
    let unusable = "[[site]]\nname = \"b\"\nhosts = [\"b.test\"]\nroot = \"root\"\n\
                    [site.robots]\npath = \"none.txt\"\non_missing = \"fail\"\n";
    config("\"site.test\"", "other.txt", unusable);
    let (said, _) = command(path, &["reload"]);
    assert_has(&said, &["none.txt"]);
    requests(1);
    config("\"site.test\"", "other.txt", "");
    command(path, &["reload"]);
    let second = requests(2).remove(1);
    let version = |request: &str| request.rsplit("sha256:").next().unwrap().to_owned();
    assert_ne!(version(&first), version(&second));
    // The same version at a further host.
    config("\"site.test\", \"new.test\"", "other.txt", "");
    command(path, &["reload"]);
    let third = requests(3).remove(2);
    assert_eq!(version(&second), version(&third));
    assert!(third.contains("https://new.test/robots.txt") && !second.contains("new.test"), "{third}");
    config(
        "\"site.test\", \"new.test\"",
        "other.txt",
        "[[site.robots.on_publish]]\nurl = \"http://127.0.0.1:1/h1dden\"\n",
    );
    let (said, _) = command(path, &["reload"]);
    let shown = format!("{said} {:?} {:?}", running.all("config"), running.all("config-changed"));
    assert!(shown.contains("on_publish") && !shown.contains("h1dden"), "{shown}");
}

#[cfg(unix)]
#[test]
fn a_secret_that_others_can_read_is_a_warning() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder(&[("robots.txt", OWN), ("token", "Bearer s3cr3t\n")]);
    let checked = |url: &str, mode: u32| {
        let token = folder.at("token");
        std::fs::set_permissions(token, std::fs::Permissions::from_mode(mode)).unwrap();
        let config = format!(
            "{LISTENER}[[site]]\nname = \"shop\"\nhosts = [\"site.test\"]\nroot = \".\"\n[site.robots]\n\
             path = \"robots.txt\"\n[[site.robots.on_publish]]\nurl = \"{url}\"\n\
             headers = {{ Authorization = {{ file = \"token\" }} }}\n"
        );
        folder.write("robotsd.toml", config);
        let output = folder.run(["config", "check", "--config", "robotsd.toml"]);
        assert_eq!(output.code, Some(0), "{output:?}");
        output.error
    };
    for (url, mode, wants) in [
        ("https://cdn.test/purge", 0o640, &[][..]),
        ("http://127.0.0.1:9/purge", 0o600, &[]),
        ("https://cdn.test/purge", 0o644, &["token: every user of this machine can read it"]),
        ("http://cdn.test/purge", 0o600, &["authorization is sent to http://cdn.test without TLS"]),
    ] {
        let said = checked(url, mode);
        assert_eq!(said.matches("warning: ").count(), wants.len(), "{url} {mode:o}: {said}");
        assert!(wants.iter().all(|want| said.contains(want)), "{said}");
        assert!(!said.contains("s3cr3t"), "{said}");
    }
}

#[test]
fn an_announcement_that_fails_is_in_the_status_and_holds_up_no_end() {
    let server = Origin::showing(0, "");
    let folder = folder(&[("robots.txt", OWN)]);
    let path = folder.path();
    configure(
        path,
        &format!(
            "[[site.robots.on_publish]]\nurl = \"http://127.0.0.1:{}\"\nmethod = \"PURGE\"\ntimeout = \"1s\"\n",
            server.address.port()
        ),
    );
    let mut running = folder.start();
    let event = running.wait_for_event("on-publish", |line| line["level"] == "warn");
    assert!(message(&event).contains("no answer within 1 s; tried again in"), "{event}");
    assert_eq!(site_status(path)["on_publish"][0]["state"], "sending");
    assert!(server.requests()[0].starts_with("PURGE / HTTP/1.1\r\n"));
    // Neither an attempt under way nor a pause holds up the end.
    let began = Instant::now();
    running.end();
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    drop(running);
    // What was not announced is, once the server is back.
    server.show(204, "");
    let running = folder.start();
    running.wait_for_event("on-publish", |line| line["status"] == 204);
}

#[test]
fn every_source_has_its_parts_and_another_config_has_others() {
    let (server, first, second) = (Origin::showing(200, OWN), Origin::showing(200, ""), Origin::showing(200, ""));
    let folder =
        folder(&[("ai.txt", LIST), ("each/a.test.txt", OWN), ("each/b.test.txt", "User-agent: *\nDisallow: /b\n")]);
    let path = folder.path();
    std::fs::create_dir(path.join("root")).unwrap();
    let config = |part: &str, hook: u16| {
        let hook = format!(
            "[[site.robots.on_publish]]\nurl = \"http://127.0.0.1:{hook}/\"\nbody = \"{{{{site}}}} {{{{url}}}} {{{{version}}}}\"\n"
        );
        let site = |name: &str, robots: &str, more: &str| {
            let host = if name == "each" { "hosts = []".to_owned() } else { format!("hosts = [\"{name}.test\"]") };
            format!("[[site]]\nname = \"{name}\"\n{host}\nroot = \"root\"\n[site.robots]\n{robots}\n{part}{more}")
        };
        let text = "[[listener]]\naddress = \"127.0.0.1:0\"\n[admin]\nsocket = \"admin.sock\"\n".to_owned()
            + &site("inline", "text = \"User-agent: *\\nDisallow: /inline\\n\"", "")
            + &site("url", &format!("url = \"http://127.0.0.1:{}/robots.txt\"", server.address.port()), "")
            + &site("each", "source = \"directory\"\npath = \"each\"", &hook);
        replace_file(&path.join("robotsd.toml"), text);
    };
    config("[[site.robots.append]]\npath = \"ai.txt\"\n", first.address.port());
    let running = folder.start();
    let robots = |host: &str| running.request("GET", "/robots.txt", &[("Host", host), ("User-Agent", GOOGLEBOT)]).body;
    for (host, own) in
        [("inline.test", "Disallow: /inline\n"), ("url.test", OWN), ("a.test", OWN), ("b.test", "Disallow: /b\n")]
    {
        let body = wait_for(host, || Some(robots(host)).filter(|body| body.contains("# From ai.txt")));
        assert!(body.split("\n# From ai.txt\n").next().unwrap().ends_with(own), "{body}");
    }
    let announced = |server: &Origin, what: &str| {
        wait_until(what, || server.requests().iter().any(|request| request.contains(what)));
    };
    announced(&first, "each/a.test https://a.test/robots.txt sha256:");
    announced(&first, "each/b.test https://b.test/robots.txt sha256:");
    // Each host has its own versions, and every part makes one of each.
    replace_file(&path.join("ai.txt"), "User-agent: GPTBot\nDisallow: /other/\n");
    for host in ["inline.test", "url.test", "a.test", "b.test"] {
        wait_until(host, || robots(host).contains("Disallow: /other/"));
    }
    wait_until("the hosts", || first.requests().len() >= 4);

    config("", second.address.port());
    for host in ["inline.test", "url.test", "a.test", "b.test"] {
        wait_for(host, || Some(robots(host)).filter(|body| !body.contains("# From") && body.contains("Disallow")));
    }
    announced(&second, "each/a.test https://a.test/robots.txt sha256:");
    let before = first.requests().len();
    replace_file(&path.join("each/a.test.txt"), format!("{OWN}# changed\n"));
    wait_until("the change", || robots("a.test").contains("# changed"));
    wait_until("a request", || second.requests().len() >= 3);
    assert_eq!(first.requests().len(), before, "the hook of the config before has no more requests");
}
