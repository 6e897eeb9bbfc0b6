//! Tests of the response to a refused request.

use super::*;
use crate::layer::event::Provisional;

#[tokio::test]
async fn a_browser_passes_and_a_named_crawler_is_refused_with_the_rule_and_its_line() {
    let layer = RobotsLayer::new(live(Mode::Refuse));
    for (target, agent) in [("/drafts/x", FIREFOX), ("/", GPTBOT), ("/drafts", GPTBOT)] {
        assert_eq!(ask(layer.clone(), get(target, agent)).await.status(), StatusCode::OK, "{target} {agent}");
    }
    let response = ask(layer, with(get("/drafts/x", GPTBOT), "x-request-id", "abc-1")).await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    assert_eq!(field(&response, "cache-control"), Some("no-store"));
    assert!(field(&response, "vary").expect("vary").contains("User-Agent"));
    let record = response.extensions().get::<Record>().expect("a record").clone();
    assert_eq!((record.name(), record.rule.as_deref(), record.line), ("GPTBot", Some("/drafts/"), Some(2)));
    assert_eq!((record.action, record.reason), (Action::Refuse, Reason::Disallowed));
    let body = text(response).await;
    assert!(body.contains("User-agent: GPTBot"), "{body}");
    assert!(body.contains("Disallow: /drafts/        (line 2)"), "{body}");
    assert!(body.ends_with("\nRequest id: abc-1\n"), "{body}");
}

#[tokio::test]
async fn a_refusal_has_problem_details_if_the_client_accepts_json() {
    let mut request = get("/drafts/x", GPTBOT);
    request.headers_mut().insert("accept", "text/html, application/json;q=0.9".parse().expect("a value"));
    add(&mut request, "x-request-id", "abc-1");
    let response = ask(RobotsLayer::new(live(Mode::Refuse)), request).await;
    assert_eq!(field(&response, "content-type"), Some("application/problem+json"));
    let problem: serde_json::Value = serde_json::from_str(&text(response).await).expect("JSON");
    assert_eq!(problem["status"], 403);
    assert_eq!(problem["rule"], "/drafts/");
    assert_eq!(problem["line"], 2);
    assert_eq!((&problem["group"], &problem["identity"]), (&"GPTBot".into(), &"claimed".into()));
    assert_eq!(problem["request_id"], "abc-1");
}

#[tokio::test]
async fn problem_details_escape_special_characters_of_the_rule_and_the_host() {
    let file = "User-agent: GPTBot\nDisallow: /\"a\\b</script>\u{e9}\n";
    let layer = refusing_by(file);
    let request = with(with(get("/\"a\\b%3C/script%3E%C3%A9/x", GPTBOT), "accept", "application/json"), "host", "a\"b");
    let problem: serde_json::Value = serde_json::from_str(&text(ask(layer, request).await).await).expect("JSON");
    assert_eq!(problem["rule"], "/\"a\\b</script>\u{e9}");
    assert_eq!(problem["detail"], "The robots.txt of a\"b does not let GPTBot fetch this path.");
}

#[tokio::test]
async fn a_refused_head_request_has_header_fields_and_no_body() {
    let mut request = get("/drafts/x", GPTBOT);
    *request.method_mut() = Method::HEAD;
    let response = ask(RobotsLayer::new(live(Mode::Refuse)), request).await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    let length: usize = field(&response, "content-length").expect("a length").parse().expect("a number");
    assert!(length > 0);
    assert_eq!(text(response).await, "");
}

#[tokio::test]
async fn a_refusal_contains_no_unescaped_control_characters_or_markup() {
    let file = "User-agent: Evil\x1b[31mBot\nUser-agent: GPTBot\nDisallow: /\n";
    let layer = refusing_by(file);
    let request = with(get("/%3Cscript%3E", "GPTBot"), "x-request-id", "<b>\"x\"</b>");
    let response = ask(layer, request).await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    let body = text(response).await;
    assert!(!body.contains('\x1b') && !body.contains("<b>"), "{body}");
}

#[tokio::test]
async fn a_custom_refusal_gets_the_mandatory_fields() {
    let layer = RobotsLayer::new(live(Mode::Refuse)).refuse_with(|event| {
        let mut response = Response::new(Bytes::from(format!("no, {}", event.record.name())));
        response.headers_mut().insert("cache-control", http::HeaderValue::from_static("public, max-age=600"));
        response.headers_mut().insert("vary", http::HeaderValue::from_static("Accept-Encoding"));
        *response.status_mut() = StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS;
        response
    });
    let response = ask(layer, get("/drafts/x", GPTBOT)).await;
    assert_eq!(response.status(), StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS);
    assert_eq!(field(&response, "cache-control"), Some("no-store"));
    let vary: Vec<_> = response.headers().get_all("vary").iter().collect();
    assert_eq!(vary, ["Accept-Encoding, User-Agent"]);
    assert!(response.extensions().get::<Record>().is_some());
    assert_eq!(text(response).await, "no, GPTBot");
}

