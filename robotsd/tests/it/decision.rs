//! Sends decision requests in the same way as proxies do.

use crate::harness::*;

const ROBOTS: &str = "User-agent: GPTBot\nDisallow: /drafts/\n\nUser-agent: Googlebot\nDisallow: /drafts/\n\n\
                      User-agent: *\nDisallow: /private/\n";

fn start(listener: &str, more: &str) -> (Folder, Running) {
    let site = "[site.robots]\npath = \"robots.txt\"\n[site.modes]\n\"category:search\" = \"tag\"";
    Config::deciding().listener(listener).site("shop", site).tables(more).admin().robots(ROBOTS).start()
}

fn nginx(running: &Running, uri: &str, agent: &str) -> Answer {
    let fields = [("X-Original-URI", uri), ("X-Original-Method", "GET"), ("User-Agent", agent)];
    running.request("GET", "/-/auth/nginx", &fields)
}

#[test]
fn a_decision_request_gets_status_200_or_the_refusal_of_the_layer() {
    let (_folder, running) = start("", "");
    for (uri, agent) in [("/drafts/x", FIREFOX), ("/", GPTBOT), ("/robots.txt", GPTBOT)] {
        let answer = nginx(&running, uri, agent);
        assert_eq!((answer.status, &*answer.body, answer.field("robots-verdict")), (200, "", None), "{uri} {agent}");
        assert_eq!(answer.field("content-length"), Some("0"));
    }
    let answer = nginx(&running, "/drafts/x", GOOGLEBOT);
    assert_eq!((answer.status, &*answer.body), (200, ""));
    let tag = "disallow;agent=\"Googlebot\";rule=\"/drafts/\";line=5";
    assert_eq!(answer.field("robots-verdict"), Some(tag));
    let answer = nginx(&running, "/%64rafts/x", GPTBOT);
    assert_eq!((answer.status, answer.field("cache-control")), (403, Some("no-store")));
    assert!(answer.field("vary").unwrap().contains("User-Agent"));
    assert_has(&answer.body, &["Disallow: /drafts/        (line 2)"]);
    let refused = running.wait_for_event("refused", |line| line["path"] == "/%64rafts/x");
    assert_eq!((&refused["site"], &refused["method"]), (&"shop".into(), &"GET".into()));
}

#[test]
fn a_disallowed_search_engine_without_an_override_is_tagged_with_the_reason() {
    let (_folder, running) = Config::deciding().site("shop", "robots.path = \"robots.txt\"").robots(ROBOTS).start();
    let answer = nginx(&running, "/drafts/x", GOOGLEBOT);
    let tag = "disallow;agent=\"Googlebot\";rule=\"/drafts/\";line=5;reason=search-engine";
    assert_eq!((answer.status, answer.field("robots-verdict")), (200, Some(tag)));
    assert_eq!(nginx(&running, "/private/x", "Wotbox/2.0").status, 403);
}

#[test]
fn the_client_address_is_the_one_that_the_proxy_sends_or_is_unknown() {
    let (_folder, running) = start("", "[exempt]\ncidrs = [\"192.0.2.0/24\", \"127.0.0.0/8\"]\n");
    let ask = |address: &[(&str, &str)]| {
        let original = [("X-Original-URI", "/drafts/x"), ("X-Original-Method", "GET"), ("User-Agent", GPTBOT)];
        running.request("GET", "/-/auth/nginx", &[&original[..], address].concat()).status
    };
    assert_eq!(ask(&[("X-Real-IP", "192.0.2.7")]), 200);
    assert_eq!(ask(&[("X-Real-IP", "198.51.100.7")]), 403);
    // The proxy's own address is exempt here. It must not be used as the address of the client.
    assert_eq!(ask(&[]), 403);
    assert_eq!(ask(&[("X-Real-IP", "192.0.2.7"), ("X-Real-IP", "192.0.2.8")]), 403);
    running.wait_for_event("refused", |line| line["address"] == "198.51.100.0/24");
}

