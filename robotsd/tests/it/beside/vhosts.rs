//! Tests the files of `config/beside/nginx` in sites with a login, error pages and a cache.

use super::super::daemon::find;
use super::server::{Stage, VHOSTS};
use crate::harness::*;

/// Logs every request, so that the tests can count how often nginx asks robotsd.
const LOG: &str = "\n[log]\naccess = \"json\"\n";

fn stage() -> Option<Stage> {
    Some(Stage::set(&VHOSTS, &crate::programs::present(VHOSTS.find())?, LOG, &|text| text))
}

fn get(stage: &Stage, host: &str, target: &str, agent: &str, fields: &str) -> Answer {
    let request =
        format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {agent}\r\n{fields}Connection: close\r\n\r\n");
    stage.send(request.as_bytes())
}

/// Like `get`, but connects from this address of the machine.
fn get_from(stage: &Stage, address: [u8; 4], host: &str, target: &str, agent: &str) -> Answer {
    stage.ask_host_from(address, host, target.as_bytes(), &[("User-Agent", agent.as_bytes())])
}

fn is_refusal(answer: &Answer) -> bool {
    answer.status == 403
        && answer.body.contains("Disallow: /drafts/")
        && answer.field("cache-control") == Some("no-store")
}

/// Waits until the request is refused. After a timeout, nginx asks robotsd again only after a
/// pause.
fn refused(stage: &Stage, host: &str, target: &str, fields: &str) {
    wait_for(&format!("a refusal of {host}{target}"), || {
        Some(get(stage, host, target, GPTBOT, fields)).filter(is_refusal)
    });
}

#[test]
fn nginx_still_applies_the_sites_own_login_and_error_pages() {
    let Some(stage) = stage() else { return };
    let [alice, mallory] = ["alice", "mallory"].map(|name| format!("Cookie: session={name}\r\n"));
    // nginx must ask robotsd first, and then the site's login.
    refused(&stage, "site.test", "/drafts/x", &alice);
    refused(&stage, "site.test", "/drafts/x", "");
    assert_eq!(get(&stage, "site.test", "/drafts/x", FIREFOX, "").status, 401);
    assert_eq!(get(&stage, "site.test", "/open", GPTBOT, "").status, 401);
    let answer = get(&stage, "site.test", "/drafts/x", FIREFOX, &alice);
    assert!(answer.status == 200 && answer.body.contains("X-User: alice"), "{answer:?}");
    // The upstream must receive the original target, whatever locations the request went through.
    assert!(answer.body.starts_with("GET /drafts/x HTTP/"), "{answer:?}");
    let answer = get(&stage, "site.test", "/a//b%2Fc?d=%20", GPTBOT, &alice);
    assert!(answer.body.starts_with("GET /a//b%2Fc?d=%20 HTTP/"), "{answer:?}");
    // If the site itself forbids a page, the client must get the site's error page, which quotes no
    // rule.
    for agent in [FIREFOX, GPTBOT] {
        get(&stage, "site.test", "/open", agent, &mallory).comes_with(403, "the site's page for 403");
    }
    // The body has the maximum size that the location allows.
    let form = "x".repeat(2 << 20);
    let answer =
        stage.ask("POST", b"/form", &[("User-Agent", FIREFOX.as_bytes()), ("Cookie", b"session=alice")], &form);
    assert!(answer.status == 200 && answer.body.ends_with(&form), "{}", answer.status);
}

#[test]
fn server_wide_nginx_settings_do_not_affect_decision_requests() {
    let Some(stage) = stage() else { return };
    let host = "closed.test";
    refused(&stage, host, "/drafts/x", "");
    // A request that robotsd allows still needs a password.
    assert_eq!(get(&stage, host, "/drafts/x", FIREFOX, "").status, 401);
    let password = "Authorization: Basic YWxpY2U6c2VjcmV0\r\n";
    assert_eq!(get(&stage, host, "/drafts/x", FIREFOX, password).status, 200);
    // A request from an address that the site allows must still be refused if robotsd refuses it.
    assert_eq!(get_from(&stage, [127, 0, 0, 3], host, "/drafts/x", FIREFOX).status, 200);
    assert!(is_refusal(&get_from(&stage, [127, 0, 0, 3], host, "/drafts/x", GPTBOT)));
    // The site's cache has one key for all clients, so it must not contain a response of robotsd.
    assert_eq!(get(&stage, host, "/drafts/x", FIREFOX, password).status, 200);
    refused(&stage, host, "/drafts/y", "");
    let file = get(&stage, host, "/robots.txt", GPTBOT, "");
    assert!(file.status == 200 && file.body.contains(super::scene::ROBOTS), "{file:?}");
}

