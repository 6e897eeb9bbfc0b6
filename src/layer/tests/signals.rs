//! Tests of the fields that the layer adds to responses: usage preferences, links to licences, and
//! fields for certain paths.

use super::*;
use crate::agent::Category;
use crate::policy::Crawlers;

const USAGE: &str = "License: https://a.test/l.xml\n\nUser-agent: *\nAllow: /\nDisallow: /never/\n\
                     Content-Usage: train-ai=n\nContent-Usage: /ai-ok/ train-ai=y\n\n\
                     User-agent: ExampleBot\nContent-Usage: train-ai=y\nAllow: /\n\n\
                     User-agent: GPTBot\nDisallow: /\nLicense: https://a.test/gpt.xml\n";
const LINK: &str = "<https://a.test/l.xml>; rel=\"license\"; type=\"application/rsl+xml\"";

fn layer(usage: UsageField) -> RobotsLayer {
    refusing_by(USAGE).signals(Signals::default().usage(usage))
}

/// Sends a request through the layer to an application that responds with this status code and
/// these fields.
async fn answer(
    layer: RobotsLayer,
    request: Request<Body>,
    (status, fields): (u16, &[(&'static str, &'static str)]),
) -> Response<ResponseBody<Body>> {
    let app = service_fn(|_: Request<Body>| {
        let mut response = Response::builder().status(status);
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        std::future::ready(Ok::<_, Infallible>(response.body(Full::<Bytes>::default()).expect("a response")))
    });
    layer.layer(app).oneshot(request).await.expect("infallible")
}

fn all<'a, B>(response: &'a Response<B>, name: &str) -> Vec<&'a str> {
    response.headers().get_all(name).iter().map(|value| value.to_str().expect("ASCII")).collect()
}

#[tokio::test]
async fn the_content_usage_field_has_the_preferences_of_the_robots_txt() {
    use UsageField::{ByAgent, Off, Unanimous};
    for (usage, agent, path, want, vary) in [
        (Off, "OtherBot/1.0", "/ai-ok/x", None, None),
        (ByAgent, "OtherBot/1.0", "/test", Some("train-ai=n"), Some("User-Agent")),
        (ByAgent, FIREFOX, "/test", Some("train-ai=n"), Some("User-Agent")),
        (ByAgent, FIREFOX, "/never/test", None, Some("User-Agent")),
        (ByAgent, "OtherBot/1.0", "/ai-ok/test", Some("train-ai=y"), Some("User-Agent")),
        (ByAgent, "ExampleBot/1.0", "/test", Some("train-ai=y"), Some("User-Agent")),
        (Unanimous, "OtherBot/1.0", "/test", None, None),
        (Unanimous, "ExampleBot/1.0", "/test", None, None),
        (Unanimous, "OtherBot/1.0", "/ai-ok/test", Some("train-ai=y"), None),
        (Unanimous, FIREFOX, "/ai-ok/test", Some("train-ai=y"), None),
    ] {
        let response = answer(layer(usage), get(path, agent), (200, &[])).await;
        let found = (field(&response, "content-usage"), field(&response, "vary"));
        assert_eq!(found, (want, vary), "{usage:?} {agent} {path}");
    }
}

#[tokio::test]
async fn usage_preferences_are_sent_only_with_200_203_206_and_304_to_get_and_head() {
    let rows = [200, 203, 206, 304].map(|status| (status, true));
    let without = [101, 201, 204, 301, 404, 416, 500].map(|status| (status, false));
    for (status, is_sent) in rows.into_iter().chain(without) {
        let response = answer(layer(UsageField::Unanimous), get("/ai-ok/", FIREFOX), (status, &[])).await;
        assert_eq!(field(&response, "content-usage").is_some(), is_sent, "{status}");
    }
    for (method, is_sent) in [(Method::HEAD, true), (Method::POST, false), (Method::OPTIONS, false)] {
        let mut request = get("/ai-ok/", FIREFOX);
        *request.method_mut() = method.clone();
        let response = answer(layer(UsageField::Unanimous), request, (200, &[])).await;
        assert_eq!(field(&response, "content-usage").is_some(), is_sent, "{method}");
    }
    for method in [Method::GET, Method::HEAD] {
        let mut request = get("/ai-ok/", GPTBOT);
        *request.method_mut() = method;
        let refusal = ask(layer(UsageField::ByAgent), request).await;
        assert_eq!((refusal.status(), field(&refusal, "content-usage")), (StatusCode::FORBIDDEN, None));
    }
}

