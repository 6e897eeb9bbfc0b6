//! Tests of requests whose crawler is known only from a signature.

use std::time::Instant;

use http::uri::Scheme;

use super::*;
use crate::agent::{Category, Crawler, IdentityMethod, Registry};
use crate::live::TestClock;
use crate::policy::{Impostors, RateMode};
use crate::source::evidence::Verifier;
use crate::source::evidence::tests::only;
use crate::source::evidence::tests::played_http::PlayedHttp;
use crate::source::evidence::tests::played_signer::{KEY, keys, signed};
use crate::source::fetch::Fetcher;

const PLAYED: &str = "User-agent: Playbot\nCrawl-delay: 10\nDisallow: /drafts/\n";

/// Creates a layer with a single known crawler, whose signing key the server publishes.
fn layer(server: &PlayedHttp, pem: &str, clock: &TestClock) -> RobotsLayer {
    layer_with(server, pem, clock, |check| check)
}

fn layer_with(
    server: &PlayedHttp,
    pem: &str,
    clock: &TestClock,
    change: impl FnOnce(SenderCheck) -> SenderCheck,
) -> RobotsLayer {
    let row = Crawler {
        operator: "Play".into(),
        signature: Some(server.url.clone()),
        ..Crawler::new("Playbot", Category::AiTraining)
    };
    let registry: Arc<Registry> = Arc::new(only(row));
    let fetcher = Fetcher::builder().trust_only(pem.as_bytes()).expect("a certificate").start().expect("a thread");
    let builder = Verifier::builder(&registry).clock(clock.read()).without_names().fetcher(&fetcher);
    let policy = Policy::builder().mode(Mode::Refuse).impostors(Impostors::Refuse).rate(RateMode::Refuse).build();
    let live = LiveRobots::text(PLAYED).registry(registry).policy(policy).open().expect("rules");
    RobotsLayer::new(live).verifier(change(SenderCheck::new(&builder.start().expect("a verifier"))))
}

/// Sends a signed request until it is refused. The first requests pass while the keys are being
/// fetched.
async fn refused(layer: &RobotsLayer, fields: &[(&'static str, String)]) -> Response<ResponseBody<Body>> {
    let start = Instant::now();
    loop {
        let response = ask(layer.clone(), request("example.com", "/drafts/x", fields)).await;
        if response.status() != StatusCode::OK {
            return response;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "the keys did not come");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn request(host: &str, target: &str, fields: &[(&'static str, String)]) -> Request<Body> {
    let mut request = with(get(target, FIREFOX), "host", host);
    fields.iter().for_each(|(name, value)| add(&mut request, name, value));
    request
}

#[tokio::test]
async fn a_request_identified_only_by_its_signature_gets_the_rules_of_the_signing_crawler() {
    let (server, pem) = PlayedHttp::start_tls(keys(&[KEY]));
    let clock = TestClock::new();
    let layer = layer(&server, &pem, &clock);
    let fields = signed(&server.url, clock.now());
    let response = refused(&layer, &fields).await;
    let record = response.extensions().get::<Record>().expect("a record");
    let want = ("Playbot", Some("/drafts/"), Reason::Disallowed);
    assert_eq!((record.name(), record.rule.as_deref(), record.reason), want);
    assert_eq!(record.identity, Some(Identity::Verified(IdentityMethod::Signature)));

    // The key of the bucket in the store contains the name of the crawler that signed the request.
    let ours = |fields: &[(&'static str, String)]| request("example.com", "/", fields);
    let store = layer.clone().counted_in_store();
    let rate_limited = |fields: &[_]| {
        store.decide(&OriginalRequest::of(&ours(fields))).rate_limited().map(|rate_limited| rate_limited.key.clone())
    };
    assert_eq!(rate_limited(&fields).as_deref(), Some("playbot verified"));
    assert_eq!(rate_limited(&[]), None);

    // A request that the robots.txt allows passes, and so does a browser's unsigned request.
    assert_eq!(ask(layer.clone(), request("example.com", "/", &fields)).await.status(), StatusCode::OK);
    assert_eq!(ask(layer.clone(), request("example.com", "/drafts/x", &[])).await.status(), StatusCode::OK);

    // The signature is not valid for another host. With the `User-Agent` of a browser, the request
    // may be from a person. With the `User-Agent` of a crawler, it is from an impostor.
    let sent_to = |host: &str, agent: &'static str| {
        let mut request = request(host, "/", &fields);
        request.headers_mut().insert("user-agent", agent.parse().expect("a value"));
        ask(layer.clone(), request)
    };
    assert_eq!(sent_to("other.example", FIREFOX).await.status(), StatusCode::OK);
    // A claim is refuted only after the genuine crawler was verified once.
    for (host, status) in
        [("other.example", StatusCode::OK), ("example.com", StatusCode::OK), ("other.example", StatusCode::FORBIDDEN)]
    {
        assert_eq!(sent_to(host, "Playbot/1.0").await.status(), status, "{host}");
    }
    let response = sent_to("other.example", "Playbot/1.0").await;
    let identity = response.extensions().get::<Record>().and_then(|record| record.identity);
    assert_eq!(identity, Some(Identity::Refuted(Refutation::BadSignature)));
}

/// A signature over `@authority` does not cover the default port of the scheme.
#[tokio::test]
async fn a_signature_is_checked_for_the_scheme_that_the_client_used() {
    let (server, pem) = PlayedHttp::start_tls(keys(&[KEY]));
    let clock = TestClock::new();
    let fields = signed(&server.url, clock.now());
    for (scheme, port) in [(None, 443), (Some(Scheme::HTTP), 80)] {
        let layer = layer_with(&server, &pem, &clock, |check| check.scheme_from(move |_| scheme.clone()));
        refused(&layer, &fields).await;
        for other in [80, 443] {
            let sent = request(&format!("example.com:{other}"), "/drafts/x", &fields);
            let is_refused = ask(layer.clone(), sent).await.status() == StatusCode::FORBIDDEN;
            assert_eq!(is_refused, other == port, "{other} instead of {port}");
        }
    }
}
