//! Tests of requests as the service receives them, and of responses as the client receives them.

use super::*;

#[tokio::test]
async fn the_service_gets_only_end_to_end_fields_and_fields_of_the_edge() {
    let edge = ServedEdge::start(EdgeLimits::default(), service_fn(mirror));
    let seen = edge
        .ask(
            "GET http://h.test/a%2Fb?c HTTP/1.1\r\nHost: other\r\nConnection: Robots-Verdict, X-Forwarded-For, X-Own\r\n\
             X-Own: 1\r\nRobots-Verdict: allow\r\nRobots_Verdict: allow\r\nX-Forwarded-For: 6.6.6.6\r\n\
             X_Forwarded_For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nX-Original-URL: /x\r\n\
             X-Request-Id: mine\r\nTE: trailers\r\nKeep-Alive: 1\r\nUpgrade: h2c\r\nProxy-Authorization: x\r\n\r\n",
        )
        .await;
    assert_eq!(seen.status(), 200);
    assert!(has_line(&seen.body, "GET /a%2Fb?c"), "{}", seen.body);
    assert!(has_line(&seen.body, "host: h.test"), "{}", seen.body);
    assert!(has_line(&seen.body, "x-forwarded-for: 127.0.0.1"), "{}", seen.body);
    assert!(has_line(&seen.body, "x-forwarded-host: h.test"), "{}", seen.body);
    assert!(has_line(&seen.body, "x-forwarded-proto: http"), "{}", seen.body);
    assert_eq!(names(&seen.body), OURS);
}

/// Each request is sent in three ways: on the fast path, through hyper (by `TE`), and over HTTP/2.
#[tokio::test]
async fn client_address_fields_are_kept_only_if_a_trusted_proxy_sends_them() {
    let trusted = || Arc::new(Trusted { networks: vec!["127.0.0.0/8".parse().unwrap()], agent_header: None });
    let fields = [
        ("proxy", "http://6.6.6.6/"),
        ("cf-connecting-ip", "192.0.2.1"),
        ("cf_connecting_ip", "6.6.6.6"),
        ("true-client-ip", "192.0.2.1"),
        ("true_client_ip", "6.6.6.6"),
    ];
    let cases = [(Arc::default(), &[][..], "own"), (trusted(), &["cf-connecting-ip", "true-client-ip"], "shared")];
    for (trusted, kept, connection) in cases {
        let listener_settings = ListenerSettings { trusted, ..ListenerSettings::default() };
        let edge = ServedEdge::start_behind(listener_settings, EdgeLimits::default(), service_fn(mirror));
        let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let mut seen = Vec::new();
        for more in ["", "TE: trailers\r\n"] {
            let answer = edge.ask(&format!("GET / HTTP/1.1\r\nHost: h\r\n{lines}{more}\r\n")).await;
            // A connection of a trusted proxy has no number, because it carries requests of many
            // clients.
            assert_eq!(answer.field("x-connection"), Some(connection));
            seen.push(answer.body);
        }
        let request = fields.iter().fold(get("http://h/"), |request, (name, value)| request.header(*name, *value));
        let answer = edge.http2().await.ask(request).await.unwrap();
        seen.push(String::from_utf8(answer.into_body()).unwrap());
        for text in seen {
            let names: Vec<&str> = names(&text).into_iter().filter(|name| !OURS.contains(name)).collect();
            assert_eq!(names, kept, "{text}");
            assert!(!text.contains("6.6.6.6"), "{text}");
        }
    }
}

#[tokio::test]
async fn each_request_gets_a_new_request_id_that_service_and_client_receive() {
    let edge = ServedEdge::start(EdgeLimits::default(), service_fn(mirror));
    let mut client = edge.client().await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let answer = client.ask("GET / HTTP/1.1\r\nHost: h\r\nX-Request-Id: mine\r\n\r\n").await;
        let id = answer.field("x-request-id").unwrap().to_owned();
        assert!(has_line(&answer.body, &format!("x-request-id: {id}")), "{}", answer.body);
        ids.push(id);
    }
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn responses_lose_hop_by_hop_fields() {
    let service = service_fn(|_| async {
        let response = Response::builder()
            .header("connection", "x-hop")
            .header("x-hop", "secret")
            .header("keep-alive", "timeout=77")
            .header("proxy-authenticate", "x")
            .header("upgrade", "h2c")
            .header("x-end", "1");
        Ok(response.body(Full::from("ok")).unwrap())
    });
    let edge = ServedEdge::start(EdgeLimits::default(), service);
    let answer = edge.ask(GET).await;
    assert_eq!(names(&answer.head), ["content-length", "date", "x-end", "x-request-id"]);
}