#[tokio::test]
async fn a_field_that_the_application_has_set_is_kept_and_counted() {
    let live = live_by(USAGE, Policy::builder());
    let rule = FieldRule::new("/", "tdm-reservation", "1").expect("a rule");
    let layer = RobotsLayer::new(live.clone()).signals(Signals::default().usage(UsageField::Unanimous).field(rule));
    let own = [("Content-Usage", "search=y"), ("content-USAGE", "train-ai=n;x")];
    for count in 1..=2 {
        let response = answer(layer.clone(), get("/ai-ok/", FIREFOX), (200, &own)).await;
        assert_eq!(all(&response, "content-usage"), ["search=y", "train-ai=n;x"]);
        assert_eq!(all(&response, "tdm-reservation"), ["1"]);
        assert_eq!(live.status().kept_fields, count);
    }
    let response = answer(layer.clone(), get("/ai-ok/", FIREFOX), (200, &[("tdm-reservation", "0")])).await;
    assert_eq!((all(&response, "tdm-reservation"), live.status().kept_fields), (vec!["0"], 3));
    // The inner layer adds the same field, so the outer layer does not add it again.
    let nested = layer.clone().layer(layer.layer(service_fn(app)));
    let response = nested.oneshot(get("/ai-ok/", FIREFOX)).await.expect("infallible");
    assert_eq!((response.headers().get_all("content-usage").iter().count(), live.status().kept_fields), (1, 3));
}

#[tokio::test]
async fn user_agent_is_merged_into_the_vary_field() {
    for (before, after) in [
        (&[][..], "User-Agent"),
        (&[("vary", "Accept")][..], "Accept, User-Agent"),
        (&[("vary", "Accept"), ("vary", "Cookie")][..], "Accept, Cookie, User-Agent"),
        (&[("vary", "accept, USER-agent")][..], "accept, USER-agent"),
        (&[("vary", "*")][..], "*"),
    ] {
        let response = answer(layer(UsageField::ByAgent), get("/", FIREFOX), (200, before)).await;
        assert_eq!(all(&response, "vary"), [after]);
    }
    let missing = answer(layer(UsageField::ByAgent), get("/", FIREFOX), (404, &[])).await;
    assert_eq!(field(&missing, "vary"), None);
}

#[tokio::test]
async fn a_licence_link_is_added_to_existing_links_and_to_refusals() {
    let layer = refusing_by(USAGE).signals(Signals::default().license_links());
    let other = [("link", "</style.css>; rel=preload")];
    for (status, agent) in [(200, FIREFOX), (404, "OtherBot/1.0"), (500, "ExampleBot/1.0")] {
        let response = answer(layer.clone(), get("/", agent), (status, &other)).await;
        assert_eq!(all(&response, "link"), [other[0].1, LINK], "{agent}");
        assert_eq!(field(&response, "vary"), Some("User-Agent"), "GPTBot has another licence");
    }
    let refusal = ask(layer.clone(), get("/", GPTBOT)).await;
    assert_eq!(refusal.status(), StatusCode::FORBIDDEN);
    assert_eq!(all(&refusal, "link"), [LINK.replace("l.xml", "gpt.xml")]);
    let switching = answer(layer, get("/", FIREFOX), (101, &[])).await;
    assert_eq!(field(&switching, "link"), None);
    let same = refusing_by("License: https://a.test/l.xml\nUser-agent: *\nDisallow:\n")
        .signals(Signals::default().license_links());
    let response = answer(same, get("/", FIREFOX), (200, &[])).await;
    assert_eq!((all(&response, "link"), field(&response, "vary")), (vec![LINK], None));
}