#[test]
fn a_rewrite_or_an_error_page_in_nginx_does_not_allow_a_refused_request() {
    let Some(stage) = stage() else { return };
    let host = "rewritten.test";
    refused(&stage, host, "/drafts/x", "");
    let answer = get(&stage, host, "/drafts/x", FIREFOX, "");
    assert!(answer.status == 200 && answer.body.starts_with("GET /index.php?q=drafts/x HTTP/"), "{answer:?}");
    let file = get(&stage, host, "/robots.txt", GPTBOT, "");
    assert!(file.status == 200 && file.body.contains(super::scene::ROBOTS), "{file:?}");
    // robotsd rejects nginx's request, because it has more fields than robotsd accepts by default.
    for host in [host, "site.test", "files.test"] {
        let answer = get(&stage, host, "/drafts/x", GPTBOT, &"a: b\r\n".repeat(520));
        assert_eq!((answer.status, answer.body.contains("GET /")), (403, false), "{host}: {answer:?}");
    }
}

#[test]
fn cached_pages_are_checked_and_refusals_are_not_cached() {
    let Some(stage) = stage() else { return };
    let cached = |agent: &str| {
        let answer = get(&stage, "cached.test", "/drafts/x", agent, "");
        (answer.status, answer.field("x-cache").map(str::to_owned))
    };
    refused(&stage, "cached.test", "/drafts/x", "");
    assert_eq!(cached(FIREFOX), (200, Some("MISS".into())));
    assert_eq!(cached(FIREFOX), (200, Some("HIT".into())));
    refused(&stage, "cached.test", "/drafts/x", "");
    assert_eq!(cached(FIREFOX), (200, Some("HIT".into())));
    // A tagged request may get a different response, so it must neither use nor fill the cache.
    let tagged = get(&stage, "cached.test", "/drafts/x", GOOGLEBOT, "");
    assert!(tagged.body.contains("Robots-Verdict: disallow;agent=\"Googlebot\""), "{tagged:?}");
    let answer = get(&stage, "cached.test", "/drafts/x", FIREFOX, "");
    assert!(answer.field("x-cache") == Some("HIT") && !answer.body.contains("Robots-Verdict"), "{answer:?}");
}

#[test]
fn nginx_asks_robotsd_once_about_an_internally_redirected_request() {
    let Some(stage) = stage() else { return };
    let index = get(&stage, "files.test", "/?drafts", GPTBOT, "");
    assert!(index.status == 200 && index.body.contains("server_name files.test"), "{index:?}");
    get(&stage, "files.test", "/nginx/", GPTBOT, "").comes_with(403, "the site's page for 403");
    refused(&stage, "files.test", "/drafts/", "");
    let of_host = |line: &Value| line["host"] == "files.test";
    stage.robotsd.wait_for_event("request", |line| of_host(line) && line["status"] == 403);
    let passed = || stage.robotsd.count("request", |line| of_host(line) && line["status"] == 200);
    wait_until("the lines of both", || passed() >= 2);
    assert_eq!(passed(), 2);
}

/// While robotsd hangs, requests must not wait for it. Once robotsd responds again, nginx must ask
/// it again.
#[test]
fn nginx_stops_asking_a_hanging_robotsd_for_a_while() {
    let Some(program) = crate::programs::present(VHOSTS.find()) else { return };
    let stage = Stage::set_as_shipped(&VHOSTS, &program, &|text| text);
    refused(&stage, "files.test", "/drafts/", "");
    stage.robotsd.freeze();
    // nginx logs each request that waited for robotsd in vain.
    let waited = || stage.log().matches("upstream timed out").count();
    wait_until("requests that do not wait", || {
        let before = waited();
        (0..50).for_each(|_| assert_eq!(get(&stage, "files.test", "/drafts/", GPTBOT, "").status, 404));
        waited() - before < 25
    });
    assert!(waited() > 0, "none has waited");
    stage.robotsd.signal("CONT");
    refused(&stage, "files.test", "/drafts/", "");
}

/// The directives for robotsd conflict with the site's own login directives in the same location.
/// nginx must report this before it starts.
#[test]
fn nginx_rejects_a_location_whose_own_directives_duplicate_those_of_robotsd() {
    let Ok(nginx) = find("nginx") else { return };
    let text = |name: &str| fs::read_to_string(project(&format!("config/beside/nginx/{name}.conf"))).unwrap();
    let [http, location, in_place] = ["robotsd-http", "robotsd-location", "robotsd-in-place"].map(text);
    for (file, own) in [
        (&location, "auth_request /login;"),
        (&location, "auth_basic off;"),
        (&location, "satisfy any;"),
        (&location, "try_files $uri =404;"),
        (&location, "root /srv/site;"),
        (&in_place, "auth_request /login;"),
        (&in_place, "satisfy any;"),
    ] {
        let config = format!("events {{}}\nhttp {{ {http}\nserver {{ location / {{\n{file}\n{own} }} }} }}");
        let folder = folder(&[("nginx.conf", &config)]);
        let arguments = ["-t", "-q", "-p", ".", "-c", "nginx.conf", "-e", "stderr", "-g", "pid nginx.pid;"];
        let Ended { code, error: message, .. } = run(Command::new(&nginx).args(arguments).current_dir(folder.path()));
        assert!(code != Some(0) && message.contains("is duplicate"), "{own}: {message}");
    }
}
