//! Tests serving: responses to clients, requests to upstreams, and log lines.

use crate::harness::*;

const ROBOTS: &str = "User-agent: GPTBot\nDisallow: /drafts/\n\nUser-agent: Googlebot\nDisallow: /drafts/\n";

fn proxy(origin: &Origin, more: &str) -> (Folder, Running) {
    let config = Config::refusing().upstream("shop", origin);
    config.tables("[site.modes]\n\"category:search\" = \"tag\"").tables(more).robots(ROBOTS).start()
}

#[test]
fn crawlers_are_refused_search_engines_are_tagged_and_browsers_pass() {
    let origin = Origin::start();
    let (_folder, running) = proxy(&origin, "");
    let answer = running.get("/drafts/x", FIREFOX);
    assert_eq!(answer.status, 200);
    assert!(!answer.body.to_lowercase().contains("robots-verdict"), "{}", answer.body);
    assert_eq!(running.get("/", GPTBOT).status, 200);
    running.get("/robots.txt", GPTBOT).comes_with(200, ROBOTS);
    let answer = running.get("/drafts/x", GPTBOT);
    assert_eq!(answer.status, 403);
    assert_has(&answer.body, &["Disallow: /drafts/        (line 2)"]);
    assert!(answer.body.contains(answer.field("x-request-id").unwrap()), "{answer:?}");
    let answer = running.get("/drafts/x", GOOGLEBOT);
    assert_eq!(answer.status, 200);
    let tag = r#"robots-verdict: disallow;agent="Googlebot";rule="/drafts/";line=5"#;
    assert!(answer.body.to_lowercase().contains(&tag.to_lowercase()), "{}", answer.body);
}

#[test]
fn the_verdict_field_cannot_be_forged_or_removed() {
    let origin = Origin::start();
    let (_folder, running) = proxy(&origin, "");
    for name in ["Robots-Verdict", "rOBOTS-verdict", "Robots_Verdict"] {
        let answer = running.request("GET", "/x", &[(name, "allow")]);
        assert_eq!(answer.status, 200);
        assert!(!answer.body.to_lowercase().contains("verdict"), "{}", answer.body);
    }
    let request = format!(
        "GET /drafts/x HTTP/1.1\r\nHost: site.test\r\nUser-Agent: {GOOGLEBOT}\r\nConnection: close, Robots-Verdict\r\n\r\n"
    );
    let answer = running.send(request.as_bytes());
    assert!(answer.body.to_lowercase().contains("robots-verdict: disallow"), "{}", answer.body);
}

#[test]
fn every_spelling_of_a_path_is_judged_and_the_original_forwarded() {
    let origin = Origin::start();
    let (_folder, running) = proxy(&origin, "");
    for path in ["/%64rafts/x", "//drafts/x", "/a/../drafts/x", "/a/..%2fdrafts/x", "/.well-known/..%2fdrafts/x"] {
        assert_eq!(running.get(path, GPTBOT).status, 403, "{path}");
        let answer = running.get(path, FIREFOX);
        assert!(answer.body.starts_with(&format!("GET {path} HTTP/1.1\r\n")), "{path}: {}", answer.body);
    }
    for path in ["/go?u=https%3a%2f%2fx%2fdrafts%2f", "/sale-50%-off", "/%2564rafts/x"] {
        assert_eq!(running.get(path, GPTBOT).status, 200, "{path}");
    }
}

#[test]
fn non_utf8_bytes_are_matched_logged_and_forwarded_percent_encoded() {
    let origin = Origin::start();
    let (folder, running) =
        proxy(&origin, "[log]\nquery = \"keep\"\naccess = \"json\"\naccess_path = \"access.log\"\n");
    folder.write("new", b"User-agent: GPTBot\nDisallow: /caf\xe9/\nDisallow: /*?x=caf%E9\n");
    fs::rename(folder.at("new"), folder.at("robots.txt")).unwrap();
    wait_until("the rules", || running.get("/robots.txt", FIREFOX).body.contains("caf"));
    let ask = |target: &[u8], agent: &str, fields: &str| {
        let fields = format!(" HTTP/1.1\r\nHost: site.test\r\nUser-Agent: {agent}\r\n{fields}\r\n");
        let mut client = Kept::open(running.address, "site.test");
        client.send([b"GET ", target, fields.as_bytes()].concat());
        // By default, the connection stays open, so the response is read by its length.
        client.receive()
    };
    for fields in ["", "Connection: close\r\n"] {
        for (target, shown) in
            [(&b"/caf\xe9/<x>"[..], "/caf%E9/%3Cx%3E"), (b"/q?x=caf\xe9", "/q?x=caf%E9"), (b"/caf%e9/", "/caf%e9/")]
        {
            let answer = ask(target, FIREFOX, fields);
            assert!(answer.body.starts_with(&format!("GET {shown} HTTP/1.1\r\n")), "{answer:?}");
            assert_eq!(ask(target, GPTBOT, fields).status, 403, "{shown}");
            wait_until("a line of the log", || {
                let text = folder.read("access.log");
                text.contains(&format!("\"path\":\"{shown}\""))
            });
        }
    }
}