#[tokio::test]
async fn vary_is_sent_if_another_client_could_get_different_fields() {
    let other = "User-agent: *\nAllow: /\n\nUser-agent: GPTBot\nLicense: https://a.test/l.xml\nAllow: /\n";
    let global = "License: https://a.test/l.xml\nUser-agent: *\nContent-Usage: train-ai=n\nAllow: /\n";
    for (file, agent, status, has_link, varies) in [
        (other, GPTBOT, 404, true, true),
        (other, FIREFOX, 404, false, true),
        (other, FIREFOX, 200, false, true),
        (global, FIREFOX, 404, true, false),
        (global, FIREFOX, 200, true, true),
    ] {
        let signals = Signals::default().usage(UsageField::ByAgent).license_links();
        let response = answer(refusing_by(file).signals(signals), get("/", agent), (status, &[])).await;
        let found = (field(&response, "link").is_some(), field(&response, "vary").is_some());
        assert_eq!(found, (has_link, varies), "{status} {agent} {file}");
    }
}

#[cfg(feature = "axum08")]
#[tokio::test]
async fn an_inner_layer_adds_its_fields_if_an_outer_layer_has_judged_the_request() {
    let outer = RobotsLayer::for_axum08(live_by(USAGE, Policy::builder()));
    let inner = outer.clone().signals(Signals::default().usage(UsageField::ByAgent));
    for outer in [outer, inner.clone()] {
        let nested = outer.layer(inner.clone().layer(service_fn(app)));
        let response = nested.oneshot(get("/test", "ExampleBot/1.0")).await.expect("infallible");
        assert_eq!((all(&response, "content-usage"), all(&response, "vary")), (vec!["train-ai=y"], vec!["User-Agent"]));
    }
}

#[tokio::test]
async fn field_rules_for_a_path_apply_to_all_clients_or_to_chosen_crawlers() {
    let rule = |path, name, value| FieldRule::new(path, name, value).expect("a rule");
    let signals = Signals::default()
        .field(rule("/drafts/*", "X-Robots-Tag", "noindex"))
        .field(rule("/*.pdf$", "x-robots-tag", "noarchive"))
        .field(rule("/", "tdm-reservation", "0"))
        .field(rule("/art/", "tdm-reservation", "1"))
        .field(rule("/ai/", "X-Robots-Tag", "noai").for_crawlers([Crawlers::Category(Category::AiTraining)]))
        .field(
            rule("/ai/", "tdm-policy", "https://a.test/p").for_crawlers([Crawlers::agent("Bingbot").expect("a name")]),
        );
    let layer = RobotsLayer::new(live_by("User-agent: *\nDisallow:\n", Policy::builder())).signals(signals);
    for (path, agent, tags, tdm, vary) in [
        ("/", FIREFOX, &["all"][..], "0", None),
        ("/drafts/a.pdf", FIREFOX, &["all", "noindex", "noarchive"], "0", None),
        ("/art/x", GPTBOT, &["all"], "1", None),
        ("/ai/x", GPTBOT, &["all", "noai"], "0", Some("User-Agent")),
        ("/ai/x", FIREFOX, &["all"], "0", Some("User-Agent")),
    ] {
        let response = answer(layer.clone(), get(path, agent), (200, &[("x-robots-tag", "all")])).await;
        assert_eq!(all(&response, "x-robots-tag"), tags, "{path} {agent}");
        let found = (field(&response, "tdm-reservation"), field(&response, "vary"), field(&response, "tdm-policy"));
        assert_eq!(found, (Some(tdm), vary, None), "{path} {agent}");
    }
    for (path, name, value) in [
        ("drafts", "X-Robots-Tag", "noindex"),
        ("/", "Set-Cookie", "a=b"),
        ("/", "Transfer_Encoding", "chunked"),
        ("/", "ETag", "\"a\""),
        ("/", "Content-Usage", "train-ai=n"),
        ("/", "a b", "c"),
        ("/", "X-Robots-Tag", "a\r\nb"),
        ("/", "X-Robots-Tag", ""),
    ] {
        FieldRule::new(path, name, value).expect_err(name);
    }
}

#[tokio::test]
async fn the_kill_switch_removes_the_fields() {
    let live = live_by(USAGE, Policy::builder());
    let layer = RobotsLayer::new(live.clone()).signals(Signals::default().usage(UsageField::ByAgent).license_links());
    live.set_enforcement(Enforcement::Off).expect("no state directory");
    let response = answer(layer, get("/", FIREFOX), (200, &[])).await;
    assert_eq!((field(&response, "content-usage"), field(&response, "link")), (None, None));
}