#[tokio::test]
async fn refusals_are_plain_text_with_no_store_and_close_the_connection() {
    let edge = ServedEdge::start(EdgeLimits::default(), service_fn(mirror));
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", 400),
        ("TRACE / HTTP/1.1\r\nHost: h\r\n\r\n", 405),
        ("CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n", 405),
        ("GET /a\\b HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\nExpect: x\r\n\r\n", 417),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400),
    ] {
        let mut client = edge.client().await;
        let answer = client.ask(&format!("{request}GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n")).await;
        assert_eq!(answer.status(), status, "{request}");
        assert_eq!(answer.field("cache-control"), Some("no-store"), "{request}");
        assert_eq!(answer.field("content-type"), Some("text/plain; charset=utf-8"), "{request}");
        assert_eq!(client.rest().await, "", "{request}");
    }
}

#[tokio::test]
async fn http_1_0_needs_no_host() {
    let edge = ServedEdge::start(EdgeLimits::default(), service_fn(mirror));
    let answer = edge.ask("GET / HTTP/1.0\r\n\r\n").await;
    assert_eq!(answer.status(), 200);
    assert_eq!(names(&answer.body), ["x-forwarded-for", "x-forwarded-proto", "x-request-id"]);
}

#[tokio::test]
async fn head_size_field_count_and_target_length_are_limited() {
    let edge = ServedEdge::start(EdgeLimits::default(), service_fn(mirror));
    let fields = |count| (0..count).map(|n| format!("X-{n}: v\r\n")).collect::<String>();
    let big = |length| "b".repeat(length);
    for (request, status) in [
        (format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", fields(99)), 200),
        (format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", fields(100)), 431),
        (format!("GET / HTTP/1.1\r\nHost: h\r\nX-Big: {}\r\n\r\n", big(50 * 1024)), 200),
        (format!("GET / HTTP/1.1\r\nHost: h\r\nX-Big: {}\r\n\r\n", big(65 * 1024)), 431),
        (format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", big(8 * 1024 - 1)), 200),
        (format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", big(8 * 1024)), 414),
    ] {
        assert_eq!(edge.ask(&request).await.status(), status, "{:.60}… {}", request, request.len());
    }
}

#[tokio::test]
async fn http_2_requests_reach_the_service_in_the_same_form_as_http_1_1_requests() {
    let edge = ServedEdge::start(EdgeLimits::default(), service_fn(mirror));
    let mut client = edge.http2().await;
    let request =
        get("http://h.test/a?b").header("cookie", "a=b").header("cookie", "c=d").header("robots-verdict", "x");
    let text = String::from_utf8(client.ask(request).await.unwrap().into_body()).unwrap();
    assert!(has_line(&text, "GET /a?b"), "{text}");
    assert!(has_line(&text, "host: h.test"), "{text}");
    assert!(has_line(&text, "cookie: a=b; c=d"), "{text}");
    assert_eq!(names(&text)[0], "cookie");
    assert_eq!(names(&text)[1..], OURS);

    let differing = get("http://h.test/").header("host", "evil.test");
    assert_eq!(client.ask(differing).await.unwrap().status(), 400);
}

#[tokio::test]
async fn rfc_9113_8_2_3_the_cookies_of_a_request_count_as_one_field() {
    let edge = ServedEdge::start(EdgeLimits::default(), service_fn(mirror));
    let mut client = edge.http2().await;
    let with = |name: fn(usize) -> String| (0..150).fold(get("http://h.test/"), |r, n| r.header(name(n), "a=b"));
    let answer = client.ask(with(|_| "cookie".to_owned())).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(String::from_utf8(answer.into_body()).unwrap().contains("cookie: a=b; a=b; a=b"));
    assert_eq!(client.ask(with(|number| format!("x-{number}"))).await.unwrap().status(), 431);
}

#[tokio::test]
async fn a_101_response_without_a_tunnel_becomes_a_502_response() {
    let service = service_fn(|_| async { Ok(Response::builder().status(101).body(Full::from("x")).unwrap()) });
    let edge = ServedEdge::start(EdgeLimits::default(), service);
    for fields in ["", "Connection: upgrade\r\nUpgrade: websocket\r\n"] {
        let answer = edge.ask(&format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n")).await;
        assert_eq!(answer.status(), 502);
    }
}

#[tokio::test]
async fn more_header_fields_than_the_default_pass_if_the_limit_allows_them() {
    let fields: String = (0..150).map(|number| format!("X-{number}: 1\r\n")).collect();
    let request = format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
    for (granted, status) in [(100, 431), (140, 431), (200, 200)] {
        let edge = ServedEdge::start(EdgeLimits { fields: granted, ..EdgeLimits::default() }, service_fn(mirror));
        assert_eq!(edge.ask(&request).await.status(), status, "{granted}");
    }
}
