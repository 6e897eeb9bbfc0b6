//! Tests the sources of a robots.txt: a folder with a file per host, the upstream itself, and a
//! URL.

use crate::harness::*;

const REFUSES: &str = "User-agent: GPTBot\nDisallow: /private/\n";

fn asked(running: &Running, host: &str, path: &str, agent: &str) -> Answer {
    running.request("GET", path, &[("Host", host), ("User-Agent", agent)])
}

/// Returns `Some` if GPTBot is refused a path in `/private/` of this host.
fn refuses(running: &Running, host: &str) -> Option<()> {
    (asked(running, host, "/private/x", GPTBOT).status == 403).then_some(())
}

#[test]
fn a_folder_serves_each_host_its_own_robots_txt_and_an_invalid_file_affects_no_other_host() {
    let mut config = Config::refusing().admin_socket().files_of("hosts");
    config = config.tables("robots = { source = \"directory\", path = \"sites\" }");
    for (name, text) in [
        ("a.test", &*format!("# a\n{REFUSES}")),
        ("b.test", "# b\nUser-agent: *\nAllow: /\n"),
        ("_wildcard.wild.test", &format!("# wild\n{REFUSES}")),
        ("bad.test", "<html>not found</html>"),
        ("no host", "# nobody's\n"),
    ] {
        config = config.file(&format!("sites/{name}.txt"), text);
    }
    let (folder, running) = config.start();
    running.wait_for_event("rejected", |line| line["site"] == "hosts/bad.test");
    running.wait_for_message("directory", "no host.txt");
    let ignored = "\"no host.txt\" is ignored: \"no host\" is not a host";
    assert_has(folder.configured(["config", "check"]).error, &[ignored]);
    let problems = || unfolded(&folder.with_config(&["status", "--problems"]).out);
    assert_has(problems(), &[&format!("problem: site \"hosts\": {ignored}")]);
    assert_eq!(asked(&running, "a.test", "/robots.txt", FIREFOX).body, format!("# a\n{REFUSES}"));
    assert!(asked(&running, "b.test", "/robots.txt", FIREFOX).body.starts_with("# b\n"));
    assert!(asked(&running, "x.wild.test", "/robots.txt", FIREFOX).body.starts_with("# wild\n"));
    refuses(&running, "a.test").unwrap();
    refuses(&running, "x.wild.test").unwrap();
    assert_eq!(asked(&running, "b.test", "/private/x", GPTBOT).status, 404);
    // The bad file has no rules. Only its own host may get this response.
    assert_eq!(asked(&running, "bad.test", "/robots.txt", FIREFOX).status, 503);
    assert_eq!(asked(&running, "bad.test", "/private/x", GPTBOT).status, 404);
    // If a host has no file, the file of another host must not be served for it.
    assert_eq!(asked(&running, "new.test", "/robots.txt", FIREFOX).status, 404);

    // While robotsd runs, one file is added, one is fixed, and a fallback is added.
    fs::remove_file(folder.at("sites/no host.txt")).unwrap();
    folder.replace("sites/new.test.txt", REFUSES);
    wait_for("the new host", || refuses(&running, "new.test"));
    assert_lacks(problems(), &[ignored]);
    folder.replace("sites/bad.test.txt", REFUSES);
    wait_for("the bad one made good", || refuses(&running, "bad.test"));
    folder.replace("sites/default.txt", REFUSES);
    wait_for("the fallback", || refuses(&running, "elsewhere.test"));
    assert_eq!(asked(&running, "b.test", "/private/x", GPTBOT).status, 404);

    // Each host must have a line in the status, and must be reloadable by its name.
    let names = ["hosts/a.test", "hosts/b.test", "hosts/bad.test", "hosts/new.test", "hosts/*", "hosts/*.wild.test"];
    assert_has(folder.with_config(&["status"]).out, &names);
    let reload = folder.with_config(&["reload", "--site", "hosts/a.test"]).out;
    assert!(reload.starts_with("hosts/a.test: unchanged") && reload.lines().count() == 1, "{reload}");
}

fn upstream_config(upstream: SocketAddr) -> Config {
    let hosts = "hosts = [\"*.site.test\", \"site.test\"]";
    let keys = format!("{hosts}\nupstreams = [\"http://{upstream}\"]\nrobots.source = \"upstream\"");
    Config::refusing().admin_socket().site("shop", keys)
}

