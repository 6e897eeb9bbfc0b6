//! Tests of requests that wait for the reverse DNS names of their address.

use std::net::IpAddr;

use super::*;
use crate::agent::{Category, Crawler, IdentityMethod, Registry, UndecidedReason};
use crate::source::evidence::Verifier;
use crate::source::evidence::tests::played_dns::{Played, PlayedDns};
use crate::source::evidence::tests::played_http::{PlayedHttp, answer};
use crate::source::evidence::tests::{LONG, PACE, only};

const PLAYBOT: &str = "Mozilla/5.0 (compatible; Playbot/1.0; +https://play.example/bot)";

/// Returns the identity for the first request from each address. A request waits at most for
/// `wait`.
async fn first_identities(
    wait: Duration,
    addresses: impl Iterator<Item = IpAddr>,
    fields: &[(&'static str, &'static str)],
) -> Vec<Option<Identity>> {
    first_identities_with(Vec::new(), wait, addresses, fields).await
}

/// Returns the same as [`first_identities`], but for a crawler with these address lists.
async fn first_identities_with(
    ranges: Vec<String>,
    wait: Duration,
    addresses: impl Iterator<Item = IpAddr>,
    fields: &[(&'static str, &'static str)],
) -> Vec<Option<Identity>> {
    let dns = PlayedDns::start();
    let row = Crawler {
        operator: "Play".into(),
        ranges,
        reverse_dns: vec![".play.example".into()],
        ..Crawler::new("Playbot", Category::AiTraining)
    };
    let registry: Arc<Registry> = Arc::new(only(row));
    let builder = Verifier::builder(&registry).resolvers([dns.address]).question_times(PACE, LONG);
    let verifier = builder.start().expect("a verifier");
    let live = LiveRobots::text("User-agent: Playbot\nDisallow: /drafts/\n").registry(registry).open().expect("rules");
    let (identities, sink) = noting(Vec::new());
    let layer = RobotsLayer::new(live)
        .address_from(|extensions| extensions.get::<IpAddr>().copied())
        .verifier(SenderCheck::new(&verifier))
        .on_crawler(move |event| sink.lock().push(event.record.identity));
    let mut verify = VerifyLayer::new(&layer, wait);
    // The limit `MAX_WAIT` is overridden, because a busy machine may need longer.
    verify.wait.iter_mut().for_each(|evidence| evidence.longest = wait);
    let service = verify.layer(layer.layer(service_fn(app)));
    for address in addresses {
        let address_text = address.to_string();
        dns.confirmed(&address_text, &format!("crawl-{}.play.example", address_text.replace('.', "-")));
        let mut request = get("/", PLAYBOT);
        request.extensions_mut().insert(address);
        for (name, value) in fields {
            request.headers_mut().insert(*name, http::HeaderValue::from_static(value));
        }
        service.clone().oneshot(request).await.expect("infallible");
    }
    let identities = identities.lock();
    identities.clone()
}

fn addresses() -> impl Iterator<Item = IpAddr> {
    (1..=4).map(|number| IpAddr::from([9, 9, 9, number]))
}

#[tokio::test]
async fn the_first_request_of_an_address_waits_for_its_reverse_dns_names() {
    let identities = first_identities(LONG, addresses(), &[]).await;
    assert_eq!(identities, [Some(Identity::Verified(IdentityMethod::Rdns)); 4]);
}

#[tokio::test]
async fn a_request_with_an_irrelevant_signature_waits_for_reverse_dns_names() {
    let signed =
        [("signature-input", "sig=(\"@authority\");keyid=\"unknown\";tag=\"other\""), ("signature", "sig=:AAAA:")];
    let identities = first_identities(LONG, addresses(), &signed).await;
    assert_eq!(identities, [Some(Identity::Verified(IdentityMethod::Rdns)); 4]);
}

#[tokio::test]
async fn a_request_waits_for_reverse_dns_names_if_the_address_list_cannot_be_fetched() {
    let lists = PlayedHttp::start(answer("503 Oh", "", ""));
    let identities = first_identities_with(vec![lists.url.clone()], LONG, addresses(), &[]).await;
    assert_eq!(identities, [Some(Identity::Verified(IdentityMethod::Rdns)); 4]);
}

#[tokio::test]
async fn without_a_wait_the_first_request_of_an_address_is_undecided() {
    let identities = first_identities(Duration::ZERO, addresses().take(1), &[]).await;
    assert_eq!(identities, [Some(Identity::Undecided(UndecidedReason::Pending))]);
}

/// `Router::layer` calls in the order of a `ServiceBuilder` put the layers in the wrong order.
#[cfg(feature = "axum08")]
#[tokio::test]
async fn a_request_that_was_already_judged_does_not_wait_for_names_and_is_counted() {
    let dns = PlayedDns::start();
    dns.unset(Played::Silence);
    let row = Crawler { reverse_dns: vec![".play.example".into()], ..Crawler::new("Playbot", Category::AiTraining) };
    let registry: Arc<Registry> = Arc::new(only(row));
    let builder = Verifier::builder(&registry).resolvers([dns.address]).question_times(PACE, LONG);
    let verifier = builder.start().expect("a verifier");
    let live = LiveRobots::text("User-agent: Playbot\nDisallow: /drafts/\n").registry(registry).open().expect("rules");
    let layer = RobotsLayer::for_axum08(&live)
        .address_from(|extensions| extensions.get::<IpAddr>().copied())
        .verifier(SenderCheck::new(&verifier));
    let service = layer.layer(VerifyLayer::new(&layer, LONG).layer(service_fn(app)));
    let mut request = get("/", PLAYBOT);
    request.extensions_mut().insert(IpAddr::from([9, 9, 9, 1]));
    service.oneshot(request).await.expect("infallible");
    assert_eq!(live.site.counts.late_waits.load(std::sync::atomic::Ordering::Relaxed), 1);
}