#[tokio::test]
async fn the_default_refusal_is_sent_if_a_custom_refusal_panics() {
    let live = live(Mode::Refuse);
    let plain = RobotsLayer::new(live.clone());
    let layer = plain.clone().refuse_with(|event| -> Response<Bytes> { panic!("{} is too much", event.record.name()) });
    let want = ask(plain, get("/drafts/x", GPTBOT)).await;
    let response = ask(layer, get("/drafts/x", GPTBOT)).await;
    assert_eq!((response.status(), response.headers()), (want.status(), want.headers()));
    assert!(response.extensions().get::<Record>().is_some());
    assert_eq!(text(response).await, text(want).await);
    assert_eq!((live.status().callback_faults, live.status().faults), (1, 0));
}

#[tokio::test]
async fn a_custom_refusal_can_read_the_rules_and_hide_a_provisional_status_from_observers() {
    let statuses = Arc::<std::sync::Mutex<Vec<_>>>::default();
    let seen = Arc::clone(&statuses);
    let layer = RobotsLayer::new(live(Mode::Refuse))
        .on_disallowed(move |event| seen.lock().expect("no panic").push(event.status))
        .refuse_with(|event| {
            let mut response = Response::new(Bytes::from(event.robots.groups().len().to_string()));
            if event.request.target().ends_with(b"/open") {
                response.extensions_mut().insert(Provisional);
            }
            response
        });
    let groups = crate::rules::RobotsTxt::parse(FILE).groups().len().to_string();
    for target in ["/drafts/x", "/drafts/open"] {
        let response = ask(layer.clone(), get(target, GPTBOT)).await;
        assert_eq!((response.status(), text(response).await), (StatusCode::FORBIDDEN, groups.clone()), "{target}");
    }
    assert_eq!(*statuses.lock().expect("no panic"), [Some(StatusCode::FORBIDDEN), None]);
}

#[tokio::test]
async fn a_refusal_does_not_list_thousands_of_group_names() {
    let names: String = (0..2000).map(|number| format!("User-agent: Crawler{number}\n")).collect();
    let file = format!("{names}User-agent: GPTBot\nDisallow: /{}\n", "x".repeat(1000));
    for (mode, status) in [(Mode::Refuse, StatusCode::FORBIDDEN), (Mode::Tag, StatusCode::OK)] {
        let live = live_by(&file, Policy::builder().mode(mode));
        let response = ask(RobotsLayer::new(live), get(&format!("/{}", "x".repeat(1000)), GPTBOT)).await;
        assert_eq!(response.status(), status);
        if mode == Mode::Tag {
            assert!(field(&response, "saw-robots-verdict").expect("a tag").len() < 400);
        } else {
            let body = text(response).await;
            assert!(body.contains("User-agent: GPTBot        (and 2000 others)"), "{body}");
            assert!(body.len() < 1600, "{}", body.len());
        }
    }
}