#[test]
fn a_start_serves_503_for_robots_txt_until_the_origin_is_up_and_then_the_origins_file() {
    // No server listens at this address yet.
    let address = free();
    let (_folder, running) = upstream_config(address).start();
    running.wait_for_event("unreachable", |line| line["site"] == "shop");
    let answer = running.get("/robots.txt", GPTBOT);
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.field("retry-after").is_some(), "{answer:?}");
    assert!(!answer.body.to_ascii_lowercase().contains("disallow"), "{answer:?}");
    // Nothing is enforced yet, so the client gets the error of the upstream.
    assert_eq!(running.get("/private/x", GPTBOT).status, 502);

    let origin = Origin::publishing_on(TcpListener::bind(address).unwrap(), 200, REFUSES);
    wait_for("the origin's robots.txt", || refuses(&running, "site.test"));
    assert_eq!(running.get("/robots.txt", FIREFOX).body, REFUSES);
    assert_eq!(running.get("/page", GPTBOT).body, "hello");
    // The request for robots.txt must contain the first host that is not a pattern.
    let heads = origin.requests().join("");
    assert!(heads.to_ascii_lowercase().contains("host: site.test\r\n"), "{heads}");
}

#[test]
fn robotsd_keeps_a_robots_txt_that_the_upstream_lost_and_forwards_the_404_if_there_was_none() {
    let origin = Origin::publishing(200, REFUSES);
    let (folder, running) = upstream_config(origin.address).start();
    let reload = || folder.with_config(&["reload"]);
    wait_for("the origin's robots.txt", || refuses(&running, "site.test"));
    origin.show(404, "gone");
    reload();
    running.wait_for_event("held", |line| line["site"] == "shop");
    assert_eq!(running.get("/robots.txt", FIREFOX).body, REFUSES);
    refuses(&running, "site.test").unwrap();
    origin.show(500, "error");
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
    running.get("/robots.txt", FIREFOX).comes_with(404, "no such page");
    assert_eq!(running.get("/private/x", GPTBOT).body, "hello");
}

#[test]
fn robotsd_fetches_robots_txt_from_an_upstream_on_a_unix_socket() {
    let robots = "robots = { source = \"upstream\", host = \"Site.Test.\" }";
    let folder = Config::refusing().site("shop", format!("upstreams = [\"unix:app.sock\"]\n{robots}")).folder();
    let origin = Origin::on_socket(&folder.at("app.sock"), |_| response("200 OK", &[], REFUSES));
    let running = folder.start();
    wait_for("the socket's robots.txt", || refuses(&running, "any.test"));
    assert_has(origin.requests().concat().to_ascii_lowercase(), &["host: site.test\r\n"]);
}

#[test]
fn a_robots_txt_at_a_url_is_fetched_enforced_and_kept_across_a_restart() {
    let origin = Origin::publishing(200, REFUSES);
    let config = Config::refusing().keys("state_dir = \"state\"").files_of("a");
    let (folder, mut running) = config.tables(format!("robots.url = \"http://{origin}/robots.txt\"")).start();
    wait_for("the robots.txt", || refuses(&running, "site.test"));
    assert_eq!(running.get("/robots.txt", FIREFOX).body, REFUSES);
    // The version is saved after it goes live, but before the process ends.
    running.end();
    // The check must fetch the robots.txt even if a version of it is saved.
    folder.configured(["config", "check"]).succeeded();
    // The server fails when robotsd restarts. The accepted version must be live immediately.
    origin.show(503, "error");
    let running = folder.start();
    assert_eq!(running.get("/robots.txt", FIREFOX).body, REFUSES);
    running.event("unreachable");
    refuses(&running, "site.test").unwrap();
}

#[test]
fn the_check_fetches_the_upstreams_robots_txt_and_fails_if_the_fetch_fails() {
    let origin = Origin::publishing(200, REFUSES);
    let check = || upstream_config(origin.address).folder().configured(["config", "check"]);
    check().succeeded();
    origin.show(500, "error");
    assert_has(check().failed(1), &["site \"shop\"", "500"]);
}
