use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use tower::{Layer, Service, ServiceExt, service_fn};

use super::*;
use crate::live::{Enforcement, LiveRobots, WhenMissing};
use crate::policy::{Action, Mode, Policy, Reason};
use crate::rules::{PathForm, PathForms};
use crate::source::{HostMap, Sites};

const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";
const GPTBOT: &str =
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)";
const FILE: &str = "User-agent: GPTBot\nDisallow: /drafts/\n";

type Body = Full<Bytes>;

fn live(mode: Mode) -> LiveRobots {
    LiveRobots::inline(FILE).policy(Policy::builder().mode(mode).build()).open().expect("a robots.txt")
}

/// Answers 200 with the request's own verdict field, so that a test sees what reached it.
async fn app(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let mut response = Response::new(Full::from("app"));
    for name in ["robots-verdict", "robots_verdict", "connection"] {
        for value in request.headers().get_all(name) {
            response
                .headers_mut()
                .append(http::HeaderName::try_from(format!("saw-{name}")).expect("a name"), value.clone());
        }
    }
    if let Some(record) = request.extensions().get::<Record>() {
        response.extensions_mut().insert(record.clone());
    }
    Ok(response)
}

async fn ask(layer: RobotsLayer, request: Request<Body>) -> Response<ResponseBody<Body>> {
    layer.layer(service_fn(app)).oneshot(request).await.expect("infallible")
}

fn get(target: &str, agent: &str) -> Request<Body> {
    Request::get(target).header("user-agent", agent).body(Body::default()).expect("a request")
}

async fn text(response: Response<ResponseBody<Body>>) -> String {
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    String::from_utf8(body.to_vec()).expect("text")
}

fn field<'a, B>(response: &'a Response<B>, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().expect("ASCII"))
}

#[tokio::test]
async fn a_browser_passes_and_a_named_crawler_is_refused_with_the_line() {
    let layer = RobotsLayer::new(live(Mode::Refuse));
    for (target, agent) in [("/drafts/x", FIREFOX), ("/", GPTBOT), ("/drafts", GPTBOT)] {
        assert_eq!(ask(layer.clone(), get(target, agent)).await.status(), StatusCode::OK, "{target} {agent}");
    }
    let response = ask(layer, get("/drafts/x", GPTBOT)).await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    assert_eq!(field(&response, "cache-control"), Some("no-store"));
    assert!(field(&response, "vary").expect("vary").contains("User-Agent"));
    let record = response.extensions().get::<Record>().expect("a record").clone();
    assert_eq!((record.agent(), record.rule(), record.line()), ("GPTBot", "/drafts/", 2));
    assert_eq!((record.action(), record.reason()), (Action::Refuse, Reason::Disallowed));
    let body = text(response).await;
    assert!(body.contains("User-agent: GPTBot"), "{body}");
    assert!(body.contains("Disallow: /drafts/        (line 2)"), "{body}");
}