#[test]
fn hosts_have_their_own_sites_and_unknown_hosts_have_none() {
    let origin = Origin::start();
    let site = |host: &str, text: &str| {
        format!("hosts = [\"{host}\"]\nupstreams = [\"http://{origin}\"]\nrobots.text = \"{text}\"")
    };
    let (_folder, running) = Config::refusing()
        .site("a", site("a.test", "User-agent: GPTBot\\nDisallow: /\\n"))
        .site("b", site("*.b.test", "# open\\n"))
        .start();
    for (host, status) in [("a.test", 403), ("A.TEST:80", 403), ("www.b.test", 200), ("b.test", 421), ("c.test", 421)] {
        let answer = running.request("GET", "/x", &[("Host", host), ("User-Agent", GPTBOT)]);
        assert_eq!(answer.status, status, "{host}");
    }
}

#[test]
fn http_1_1_requests_need_one_valid_host_and_connect_and_trace_are_rejected() {
    let origin = Origin::start();
    let (_folder, running) = proxy(&origin, "");
    for (head, status) in [
        ("GET / HTTP/1.1\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a b\r\n", 400),
        ("GET / HTTP/1.0\r\n", 200),
        ("CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\n", 405),
        ("TRACE / HTTP/1.1\r\nHost: a.test\r\n", 405),
    ] {
        let answer = running.send(format!("{head}Connection: close\r\n\r\n").as_bytes());
        assert_eq!(answer.status, status, "{head}");
    }
}

#[test]
fn a_refusal_is_logged_as_one_line_with_every_field() {
    let origin = Origin::start();
    let (_folder, running) = proxy(&origin, "");
    running.get("/drafts/x?token=secret&page=2", GPTBOT);
    running.get("/drafts/x", FIREFOX);
    let line = running.event("refused");
    let part = json!({
        "site": "shop", "agent": "GPTBot", "category": "ai-training", "identity": "claimed", "decision": "disallow",
        "reason": "disallowed", "group": "GPTBot", "rule": "/drafts/", "method": "GET",
        "path": "/drafts/x?token=…&page=…", "address": "127.0.0.0/24", "status": 403, "line": 2,
    });
    assert_part(&line, &part);
    for name in ["ts", "request_id", "robots_hash"] {
        assert!(line[name].as_str().is_some_and(|value| !value.is_empty()), "{line}");
    }
    assert_eq!(running.events("refused"), 1);
}

#[test]
fn requests_get_502_if_the_upstream_is_down_and_robots_txt_is_still_served() {
    let origin = Origin::down();
    let (_folder, running) = proxy(&origin, "");
    assert_eq!(running.get("/", FIREFOX).status, 502);
    assert_eq!(running.get("/robots.txt", GPTBOT).status, 200);
    assert_eq!(running.get("/drafts/x", GPTBOT).status, 403);
}

#[test]
fn every_request_has_its_line_in_the_access_log() {
    let origin = Origin::start();
    let (folder, running) = proxy(&origin, "[log]\naccess = \"json\"\naccess_path = \"access.log\"\n");
    for (number, (method, path, agent, part)) in [
        ("GET", "/a?q=secret", FIREFOX, json!({ "path": "/a?q=…", "status": 200, "action": null })),
        ("GET", "/drafts/x", GPTBOT, json!({ "action": "refused", "agent": "GPTBot", "line": 2 })),
        ("GET", "/drafts/x", GOOGLEBOT, json!({ "action": "tagged", "status": 200, "site": "shop" })),
        ("GET", "/robots.txt", GPTBOT, json!({ "octets": ROBOTS.len(), "whole": true })),
        ("TRACE", "/", FIREFOX, json!({ "status": 405, "site": null })),
    ]
    .into_iter()
    .enumerate()
    {
        running.request(method, path, &[("User-Agent", agent)]);
        // A request is logged shortly after its response, by whichever worker has served it.
        let line = wait_for("its line", || {
            let text = folder.read("access.log");
            text.split_inclusive('\n').nth(number).filter(|line| line.ends_with('\n')).map(str::to_owned)
        });
        assert_part(&serde_json::from_str(&line).unwrap(), &part);
    }
    assert_eq!(folder.read("access.log").lines().count(), 5);
}