#[test]
fn a_target_whose_dot_segments_leave_the_preset_gets_status_400() {
    let (_folder, running) = start("", "");
    let fields = [("X-Forwarded-Uri", "/drafts/forged"), ("X-Forwarded-Method", "GET"), ("User-Agent", GPTBOT)];
    for target in
        ["/-/auth/caddy/../../../robots.txt", "/-/site/shop/refusal/caddy/..%2f..", "/-/auth/envoy/drafts/../.."]
    {
        assert_eq!(running.request("GET", target, &fields).status, 400, "{target}");
    }
    assert_eq!(running.request("GET", "/-/auth/envoy/a/../drafts/x", &fields).status, 403);
    running.wait_for_event("refused", |line| line["path"] == "/a/../drafts/x");
    assert!(!running.has_event("refused", |line| line["path"] == "/drafts/forged"));
}

#[test]
fn an_incomplete_decision_request_follows_on_error_and_a_malformed_one_is_judged() {
    for (listener, status, done) in
        [("", 200, "let through without a decision"), ("on_error = \"refuse\"", 403, "refused")]
    {
        let began = Instant::now();
        let (_folder, running) = start(listener, "");
        let said = || running.ask_admin("GET /status").json()["problems"].to_string();
        assert_eq!(said(), "[]");
        let ask = |target: &str, fields: &[(&str, &str)]| {
            running.request("GET", target, &[&[("User-Agent", GPTBOT)], fields].concat()).status
        };
        let method = ("X-Original-Method", "GET");
        for fields in [&[method][..], &[method, ("X-Forwarded-Uri", "/drafts/x")], &[("X-Original-URI", "/drafts/x")]] {
            assert_eq!(ask("/-/auth/nginx", fields), status, "{fields:?}");
        }
        let cases = ["/-/auth/apache", "/-/auth/envoy", "/-/site/shop/auth/apache", "/-/site/none/auth/envoy/drafts/x"];
        for target in cases {
            assert_eq!(ask(target, &[]), status, "{target}");
        }
        for (uris, status) in [
            (&["/drafts/x", "/"][..], 403),
            (&["/", "/drafts/x"], 403),
            (&["/", "/x"], 200),
            (&["drafts/x"], 403),
            (&["ftp://h.test/drafts/x"], 403),
            (&["http://h.test:?/drafts/x"], 403),
        ] {
            let uris: Vec<_> = uris.iter().map(|uri| ("X-Original-URI", *uri)).chain([method]).collect();
            assert_eq!(ask("/-/auth/nginx", &uris), status, "{uris:?}");
        }
        let twice = [("X-Original-URI", "/drafts/x"), ("X-Original-Method", "POST"), ("X-Original-Method", "GET")];
        assert_eq!(ask("/-/auth/nginx", &twice), 403);
        for (reason, want) in [
            ("missing", "nginx: X-Original-URI is missing: "),
            ("repeated", "nginx: X-Original-URI is repeated: "),
            (
                "unreadable",
                "nginx: X-Original-URI is malformed: decided with the strictest interpretation of the decision request (",
            ),
            ("unknown-site", "the question contains an unknown site: write the name of a [[site]], as in "),
            ("unknown-preset", "the path contains an unknown preset: write /-/auth/ and one of "),
        ] {
            let event = running.wait_for_event("undecided", |line| line["reason"] == reason);
            assert!(message(&event).starts_with(want), "{event}");
        }
        // The status reports errors in the proxy's config as problems. Errors that clients can
        // cause are only counted.
        let missing = format!("were {done} (reason: missing; 4 since the start)");
        assert_has(said(), &[&missing, "(reason: unknown-preset; 2 since", "(reason: unknown-site; 1 since"]);
        assert!(!said().contains("repeated") && !said().contains("unreadable"), "{}", said());
        let metrics = running.ask_admin("GET /metrics").body;
        for (reason, count) in [("missing", 4), ("unknown-preset", 2), ("unknown-site", 1), ("repeated", 4)] {
            assert_has(&metrics, &[&format!("robotsd_questions_undecided_total{{reason=\"{reason}\"}} {count}\n")]);
        }
        // Many such errors cause at most one log line per second.
        for _ in 0..100 {
            ask("/-/auth/nginx", &[]);
        }
        assert_eq!(nginx(&running, "/drafts/behind", GPTBOT).status, 403);
        running.wait_for_event("refused", |line| line["path"] == "/drafts/behind");
        let is_one = |line: &Value| line["reason"] == "missing" && message(line).starts_with("nginx: ");
        let (lines, time) = (running.count("undecided", is_one), began.elapsed());
        assert!(lines as u64 <= time.as_secs() + 2, "{lines} lines in {time:?}");
    }
}

