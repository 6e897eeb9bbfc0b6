//! Tests `[site.refusal]`, which sends refused clients a page of the site.

use crate::harness::*;

const ROBOTS: &str = "# a comment\nUser-agent: GPTBot\nDisallow: /drafts/\n";
const PAGE: &str = "<!doctype html>\n<title>{{title}}</title>\n<p>{{agent}} may not fetch {{path}} of {{host}}: line {{ line }}, {{rule}}\n\
                    <a href=\"mailto:{{contact}}\">{{contact}}</a> {{request_id}} {{{{x}}\n";

fn site(config: Config, refusal: &str, page: &str) -> Folder {
    let name = if page.contains('<') { "refused.html" } else { "refused.txt" };
    let keys = "root = \".\"\nrobots.path = \"robots.txt\"\n[site.refusal]";
    config.site("shop", format!("{keys}\n{refusal}")).robots(ROBOTS).file(name, page).folder()
}

const HTML: &str = "file = \"refused.html\"\nstatus = 451\nlanguage = \"en-GB\"\ncontact = \"web@site.test\"";

#[test]
fn a_refused_client_gets_the_page_of_the_site() {
    let folder = site(Config::refusing(), HTML, PAGE);
    let running = folder.start();
    let answer = running.get("/drafts/x?a='1&b=2", GPTBOT);
    let id = answer.field("x-request-id").unwrap();
    let want = format!(
        "<!doctype html>\n<title>Unavailable For Legal Reasons</title>\n\
         <p>GPTBot may not fetch /drafts/x?a=&#39;1&amp;b=2 of site.test: line 3, /drafts/\n\
         <a href=\"mailto:web@site.test\">web@site.test</a> {id} {{{{x}}}}\n"
    );
    assert_eq!((answer.status, &*answer.body), (451, &*want));
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("content-language", "en-GB"),
        ("cache-control", "no-store"),
        ("vary", "User-Agent, Accept"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(answer.field(name), Some(value), "{name}");
    }
    assert_eq!(running.wait_for_event("refused", |line| line["line"] == 3)["status"], 451);

    let head = running.request("HEAD", "/drafts/x?a='1&b=2", &[("User-Agent", GPTBOT)]);
    assert_eq!((head.status, &*head.body), (451, ""));
    assert_eq!(head.field("content-length"), answer.field("content-length"));

    let problem = running.request("GET", "/drafts/x", &[("User-Agent", GPTBOT), ("Accept", "application/json")]);
    assert_eq!((problem.status, problem.field("content-type")), (451, Some("application/problem+json")));
    let problem: Value = serde_json::from_str(&problem.body).unwrap();
    assert_eq!((&problem["status"], &problem["rule"]), (&451.into(), &"/drafts/".into()));
    assert_eq!(running.get("/robots.txt", GPTBOT).body, ROBOTS);
    assert_eq!(running.get("/robots.txt", FIREFOX).status, 200);
}

#[test]
fn a_configured_status_keeps_the_default_body() {
    let folder = site(Config::refusing(), "status = 410", "");
    let answer = folder.start().get("/drafts/x", GPTBOT);
    assert_eq!(answer.status, 410);
    assert!(answer.body.starts_with("410 Gone\n\n") && answer.body.contains("(line 3)"), "{}", answer.body);
}

#[test]
fn an_edited_refusal_template_goes_live_and_an_invalid_one_does_not() {
    let folder = site(Config::refusing(), "file = \"refused.txt\"", "first {{line}}\n");
    let running = folder.start();
    let shown = |want: &str| {
        let answer = running.get("/drafts/x", GPTBOT);
        assert_eq!((answer.status, answer.field("content-type")), (403, Some("text/plain; charset=utf-8")));
        (answer.body == want).then_some(())
    };
    shown("first 3\n").expect("the page");
    folder.replace("refused.txt", "second {{line}}\n");
    wait_for("the page after the edit", || shown("second 3\n"));
    let changed = running.event("config");
    assert!(message(&changed).ends_with("site \"shop\" has changed: refusal"), "{changed}");
    folder.replace("refused.txt", "third\n  {{lime}}\n");
    let rejected = running.event("config-rejected");
    let message = message(&rejected);
    assert_has(message, &["refused.txt:2:3: there is no placeholder \"lime\""]);
    shown("second 3\n").expect("the page before stays");
    folder.replace("refused.txt", "fourth {{line}}\n");
    wait_for("the page after the correction", || shown("fourth 3\n"));
}

/// The unit tests of `refusal` and `tests/cases/config_mistakes.txt` contain all kinds of errors.
#[test]
fn errors_in_a_refusal_template_are_reported_with_their_position() {
    let large = format!("<p>{}", "x".repeat(64 * 1024));
    let html = "file = \"refused.html\"";
    for (refusal, page, place, message) in [
        ("status = 401", "", "robotsd.toml:9:10", "401 requires a challenge: write it in a [[site.refusal.case]]"),
        ("file = \"no.html\"", "", "robotsd.toml:9:8", "no.html: No such file"),
        (
            html,
            "<p>\n {{agnet}}",
            "refused.html:2:2",
            "there is no placeholder \"agnet\": write one of agent, contact, ",
        ),
        (html, &large, "robotsd.toml:9:8", "refused.html: the template is larger than 64 KiB"),
    ] {
        let folder = site(Config::refusing(), refusal, page);
        assert_has(folder.configured(["config", "check"]).failed(2), &[place, message]);
    }
    let folder = site(Config::refusing(), html, "<p>");
    folder.write("refused.html", b"<p>\xff");
    let output = folder.run(["config", "check", "robotsd.toml"]);
    assert!(output.error.contains("the template is not UTF-8"), "{output:?}");
}

/// nginx treats any status except 403 as an error, and then forwards the request.
#[test]
fn other_proxies_get_the_page_and_a_status_that_they_support() {
    let folder = site(Config::deciding(), HTML, "<p>{{agent}} {{path}}\n");
    let running = folder.start();
    let nginx = [("X-Original-URI", "/drafts/x"), ("X-Original-Method", "GET"), ("User-Agent", GPTBOT)];
    let ingress =
        [("X-Original-URL", "http://site.test/drafts/x"), ("X-Original-Method", "GET"), ("User-Agent", GPTBOT)];
    let caddy = [
        ("X-Forwarded-Uri", "/drafts/x"),
        ("X-Forwarded-Method", "GET"),
        ("User-Agent", GPTBOT),
        ("X-Forwarded-Host", "site.test"),
    ];
    for (target, fields, status) in [
        ("/-/auth/nginx", &nginx[..], 403),
        ("/-/refusal/nginx", &nginx, 451),
        ("/-/auth/haproxy", &nginx, 451),
        ("/-/auth/ingress-nginx", &ingress, 403),
        ("/-/auth/caddy", &caddy, 451),
        ("/-/auth/traefik", &caddy, 451),
        ("/-/auth/envoy/drafts/x", &nginx[2..], 451),
    ] {
        let answer = running.request("GET", target, fields);
        // ingress-nginx sends the target as a whole URL.
        let path = fields[0].1.strip_suffix("/drafts/x").unwrap_or_default();
        let page = format!("<p>GPTBot {path}/drafts/x\n");
        assert_eq!((answer.status, &*answer.body), (status, &*page), "{target}");
    }
    let allowed = [("X-Original-URI", "/"), ("X-Original-Method", "GET"), ("User-Agent", GPTBOT)];
    assert_eq!(running.request("GET", "/-/auth/nginx", &allowed).status, 200);
}
