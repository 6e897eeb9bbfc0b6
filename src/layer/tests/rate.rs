//! Tests of requests that come before the crawl delay of their crawler's group has passed.

use super::*;
use crate::agent::IdentityMethod;
use crate::live::TestClock;
use crate::policy::{Impostors, Override, RateMode};

const DELAYED: &str =
    "User-agent: GPTBot\nCrawl-delay: 10\nDisallow: /drafts/\n\nUser-agent: *\nCrawl-delay: 2\nDisallow:\n";

/// Returns a policy that refuses disallowed requests and requests that exceed their crawl delay.
fn refusing() -> PolicyBuilder {
    Policy::builder().mode(Mode::Refuse).rate(RateMode::Refuse)
}

fn limited(policy: PolicyBuilder) -> (RobotsLayer, LiveRobots, TestClock) {
    let clock = TestClock::new();
    let live = LiveRobots::text(DELAYED).policy(policy.build()).clock(clock.read()).open().expect("a robots.txt");
    (told_senders(&live), live, clock)
}

/// Creates a layer that reads the sender's address and identity from the request's extensions.
fn told_senders(live: &LiveRobots) -> RobotsLayer {
    RobotsLayer::new(live.clone())
        .address_from(|extensions| extensions.get::<std::net::IpAddr>().copied())
        .identity_from(|extensions| extensions.get::<Identity>().copied())
}

/// Returns how many of these requests pass.
async fn passed_of(layer: &RobotsLayer, requests: impl IntoIterator<Item = Request<Body>>) -> usize {
    let mut passed = 0;
    for request in requests {
        passed += usize::from(ask(layer.clone(), request).await.status() == StatusCode::OK);
    }
    passed
}

/// Returns how many of ten identical requests pass.
async fn passed(layer: &RobotsLayer, request: impl Fn() -> Request<Body>) -> usize {
    passed_of(layer, (0..10).map(|_| request())).await
}

/// Returns how many of ten requests pass. `agent` returns the agent of each request.
async fn passed_by(layer: &RobotsLayer, address: [u8; 4], agent: impl Fn(usize) -> String) -> usize {
    passed_of(layer, (0..10).map(|number| from(&agent(number), address))).await
}

fn at(target: &str, mut request: Request<Body>) -> Request<Body> {
    *request.uri_mut() = target.parse().expect("a target");
    request
}

/// Returns the response to a request if the store's reply is `wait`; `None` if the request passes.
fn told(layer: &RobotsLayer, mut request: Request<Body>, wait: Option<Duration>) -> Option<Response<Bytes>> {
    let store = layer.clone().counted_in_store();
    let original = OriginalRequest::of(&request);
    let judgement = store.decide(&original);
    let answer = judgement.respond(wait);
    answer.respond(&mut request)
}

fn from(agent: &str, address: [u8; 4]) -> Request<Body> {
    let mut request = get("/page", agent);
    request.extensions_mut().insert(std::net::IpAddr::from(address));
    request
}

fn known(agent: &str, address: [u8; 4], identity: Identity) -> Request<Body> {
    let mut request = from(agent, address);
    request.extensions_mut().insert(identity);
    request
}

const VERIFIED: Identity = Identity::Verified(IdentityMethod::Range);

#[tokio::test]
async fn after_a_burst_one_request_passes_in_each_interval() {
    let (layer, _, clock) = limited(refusing());
    let ours = || from(GPTBOT, [192, 0, 2, 1]);
    assert_eq!(passed(&layer, ours).await, 5);
    for _ in 0..3 {
        clock.pass(Duration::from_secs(10));
        assert_eq!(passed(&layer, ours).await, 1);
    }
    // The bucket refills during a pause, but only up to its size.
    clock.pass(Duration::from_secs(3600));
    assert_eq!(passed(&layer, ours).await, 5);
}

/// For example, one layer wraps the whole app, and another wraps each of its services.
#[tokio::test]
async fn a_request_through_two_layers_of_a_site_is_counted_once() {
    let (outer, live, _) = limited(refusing());
    let service = outer.layer(told_senders(&live).layer(service_fn(app)));
    let mut passed = 0;
    for _ in 0..10 {
        let response = service.clone().oneshot(from(GPTBOT, [192, 0, 2, 1])).await.expect("infallible");
        passed += usize::from(response.status() == StatusCode::OK);
    }
    assert_eq!(passed, 5);
}