#[test]
fn decision_requests_without_a_user_agent_are_allowed_and_cause_one_warning() {
    let (_folder, running) = start("", "");
    for _ in 0..3 {
        assert_eq!(running.request("GET", "/-/auth/envoy/drafts/x", &[]).status, 200);
    }
    let event = running.event("no-user-agent");
    assert_eq!(event["reason"], "envoy");
    assert_eq!(nginx(&running, "/drafts/x", GPTBOT).status, 403);
    running.event("refused");
    assert_eq!(running.events("no-user-agent"), 1);
}

#[test]
fn the_original_method_is_judged_and_the_content_length_is_correct() {
    let (_folder, running) = start("", "");
    let ask = |method: &str, original: &str, agent: &str| {
        let fields = [("X-Forwarded-Uri", "/private/x"), ("X-Forwarded-Method", original), ("User-Agent", agent)];
        running.request(method, "/-/auth/caddy", &fields)
    };
    // The group for `*` applies to GET and HEAD.
    let crawler = "FooBot/1.0 (+https://foo.test/bot)";
    assert_eq!(ask("GET", "POST", crawler).status, 200);
    assert_eq!(ask("POST", "GET", crawler).status, 403);
    let answer = ask("GET", "HEAD", crawler);
    assert_eq!((answer.status, &*answer.body, answer.field("content-length")), (403, "", Some("0")));
    // Envoy asks with the method of the original request.
    let answer = running.request("HEAD", "/-/auth/envoy/private/x", &[("User-Agent", crawler)]);
    assert_eq!((answer.status, &*answer.body), (403, ""));
    assert_ne!(answer.field("content-length"), Some("0"));
}

#[test]
fn a_grpc_call_is_refused_with_status_403_and_grpc_header_fields() {
    let (_folder, running) = start("", "[site.refusal]\nstatus = 451\n");
    let ask = |target: &str| {
        let question = [("X-Original-URI", "/drafts/x"), ("X-Original-Method", "POST"), ("User-Agent", GPTBOT)];
        let question = [&question[..], &[("X-Forwarded-Uri", "/drafts/x"), ("X-Forwarded-Method", "POST")]].concat();
        running.request("POST", target, &[&question[..], &[("Content-Type", "application/grpc")]].concat())
    };
    for target in ["/-/auth/nginx", "/-/refusal/nginx", "/-/auth/traefik", "/-/auth/envoy/drafts/x"] {
        let answer = ask(target);
        assert_eq!((answer.status, answer.field("content-type")), (403, Some("application/grpc")), "{target}");
        assert_eq!((answer.field("grpc-status"), &*answer.body), (Some("7"), ""), "{target}");
        let message = answer.field("grpc-message").unwrap();
        assert_has(message, &["Disallow: /drafts/ (line 2)"]);
    }
}

#[test]
fn a_rate_limited_grpc_call_gets_status_403_which_clients_do_not_retry() {
    let robots = "robots.text = \"User-agent: CCBot\\nCrawl-delay: 3000\"";
    let site = format!("rate = {{ mode = \"refuse\", burst = 1 }}\n{robots}");
    let (_folder, running) = Config::deciding().site("calls", site).start();
    let ask = |method: &str, kind: &str| {
        let asked = [("X-Forwarded-Uri", "/x"), ("X-Forwarded-Method", method), ("User-Agent", "CCBot/2.0")];
        running.request("POST", "/-/auth/traefik", &[&asked[..], &[("Content-Type", kind)]].concat())
    };
    assert_eq!(ask("POST", "application/grpc").status, 200);
    let answer = ask("POST", "application/grpc");
    // Clients that ignore `grpc-status` unless the status is 200 would treat 429 as UNAVAILABLE.
    assert_eq!((answer.status, answer.field("grpc-status"), &*answer.body), (403, Some("8"), ""));
    assert!(answer.field("retry-after").is_some() && answer.field("grpc-retry-pushback-ms").is_some(), "{answer:?}");
    for (method, kind) in [("GET", "application/grpc"), ("POST", "application/json")] {
        let answer = ask(method, kind);
        assert_eq!((answer.status, answer.field("grpc-status")), (429, None), "{method} {kind}");
    }
}

