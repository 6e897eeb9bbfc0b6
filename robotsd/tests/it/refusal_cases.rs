//! Tests `[[site.refusal.case]]`, which defines special responses to some refused requests, with a
//! real proxy.

use std::io::BufReader;

use crate::harness::*;

const ROBOTS: &str = "User-agent: GPTBot\nUser-agent: *\nDisallow: /\n\nSitemap: https://site.test/maps/all.xml\n\
                      License: https://site.test/license.xml\n";
const CHATGPT_USER: &str = "Mozilla/5.0 (compatible; ChatGPT-User/1.0; +https://openai.com/bot)";
const CCBOT: &str = "CCBot/2.0 (https://commoncrawl.org/faq/)";

/// The rules apply to everyone, so that people are refused, too. The gate is off, because it would
/// hold such rules.
const EVERYONE: &str = "[agents]\nwildcard_scope = \"everyone\"\nwildcard_exempt = []\n[gate]\nenabled = false";

/// Returns the requests of crawlers that the site's own upstream received. robotsd itself fetches the
/// sitemap there.
fn of_crawlers(origin: &Origin) -> Vec<String> {
    origin.requests().into_iter().filter(|request| request.contains("Bot/")).collect()
}

/// Creates a proxy that refuses everyone, with these cases.
fn start(cases: &str) -> (Folder, Running, Origin) {
    let origin = Origin::start();
    let config = Config::refusing().upstream("shop", &origin).tables(cases).tables(EVERYONE).log_requests();
    let (folder, running) = config.robots(ROBOTS).start();
    (folder, running, origin)
}

#[test]
fn a_refusal_has_the_status_and_the_fields_of_its_case() {
    let cases = r#"
[site.refusal]
status = 410
[[site.refusal.case]]
paths  = ["/401/"]
status = 401
fields = { WWW-Authenticate = 'License error="invalid_request"', Link = '</l.xml>; rel="license"' }
[[site.refusal.case]]
crawlers = ["category:ai-training"]
paths  = ["/402/"]
status = 402
fields = { crawler-price = "USD 0.01" }
[[site.refusal.case]]
paths  = ["/402/"]
status = 403
[[site.refusal.case]]
paths  = ["/404/"]
status = 404
file   = "none.txt"
[[site.refusal.case]]
paths  = ["/429/"]
status = 429
fields = { Retry-After = "3600" }
[[site.refusal.case]]
paths  = ["/451/"]
status = 451
fields = { Link = '<https://authority.test/>; rel="blocked-by"' }
[[site.refusal.case]]
paths  = ["/fields/"]
fields = { X-Terms = "ask us" }
"#;
    let config = Config::refusing().files_of("shop").tables(cases).tables(EVERYONE).robots(ROBOTS);
    let (_folder, running) = config.file("none.txt", "nothing at {{path}}, {{status}}\n").start();
    for (path, agent, status, field) in [
        ("/401/x", GPTBOT, 401, Some(("www-authenticate", "License error=\"invalid_request\""))),
        ("/401/x", GPTBOT, 401, Some(("link", "</l.xml>; rel=\"license\""))),
        ("/402/x", GPTBOT, 402, Some(("crawler-price", "USD 0.01"))),
        ("/402/x", "curl/8.5.0", 403, None),
        ("/404/x", GPTBOT, 404, None),
        ("/429/x", GPTBOT, 429, Some(("retry-after", "3600"))),
        ("/451/x", GPTBOT, 451, Some(("link", "<https://authority.test/>; rel=\"blocked-by\""))),
        ("/fields/x", GPTBOT, 410, Some(("x-terms", "ask us"))),
        ("/other", GPTBOT, 410, None),
    ] {
        let answer = running.get(path, agent);
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert_eq!(answer.field("cache-control"), Some("no-store"), "{path}");
        assert!(answer.field("vary").is_some_and(|vary| vary.contains("User-Agent")), "{path}");
        if let Some((name, value)) = field {
            assert_eq!(answer.field(name), Some(value), "{path}: {answer:?}");
        } else {
            assert!(answer.field("crawler-price").is_none() && answer.field("x-terms").is_none(), "{path}");
        }
        running.wait_for_event("refused", |line| line["path"] == path && line["status"] == status);
    }
    assert_eq!(running.get("/404/x", GPTBOT).body, "nothing at /404/x, 404\n");
    let head = running.request("HEAD", "/402/x", &[("User-Agent", GPTBOT)]);
    assert_eq!((head.status, head.field("crawler-price"), &*head.body), (402, Some("USD 0.01"), ""));
    let json = running.request("GET", "/402/x", &[("User-Agent", GPTBOT), ("Accept", "application/json")]);
    assert_eq!((json.json()["status"].clone(), json.field("crawler-price")), (402.into(), Some("USD 0.01")));
}