#[tokio::test]
async fn a_refusal_is_problem_details_where_json_is_asked_for() {
    let mut request = get("/drafts/x", GPTBOT);
    request.headers_mut().insert("accept", "text/html, application/json;q=0.9".parse().expect("a value"));
    request.headers_mut().insert("x-request-id", "abc-1".parse().expect("a value"));
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
async fn problem_details_quote_any_rule_and_host() {
    let file = "User-agent: GPTBot\nDisallow: /\"a\\b</script>\u{e9}\n";
    let live = LiveRobots::inline(file).policy(Policy::builder().mode(Mode::Refuse).build()).open().expect("open");
    let mut request = get("/\"a\\b%3C/script%3E%C3%A9/x", GPTBOT);
    request.headers_mut().insert("accept", "application/json".parse().expect("a value"));
    request.headers_mut().insert("host", "a\"b".parse().expect("a value"));
    let problem: serde_json::Value =
        serde_json::from_str(&text(ask(RobotsLayer::new(live), request).await).await).expect("JSON");
    assert_eq!(problem["rule"], "/\"a\\b</script>\u{e9}");
    assert_eq!(problem["detail"], "The robots.txt of a\"b does not let GPTBot fetch this path.");
}

#[tokio::test]
async fn a_refused_head_has_the_fields_and_no_body() {
    let mut request = get("/drafts/x", GPTBOT);
    *request.method_mut() = Method::HEAD;
    let response = ask(RobotsLayer::new(live(Mode::Refuse)), request).await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    let length: usize = field(&response, "content-length").expect("a length").parse().expect("a number");
    assert!(length > 0);
    assert_eq!(text(response).await, "");
}

#[tokio::test]
async fn nothing_from_the_client_reaches_a_refusal_unescaped() {
    let file = "User-agent: Evil\x1b[31mBot\nUser-agent: GPTBot\nDisallow: /\n";
    let live = LiveRobots::inline(file).policy(Policy::builder().mode(Mode::Refuse).build()).open().expect("open");
    let mut request = get("/%3Cscript%3E", "GPTBot");
    request.headers_mut().insert("x-request-id", http::HeaderValue::from_static("<b>\"x\"</b>"));
    let response = ask(RobotsLayer::new(live), request).await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    let body = text(response).await;
    assert!(!body.contains('\x1b') && !body.contains("<b>"), "{body}");
}

#[tokio::test]
async fn a_tagged_request_carries_the_verdict_and_the_record() {
    let response = ask(RobotsLayer::new(live(Mode::Tag)), get("/drafts/x", GPTBOT)).await;
    assert_eq!(response.status(), StatusCode::OK);
    let want = r#"disallow;agent="GPTBot";rule="/drafts/";line=2"#;
    assert_eq!(field(&response, "saw-robots-verdict"), Some(want));
    assert_eq!(response.extensions().get::<Record>().map(Record::line), Some(2));
}

#[tokio::test]
async fn the_form_that_decided_is_named() {
    let target = "/x/..;/drafts/x";
    let response = ask(RobotsLayer::new(live(Mode::Tag)), get(target, GPTBOT)).await;
    let want = r#"disallow;agent="GPTBot";rule="/drafts/";line=2;form=parameters"#;
    assert_eq!(field(&response, "saw-robots-verdict"), Some(want));
    let refused = text(ask(RobotsLayer::new(live(Mode::Refuse)), get(target, GPTBOT)).await).await;
    assert!(refused.contains("form=parameters"), "{refused}");
    let plain = text(ask(RobotsLayer::new(live(Mode::Refuse)), get("/drafts/x", GPTBOT)).await).await;
    assert!(!plain.contains("form="), "{plain}");
    let mut request = get(target, GPTBOT);
    request.headers_mut().insert("accept", http::HeaderValue::from_static("application/json"));
    let problem = text(ask(RobotsLayer::new(live(Mode::Refuse)), request).await).await;
    assert!(problem.contains(r#""form":"parameters""#), "{problem}");
}

#[tokio::test]
async fn forms_that_a_policy_leaves_out_are_not_judged() {
    let forms = PathForms::ALL.without(PathForm::Parameters);
    let policy = Policy::builder().mode(Mode::Refuse).forms(forms).build();
    let layer = RobotsLayer::new(LiveRobots::inline(FILE).policy(policy).open().expect("a robots.txt"));
    assert_eq!(ask(layer.clone(), get("/drafts;a/x", GPTBOT)).await.status(), StatusCode::OK);
    assert_eq!(ask(layer, get("/x/../drafts/x", GPTBOT)).await.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_clients_own_verdict_never_passes_as_ours() {
    for (mode, ours) in [(Mode::Off, 0), (Mode::Observe, 0), (Mode::Tag, 1)] {
        for agent in [FIREFOX, GPTBOT] {
            let mut request = get("/drafts/x", agent);
            for name in ["robots-verdict", "robots_verdict"] {
                request.headers_mut().append(name, "allow".parse().expect("a value"));
                request.headers_mut().append(name, "allow".parse().expect("a value"));
            }
            let response = ask(RobotsLayer::new(live(mode)), request).await;
            let seen: Vec<_> = response.headers().get_all("saw-robots-verdict").iter().collect();
            assert_eq!(seen.len(), if agent == GPTBOT { ours } else { 0 }, "{mode} {agent}");
            assert!(seen.iter().all(|value| value.as_bytes().starts_with(b"disallow")));
            assert_eq!(field(&response, "saw-robots_verdict"), None);
        }
    }
}

#[tokio::test]
async fn connection_cannot_name_our_field_away() {
    let mut request = get("/drafts/x", GPTBOT);
    request.headers_mut().append("connection", "close, Robots-Verdict".parse().expect("a value"));
    request.headers_mut().append("connection", "te".parse().expect("a value"));
    let response = ask(RobotsLayer::new(live(Mode::Tag)), request).await;
    assert_eq!(field(&response, "saw-connection"), Some("te"));
    assert!(field(&response, "saw-robots-verdict").is_some());
}

#[tokio::test]
async fn a_tag_is_ascii_whatever_the_rule_holds() {
    let file = "User-agent: GPTBot\nDisallow: /caf\u{e9}\"\\\x01\n";
    let live = LiveRobots::inline(file).policy(Policy::builder().mode(Mode::Tag).build()).open().expect("open");
    let response = ask(RobotsLayer::new(live), get("/caf%C3%A9\"\\%01", GPTBOT)).await;
    // The rule has a raw control and the request an escaped one: they are not the same octets.
    assert_eq!(field(&response, "saw-robots-verdict"), None);
    let file = "User-agent: GPTBot\nDisallow: /caf\u{e9}\"\\\n";
    let live = LiveRobots::inline(file).policy(Policy::builder().mode(Mode::Tag).build()).open().expect("open");
    let response = ask(RobotsLayer::new(live), get("/caf%C3%A9\"\\x", GPTBOT)).await;
    let want = r#"disallow;agent="GPTBot";rule="/caf%C3%A9%22%5C";line=2"#;
    assert_eq!(field(&response, "saw-robots-verdict"), Some(want));
}

#[tokio::test]
async fn either_of_two_user_agent_lines_is_enough() {
    for agents in [[FIREFOX, GPTBOT], [GPTBOT, FIREFOX]] {
        let mut request = get("/drafts/x", agents[0]);
        request.headers_mut().append("user-agent", agents[1].parse().expect("a value"));
        assert_eq!(ask(RobotsLayer::new(live(Mode::Refuse)), request).await.status(), StatusCode::FORBIDDEN);
    }
}

#[tokio::test]
async fn an_odd_octet_does_not_let_a_crawler_through() {
    for agent in [&b"GPTBot/1.2 \xff"[..], b"\xe9 GPTBot/1.2", b"GPTBot/1.2\t"] {
        let mut request = get("/drafts/x", "x");
        request.headers_mut().insert("user-agent", http::HeaderValue::from_bytes(agent).expect("a value"));
        assert_eq!(
            ask(RobotsLayer::new(live(Mode::Refuse)), request).await.status(),
            StatusCode::FORBIDDEN,
            "{agent:?}"
        );
    }
}

#[tokio::test]
async fn robots_txt_is_served_to_everyone_with_validators() {
    let file = "User-agent: *\nDisallow: /\n";
    let live = LiveRobots::inline(file).policy(Policy::builder().mode(Mode::Refuse).build()).open().expect("open");
    let layer = RobotsLayer::new(live);
    for target in ["/robots.txt", "/robots.txt?from=crawler", "/%72obots.txt"] {
        for agent in [FIREFOX, GPTBOT, ""] {
            let response = ask(layer.clone(), get(target, agent)).await;
            assert_eq!(response.status(), StatusCode::OK, "{target} {agent}");
            assert_eq!(field(&response, "content-type"), Some("text/plain; charset=utf-8"));
            assert_eq!(field(&response, "cache-control"), Some("public, max-age=3600"));
            assert_eq!(field(&response, "x-content-type-options"), Some("nosniff"));
            assert_eq!(field(&response, "vary"), None);
            assert_eq!(text(response).await, file);
        }
    }
    let response = ask(layer.clone(), get("/robots.txt", FIREFOX)).await;
    let etag = field(&response, "etag").expect("an entity tag").to_owned();
    for tags in [etag.clone(), format!("W/{etag}"), format!("\"x\", {etag}"), "*".to_owned()] {
        let mut request = get("/robots.txt", GPTBOT);
        request.headers_mut().insert("if-none-match", tags.parse().expect("a value"));
        let response = ask(layer.clone(), request).await;
        assert_eq!(response.status(), StatusCode::NOT_MODIFIED, "{tags}");
        assert_eq!(field(&response, "etag"), Some(&*etag));
        assert_eq!(text(response).await, "");
    }
    for tags in ["\"other\"", "\"a,*,b\"", "x, *", "\"", ""] {
        let mut request = get("/robots.txt", GPTBOT);
        request.headers_mut().insert("if-none-match", tags.parse().expect("a value"));
        assert_eq!(ask(layer.clone(), request).await.status(), StatusCode::OK, "{tags}");
    }
    let mut request = get("/robots.txt", GPTBOT);
    *request.method_mut() = Method::HEAD;
    let response = ask(layer.clone(), request).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(field(&response, "content-length"), Some(&*file.len().to_string()));
    assert_eq!(text(response).await, "");
    for method in [Method::POST, Method::DELETE, Method::OPTIONS] {
        let mut request = get("/robots.txt", FIREFOX);
        *request.method_mut() = method;
        let response = ask(layer.clone(), request).await;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(field(&response, "allow"), Some("GET, HEAD"));
    }
}

#[tokio::test]
async fn last_modified_counts_only_without_an_entity_tag() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("robots.txt");
    std::fs::write(&path, FILE).expect("written");
    let layer = RobotsLayer::new(LiveRobots::file(&path).open().expect("open"));
    let response = ask(layer.clone(), get("/robots.txt", FIREFOX)).await;
    let date = field(&response, "last-modified").expect("a date").to_owned();
    for (none_match, since, want) in [
        (None, &*date, StatusCode::NOT_MODIFIED),
        (None, "Sun, 06 Nov 1994 08:49:37 GMT", StatusCode::OK),
        (None, "yesterday", StatusCode::OK),
        (Some("\"other\""), &*date, StatusCode::OK),
    ] {
        let mut request = get("/robots.txt", FIREFOX);
        request.headers_mut().insert("if-modified-since", since.parse().expect("a value"));
        if let Some(tags) = none_match {
            request.headers_mut().insert("if-none-match", tags.parse().expect("a value"));
        }
        assert_eq!(ask(layer.clone(), request).await.status(), want, "{none_match:?} {since}");
    }
}

#[tokio::test]
async fn with_nothing_known_nothing_is_enforced() {
    for (when, status) in
        [(WhenMissing::Unavailable, StatusCode::SERVICE_UNAVAILABLE), (WhenMissing::Relay, StatusCode::OK)]
    {
        let policy = Policy::builder().mode(Mode::Refuse).build();
        let live = LiveRobots::file("/nonexistent/robots.txt").policy(policy).when_missing(when).open().expect("open");
        let layer = RobotsLayer::new(live);
        let response = ask(layer.clone(), get("/robots.txt", GPTBOT)).await;
        assert_eq!(response.status(), status);
        assert_eq!(field(&response, "retry-after").is_some(), status == StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(ask(layer, get("/drafts/x", GPTBOT)).await.status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn each_host_has_its_own_site_and_an_unknown_one_none() {
    let mut hosts = HostMap::new();
    hosts.insert("a.example", live(Mode::Refuse)).expect("a host");
    let open = LiveRobots::inline("# b\n").open().expect("open");
    hosts.insert("*.b.example", open).expect("a host");
    let layer = RobotsLayer::new(Sites::from(hosts));
    for (target, host, status) in [
        ("/drafts/x", "A.example:80", StatusCode::FORBIDDEN),
        ("/drafts/x", "www.b.example", StatusCode::OK),
        ("/drafts/x", "c.example", StatusCode::OK),
        ("http://a.example/drafts/x", "c.example", StatusCode::FORBIDDEN),
        ("http://user@a.example/drafts/x", "c.example", StatusCode::FORBIDDEN),
    ] {
        let mut request = get(target, GPTBOT);
        request.headers_mut().insert("host", host.parse().expect("a value"));
        assert_eq!(ask(layer.clone(), request).await.status(), status, "{target} {host}");
    }
    let mut request = get("/robots.txt", GPTBOT);
    request.headers_mut().insert("host", "c.example".parse().expect("a value"));
    assert_eq!(text(ask(layer, request).await).await, "app");
}

#[tokio::test]
async fn the_target_may_come_from_the_extensions() {
    let layer = RobotsLayer::new(live(Mode::Refuse)).target_from(|extensions| extensions.get::<Uri>());
    let mut request = get("/x", GPTBOT);
    assert_eq!(ask(layer.clone(), get("/x", GPTBOT)).await.status(), StatusCode::OK);
    request.extensions_mut().insert(Uri::from_static("/drafts/x"));
    assert_eq!(ask(layer, request).await.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn observers_hear_of_every_disallowed_request_and_of_no_other() {
    for (mode, want) in
        [(Mode::Off, None), (Mode::Observe, Some(None)), (Mode::Tag, Some(None)), (Mode::Refuse, Some(Some(403)))]
    {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ear = heard.clone();
        let layer = RobotsLayer::new(live(mode)).observe(move |event| {
            let status = event.status().map(|status| status.as_u16());
            ear.lock().expect("unpoisoned").push((
                status,
                String::from_utf8_lossy(event.target()).into_owned(),
                event.record().line(),
            ));
        });
        ask(layer.clone(), get("/drafts/x?y", GPTBOT)).await;
        ask(layer.clone(), get("/", GPTBOT)).await;
        ask(layer, get("/drafts/x", FIREFOX)).await;
        let want: Vec<_> = want.into_iter().map(|status| (status, "/drafts/x?y".to_owned(), 2)).collect();
        assert_eq!(*heard.lock().expect("unpoisoned"), want, "{mode}");
    }
}

#[tokio::test]
async fn a_custom_refusal_keeps_what_must_be_kept() {
    let layer = RobotsLayer::new(live(Mode::Refuse)).refuse_with(|event| {
        let mut response = Response::new(Bytes::from(format!("no, {}", event.record().agent())));
        response.headers_mut().insert("cache-control", http::HeaderValue::from_static("public, max-age=600"));
        response.headers_mut().insert("vary", http::HeaderValue::from_static("Accept-Encoding"));
        *response.status_mut() = StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS;
        response
    });
    let response = ask(layer, get("/drafts/x", GPTBOT)).await;
    assert_eq!(response.status(), StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS);
    assert_eq!(field(&response, "cache-control"), Some("no-store"));
    let vary: Vec<_> = response.headers().get_all("vary").iter().collect();
    assert_eq!(vary, ["Accept-Encoding", "User-Agent"]);
    assert!(response.extensions().get::<Record>().is_some());
    assert_eq!(text(response).await, "no, GPTBot");
}

#[tokio::test]
async fn a_fault_while_judging_passes_the_request_and_is_counted() {
    let live = live(Mode::Refuse);
    let layer = || RobotsLayer::new(live.clone());
    let panicking = [
        layer().target_from(|_| panic!("no target")),
        layer().address_from(|_| panic!("no address")),
        layer().agent_from(|_| panic!("no agent")),
    ];
    assert_eq!(live.status().faults(), 0);
    for (count, layer) in (1..).zip(panicking) {
        assert_eq!(text(ask(layer, get("/drafts/x", GPTBOT)).await).await, "app");
        assert_eq!(live.status().faults(), count);
    }
    assert_eq!(live.status().callback_faults(), 0);
    assert_eq!(ask(layer(), get("/robots.txt", GPTBOT)).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn an_address_is_only_looked_up_where_a_group_applies() {
    let lookups = Arc::new(Mutex::new(0));
    let count = lookups.clone();
    let layer = RobotsLayer::new(live(Mode::Refuse)).address_from(move |_| {
        *count.lock().expect("no panic") += 1;
        None
    });
    for (target, agent, want) in
        [("/drafts/x", FIREFOX, 0), ("/robots.txt", GPTBOT, 0), ("/open/x", GPTBOT, 1), ("/drafts/x", GPTBOT, 2)]
    {
        ask(layer.clone(), get(target, agent)).await;
        assert_eq!(*lookups.lock().expect("no panic"), want, "{target} {agent}");
    }
}

#[tokio::test]
async fn a_panic_of_an_observer_changes_no_decision_and_is_counted() {
    for (mode, status, tagged) in [
        (Mode::Refuse, StatusCode::FORBIDDEN, false),
        (Mode::Tag, StatusCode::OK, true),
        (Mode::Observe, StatusCode::OK, false),
    ] {
        let live = live(mode);
        let heard = Arc::new(Mutex::new(0));
        let ear = heard.clone();
        let layer = RobotsLayer::new(live.clone())
            .observe(|event| panic!("{} is too much", event.record().agent()))
            .observe(move |_| *ear.lock().expect("no panic") += 1);
        for asked in 1..=3 {
            let response = ask(layer.clone(), get("/drafts/x", GPTBOT)).await;
            assert_eq!((response.status(), field(&response, "saw-robots-verdict").is_some()), (status, tagged));
            assert_eq!((live.status().callback_faults(), live.status().faults()), (asked, 0), "{mode:?}");
            assert_eq!(*heard.lock().expect("no panic"), asked, "the other observer hears it all the same");
        }
        assert_eq!(ask(layer, get("/", GPTBOT)).await.status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn a_panic_of_a_custom_refusal_leaves_the_default_one() {
    let live = live(Mode::Refuse);
    let plain = RobotsLayer::new(live.clone());
    let layer = plain.clone().refuse_with(|event| panic!("{} is too much", event.record().agent()));
    let want = ask(plain, get("/drafts/x", GPTBOT)).await;
    let response = ask(layer, get("/drafts/x", GPTBOT)).await;
    assert_eq!((response.status(), response.headers()), (want.status(), want.headers()));
    assert!(response.extensions().get::<Record>().is_some());
    assert_eq!(text(response).await, text(want).await);
    assert_eq!((live.status().callback_faults(), live.status().faults()), (1, 0));
}

#[tokio::test]
async fn the_kill_switch_passes_everything_but_robots_txt() {
    let live = live(Mode::Refuse);
    let told = Arc::new(Mutex::new(0));
    let ear = told.clone();
    let layer = RobotsLayer::new(live.clone()).observe(move |_| *ear.lock().expect("no panic") += 1);
    for (enforcement, status, events) in
        [(Enforcement::Off, StatusCode::OK, 0), (Enforcement::On, StatusCode::FORBIDDEN, 1)]
    {
        live.set_enforcement(enforcement).expect("there is nothing to write");
        assert_eq!(ask(layer.clone(), get("/drafts/x", GPTBOT)).await.status(), status);
        assert_eq!(*told.lock().expect("no panic"), events);
        assert_eq!(text(ask(layer.clone(), get("/robots.txt", GPTBOT)).await).await, FILE);
    }
}

#[tokio::test]
async fn what_is_in_grace_is_observed_and_says_so() {
    let policy = Policy::builder().mode(Mode::Refuse).build();
    let live = LiveRobots::inline(FILE).policy(policy).grace(Duration::from_secs(3600)).open().expect("a robots.txt");
    let told = Arc::new(Mutex::new(Vec::new()));
    let ear = told.clone();
    let layer = RobotsLayer::new(live)
        .observe(move |event| ear.lock().expect("no panic").push((event.record().action(), event.record().reason())));
    assert_eq!(ask(layer, get("/drafts/x", GPTBOT)).await.status(), StatusCode::OK);
    assert_eq!(*told.lock().expect("no panic"), [(Action::Pass, Reason::Grace)]);
}

#[tokio::test]
async fn inner_errors_and_readiness_pass_through() {
    struct Busy;
    impl Service<Request<Body>> for Busy {
        type Response = Response<Body>;
        type Error = &'static str;
        type Future = std::future::Ready<Result<Response<Body>, &'static str>>;

        fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
            std::task::Poll::Ready(Err("not ready"))
        }

        fn call(&mut self, _: Request<Body>) -> Self::Future {
            std::future::ready(Err("called"))
        }
    }
    let mut robots = RobotsLayer::new(live(Mode::Refuse)).layer(Busy);
    assert_eq!(robots.ready().await.err(), Some("not ready"));
    assert_eq!(robots.call(get("/", FIREFOX)).await.err(), Some("called"));
    assert!(robots.call(get("/drafts/", GPTBOT)).await.is_ok());
}

#[test]
fn the_inner_service_is_reached_changed_and_taken_out() {
    let mut robots = RobotsLayer::new(live(Mode::Refuse)).layer(1);
    assert_eq!(*robots.get_ref(), 1);
    *robots.get_mut() += 1;
    assert_eq!(robots.into_inner(), 2);
}

#[tokio::test]
async fn a_new_version_is_one_store_away_and_the_layer_is_send_and_sync() {
    fn assert_send<T: Send + Sync + Clone + 'static>(_: &T) {}
    let live = live(Mode::Refuse);
    let layer = RobotsLayer::new(live.clone());
    assert_send(&layer);
    assert_send(&layer.layer(service_fn(app)));
    live.set_policy(Policy::builder().mode(Mode::Off).build());
    assert_eq!(ask(layer, get("/drafts/x", GPTBOT)).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn an_agent_that_a_proxy_keeps_elsewhere_counts_in_place_of_its_own() {
    let layer = RobotsLayer::new(live(Mode::Refuse))
        .agent_from(|extensions| extensions.get::<Vec<http::HeaderValue>>().map(Vec::as_slice));
    for (kept, agent, status) in [
        (None, GPTBOT, StatusCode::FORBIDDEN),
        (Some(&[][..]), GPTBOT, StatusCode::FORBIDDEN),
        (Some(&[GPTBOT][..]), FIREFOX, StatusCode::FORBIDDEN),
        (Some(&[FIREFOX][..]), GPTBOT, StatusCode::OK),
        (Some(&[FIREFOX, GPTBOT][..]), FIREFOX, StatusCode::FORBIDDEN),
    ] {
        let mut request = get("/drafts/x", agent);
        if let Some(kept) = kept {
            let lines = kept.iter().map(|line| line.parse().expect("a value")).collect::<Vec<http::HeaderValue>>();
            request.extensions_mut().insert(lines);
        }
        assert_eq!(ask(layer.clone(), request).await.status(), status, "{kept:?} {agent}");
    }
}

#[tokio::test]
async fn a_person_behind_a_crawlers_name_is_noticed() {
    let policy = Policy::builder()
        .mode(Mode::Refuse)
        .session_cookies(["sid"])
        .expect("a name")
        .exempt_cookies(["staff"])
        .expect("a name")
        .exempt_networks(["10.0.0.0/8".parse().expect("a network")])
        .build();
    let live = LiveRobots::inline(FILE).policy(policy).open().expect("open");
    let layer = RobotsLayer::new(live).address_from(|extensions| extensions.get::<std::net::IpAddr>().copied());
    let mut request = get("/drafts/x", GPTBOT);
    request.headers_mut().append("cookie", "a=1; sid=2".parse().expect("a value"));
    for (name, value) in [
        ("sec-fetch-site", "same-origin"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
        ("host", "a.test"),
        ("referer", "https://a.test/"),
    ] {
        request.headers_mut().insert(name, value.parse().expect("a value"));
    }
    let response = ask(layer.clone(), request).await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    let signs: Vec<_> = response.extensions().get::<Record>().expect("a record").signs().names().collect();
    assert_eq!(signs, ["session-cookie", "fetch-metadata", "own-referer"]);
    let mut request = get("/drafts/x", GPTBOT);
    request.headers_mut().append("cookie", "staff=1".parse().expect("a value"));
    assert_eq!(ask(layer.clone(), request).await.status(), StatusCode::OK);
    for (address, status) in [([10, 0, 0, 1], StatusCode::OK), ([11, 0, 0, 1], StatusCode::FORBIDDEN)] {
        let mut request = get("/drafts/x", GPTBOT);
        request.extensions_mut().insert(std::net::IpAddr::from(address));
        assert_eq!(ask(layer.clone(), request).await.status(), status);
    }
}

#[tokio::test]
async fn a_new_registry_recognises_at_once() {
    let live = LiveRobots::inline("User-agent: *\nDisallow: /\n")
        .policy(Policy::builder().mode(Mode::Refuse).build())
        .open()
        .expect("open");
    let layer = RobotsLayer::new(live.clone());
    assert_eq!(
        ask(layer.clone(), get("/x", "HouseBot/1.0 (+https://house.test/bot)")).await.status(),
        StatusCode::FORBIDDEN
    );
    let extra = crate::agent::CrawlerRow::new("HouseBot", crate::agent::Category::Infrastructure);
    let registry = crate::agent::Registry::builtin().extended_with([extra]).expect("a registry");
    live.set_registry(Arc::new(registry));
    assert_eq!(ask(layer.clone(), get("/x", "HouseBot/1.0 (+https://house.test/bot)")).await.status(), StatusCode::OK);
    assert_eq!(ask(layer, get("/x", GPTBOT)).await.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_group_of_thousands_makes_no_refusal_of_thousands() {
    let names: String = (0..2000).map(|number| format!("User-agent: Crawler{number}\n")).collect();
    let file = format!("{names}User-agent: GPTBot\nDisallow: /{}\n", "x".repeat(1000));
    for (mode, status) in [(Mode::Refuse, StatusCode::FORBIDDEN), (Mode::Tag, StatusCode::OK)] {
        let live = LiveRobots::inline(&file).policy(Policy::builder().mode(mode).build()).open().expect("open");
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
async fn a_layer_inside_another_keeps_its_tag() {
    let inner = RobotsLayer::new(LiveRobots::inline("# open\n").open().expect("open"));
    let outer = RobotsLayer::new(live(Mode::Tag));
    let response =
        outer.layer(inner.layer(service_fn(app))).oneshot(get("/drafts/x", GPTBOT)).await.expect("infallible");
    assert!(field(&response, "saw-robots-verdict").is_some());
}

#[test]
fn a_decision_is_about_the_original_however_it_is_asked_for() {
    let layer = RobotsLayer::new(live(Mode::Refuse)).target_from(|extensions| extensions.get::<Uri>());
    let mut question = get("/auth?x=/drafts/", GPTBOT);
    question.extensions_mut().insert(Uri::from_static("/elsewhere"));
    let refused = |original: &Original<'_>| matches!(layer.decide(original), Answer::Respond(_));
    // What `http::Uri` refuses is an ordinary target here.
    for target in [&b"/drafts/\xFF"[..], b"/x/..//drafts/ \"", b"http://h.test/drafts/x"] {
        assert!(refused(&Original::of(&question).with_target(target)), "{}", target.escape_ascii());
    }
    assert!(!refused(&Original::of(&question)));
    assert!(!refused(&Original::of(&question).with_target(b"/")));
    // A robots.txt is no decision, and an answer of the layer's all the same.
    let file = Original::of(&question).with_target(b"/robots.txt");
    assert!(matches!(layer.decide(&file), Answer::Pass));
    let Answer::Respond(response) = layer.answer(&file) else { panic!("no answer") };
    assert_eq!((response.status(), &**response.body()), (StatusCode::OK, FILE.as_bytes()));
    assert!(response.extensions().get::<Record>().is_none());
}

#[test]
fn the_original_host_and_method_decide_where_they_are_given() {
    let mut hosts = HostMap::new();
    hosts.insert("a.test", live(Mode::Refuse)).expect("a host");
    let policy = Policy::builder().mode(Mode::Refuse).star_scope(crate::policy::StarScope::Everyone).build();
    let star = LiveRobots::inline("User-agent: *\nDisallow: /\n").policy(policy).open().expect("a robots.txt");
    hosts.insert("b.test", star).expect("a host");
    let layer = RobotsLayer::new(hosts);
    let mut question = get("/drafts/x", GPTBOT);
    question.headers_mut().insert("host", "a.test".parse().expect("a value"));
    let refused = |original: &Original<'_>| matches!(layer.decide(original), Answer::Respond(_));
    assert!(refused(&Original::of(&question)));
    assert!(!refused(&Original::of(&question).with_host(Some(b"other.test"))));
    assert!(!refused(&Original::of(&question).with_host(None)));
    assert!(refused(&Original::of(&question).with_host(Some(b"b.test:8080"))));
    // The groups for `*` hold for GET and HEAD.
    assert!(!refused(&Original::of(&question).with_host(Some(b"b.test")).with_method(&Method::POST)));
}

#[test]
fn carrying_out_marks_what_goes_on() {
    let mut request = get("/drafts/x", GPTBOT);
    request.headers_mut().insert("robots-verdict", "allow".parse().expect("a value"));
    let answer = RobotsLayer::new(live(Mode::Tag)).answer(&Original::of(&request));
    let Answer::Tag(record) = &answer else { panic!("{answer:?}") };
    let field = record.to_field();
    assert!(answer.carry_out(&mut request).is_none());
    assert_eq!(request.headers().get_all("robots-verdict").iter().collect::<Vec<_>>(), [field]);
    assert!(request.extensions().get::<Record>().is_some());
    assert!(Answer::Pass.carry_out(&mut request).is_none());
    assert!(request.headers().contains_key("robots-verdict"), "a layer outside has tagged it");
}