#[test]
fn the_refusal_endpoint_returns_the_refusal_page_and_never_approves() {
    let (_folder, running) = start("", "");
    let ask = |uri: &str, accept: &str| {
        let fields =
            [("X-Original-URI", uri), ("X-Original-Method", "POST"), ("User-Agent", GPTBOT), ("Accept", accept)];
        running.request("GET", "/-/refusal/nginx", &fields)
    };
    let answer = ask("/drafts/x", "application/json");
    assert_eq!((answer.status, answer.field("content-type")), (403, Some("application/problem+json")));
    assert_has(&answer.body, &["\"line\":2"]);
    let answer = ask("/", "*/*");
    assert_eq!((answer.status, answer.field("cache-control")), (403, Some("no-store")));
    assert_eq!(running.request("GET", "/-/refusal/nginx", &[]).status, 403);
    assert_eq!(running.request("GET", "/-/refusal/", &[]).status, 403);
    // nginx asks twice about a refused request. Only the first decision request is logged.
    assert_eq!(nginx(&running, "/drafts/y", GPTBOT).status, 403);
    running.wait_for_event("refused", |line| line["path"] == "/drafts/y");
    assert_eq!(running.events("refused"), 1);
}

#[test]
fn a_decision_listener_serves_robots_txt_by_host_and_no_other_file() {
    let (_folder, running) = Config::deciding()
        .site("a", "hosts = [\"a.test\"]\nrobots.text = \"# a\"")
        .site("b", "hosts = [\"b.test\"]\nrobots.text = \"User-agent: GPTBot\\nDisallow: /\"")
        .start();
    let get = |host: &str, path: &str| running.request("GET", path, &[("Host", host), ("User-Agent", GPTBOT)]);
    let answer = get("a.test", "/robots.txt");
    assert_eq!((answer.status, &*answer.body), (200, "# a"));
    assert!(answer.field("etag").is_some());
    assert_eq!(get("b.test:8080", "/robots.txt?x").body, "User-agent: GPTBot\nDisallow: /");
    assert_eq!(get("other.test", "/robots.txt").status, 404);
    assert_eq!(get("b.test", "/index.html").status, 404);
    assert_eq!(get("b.test", "/-/health").status, 200);
    for (host, status) in [("b.test", 403), ("a.test", 200), ("other.test", 200)] {
        assert_eq!(get(host, "/-/auth/envoy/x").status, status, "{host}");
    }
}

#[test]
fn bodies_of_decision_requests_are_ignored_and_long_or_unusual_targets_are_judged() {
    let (_folder, running) = start("", "");
    let mut stream = connect(running.address);
    // A short body must be skipped, and the connection kept.
    let short =
        format!("POST /-/auth/envoy/ HTTP/1.1\r\nHost: h\r\nUser-Agent: {GPTBOT}\r\nContent-Length: 5000\r\n\r\n");
    stream.write_all(short.as_bytes()).unwrap();
    stream.write_all(&[b'x'; 5000]).unwrap();
    let long = short.replace("envoy/", "envoy/drafts/").replace("5000", "50000000");
    stream.write_all(long.as_bytes()).unwrap();
    // robotsd never reads bytes beyond the limit, so writing them may fail.
    let _ = stream.write_all(&vec![b'x'; 1_000_000]);
    let mut answers = Vec::new();
    let _ = stream.read_to_end(&mut answers);
    let answers = String::from_utf8_lossy(&answers);
    assert!(answers.starts_with("HTTP/1.1 200 OK\r\n"), "{answers}");
    let question = |uri: &[u8]| {
        let head = format!("GET /-/auth/nginx HTTP/1.1\r\nHost: h\r\nUser-Agent: {GPTBOT}\r\nConnection: close\r\n");
        let uri = [b"X-Original-Method: GET\r\nX-Original-URI: ", uri, b"\r\n\r\n"].concat();
        running.send(&[head.as_bytes(), &uri].concat()).status
    };
    assert_eq!(question(b"/drafts/\xC3\xA9\xFF"), 403);
    let many: Vec<_> = (0..400).map(|number| format!("X-{number}")).collect();
    let many: Vec<_> = many.iter().map(|name| (name.as_str(), "")).chain([("User-Agent", GPTBOT)]).collect();
    assert_eq!(running.request("GET", "/-/auth/envoy/drafts/x", &many).status, 403);
    assert_eq!(question(b"/x\\..\\drafts/\\\""), 403);
    assert_eq!(question(format!("/drafts/{}", "x".repeat(30_000)).as_bytes()), 403);
    let below = format!("/-/auth/envoy/drafts/{}\\", "x".repeat(30_000));
    assert_eq!(running.request("GET", &below, &[("User-Agent", GPTBOT)]).status, 403);
}