#[test]
fn refusal_cases_do_not_apply_to_people_or_to_sitemaps_licenses_and_security_txt() {
    let server = Origin::start();
    let cases = format!("[[site.refusal.case]]\nstatus = 402\nupstream = \"http://{server}\"");
    let (_folder, running, origin) = start(&cases);
    assert_eq!(running.get("/x", GPTBOT).status, 200);
    for agent in [FIREFOX, CHATGPT_USER] {
        assert_eq!(running.get("/x", agent).status, 403, "{agent}");
    }
    for path in ["/maps/all.xml", "/maps/all.xml?page=1", "/license.xml", "/security.txt", "//security.txt"] {
        assert_eq!(running.get(path, GPTBOT).status, 403, "{path}");
    }
    assert_eq!(running.get("/robots.txt", GPTBOT).body, ROBOTS);
    assert_eq!(running.get("/.well-known/security.txt", GPTBOT).status, 200);
    assert_eq!(server.requests().len(), 1);
    let passed = of_crawlers(&origin);
    assert!(passed.len() == 1 && passed[0].contains(" /.well-known/"), "{passed:?}");

    let named = "[[site.refusal.case]]\ncrawlers = [\"ChatGPT-User\"]\nstatus = 451";
    let (_folder, running, _origin) = start(named);
    for (agent, status) in [(CHATGPT_USER, 451), (GPTBOT, 403), (FIREFOX, 403)] {
        assert_eq!(running.get("/x", agent).status, status, "{agent}");
    }
}

#[test]
fn a_case_upstream_gets_requests_without_body_and_its_responses_are_not_cached() {
    let server = Origin::answering(|asked| {
        let fields = [
            "Cache-Control: public, max-age=600",
            "Expires: 0",
            "X_CDN-Cache-Control: max-age=600",
            "Vary: Accept",
            "Served-By: tarpit",
        ];
        if asked.target == "/broken" { response("500 Oops", &[], "") } else { response("200 OK", &fields, &asked.head) }
    });
    let cases = format!(
        "[[site.refusal.case]]\nstatus = 402\nupstream = \"http://{server}\"\n[site.signals]\nlicense_link = true"
    );
    let (_folder, running, origin) = start(&cases);
    let forged = "Robots-Verdict: allow\r\nRobots_Verdict: allow\r\n";
    let websocket =
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let close = "Connection: close\r\nContent-Length: 4\r\nRange: bytes=0-1\r\nIf-None-Match: \"a\"\r\n";
    for (more, body) in [(close, "body"), ("Connection: upgrade, close\r\n", "")] {
        let more = if body.is_empty() { format!("{more}{websocket}") } else { more.to_owned() };
        let head = format!("GET /a HTTP/1.1\r\nHost: site.test\r\nUser-Agent: {GPTBOT}\r\n{forged}{more}\r\n{body}");
        let answer = running.send(head.as_bytes());
        assert_eq!((answer.status, answer.field("served-by")), (200, Some("tarpit")), "{answer:?}");
        let caching = (answer.field("cache-control"), answer.field("vary"));
        assert_eq!(caching, (Some("no-store"), Some("Accept, User-Agent")));
        assert_eq!((answer.field("expires"), answer.field("x_cdn-cache-control")), (None, None));
        let license = "<https://site.test/license.xml>; rel=\"license\"; type=\"application/rsl+xml\"";
        assert_eq!(answer.field("link"), Some(license));
        let asked = answer.body.to_lowercase();
        let verdict = "robots-verdict: disallow;agent=\"gptbot\";rule=\"/\"";
        assert_has(&asked, &["get /a http/1.1\r\n", verdict, "x-forwarded-for: "]);
        assert_lacks(
            &asked,
            &["content-length", "range: ", "if-none-match", "robots_verdict", "verdict: allow", "upgrade: "],
        );
    }
    assert!(server.requests().iter().all(|request| request.ends_with("\r\n\r\n")), "{:?}", server.requests());
    let line = running.wait_for_event("refused", |line| line["path"] == "/a");
    assert!(line.get("status").is_none(), "{line}");
    assert_eq!(running.wait_for_event("request", |line| line["path"] == "/a")["status"], 200);

    assert_eq!(running.request("HEAD", "/a", &[("User-Agent", GPTBOT)]).status, 200);
    // Requests with other methods may have a body, so they are not forwarded.
    assert_eq!(running.request("POST", "/post", &[("User-Agent", GPTBOT), ("Content-Length", "0")]).status, 402);
    assert_eq!(running.wait_for_event("refused", |line| line["path"] == "/post")["status"], 402);
    let broken = running.get("/broken", GPTBOT);
    assert_eq!((broken.status, broken.field("cache-control")), (402, Some("no-store")));
    assert_eq!(running.wait_for_event("request", |line| line["path"] == "/broken")["status"], 402);
    assert!(server.requests().iter().all(|request| !request.contains(" /post ")));
    assert!(of_crawlers(&origin).is_empty(), "{:?}", origin.requests());
}

