//! The scenes, and how their outcomes are described.

use super::server::Stage;
use super::site::OWN_ROBOTS_TXT;
use crate::harness::*;

pub(super) const ROBOTS: &str = "\
User-agent: GPTBot
Disallow: /drafts/
Disallow: /*refused=

User-agent: Googlebot
Disallow: /drafts/

User-agent: *
Disallow: /private/
";

/// The rule above that applies to every path with `refused=` in it.
pub(super) const REFUSED: &str = "Disallow: /*refused=";

/// Part of robotsd's config that exempts clients with this address.
pub(super) const EXEMPT: &str = "\n[exempt]\ncidrs = [\"127.0.0.2/32\"]\n";

/// `User-Agent` of a crawler that no group names.
const CRAWLER: &str = "Mozilla/5.0 (compatible; ExampleBot/1.0; +https://example.test/bot)";
const PROBE: &str = "kube-probe/1.29";

pub(super) struct Scene {
    pub(super) name: &'static str,
    pub(super) play: fn(&mut Stage) -> String,
}

const fn scene(name: &'static str, play: fn(&mut Stage) -> String) -> Scene {
    Scene { name, play }
}

/// The order matters: in the last scenes, robotsd hangs, recovers and is killed.
pub(super) const SCENES: &[Scene] = &[
    scene("a browser, anywhere", |stage| get(stage, b"/private/x", FIREFOX)),
    scene("a named crawler, where it may go", |stage| get(stage, b"/private/x", GPTBOT)),
    scene("a named crawler, where it may not", |stage| get(stage, b"/drafts/x", GPTBOT)),
    scene("the same, asking for JSON", |stage| {
        ask(stage, b"/drafts/x", &[("User-Agent", GPTBOT.as_bytes()), ("Accept", b"application/json")])
    }),
    scene("a search engine, where it should not", |stage| get(stage, b"/drafts/x", GOOGLEBOT)),
    scene("a crawler that `*` is for", |stage| get(stage, b"/private/x", CRAWLER)),
    scene("a health probe", |stage| get(stage, b"/private/x", PROBE)),
    scene("`/%64rafts/x`", |stage| get(stage, b"/%64rafts/x", GPTBOT)),
    scene("`//drafts/x`", |stage| get(stage, b"//drafts/x", GPTBOT)),
    scene("`/a/../drafts/x`", |stage| get(stage, b"/a/../drafts/x", GPTBOT)),
    scene("`/a/%2e%2e/drafts/x`", |stage| get(stage, b"/a/%2e%2e/drafts/x", GPTBOT)),
    scene("`/a/..%2fdrafts/x`", |stage| get(stage, b"/a/..%2fdrafts/x", GPTBOT)),
    scene("`/.well-known/..%2fdrafts/x`", |stage| get(stage, b"/.well-known/..%2fdrafts/x", GPTBOT)),
    scene("`/drafts/..%2frobots.txt`", |stage| get(stage, b"/drafts/..%2frobots.txt", GPTBOT)),
    scene("`/a/..\\drafts/x`", |stage| get(stage, b"/a/..\\drafts/x", GPTBOT)),
    scene("`http://site.test/drafts/x`", |stage| get(stage, b"http://site.test/drafts/x", GPTBOT)),
    scene("`/go?u=https%3a%2f%2fx%2fdrafts%2f`, an ordinary target", |stage| {
        get(stage, b"/go?u=https%3a%2f%2fx%2fdrafts%2f", GPTBOT)
    }),
    scene("the original request's fields forged, to be let in", forged_to_be_let_in),
    scene("the same fields and `Robots-Verdict`, by a browser", forged_to_be_passed_on),
    scene("two `User-Agent` lines, a browser's first", |stage| two_agents(stage, [FIREFOX, GPTBOT])),
    scene("two `User-Agent` lines, the crawler's first", |stage| two_agents(stage, [GPTBOT, FIREFOX])),
    scene("a byte ≥ 0x80 in the `User-Agent`", |stage| {
        ask(stage, b"/drafts/x", &[("User-Agent", &[GPTBOT.as_bytes(), b" \xFF"].concat())])
    }),
    scene("a byte ≥ 0x80 in the path, UTF-8", |stage| get(stage, "/drafts/é".as_bytes(), GPTBOT)),
    scene("a byte ≥ 0x80 in the path, not UTF-8", |stage| get(stage, b"/drafts/\xFF", GPTBOT)),
    scene("`HEAD`, where it may not", |stage| {
        of(&stage.ask("HEAD", b"/drafts/x", &[("User-Agent", GPTBOT.as_bytes())], ""))
    }),
    scene("`POST`, where a named crawler may not", |stage| post(stage, b"/drafts/x", GPTBOT)),
    scene("`POST`, where `*` may not fetch", |stage| post(stage, b"/private/x", CRAWLER)),
    scene("a call of gRPC, where it may not", |stage| {
        let fields = [("User-Agent", GPTBOT.as_bytes()), ("Content-Type", b"application/grpc")];
        of(&stage.ask("POST", b"/drafts/x", &fields, "message"))
    }),
    scene("no `User-Agent`", |stage| ask(stage, b"/drafts/x", &[])),
    scene("from an exempt address", |stage| {
        of(&stage.ask_from([127, 0, 0, 2], b"/drafts/x", &[("User-Agent", GPTBOT.as_bytes())]))
    }),
    scene("from another, claiming that one", |stage| {
        let claims = ["X-Forwarded-For", "X-Real-IP", "X_Real_IP", "Forwarded"];
        let claims = claims.map(|name| (name, &b"127.0.0.2"[..]));
        ask(stage, b"/drafts/x", &[&claims[..], &[("User-Agent", GPTBOT.as_bytes())]].concat())
    }),
    scene("`/robots.txt`", |stage| get(stage, b"/robots.txt", GPTBOT)),
    scene("`/robots.txt`, `HEAD` with a query", |stage| of(&stage.ask("HEAD", b"/robots.txt?x", &[], ""))),
    scene("a target of 7,000 bytes", |stage| get(stage, format!("/drafts/?{}", "x".repeat(7000)).as_bytes(), GPTBOT)),
    scene("300 header fields", many_fields),
    scene("`Connection: User-Agent`", agent_named_in_connection),
    scene("HTTP/1.0 without `Host`", without_host),
    scene("`Host: site.test!`", odd_host),
    scene("robotsd hangs: `POST`, where a crawler may not", |stage| {
        stage.robotsd.freeze();
        post(stage, b"/drafts/x", GPTBOT)
    }),
    scene("robotsd hangs: `GET`", |stage| get(stage, b"/drafts/x", GPTBOT)),
    scene("robotsd hangs: `/robots.txt`", |stage| get(stage, b"/robots.txt", GPTBOT)),
    scene("robotsd is back", back),
    scene("robotsd is down: `POST`, where a crawler may not", |stage| {
        stage.robotsd.kill();
        post(stage, b"/drafts/x", GPTBOT)
    }),
    scene("robotsd is down: `GET`", |stage| get(stage, b"/drafts/x", GPTBOT)),
    scene("robotsd is down: `/robots.txt`", |stage| get(stage, b"/robots.txt", GPTBOT)),
];

fn get(stage: &Stage, target: &[u8], agent: &str) -> String {
    ask(stage, target, &[("User-Agent", agent.as_bytes())])
}

fn ask(stage: &Stage, target: &[u8], fields: &[(&str, &[u8])]) -> String {
    of(&stage.ask("GET", target, fields, ""))
}

fn post(stage: &Stage, target: &[u8], agent: &str) -> String {
    let answer = stage.ask("POST", target, &[("User-Agent", agent.as_bytes())], "the body of a form");
    let outcome = of(&answer);
    let whole = answer.body.ends_with("the body of a form");
    if outcome == "goes on" && !whole { format!("goes on, without its body: {}", answer.body) } else { outcome }
}

const FORGED: [(&str, &[u8]); 10] = [
    ("X-Original-URI", b"/"),
    ("X-Original-URL", b"http://other.test/"),
    ("X-Original-Method", b"POST"),
    ("X-Forwarded-Uri", b"/"),
    ("X-Forwarded-Method", b"POST"),
    ("X-Forwarded-Host", b"other.test"),
    ("X-Rewrite-URL", b"/"),
    ("X_Original_URI", b"/"),
    ("Robots-Verdict", b"allow"),
    ("Robots_Verdict", b"allow"),
];

fn forged_to_be_let_in(stage: &mut Stage) -> String {
    ask(stage, b"/drafts/x", &[&FORGED[..], &[("User-Agent", GPTBOT.as_bytes())]].concat())
}

/// Sends a request that contains a forged verdict and a forged original request. The site must not
/// receive them.
fn forged_to_be_passed_on(stage: &mut Stage) -> String {
    let answer = stage.ask("GET", b"/x", &[&FORGED[..], &[("User-Agent", FIREFOX.as_bytes())]].concat(), "");
    let forged = answer.body.lines().filter(|line| {
        let line = line.to_lowercase().replace('_', "-");
        // Some servers send an empty field instead of leaving it out.
        let is_ours = line.starts_with("robots-verdict:") || line.starts_with("x-original-");
        is_ours && line.split_once(':').is_some_and(|(_, value)| !value.trim().is_empty())
    });
    let forged: Vec<_> = forged.collect();
    if forged.is_empty() { of(&answer) } else { format!("goes on with {}", forged.join(", ")) }
}

fn many_fields(stage: &mut Stage) -> String {
    let names: Vec<_> = (0..300).map(|number| format!("X-{number}")).collect();
    let many = names.iter().map(|name| (name.as_str(), &b"1"[..]));
    let fields: Vec<_> = many.chain([("User-Agent", GPTBOT.as_bytes())]).collect();
    ask(stage, b"/drafts/x", &fields)
}

/// Sends a request with `Connection: User-Agent`. Proxies remove the fields that `Connection` names
/// (RFC 9110, section 7.6.1), so a crawler could hide its agent.
fn agent_named_in_connection(stage: &mut Stage) -> String {
    let fields = format!("Host: site.test\r\nUser-Agent: {GPTBOT}\r\nConnection: close, User-Agent\r\n\r\n");
    let answer = stage.send(format!("GET /drafts/x HTTP/1.1\r\n{fields}").as_bytes());
    with_agents(&answer)
}

fn without_host(stage: &mut Stage) -> String {
    of(&stage.send(format!("GET /drafts/x HTTP/1.0\r\nUser-Agent: {GPTBOT}\r\n\r\n").as_bytes()))
}

/// Sends a request with an invalid host. The request must not reach a site that serves every host.
fn odd_host(stage: &mut Stage) -> String {
    let fields = format!("Host: site.test!\r\nUser-Agent: {GPTBOT}\r\nConnection: close\r\n\r\n");
    of(&stage.send(format!("GET /drafts/x HTTP/1.1\r\n{fields}").as_bytes()))
}

fn two_agents(stage: &mut Stage, agents: [&str; 2]) -> String {
    let fields = agents.map(|agent| ("User-Agent", agent.as_bytes()));
    with_agents(&stage.ask("GET", b"/drafts/x", &fields, ""))
}

/// The outcome of a forwarded request, and whether the site received the crawler's name.
fn with_agents(answer: &Answer) -> String {
    match of(answer) {
        goes_on if goes_on == "goes on" && !answer.body.contains("GPTBot") => {
            "goes on, without the crawler's name".into()
        }
        outcome => outcome,
    }
}

fn back(stage: &mut Stage) -> String {
    stage.robotsd.signal("CONT");
    // Some servers wait for a while before they ask robotsd again.
    wait_for("a refusal", || Some(get(stage, b"/drafts/x", GPTBOT)).filter(|outcome| outcome.starts_with("403")))
}

/// Describes the outcome of a request, as the client and the site saw it.
fn of(answer: &Answer) -> String {
    let quotes = answer.body.lines().any(|line| line.trim().starts_with("Disallow: ") && line.contains("(line "));
    let lower = answer.body.to_lowercase();
    if answer.field("grpc-status") == Some("7") && answer.field("content-type") == Some("application/grpc") {
        let quotes =
            answer.field("grpc-message").is_some_and(|message| message.contains(" Disallow: /drafts/ (line 2)"));
        return if quotes && answer.body.is_empty() { "PERMISSION_DENIED, rule quoted" } else { "PERMISSION_DENIED" }
            .into();
    }
    match answer.status {
        200 if answer.field("served-by").is_some() && answer.body == OWN_ROBOTS_TXT => "the site's own".into(),
        200 if answer.field("served-by").is_some()
            && lower.contains("\nrobots-verdict: disallow;agent=\"googlebot\"") =>
        {
            "goes on, tagged".into()
        }
        200 if answer.field("served-by").is_some() && lower.contains("robots-verdict: d") => {
            format!("goes on with {}", answer.body)
        }
        200 if answer.field("served-by").is_some() => "goes on".into(),
        200 if answer.body.contains(ROBOTS) => "robotsd's".into(),
        200 if answer.field("etag").is_some() && answer.body.is_empty() => "robotsd's".into(),
        403 if answer.field("cache-control") != Some("no-store") => "403 by the server".into(),
        403 if !answer.field("vary").is_some_and(|vary| vary.contains("User-Agent")) => "403 for anyone".into(),
        403 if quotes && answer.field("content-type") == Some("text/plain; charset=utf-8") => "403, rule quoted".into(),
        403 if answer.field("content-type") == Some("application/problem+json") => {
            assert_has(&answer.body, &["\"line\":2"]);
            "403, as JSON".into()
        }
        403 => "403".into(),
        status => format!("{status} by the server"),
    }
}