/// The log must contain the request as the visitor sent it, so that `replay` judges it. A second
/// decision request about a refused request is not logged.
#[test]
fn the_request_log_contains_the_request_that_a_proxy_asks_about() {
    let (folder, running) = start("", "[log]\naccess = \"json\"\naccess_path = \"access.jsonl\"\naddress = \"keep\"");
    let question = [
        ("Host", "shop.test"),
        ("X-Original-URI", "/drafts/x"),
        ("X-Original-Method", "POST"),
        ("X-Real-IP", "20.171.206.1"),
        ("User-Agent", GPTBOT),
    ];
    assert_eq!(running.request("GET", "/-/auth/nginx", &question).status, 403);
    assert_eq!(running.request("GET", "/-/refusal/nginx", &question).status, 403);
    let url =
        [("X-Original-URL", "https://shop.test/drafts/y?z=1"), ("X-Original-Method", "GET"), ("User-Agent", GPTBOT)];
    assert_eq!(running.request("GET", "/-/auth/ingress-nginx", &url).status, 403);
    let lines = || fs::read_to_string(folder.at("access.jsonl")).unwrap_or_default();
    wait_until("the log of requests", || lines().matches('\n').count() == 3);
    let read: Vec<Value> = lines().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [first, second, third] = &read[..] else { panic!("{read:?}") };
    assert_part(
        first,
        &json!({"method": "POST", "host": "shop.test", "path": "/drafts/x", "address": "20.171.206.1", "status": 403, "site": "shop"}),
    );
    assert_part(second, &json!({"method": "GET", "path": "/-/refusal/nginx"}));
    assert_part(third, &json!({"method": "GET", "host": "shop.test", "path": "/drafts/y?z=…"}));
    assert!(third["address"].is_null(), "{third}");
    let report = folder.run(["replay", "access.jsonl", "--robots", "robots.txt", "--format", "json"]).json();
    assert_part(&report["totals"], &json!({"crawler_requests": 2, "disallowed": 2}));
    let text = unfolded(&folder.run(["replay", "access.jsonl", "--robots", "robots.txt"]).out);
    assert_has(&text, &["1 request of a proxy for refusal pages is left out"]);
    assert_lacks(&text, &["with a decision request of a proxy"]);
}

/// In the combined format, a line does not contain the host, but ends with the site.
#[test]
fn a_line_of_the_combined_log_contains_the_site_of_the_request() {
    let site = |host: &str| format!("hosts = [{host:?}]\nrobots.path = \"robots.txt\"");
    let log = "[log]\naccess = \"combined\"\naccess_path = \"access.log\"";
    let config = Config::deciding().site("alpha", site("alpha.test")).site("beta", site("beta.test"));
    let (folder, running) = config.tables(log).robots(ROBOTS).start();
    let ask = |target: &str, host: &str| {
        let fields = [("X-Original-URI", "/drafts/x"), ("X-Original-Method", "GET"), ("User-Agent", GPTBOT)];
        running.request("GET", target, &[&[("Host", host)], &fields[..]].concat())
    };
    ask("/-/site/alpha/auth/nginx", "alpha.test");
    ask("/robots.txt", "alpha.test");
    // The proxy chooses the site, whatever host the client has sent.
    for host in ["beta.test", "beta.test", "alpha.test"] {
        ask("/-/site/beta/auth/nginx", host);
    }
    ask("/robots.txt", "beta.test");
    let lines = || fs::read_to_string(folder.at("access.log")).unwrap_or_default();
    wait_until("the log of requests", || lines().matches('\n').count() == 6);
    for (site, requests, other) in [("alpha", 2, "4 requests are"), ("beta", 4, "2 requests are")] {
        let replay = |format| folder.with_config(&["replay", "access.log", "--site", site, "--format", format]);
        assert_eq!(replay("json").json()["requests"], requests, "{}", lines());
        let text = unfolded(&replay("text").out);
        assert_has(&text, &[&format!("{other} for other hosts than those of the site {site:?}")]);
        assert_lacks(&text, &["no request in the log has a host", "without a host"]);
    }
    // Lines of another server may also end with three such values. They must not be mistaken for
    // robotsd's values.
    let other = lines().replace("\"alpha\"", "\"gamma\"").replace("\"beta\"", "\"gamma\"");
    folder.write("access.log", other);
    let text = folder.with_config(&["replay", "access.log", "--site", "alpha"]).out;
    assert_has(unfolded(&text), &["no request in the log has a host: all count as requests for the site \"alpha\""]);
}