#[tokio::test]
async fn the_default_refusal_may_have_another_status() {
    let layer = RobotsLayer::new(live(Mode::Refuse))
        .refuse_with(|event| event.refusal_with_status(StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS));
    let response = ask(layer.clone(), get("/drafts/x", GPTBOT)).await;
    assert_eq!((response.status().as_u16(), field(&response, "cache-control")), (451, Some("no-store")));
    let text_of = text(response).await;
    assert!(text_of.starts_with("451 Unavailable For Legal Reasons\n\n"), "{text_of}");
    let request = with(get("/drafts/x", GPTBOT), "accept", "application/json");
    let problem = text(ask(layer, request).await).await;
    assert!(problem.contains(r#""status":451"#) && problem.contains(r#""title":"Unavailable For Legal"#), "{problem}");
}

/// Creates a gRPC call.
fn call(target: &str, agent: &str) -> Request<Body> {
    let mut request = get(target, agent);
    *request.method_mut() = Method::POST;
    *request.version_mut() = http::Version::HTTP_2;
    add(&mut request, "content-type", "application/grpc+proto");
    request
}

#[tokio::test]
async fn a_refused_grpc_call_gets_a_status_that_quotes_the_rule() {
    let mut request = with(call("/drafts/x", GPTBOT), "host", "site.test");
    add(&mut request, "accept", "application/json");
    add(&mut request, "x-request-id", "abc-1");
    let response = ask(RobotsLayer::new(live(Mode::Refuse)), request).await;
    assert_eq!(response.status(), StatusCode::OK);
    let message = "The robots.txt of site.test does not let GPTBot fetch this path. Disallow: /drafts/ (line 2) (request id abc-1)";
    for (name, value) in [
        ("content-type", "application/grpc"),
        ("grpc-status", "7"),
        ("grpc-message", message),
        ("cache-control", "no-store"),
        ("vary", "User-Agent"),
    ] {
        assert_eq!(field(&response, name), Some(value), "{name}");
    }
    assert!(response.extensions().get::<Record>().is_some());
    assert!(http_body::Body::is_end_stream(response.body()), "the head ends the stream");
    assert_eq!(text(response).await, "");
    for (target, agent) in [("/drafts/x", FIREFOX), ("/", GPTBOT)] {
        let response = ask(RobotsLayer::new(live(Mode::Refuse)), call(target, agent)).await;
        assert_eq!(field(&response, "grpc-status"), None, "{target} {agent}");
        assert_eq!(text(response).await, "app");
    }
}

#[tokio::test]
async fn the_content_type_alone_does_not_make_a_request_a_grpc_call() {
    use http::Version;
    let layer = RobotsLayer::new(live(Mode::Refuse));
    for (method, version, content) in [
        (Method::GET, Version::HTTP_11, "application/grpc+proto"),
        (Method::POST, Version::HTTP_11, "application/grpc+proto"),
        (Method::POST, Version::HTTP_10, "application/grpc+proto"),
        (Method::GET, Version::HTTP_2, "application/grpc+proto"),
        (Method::PUT, Version::HTTP_2, "application/grpc+proto"),
        // gRPC-Web is handled as plain HTTP.
        (Method::POST, Version::HTTP_2, "application/grpc-web+proto"),
    ] {
        let mut request = call("/drafts/x", GPTBOT);
        (*request.method_mut(), *request.version_mut()) = (method, version);
        request.headers_mut().insert("content-type", http::HeaderValue::from_static(content));
        let what = format!("{} {version:?} {content}", request.method());
        let response = ask(layer.clone(), request).await;
        assert_eq!((response.status(), field(&response, "grpc-status")), (StatusCode::FORBIDDEN, None), "{what}");
        assert!(text(response).await.contains("Disallow: /drafts/"), "{what}");
    }
    // A proxy's own request may have another HTTP version, so the version is not checked.
    let mut question = call("/auth", GPTBOT);
    *question.version_mut() = Version::HTTP_11;
    let original = OriginalRequest::of(&question).with_target(b"/drafts/x");
    for (method, status) in [(Method::POST, Some("7")), (Method::GET, None)] {
        let original = original.with_method(&method);
        let Outcome::Respond(response) = layer.decide(&original.answered_elsewhere()).respond(None).outcome else {
            panic!("{method} passes")
        };
        assert_eq!(field(&response, "grpc-status"), status, "{method}");
    }
}

#[tokio::test]
async fn the_application_can_answer_a_grpc_call_itself() {
    let layer = RobotsLayer::new(live(Mode::Refuse));
    let own = layer.clone().refuse_with(|_| Response::new(Bytes::from_static(b"a page")));
    let response = ask(own, call("/drafts/x", GPTBOT)).await;
    assert_eq!((field(&response, "grpc-status"), field(&response, "cache-control")), (None, Some("no-store")));
    assert_eq!(text(response).await, "a page");
    // gRPC has no equivalent of status 451.
    let of_status = layer.refuse_with(|event| event.refusal_with_status(StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS));
    let response = ask(of_status, call("/drafts/x", GPTBOT)).await;
    assert_eq!((response.status(), field(&response, "grpc-status")), (StatusCode::OK, Some("7")));
}

#[tokio::test]
async fn the_grpc_message_of_a_refusal_is_escaped_and_limited_in_length() {
    let file = format!("User-agent: GPTBot\nDisallow: /\u{e9}{}\n", "x".repeat(5000));
    let layer = refusing_by(&file);
    let target = format!("/%C3%A9{}", "x".repeat(5000));
    let response = ask(layer, call(&target, GPTBOT)).await;
    let message = field(&response, "grpc-message").expect("a message").to_owned();
    assert_eq!(field(&response, "grpc-status"), Some("7"), "{message}");
    assert!(message.contains("Disallow: /%C3%A9xxx") && message.ends_with("x (line 2)"), "{message}");
    assert!(message.len() < 400, "{message}");
}

#[tokio::test]
async fn observers_get_the_http_status_and_the_grpc_status_of_a_refusal() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let of_crawlers = Arc::new(Mutex::new(Vec::new()));
    let noted_of_crawlers = Arc::clone(&of_crawlers);
    let layer = RobotsLayer::new(live(Mode::Refuse))
        .on_disallowed(move |event| {
            let status = event.status.map(|status| status.as_u16());
            noted.lock().push((status, event.grpc_status));
        })
        .on_crawler(move |event| {
            let status = event.status.map(|status| status.as_u16());
            noted_of_crawlers.lock().push((status, event.grpc_status));
        });
    ask(layer.clone(), call("/drafts/x", GPTBOT)).await;
    ask(layer, get("/drafts/x", GPTBOT)).await;
    let told = [(Some(200), Some(7)), (Some(403), None)];
    assert_eq!(*seen.lock(), told);
    assert_eq!(*of_crawlers.lock(), told);
}