#[test]
fn the_refusal_page_is_sent_if_the_case_upstream_is_down_or_at_its_connection_limit() {
    let cases = format!("[[site.refusal.case]]\nstatus = 402\nupstream = \"http://{}\"", Origin::down());
    let (_folder, running, origin) = start(&cases);
    for _ in 0..3 {
        assert_eq!(running.get("/x", GPTBOT).status, 402);
    }
    assert!(of_crawlers(&origin).is_empty());

    let server = Origin::answering(|asked| match &*asked.target {
        "/slow" => Reply::Drip(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n".to_vec()),
        _ => response("200 OK", &[], "").into(),
    });
    let cases = format!("[[site.refusal.case]]\nstatus = 402\nupstream = \"http://{server}\"\nmax_connections = 2");
    let (_folder, running, origin) = start(&cases);
    // The slot of an earlier request becomes free shortly after its response.
    let slow = || {
        wait_for("a place", || {
            let request = format!("GET /slow HTTP/1.1\r\nHost: site.test\r\nUser-Agent: {GPTBOT}\r\n\r\n");
            let mut reader = BufReader::new(sent(running.address, request));
            head(&mut reader).starts_with(b"HTTP/1.1 200 ").then_some(reader)
        })
    };
    let first = slow();
    assert_eq!(running.get("/x", GPTBOT).status, 200);
    let _second = slow();
    assert_eq!(running.get("/x", GPTBOT).status, 402);
    assert_eq!(running.get("/x", CCBOT).status, 402);
    drop(first);
    wait_until("a free place", || running.get("/x", GPTBOT).status == 200);
    assert!(of_crawlers(&origin).is_empty());
}

#[test]
fn a_new_config_changes_the_cases_and_keeps_the_connection_count_of_their_upstream() {
    let server = Origin::answering(|asked| match &*asked.target {
        "/slow" => Reply::Drip(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n".to_vec()),
        _ => response("200 OK", &[], "").into(),
    });
    let case = format!("[[site.refusal.case]]\nstatus = 402\nupstream = \"http://{server}\"\nmax_connections = 1\n");
    let (folder, running, _origin) = start(&case);
    let request = format!("GET /slow HTTP/1.1\r\nHost: site.test\r\nUser-Agent: {GPTBOT}\r\n\r\n");
    let mut slow = BufReader::new(sent(running.address, request));
    assert!(head(&mut slow).starts_with(b"HTTP/1.1 200 "));
    let text = folder.read("robotsd.toml");
    folder.replace("robotsd.toml", text.replace("status = 402", "status = 451"));
    wait_until("the new status", || running.get("/x", GPTBOT).status == 451);
    assert_has(message(&running.event("config")), &["site \"shop\": refusal.case: "]);
    drop(slow);
    wait_until("a free place", || running.get("/x", GPTBOT).status == 200);
    folder.replace("robotsd.toml", text.replace(&case, ""));
    wait_until("the plain refusal", || running.get("/x", GPTBOT).status == 403);
}

#[test]
fn other_proxies_get_the_page_of_a_case_and_a_status_that_they_support() {
    let cases = "[[site.refusal.case]]\nstatus = 402\nfields = { crawler-price = \"USD 0.01\" }\nupstream = \"http://127.0.0.1:9\"";
    let config = Config::deciding().files_of("shop").tables(cases).tables(EVERYONE).robots(ROBOTS);
    let (folder, running) = config.start();
    let nginx = [("X-Original-URI", "/x"), ("X-Original-Method", "GET"), ("User-Agent", GPTBOT)];
    let caddy = [("X-Forwarded-Uri", "/x"), ("X-Forwarded-Host", "site.test"), ("User-Agent", GPTBOT)];
    let method = |method| [&caddy[..], &[("X-Forwarded-Method", method)]].concat();
    let call = [&method("POST")[..], &[("Content-Type", "application/grpc")]].concat();
    for (target, fields, status, has_price) in [
        ("/-/auth/nginx", nginx.to_vec(), 403, true),
        ("/-/refusal/nginx", nginx.to_vec(), 402, true),
        ("/-/auth/haproxy", nginx.to_vec(), 402, true),
        ("/-/auth/caddy", method("GET"), 402, true),
        ("/-/auth/caddy", call, 403, false),
    ] {
        let answer = running.request("GET", target, &fields);
        assert_eq!(
            (answer.status, answer.field("crawler-price").is_some()),
            (status, has_price),
            "{target}: {answer:?}"
        );
    }
    running.wait_for_event("refused", |line| line["path"] == "/x" && line["status"] == 402);
    let explained = folder.with_config(&["explain", "--user-agent", "GPTBot", "/x"]).succeeded();
    assert_has(explained, &["  policy: refuse, with 402 (case 1 of [[site.refusal.case]])"]);
    let noted = folder.configured(["config", "check"]).said();
    assert_has(
        &noted,
        &["no listener forwards requests", "if nginx uses only auth_request, as ingress-nginx does, clients get 403"],
    );
}

#[test]
fn errors_in_a_refusal_case_are_reported_with_their_position() {
    let folder = Config::refusing().files_of("shop").robots(ROBOTS).folder();
    let text = folder.read("robotsd.toml");
    let first = text.lines().count() + 1;
    for (case, line, message) in [
        ("status = 401", 1, "401 requires a challenge: write fields = { WWW-Authenticate = \"License\" }"),
        (
            "status = 200",
            1,
            "200 is not allowed as the status of refusals: write one of 403, 402, 404, 410, 429, 451, 401",
        ),
        ("status = 402\nfields = { Cache-Control = \"max-age=1\" }", 2, "robotsd sets Cache-Control: no-store"),
        ("fields = { CDN-Cache-Control = \"max-age=1\" }", 1, "robotsd sets Cache-Control: no-store"),
        ("fields = { Set-Cookie = \"a=b\" }", 1, "a refusal cannot have the field \"Set-Cookie\""),
        ("fields = { Content_Length = \"9\" }", 1, "a refusal cannot have the field \"Content_Length\""),
        ("fields = { Connection = \"close\" }", 1, "a refusal cannot have the field \"Connection\""),
        ("fields = { Server = \"a\" }", 1, "a refusal cannot have the field \"Server\""),
        ("fields = { X_Accel-Expires = \"60\" }", 1, "robotsd sets Cache-Control: no-store"),
        ("fields = { \"a b\" = \"c\" }", 1, "\"a b\" is not a valid field name"),
        ("fields = { a = \"b\\nc\" }", 1, "is not a field value: write text without line breaks"),
        ("fields = { a = \"b\", A = \"c\" }", 1, "is written twice: write both values in one field"),
        ("crawlers = [\"category:user-fetch\"]", 1, "act for a person: write their names, such as \"ChatGPT-User\""),
        ("crawlers = [\"category:ai\"]", 1, "\"ai\""),
        ("crawlers = [\"GPT Bot\"]", 1, "write \"GPTBot\""),
        ("identity = [\"impostor\"]", 1, "impostor"),
        ("paths = [\"a\"]", 1, "\"a\" is not a path pattern"),
        ("max_connections = 2", 1, "\"max_connections\" requires \"upstream\""),
        ("upstream = \"http://127.0.0.1:9\"\nmax_connections = 20000", 2, "write a number from 1 to 10000"),
        ("upstream = \"ftp://a.test\"", 1, "is not a valid upstream"),
        ("language = \"en\"", 1, "\"language\" requires \"file\""),
        ("file = \"no.html\"", 1, "no.html: No such file"),
    ] {
        folder.replace("robotsd.toml", format!("{text}[[site.refusal.case]]\n{case}\n"));
        let said = folder.configured(["config", "check"]).failed(2);
        assert_has(&said, &[&format!("robotsd.toml:{}:", first + line), message]);
    }
    let loops = text.replace("127.0.0.1:0", "127.0.0.1:9180");
    let case = "[[site.refusal.case]]\nupstream = \"http://127.0.0.1:9180\"";
    folder.replace("robotsd.toml", format!("{loops}{case}\n"));
    assert_has(folder.configured(["config", "check"]).failed(2), &["so requests would loop"]);
}

#[test]
fn explain_and_replay_report_the_status_of_the_refusal_case() {
    let log = |request: &str, agent: &str| {
        format!("192.0.2.1 - - [01/Nov/2026:01:00:00 +0000] \"{request} HTTP/1.1\" 200 9 \"-\" \"{agent}\"\n")
    };
    let lines = [
        ("GET /a/x", GPTBOT),
        ("GET /a/y", GPTBOT),
        ("GET /b", GPTBOT),
        ("GET /t", CCBOT),
        ("POST /t", GPTBOT),
        ("GET /a/x", GOOGLEBOT),
        ("GET /a/x", FIREFOX),
    ];
    let log: String = lines.iter().map(|(request, agent)| log(request, agent)).collect();
    let cases = "[[site.refusal.case]]\npaths = [\"/a/\"]\nstatus = 402\n\
                 [[site.refusal.case]]\npaths = [\"/t\"]\nstatus = 451\nupstream = \"http://127.0.0.1:10\"";
    let config = Config::refusing().upstream("shop", "127.0.0.1:9").tables(cases).robots(ROBOTS).file("log", log);
    let folder = config.folder();
    let explain = |agent: &str, path: &str, more: &[&str]| {
        folder.with_config(&[&["explain", "--user-agent", agent, path], more].concat()).succeeded()
    };
    let case = |number: u32| format!(" (case {number} of [[site.refusal.case]])");
    for (agent, path, want) in [
        ("GPTBot", "/a/x", format!("  policy: refuse, with 402{}", case(1))),
        ("GPTBot", "/b", "  policy: refuse, with 403".to_owned()),
        ("GPTBot", "/license.xml", "  policy: refuse, with 403".to_owned()),
        ("CCBot", "/t", format!("  policy: refuse, with the response of its upstream{}", case(2))),
        (
            "Googlebot",
            "/a/x",
            "  policy: tag, and let pass (a search engine is not refused without an override)".to_owned(),
        ),
    ] {
        assert_has(explain(agent, path, &[]), &[&*want]);
    }
    let json: Value = serde_json::from_str(&explain("GPTBot", "/a/x", &["--json"])).unwrap();
    assert_eq!(json["refusal"], json!({ "status": 402, "case": 1 }));
    let json: Value = serde_json::from_str(&explain("CCBot", "/t", &["--json"])).unwrap();
    assert_eq!(json["refusal"], json!({ "status": null, "case": 2 }));

    // The upstream gets only GET and HEAD.
    let json: Value = serde_json::from_str(&explain("GPTBot", "/t", &["--json", "--method", "POST"])).unwrap();
    assert_eq!(json["refusal"], json!({ "status": 451, "case": 2 }));

    let report = folder.with_config(&["replay", "log", "--format", "json"]).json();
    assert_eq!(report["refusals"], json!({ "402": 2, "403": 1, "451": 1, "upstream": 1 }));
    let text = folder.with_config(&["replay", "log", "--format", "text"]).said();
    assert_has(text, &["5 of these would be refused (402: 2, 403: 1, 451: 1, upstream: 1); 1 would be only tagged"]);
}