#[test]
fn replay_rejects_the_event_log_as_a_request_log() {
    let (folder, running) = start("", "[log]\naccess = \"json\"\naccess_path = \"access.jsonl\"");
    assert_eq!(nginx(&running, "/drafts/x", GPTBOT).status, 403);
    let mut refused = running.wait_for_event("refused", |_| true);
    // The time comes first, as in the log.
    let time = refused.as_object_mut().unwrap().remove("ts").unwrap();
    let refused = format!("{{\"ts\":{time},{}", &refused.to_string()[1..]);
    let read = || fs::read_to_string(folder.at("access.jsonl")).unwrap_or_default();
    wait_until("the log of requests", || read().matches('\n').count() == 1);
    folder.write("events.jsonl", format!("{refused}\n"));
    let said = folder.run(["replay", "events.jsonl", "--robots", "robots.txt"]).failed(2);
    assert_has(&said, &["this is robotsd's log of events"]);
    // Both kinds of lines may go to standard output. Each request must be counted once.
    folder.write("both.jsonl", format!("{}{refused}\n", read()));
    let report = folder.run(["replay", "both.jsonl", "--robots", "robots.txt", "--format", "json"]).json();
    assert_part(&report, &json!({"requests": 1, "unread_lines": 0}));
}

/// If robotsd is down, the proxy serves the file directly. The gate can therefore hold a version
/// only as long as robotsd responds.
#[test]
fn the_status_reports_that_a_proxy_may_already_serve_a_pending_version() {
    let (folder, running) =
        Config::deciding().site("shop", "robots.path = \"robots.txt\"").admin().robots(ROBOTS).start();
    folder.replace("robots.txt", "User-agent: *\nDisallow: /\n");
    running.event("gated");
    let file = folder.at("robots.txt");
    let want = format!(
        "while robotsd does not answer, the proxy serves its own copy of robots.txt; if the proxy reads {}, its copy \
         is the pending version",
        file.display()
    );
    for command in [&["status"][..], &["accept", "shop"]] {
        assert_has(unfolded(&running.command(command).ends_with(1).out), &[&want]);
    }
}

/// After two rollbacks, or if the file is damaged, the file does not contain the pending version.
#[test]
fn the_status_reports_a_file_that_does_not_contain_the_pending_version() {
    let (folder, running) =
        Config::deciding().site("shop", "robots.path = \"robots.txt\"").admin().robots(ROBOTS).start();
    let file = folder.at("robots.txt").display().to_string();
    let own = "while robotsd does not answer, the proxy serves its own copy of robots.txt";
    folder.replace("robots.txt", format!("{ROBOTS}Disallow: /second/\n"));
    running.wait_for_event("published", |line| line["reason"] != "start");
    folder.replace("robots.txt", "User-agent: Googlebot\nDisallow: /\n");
    let third = running.event("gated")["robots_hash"].as_str().unwrap().to_owned();
    running.command(&["accept", "shop", &third]).succeeded();
    let says = |holds: &[&str], lacks: &[&str]| {
        for command in [&["status"][..], &["accept", "shop"]] {
            let said = unfolded(&running.command(command).ends_with(1).out);
            assert_has(&said, holds);
            assert_lacks(&said, lacks);
        }
    };
    let (this, that) = (
        format!("{own}; if the proxy reads {file}, its copy is the pending version"),
        format!("{own}; if the proxy reads {file}, its copy is not the pending version"),
    );
    running.command(&["rollback", "shop"]).succeeded();
    says(&[&this], &["not the pending version"]);
    running.command(&["rollback", "shop"]).succeeded();
    says(&[&format!("{file} now contains version {third}, not the pending version: "), "Googlebot", &that], &[&this]);
    folder.replace("robots.txt", "<!DOCTYPE html><html><body>Not found</body></html>\n");
    running.event("rejected");
    says(&["is an HTML page, not a robots.txt; ", &that], &[&this]);
    let pending = &running.json(&["status"])["sites"][0]["pending"];
    assert!(pending["instead"].as_str().unwrap().contains("HTML page"), "{pending}");
}