#[tokio::test]
async fn a_limited_request_gets_429_with_the_line_of_the_delay_and_retry_after() {
    let (layer, _, clock) = limited(refusing());
    passed(&layer, || from(GPTBOT, [192, 0, 2, 1])).await;
    clock.pass(Duration::from_millis(3500));
    let response = ask(layer.clone(), from(GPTBOT, [192, 0, 2, 1])).await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    let retry_after = field(&response, "retry-after").expect("a time").to_owned();
    assert!(matches!(&*retry_after, "7" | "8"), "{retry_after}");
    assert_eq!(field(&response, "ratelimit"), Some("\"crawl\";r=0;t=7"));
    assert_eq!(field(&response, "ratelimit-policy"), Some("\"crawl\";q=1;w=10"));
    assert_eq!(field(&response, "cache-control"), Some("no-store"));
    let record = response.extensions().get::<Record>().expect("a record").clone();
    assert_eq!((record.action, record.reason), (Action::Refuse, Reason::Limited));
    let limit = record.limit.expect("a delay");
    assert_eq!((limit.interval, limit.line, &*limit.group), (Duration::from_secs(10), 2, "GPTBot"));
    let body = text(response).await;
    assert!(body.contains("    User-agent: GPTBot\n    Crawl-delay: 10        (line 2)\n"), "{body}");
    assert!(body.contains(&format!("\nRetry in {retry_after} s.")), "{body}");

    let request = with(from(GPTBOT, [192, 0, 2, 1]), "accept", "application/json");
    let problem: serde_json::Value =
        serde_json::from_str(&text(ask(layer.clone(), request).await).await).expect("JSON");
    assert_eq!(problem["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
    assert_eq!(problem["violated-policies"], serde_json::json!(["crawl"]));
    assert_eq!((&problem["status"], &problem["line"]), (&429.into(), &2.into()));
    // A disallowed request is refused as usual, and does not take a token from the bucket.
    let drafts = at("/drafts/x", from(GPTBOT, [192, 0, 2, 9]));
    assert_eq!(ask(layer.clone(), drafts).await.status(), StatusCode::FORBIDDEN);
    // The application's own refusal is only for disallowed requests. A rate-limited request gets
    // 429.
    let own = layer.refuse_with(|event| event.refusal_with_status(StatusCode::GONE));
    assert_eq!(ask(own, from(GPTBOT, [192, 0, 2, 1])).await.status(), StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn retry_times_of_clients_refused_at_once_differ_and_are_never_too_early() {
    let (layer, live, _) = limited(refusing().rate_burst(std::num::NonZeroU32::MIN));
    live.publish_blocking(DELAYED.replace("10", "30")).expect("a robots.txt");
    // The waiting times that the store returns; `None` if this process counts the requests.
    for elsewhere in [None, Some(Duration::from_secs(30)), Some(Duration::from_micros(29_000_001))] {
        let _ = ask(layer.clone(), from(GPTBOT, [192, 0, 2, 1])).await;
        let mut times = std::collections::BTreeMap::new();
        for _ in 0..300 {
            let response = told(&layer, from(GPTBOT, [192, 0, 2, 1]), elsewhere).expect("a refusal");
            assert_eq!(field(&response, "ratelimit"), Some("\"crawl\";r=0;t=30"));
            let time: u64 = field(&response, "retry-after").expect("a time").parse().expect("a number");
            *times.entry(time).or_insert(0) += 1;
        }
        assert!(times.keys().all(|time| (30..=33).contains(time)), "{times:?}");
        for time in 31..=32 {
            assert!((90..=110).contains(&times[&time]), "{times:?}");
        }
    }
}

#[tokio::test]
async fn a_limited_grpc_call_gets_the_time_of_the_next_attempt() {
    let (layer, _, clock) = limited(refusing());
    passed(&layer, || from(GPTBOT, [192, 0, 2, 1])).await;
    clock.pass(Duration::from_millis(3500));
    let plain = with(from(GPTBOT, [192, 0, 2, 1]), "content-type", "application/grpc");
    let response = ask(layer.clone(), plain).await;
    assert_eq!((response.status(), field(&response, "grpc-status")), (StatusCode::TOO_MANY_REQUESTS, None));
    let mut request = from(GPTBOT, [192, 0, 2, 1]);
    (*request.method_mut(), *request.version_mut()) = (Method::POST, http::Version::HTTP_2);
    add(&mut request, "content-type", "application/grpc");
    let response = ask(layer, request).await;
    assert_eq!((response.status(), field(&response, "grpc-status")), (StatusCode::OK, Some("8")));
    let message = field(&response, "grpc-message").expect("a message");
    assert!(message.ends_with("and this request exceeded that rate. Crawl-delay: 10 (line 2)"), "{message}");
    assert!(matches!(field(&response, "retry-after"), Some("7" | "8")), "{response:?}");
    let pushback: u32 = field(&response, "grpc-retry-pushback-ms").expect("a time").parse().expect("a number");
    assert!((6500..=7150).contains(&pushback), "{pushback}");
    assert_eq!(field(&response, "ratelimit-policy"), Some("\"crawl\";q=1;w=10"));
    assert_eq!(text(response).await, "");
}

#[tokio::test]
async fn spoofing_a_crawlers_name_does_not_use_up_its_requests() {
    let (layer, _, _) = limited(refusing());
    assert_eq!(passed(&layer, || from(GPTBOT, [192, 0, 2, 1])).await, 5);
    assert_eq!(passed(&layer, || from(GPTBOT, [192, 0, 2, 2])).await, 5);
    assert_eq!(passed(&layer, || known(GPTBOT, [192, 0, 2, 3], REFUTED)).await, 5);
    assert_eq!(passed(&layer, || known(GPTBOT, [192, 0, 2, 4], REFUTED)).await, 0, "impostors share one");
    assert_eq!(passed(&layer, || known(GPTBOT, [192, 0, 2, 5], VERIFIED)).await, 5);
    assert_eq!(passed(&layer, || known(GPTBOT, [192, 0, 2, 6], VERIFIED)).await, 0, "a crawler has one");
    assert_eq!(passed(&layer, || get("/page", GPTBOT)).await, 5, "those without an address share one");
}

#[tokio::test]
async fn browsers_and_requests_for_robots_txt_exempt_paths_or_page_assets_are_never_limited() {
    let (layer, _, _) = limited(refusing());
    passed(&layer, || from(GPTBOT, [192, 0, 2, 1])).await;
    for target in ["/robots.txt", "/.well-known/x", "/a.css", "/a.png?x", "/a.woff2"] {
        assert_eq!(passed(&layer, || at(target, from(GPTBOT, [192, 0, 2, 1]))).await, 10, "{target}");
    }
    let image = || with(from(GPTBOT, [192, 0, 2, 1]), "sec-fetch-dest", "image");
    assert_eq!(passed(&layer, image).await, 10);
    assert_eq!(passed(&layer, || from(FIREFOX, [192, 0, 2, 1])).await, 10);
    assert_eq!(passed(&layer, || from(GPTBOT, [192, 0, 2, 1])).await, 0);
}

#[tokio::test]
async fn search_engines_are_limited_only_if_an_override_and_a_group_name_them() {
    let named = DELAYED.replace("GPTBot", "bingbot");
    let over = |name: &str| Override::agent(name, RateMode::Refuse).expect("a name");
    const BINGBOT: &str = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)";
    for (file, policy, want) in [
        (named.as_str(), refusing(), 10),
        (&named, Policy::builder().with_rate_override(Override::index_engines(RateMode::Refuse)), 10),
        (&named, Policy::builder().with_rate_override(over("bingbot")), 5),
        // The delay is in the group for `*`.
        (DELAYED, Policy::builder().with_rate_override(over("bingbot")), 10),
    ] {
        let (layer, live, _) = limited(policy);
        live.publish_blocking(file).expect("a robots.txt");
        assert_eq!(passed(&layer, || from(BINGBOT, [192, 0, 2, 1])).await, want, "{file}");
    }
    let (layer, _, _) = limited(refusing());
    let found = passed(&layer, || known(GOOGLEBOT, [192, 0, 2, 1], REFUTED)).await;
    assert_eq!(found, 5, "an impostor is no search engine");
}

#[tokio::test]
async fn requests_over_an_observed_limit_pass_and_are_reported() {
    let (reports, notes) = noting(Vec::new());
    let (layer, live, _) = limited(Policy::builder().rate(RateMode::Observe));
    let layer = layer.on_disallowed(move |event| notes.lock().push((event.record.action, event.record.reason)));
    assert_eq!(passed(&layer, || from(GPTBOT, [192, 0, 2, 1])).await, 10);
    assert_eq!(*reports.lock(), [(Action::Pass, Reason::LimitObserved); 5]);
    // No request is limited if the rate mode is off, or if enforcement is off.
    live.set_policy(Policy::default());
    assert_eq!(passed(&layer, || from(GPTBOT, [192, 0, 2, 1])).await, 10);
    live.set_policy(refusing().build());
    assert_eq!(passed(&layer, || from(GPTBOT, [192, 0, 2, 1])).await, 0);
    live.set_enforcement(Enforcement::Off).expect("no state directory");
    assert_eq!(passed(&layer, || from(GPTBOT, [192, 0, 2, 1])).await, 10);
    assert_eq!(reports.lock().len(), 15);
}

#[tokio::test]
async fn a_new_version_gives_no_sender_a_new_burst() {
    let (layer, live, clock) = limited(refusing());
    let senders = [known(GPTBOT, [192, 0, 2, 1], VERIFIED), from(GPTBOT, [192, 0, 2, 2])];
    let again = |request: &Request<Body>| {
        let mut copy = get("/page", GPTBOT);
        *copy.extensions_mut() = request.extensions().clone();
        copy
    };
    for sender in &senders {
        assert_eq!(passed(&layer, || again(sender)).await, 5);
    }
    live.publish_blocking(format!("# moved\n{DELAYED}")).expect("a robots.txt");
    live.publish_blocking("# no delay\nUser-agent: GPTBot\nDisallow: /drafts/\n").expect("a robots.txt");
    clock.pass(Duration::from_secs(1));
    live.publish_blocking(DELAYED).expect("a robots.txt");
    for sender in &senders {
        assert_eq!(passed(&layer, || again(sender)).await, 0);
    }
    // A shorter delay applies immediately; a delay above 30 s is capped at 30 s.
    live.publish_blocking(DELAYED.replace("10", "0.5")).expect("a robots.txt");
    assert_eq!(passed(&layer, || again(&senders[0])).await, 0, "what is owed is cut to a burst");
    clock.pass(Duration::from_millis(500));
    assert_eq!(passed(&layer, || again(&senders[0])).await, 1);
    live.publish_blocking(DELAYED.replace("10", "86400")).expect("a robots.txt");
    clock.pass(Duration::from_secs(30));
    assert!(passed(&layer, || again(&senders[0])).await >= 1);
}

fn limited_by(file: &str, policy: PolicyBuilder) -> RobotsLayer {
    let (layer, live, _) = limited(policy);
    live.publish_blocking(file).expect("a robots.txt");
    layer
}

#[tokio::test]
async fn another_name_in_the_user_agent_does_not_disable_rate_limiting() {
    let star = "User-agent: *\nCrawl-delay: 10\nDisallow:\n";
    let disallowed = format!("{DELAYED}\nUser-agent: BadBot\nUser-agent: Googlebot\nDisallow: /\n");
    let sparing = |mode: Mode| refusing().with_override(Override::agent("BadBot", mode).expect("a name"));
    for (file, policy, agent) in [
        // The search engine has the same delay, but is only observed.
        (star, refusing(), "bingbot/2.0 GPTBot/1.2"),
        (star, refusing(), "GPTBot/1.2 bingbot/2.0"),
        // The other crawler is disallowed, but the override prevents a refusal.
        (&disallowed, sparing(Mode::Observe), "GPTBot/1.2 BadBot/1"),
        (&disallowed, sparing(Mode::Off), "GPTBot/1.2 BadBot/1"),
        (&disallowed, sparing(Mode::Tag), "BadBot/1 GPTBot/1.2"),
        (&disallowed, refusing(), "GPTBot/1.2 Googlebot/2.1"),
    ] {
        let layer = limited_by(file, policy);
        assert_eq!(passed(&layer, || from(agent, [192, 0, 2, 1])).await, 5, "{agent} by {file}");
        let response = ask(layer.clone(), from(agent, [192, 0, 2, 1])).await;
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        let record = response.extensions().get::<Record>().expect("a record");
        assert_eq!((record.name(), record.access), ("GPTBot", Some(crate::rules::Access::Allow)), "{agent}");
    }
    // If one of the agents is refused, the request is refused.
    let layer = limited_by(&disallowed, refusing());
    for _ in 0..10 {
        let response = ask(layer.clone(), from("GPTBot/1.2 BadBot/1", [192, 0, 2, 1])).await;
        assert_eq!(response.status(), StatusCode::FORBIDDEN);
    }
    assert_eq!(passed(&layer, || from(GPTBOT, [192, 0, 2, 1])).await, 5);
}

#[tokio::test]
async fn invented_names_give_a_client_address_no_extra_requests() {
    let slow_star = "User-agent: GPTBot\nCrawl-delay: 10\n\nUser-agent: *\nCrawl-delay: 20\nDisallow:\n";
    let layer = limited_by(slow_star, refusing());
    let mut number = 0;
    let mut made_up = |rest: &str| {
        number += 1;
        format!("X{number}Bot/1 {rest}")
    };
    let mut agents = |rest: &str| (0..10).map(|_| made_up(rest)).collect::<Vec<_>>();
    for (rest, address) in [("GPTBot/1.2", [192, 0, 2, 1]), ("", [192, 0, 2, 2])] {
        let passed = passed_of(&layer, agents(rest).iter().map(|agent| from(agent.trim(), address))).await;
        assert_eq!(passed, 5, "{rest:?}");
    }
    // These requests took their tokens from GPTBot's bucket for this address.
    assert_eq!(passed(&layer, || from(GPTBOT, [192, 0, 2, 1])).await, 0);
    assert_eq!(passed(&layer, || from(GPTBOT, [192, 0, 2, 2])).await, 5);
}

#[tokio::test]
async fn a_refused_impostor_does_not_count_and_gets_no_retry_after() {
    let layer = limited_by(DELAYED, refusing().impostors(Impostors::Refuse));
    for _ in 0..10 {
        let response = ask(layer.clone(), known(GPTBOT, [192, 0, 2, 1], REFUTED)).await;
        assert_eq!(response.status(), StatusCode::FORBIDDEN);
    }
}

#[tokio::test]
async fn a_verified_crawler_has_its_own_counter_even_if_the_group_has_its_other_name() {
    let layer = limited_by("User-agent: Googlebot\nCrawl-delay: 10\nDisallow:\n", {
        let over = Override::agent("Googlebot-Image", RateMode::Refuse).expect("a name");
        Policy::builder().rate_burst(std::num::NonZeroU32::MIN).with_rate_override(over)
    });
    let image = || known("Googlebot-Image/1.0", [192, 0, 2, 1], VERIFIED);
    assert_eq!(passed(&layer, image).await, 1);
    // These requests come from more networks than there are buckets for networks.
    for number in 0..100_000_u32 {
        let [_, b, c, d] = number.to_be_bytes();
        let _ = layer.decide(&OriginalRequest::of(&from("Googlebot-Image/1.0", [10, b, c, d]))).respond(None);
    }
    assert_eq!(passed(&layer, image).await, 0);
}

#[tokio::test]
async fn a_limited_response_names_the_requested_and_the_enforced_delay() {
    let layer = limited_by(&DELAYED.replace("10", "100"), refusing());
    passed(&layer, || from(GPTBOT, [192, 0, 2, 1])).await;
    let body = text(ask(layer, from(GPTBOT, [192, 0, 2, 1])).await).await;
    assert!(body.contains("for one request every 100 s. One every 30 s is enforced, and"), "{body}");
    assert!(body.contains("Crawl-delay: 100 "), "{body}");
}

#[tokio::test]
async fn exempt_requests_do_not_count_towards_the_limit() {
    use crate::policy::SuspectHuman;
    let policy = refusing().exempt_cookies(["monitor"]).expect("a name");
    let policy = policy.session_cookies(["session"]).expect("a name").suspect_human(SuspectHuman::Exempt);
    let layer = limited_by(DELAYED, policy);
    for cookie in ["monitor=1", "session=1"] {
        let exempt = || with(from(GPTBOT, [192, 0, 2, 1]), "cookie", cookie);
        assert_eq!(passed(&layer, exempt).await, 10, "{cookie}");
        assert!(
            layer.clone().counted_in_store().decide(&OriginalRequest::of(&exempt())).rate_limited().is_none(),
            "{cookie}"
        );
    }
    assert_eq!(passed(&layer, || from(GPTBOT, [192, 0, 2, 1])).await, 5);
}

#[tokio::test]
async fn fetching_the_refusal_of_a_request_again_does_not_count_towards_the_limit() {
    let (layer, live, clock) = limited(refusing());
    let again = told_senders(&live).refusals_only();
    for sender in [|| from(GPTBOT, [192, 0, 2, 1]), || known(GPTBOT, [192, 0, 2, 1], VERIFIED)] {
        assert_eq!(passed(&layer, sender).await, 5);
        let response = ask(again.clone(), sender()).await;
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(field(&response, "ratelimit"), Some("\"crawl\";r=0;t=10"));
        // The crawl delay has passed by now. The request is refused nevertheless, but takes no
        // token.
        clock.pass(Duration::from_secs(10));
        for _ in 0..3 {
            assert_eq!(ask(again.clone(), sender()).await.status(), StatusCode::TOO_MANY_REQUESTS);
        }
        assert_eq!(passed(&layer, sender).await, 1);
    }
}

#[tokio::test]
async fn an_impostor_is_counted_in_the_store_even_if_its_name_is_exempt() {
    let policy = refusing().exempt_agents(["GPTBot"]).expect("a name");
    let (layer, _, _) = limited(policy);
    let store = layer.clone().counted_in_store();
    let key = |request: Request<Body>| {
        store.decide(&OriginalRequest::of(&request)).rate_limited().map(|rate_limited| rate_limited.key.clone())
    };
    assert_eq!(key(known(GPTBOT, [192, 0, 2, 1], VERIFIED)), None);
    assert_eq!(key(known(GPTBOT, [192, 0, 2, 1], REFUTED)).as_deref(), Some("gptbot refuted"));
    assert_eq!(passed(&layer, || known(GPTBOT, [192, 0, 2, 1], REFUTED)).await, 5);
}

#[tokio::test]
async fn requests_that_the_store_allows_are_also_counted_locally() {
    let (layer, _, clock) = limited(refusing());
    let alone = || from(GPTBOT, [192, 0, 2, 1]);
    let passed_as_told = |request: &dyn Fn() -> Request<Body>, wait| {
        let told = |_: &usize| told(&layer, request(), Some(Duration::from_secs(wait))).is_none();
        (0..10).filter(told).count()
    };
    // More requests pass than the local bucket allows, because the store decides.
    assert_eq!(passed_as_told(&alone, 0), 10);
    assert_eq!(passed(&layer, alone).await, 0, "no new burst once it is counted here alone");
    clock.pass(Duration::from_secs(20));
    assert_eq!(passed_as_told(&alone, 7), 0, "denied elsewhere");
    assert_eq!(passed(&layer, alone).await, 2, "which takes nothing here");
    // A request without a rate limit passes, whatever the store's reply is.
    assert_eq!(passed_as_told(&|| at("/a.png", alone()), 7), 10);
}

#[test]
fn a_request_passes_if_a_callback_panics_after_the_reply_of_the_store() {
    let (layer, live, _) = limited(refusing());
    let calls = Mutex::new(0);
    let layer = layer.target_from(move |_| {
        // The function returns `None` while the request is judged, and panics if it is called again
        // after the store's reply.
        *calls.lock() += 1;
        assert_eq!(*calls.lock(), 1, "too much");
        None
    });
    let refusal = told(&layer, from(GPTBOT, [192, 0, 2, 1]), Some(Duration::from_secs(7)));
    assert!(refusal.is_none());
    assert_eq!(live.status().faults, 1);
}

#[test]
fn named_inline_files_have_separate_buckets_in_a_store() {
    let mut hosts = HostMap::new();
    for host in ["a.example", "b.example"] {
        let live = LiveRobots::text(DELAYED).named(host).policy(refusing().build()).open().expect("rules");
        assert!(live.status().last_reload.to_string().starts_with(&format!("{host}: version ")));
        hosts.insert(host, live).expect("a host");
    }
    let layer = RobotsLayer::new(hosts).counted_in_store();
    for host in ["a.example", "b.example"] {
        let request = from(GPTBOT, [192, 0, 2, 1]);
        let request = OriginalRequest::of(&request).with_host(Some(host.as_bytes()));
        assert_eq!(layer.decide(&request).rate_limited().map(|rate_limited| &*rate_limited.origin), Some(host));
    }
}

#[tokio::test]
async fn reopening_a_site_under_the_same_name_gives_no_client_a_new_burst() {
    let (cache, clock) = (crate::live::CompileCache::default(), TestClock::new());
    let open = |name: Option<&str>, max_age: u64| {
        let policy = refusing().build();
        let builder = LiveRobots::text(DELAYED).policy(policy).clock(clock.read()).compile_cache(&cache);
        let builder = builder.max_age(Duration::from_secs(max_age));
        let live = name.into_iter().fold(builder, |builder, name| builder.counted_as(name)).open().expect("rules");
        told_senders(&live)
    };
    for sender in [|| from(GPTBOT, [192, 0, 2, 1]), || known(GPTBOT, [192, 0, 2, 1], VERIFIED)] {
        let first = open(Some("shop"), 60);
        assert_eq!(passed(&first, sender).await, 5);
        assert_eq!(passed(&open(Some("shop"), 600), sender).await, 0);
        // The count is kept even after the earlier site is dropped.
        drop(first);
        assert_eq!(passed(&open(Some("shop"), 60), sender).await, 0);
        assert_eq!(passed(&open(Some("blog"), 60), sender).await, 5, "another site");
        assert_eq!(passed(&open(None, 60), sender).await, 5, "no name");
        clock.pass(Duration::from_secs(3600));
    }
}

#[tokio::test]
async fn invented_names_before_a_framework_name_give_a_client_address_no_extra_requests() {
    let layer = limited_by("User-agent: Nutch\nCrawl-delay: 10\n", refusing());
    assert_eq!(passed_by(&layer, [192, 0, 2, 1], |number| format!("X{number}Bot/Nutch-1.10")).await, 5);
    assert_eq!(passed_by(&layer, [192, 0, 2, 2], |number| format!("X{number}Bot/Nutch-1.10")).await, 5);
}

#[tokio::test]
async fn unnamed_automated_clients_are_limited_by_address_and_people_are_never_limited() {
    use crate::policy::{EmptyAgent, WildcardScope};
    let star = "User-agent: *\nCrawl-delay: 10\nDisallow: /drafts/\n";
    let everyone = || {
        Policy::builder()
            .mode(Mode::Refuse)
            .wildcard_scope(WildcardScope::Everyone)
            .wildcard_empty(EmptyAgent::Hold)
            .rate(RateMode::Refuse)
    };
    const HEADLESS: &str =
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/120.0.0.0 Safari/537.36";
    for (agent, want) in [
        ("curl/8.5.0", 5),
        ("python-requests/2.31.0", 5),
        (HEADLESS, 5),
        // People may use each of these agents.
        (FIREFOX, 10),
        ("", 10),
        ("com.example.shop/7", 10),
    ] {
        let layer = limited_by(star, everyone());
        assert_eq!(passed_by(&layer, [192, 0, 2, 1], |_| agent.to_owned()).await, want, "{agent}");
        let status = ask(layer.clone(), at("/drafts/x", from(agent, [192, 0, 2, 1]))).await.status();
        assert_eq!(status, StatusCode::FORBIDDEN, "held to the group all the same: {agent}");
        // Without an address, all clients with unknown names share one bucket, and so do all
        // headless browsers. A client without a name is not limited.
        let want = if agent == HEADLESS { want } else { 10 };
        assert_eq!(passed(&layer, || get("/page", agent)).await, want, "{agent}");
    }
    // With the client's address, all of these agents and invented names share one bucket.
    let layer = limited_by(star, everyone());
    let agents = ["curl/8.5.0", HEADLESS, "NeverSeenBot/1.0"];
    assert_eq!(passed_by(&layer, [192, 0, 2, 1], |number| agents[number % 3].to_owned()).await, 5);
    // By default, `*` does not apply to these agents.
    let layer = limited_by(star, refusing());
    assert_eq!(passed_by(&layer, [192, 0, 2, 1], |_| "curl/8.5.0".to_owned()).await, 10);
}
