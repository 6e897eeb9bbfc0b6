//! Tests that the site, target and method of a request determine its rules.

use super::*;

#[tokio::test]
async fn path_forms_that_a_policy_disables_are_not_judged() {
    let forms: Vec<_> = PathForm::OPTIONAL.into_iter().filter(|form| *form != PathForm::Parameters).collect();
    let layer = RobotsLayer::new(live_by(FILE, Policy::builder().mode(Mode::Refuse).forms(forms)));
    assert_eq!(ask(layer.clone(), get("/drafts;a/x", GPTBOT)).await.status(), StatusCode::OK);
    assert_eq!(ask(layer, get("/x/../drafts/x", GPTBOT)).await.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn each_host_has_its_own_site_and_unknown_hosts_have_none() {
    let mut hosts = HostMap::new();
    hosts.insert("a.example", live(Mode::Refuse)).expect("a host");
    let open = LiveRobots::text("# b\n").open().expect("open");
    hosts.insert("*.b.example", open).expect("a host");
    let layer = RobotsLayer::new(hosts.into_sites());
    for (target, host, status) in [
        ("/drafts/x", "A.example:80", StatusCode::FORBIDDEN),
        ("/drafts/x", "www.b.example", StatusCode::OK),
        ("/drafts/x", "c.example", StatusCode::OK),
        ("http://a.example/drafts/x", "c.example", StatusCode::FORBIDDEN),
        ("http://user@a.example/drafts/x", "c.example", StatusCode::FORBIDDEN),
    ] {
        let request = with(get(target, GPTBOT), "host", host);
        assert_eq!(ask(layer.clone(), request).await.status(), status, "{target} {host}");
    }
    let request = with(get("/robots.txt", GPTBOT), "host", "c.example");
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

#[test]
fn a_decision_uses_the_target_of_the_original_request() {
    let layer = RobotsLayer::new(live(Mode::Refuse)).target_from(|extensions| extensions.get::<Uri>());
    let mut question = get("/auth?x=/drafts/", GPTBOT);
    question.extensions_mut().insert(Uri::from_static("/elsewhere"));
    let refused = |original: &OriginalRequest<'_>| {
        matches!(layer.decide(&original.answered_elsewhere()).respond(None).outcome, Outcome::Respond(_))
    };
    // Targets that `http::Uri` rejects are judged, too.
    for target in [&b"/drafts/\xFF"[..], b"/x/..//drafts/ \"", b"http://h.test/drafts/x"] {
        assert!(refused(&OriginalRequest::of(&question).with_target(target)), "{}", target.escape_ascii());
    }
    assert!(!refused(&OriginalRequest::of(&question)));
    assert!(!refused(&OriginalRequest::of(&question).with_target(b"/")));
    // If another server responds, `/robots.txt` passes; otherwise, the layer responds.
    let file = OriginalRequest::of(&question).with_target(b"/robots.txt");
    assert!(matches!(layer.decide(&file.answered_elsewhere()).respond(None).outcome, Outcome::Pass));
    let Outcome::Respond(response) = layer.decide(&file).respond(None).outcome else { panic!("no answer") };
    assert_eq!((response.status(), &**response.body()), (StatusCode::OK, FILE.as_bytes()));
    assert!(response.extensions().get::<Record>().is_none());
}

#[test]
fn a_decision_uses_the_original_host_and_method_if_they_are_set() {
    let mut hosts = HostMap::new();
    hosts.insert("a.test", live(Mode::Refuse)).expect("a host");
    let policy = Policy::builder().mode(Mode::Refuse).wildcard_scope(crate::policy::WildcardScope::Everyone);
    hosts.insert("b.test", live_by("User-agent: *\nDisallow: /\n", policy)).expect("a host");
    let layer = RobotsLayer::new(hosts);
    let question = with(get("/drafts/x", GPTBOT), "host", "a.test");
    let refused = |original: &OriginalRequest<'_>| {
        matches!(layer.decide(&original.answered_elsewhere()).respond(None).outcome, Outcome::Respond(_))
    };
    assert!(refused(&OriginalRequest::of(&question)));
    assert!(!refused(&OriginalRequest::of(&question).with_host(Some(b"other.test"))));
    assert!(!refused(&OriginalRequest::of(&question).with_host(None)));
    assert!(refused(&OriginalRequest::of(&question).with_host(Some(b"b.test:8080"))));
    // The groups for `*` apply only to GET and HEAD.
    assert!(!refused(&OriginalRequest::of(&question).with_host(Some(b"b.test")).with_method(&Method::POST)));
}
