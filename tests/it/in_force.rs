//! Settings that have no effect: each causes a warning and is counted.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::StatusCode;
use axum::response::Html;
use axum::routing::get;
use bytes::Bytes;
use http::Response;
use tower::ServiceExt;
use tower_robots::agent::{Category, Registry};
use tower_robots::layer::{FieldRule, RobotsLayer, SenderCheck, Signals};
use tower_robots::live::{Gate, LiveRobots, Status};
use tower_robots::parts::VerifyLayer;
use tower_robots::policy::{Crawlers, IdentityNeeded, Impostors, Mode, Override, Policy, PolicyBuilder, RateMode};
use tower_robots::source::evidence::Verifier;
use tower_robots::source::fetch::Fetcher;
use tracing::Level;

use crate::events::events;

const FILE: &str = "User-agent: GPTBot\nCrawl-delay: 9\nDisallow: /drafts/\n";
const GPTBOT: &str = "GPTBot/1.2";

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

fn live(policy: PolicyBuilder) -> LiveRobots {
    LiveRobots::text(FILE).policy(policy.mode(Mode::Refuse).build()).open().unwrap()
}

fn request(target: &str) -> Request {
    Request::get(target).header("user-agent", GPTBOT).body(Body::empty()).unwrap()
}

fn answer(app: &Router, request: Request) -> (u16, String) {
    let response = block_on(app.clone().oneshot(request)).unwrap();
    let status = response.status().as_u16();
    (status, String::from_utf8(block_on(to_bytes(response.into_body(), 10_000)).unwrap().to_vec()).unwrap())
}

fn warnings(work: impl FnOnce()) -> Vec<String> {
    let is_warning = |(level, target, text): (Level, &str, String)| {
        (level == Level::WARN && target == "tower_robots::layer").then_some(text)
    };
    events(work).into_iter().filter_map(is_warning).collect()
}

fn pages() -> Router {
    Router::new().route("/drafts/{page}", get(async || "a draft"))
}

/// A place for the layer in an app, with the expected response and warning.
#[derive(Clone, Copy)]
struct Placement {
    name: &'static str,
    robots_txt: (u16, &'static str),
    /// Part of the warning when crawlers are refused, whether or not `/robots.txt` is requested.
    warning: Option<&'static str>,
    app: fn(RobotsLayer) -> Router,
}

const FOUND: (u16, &str) = (200, FILE);
const MISSING: (u16, &str) = (404, "");
const MISPLACED: &str = "100 crawler requests were judged, but none for /robots.txt reached the layer";
const NESTED: &str = "on a nested axum router";
const SHADOWED: &str = "the application has a route for /robots.txt";

fn placements() -> [Placement; 13] {
    type App = fn(RobotsLayer) -> Router;
    let place = |name, robots_txt, warning, app: App| Placement { name, robots_txt, warning, app };
    [
        place("the outermost router, last", FOUND, None, |layer| pages().fallback(async || "a page").layer(layer)),
        place("the outermost router, over a nested one", FOUND, None, |layer| {
            Router::new().nest("/drafts", Router::new().route("/{page}", get(async || "a draft"))).layer(layer)
        }),
        place("route_layer", MISSING, Some(MISPLACED), |layer| pages().route_layer(layer)),
        place("a method router", MISSING, Some(MISPLACED), |layer| {
            Router::new().route("/drafts/{page}", get(async || "a draft").layer(layer))
        }),
        place("before a later fallback", (200, "a page"), Some(MISPLACED), |layer| {
            pages().layer(layer).fallback(async || "a page")
        }),
        place("before a later fallback service", (200, "a page"), Some(MISPLACED), |layer| {
            pages().layer(layer).fallback_service(get(async || "a page"))
        }),
        place("before a later merge", MISSING, Some(MISPLACED), |layer| {
            pages().layer(layer).merge(Router::new().route("/", get(async || "home")))
        }),
        place("a nested router alone", MISSING, Some(NESTED), |layer| {
            Router::new().nest("/drafts", Router::new().route("/{page}", get(async || "a draft")).layer(layer))
        }),
        place("route_layer, with the route", FOUND, None, |layer| {
            pages().route_layer(layer.clone()).merge(layer.robots_txt_route())
        }),
        place("a method router, with the service as a route", FOUND, None, |layer| {
            let pages = Router::new().route("/drafts/{page}", get(async || "a draft").layer(layer.clone()));
            pages.route_service("/robots.txt", layer.robots_txt_service())
        }),
        place("the outermost router, and the route too", FOUND, None, |layer| {
            pages().merge(layer.robots_txt_route()).layer(layer)
        }),
        place("over a route of the application's own", FOUND, Some(SHADOWED), |layer| {
            pages().route("/robots.txt", get(async || "User-agent: *\nAllow: /\n")).layer(layer)
        }),
        place("served elsewhere", MISSING, None, |layer| pages().route_layer(layer.robots_txt_served_elsewhere())),
    ]
}

#[test]
fn a_layer_that_refuses_but_never_serves_robots_txt_warns() {
    type Form = (&'static str, fn(&LiveRobots) -> RobotsLayer);
    let forms: [Form; 2] =
        [("for_axum08", |live| RobotsLayer::for_axum08(live)), ("new", |live| RobotsLayer::new(live))];
    let cases = placements().into_iter().flat_map(|placement| forms.map(|form| (placement, form)));
    for (Placement { name, robots_txt, warning, app }, (form, layer)) in cases {
        // The plain layer has another warning in nested routers.
        if warning == Some(NESTED) && form == "new" {
            continue;
        }
        let live = live(Policy::builder());
        let app = app(layer(&live));
        let is_reached = robots_txt.1 == FILE;
        let warned = warnings(|| {
            if is_reached {
                assert_eq!(answer(&app, request("/robots.txt")), (robots_txt.0, robots_txt.1.to_owned()), "{name}");
            }
            for _ in 0..150 {
                assert_eq!(answer(&app, request("/drafts/x")).0, 403, "{name}");
            }
            assert_eq!(answer(&app, request("/robots.txt")), (robots_txt.0, robots_txt.1.to_owned()), "{name}");
        });
        let of_place: Vec<_> = warned.iter().filter(|text| warning.is_some_and(|part| text.contains(part))).collect();
        assert_eq!(of_place.len(), usize::from(warning.is_some()), "{name}: {warned:?}");
        let others = warned.len() - of_place.len();
        // A nested router does not see `/robots.txt` either.
        assert_eq!(others, usize::from(warning == Some(NESTED)), "{name}: {warned:?}");
        let Status { unserved, shadowed_routes, .. } = live.status();
        let is_misplaced = [Some(MISPLACED), Some(NESTED)].contains(&warning);
        let want = (if is_misplaced { 150 } else { 0 }, warning == Some(SHADOWED));
        assert_eq!((unserved, shadowed_routes > 0), want, "{name}");
    }
}

/// Requests of people are not evidence of a misplaced layer. The hundredth request of a crawler is.
#[test]
fn the_warning_counts_only_crawler_requests_and_one_served_robots_txt_ends_it() {
    let site = live(Policy::builder());
    let app = pages().route_layer(RobotsLayer::for_axum08(&site));
    let by_person = || {
        let mut request = request("/drafts/x");
        request
            .headers_mut()
            .insert("user-agent", "Mozilla/5.0 (X11; rv:143.0) Gecko/20100101 Firefox/143.0".parse().unwrap());
        request
    };
    let warned = warnings(|| {
        (0..200).for_each(|_| drop(answer(&app, by_person())));
        (0..99).for_each(|_| drop(answer(&app, request("/drafts/x"))));
    });
    assert_eq!((warned.len(), site.status().unserved), (0, 99), "{warned:?}");
    assert_eq!(warnings(|| drop(answer(&app, request("/drafts/x")))).len(), 1);
    // It is enough if one layer of a site serves the file.
    let outermost = Router::new().layer(RobotsLayer::for_axum08(&site));
    assert_eq!(answer(&outermost, request("/robots.txt")).0, 200);
    assert_eq!(warnings(|| (0..300).for_each(|_| drop(answer(&app, request("/drafts/x"))))).len(), 0);
    assert_eq!(site.status().unserved, 0);
}

/// Evidence about a client, as the application provides it to the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evidence {
    /// The layer finds no address.
    Nothing,
    /// A proxy is trusted, but the address of the connection is unknown.
    ProxyWithoutPeer,
    /// A trusted proxy names no client.
    NamelessProxy,
    Peer,
    /// The address of a proxy, which names the client.
    NamedByProxy,
}

impl Evidence {
    const ALL: [Self; 5] = [Self::Nothing, Self::ProxyWithoutPeer, Self::NamelessProxy, Self::Peer, Self::NamedByProxy];

    const fn has_address(self) -> bool {
        matches!(self, Self::Peer | Self::NamedByProxy)
    }

    fn layer(self, layer: RobotsLayer) -> RobotsLayer {
        match self {
            Self::Nothing | Self::Peer => layer,
            _ => layer.forwarded_for(["10.0.0.0/8"]).unwrap(),
        }
    }

    fn request(self) -> Request {
        let mut request = request("/drafts/x");
        let peer = match self {
            Self::Nothing | Self::ProxyWithoutPeer => None,
            Self::Peer => Some([203, 0, 113, 9]),
            Self::NamelessProxy | Self::NamedByProxy => Some([10, 0, 0, 1]),
        };
        if let Some(peer) = peer {
            request.extensions_mut().insert(ConnectInfo(SocketAddr::from((peer, 80))));
        }
        if matches!(self, Self::ProxyWithoutPeer | Self::NamedByProxy) {
            request.headers_mut().insert("x-forwarded-for", "203.0.113.9".parse().unwrap());
        }
        request
    }
}

#[test]
fn a_setting_that_needs_a_client_address_warns_if_the_address_is_unknown() {
    let fetcher = Fetcher::builder().connect_to(|_, _| Some(("127.0.0.1".into(), 9))).start().unwrap();
    let verifier = Verifier::builder(Registry::builtin()).fetcher(&fetcher).without_names().start().unwrap();
    let granted = || Override::agent("GPTBot", Mode::Observe).unwrap();
    let features: [(&str, PolicyBuilder, &str); 6] = [
        ("nothing", Policy::builder(), ""),
        (
            "exempt networks",
            Policy::builder().exempt_networks(["203.0.113.0/24"]).unwrap(),
            "the exempt networks have no effect",
        ),
        ("delays", Policy::builder().rate(RateMode::Refuse), "share one crawl delay"),
        ("impostors", Policy::builder().impostors(Impostors::Refuse), "impostors pass"),
        (
            "identity for an exemption",
            Policy::builder().identity_needed(IdentityNeeded::Verified).exempt_agents(["GPTBot"]).unwrap(),
            "that depend on a crawler's identity do not apply",
        ),
        (
            "identity for an override",
            Policy::builder().identity_needed(IdentityNeeded::Verified).with_override(granted()),
            "that depend on a crawler's identity do not apply",
        ),
    ];
    let cases = features.into_iter().flat_map(|feature| Evidence::ALL.map(|evidence| (feature.clone(), evidence)));
    for ((feature, policy, rule), evidence) in cases {
        let live = live(policy);
        let layer = RobotsLayer::for_axum08(&live).verifier(SenderCheck::new(&verifier));
        let app = pages().route("/page", get(async || "a page")).layer(evidence.layer(layer));
        let warned = warnings(|| {
            for target in ["/drafts/x", "/drafts/x", "/page", "/page"] {
                let mut request = evidence.request();
                *request.uri_mut() = target.parse().unwrap();
                let is_exempt = feature == "exempt networks" && evidence.has_address();
                if target == "/drafts/x" {
                    let want = if is_exempt { 200 } else { 403 };
                    assert_eq!(answer(&app, request).0, want, "{feature}, {evidence:?}");
                } else {
                    answer(&app, request);
                }
            }
        });
        let is_missing = feature != "nothing" && !evidence.has_address();
        assert_eq!(warned.len(), usize::from(is_missing), "{feature}, {evidence:?}: {warned:?}");
        assert!(warned.iter().all(|text| text.contains(rule)), "{feature}, {evidence:?}: {warned:?}");
        assert_eq!(live.status().without_address > 0, is_missing, "{feature}, {evidence:?}");
        assert_eq!(live.status().unchecked_claims, 0, "{feature}, {evidence:?}");
        let remedy = match evidence {
            Evidence::NamelessProxy => "configure this proxy to send X-Forwarded-For",
            _ => "into_make_service_with_connect_info::<SocketAddr>()",
        };
        assert!(warned.iter().all(|text| text.contains(remedy)), "{feature}, {evidence:?}: {warned:?}");
    }
}

#[test]
fn a_setting_that_needs_an_identity_warns_if_nothing_checks_identities() {
    let needed = || Policy::builder().identity_needed(IdentityNeeded::Verified);
    for (policy, is_warned) in [
        (Policy::builder(), false),
        (needed(), false),
        (Policy::builder().impostors(Impostors::Tag), true),
        (needed().exempt_agents(["GPTBot"]).unwrap(), true),
        (needed().with_rate_override(Override::agent("GPTBot", RateMode::Off).unwrap()), true),
    ] {
        let live = live(policy);
        let app = pages().layer(RobotsLayer::for_axum08(&live));
        let warned = warnings(|| (0..2).for_each(|_| drop(answer(&app, request("/drafts/x")))));
        assert_eq!(warned.len(), usize::from(is_warned), "{warned:?}");
        assert!(warned.iter().all(|text| text.contains("but nothing checks this, so impostors pass")), "{warned:?}");
        assert_eq!(live.status().unchecked_claims, if is_warned { 2 } else { 0 });
    }
}

/// A common first version of an application: a proxy is trusted, but the layer cannot find the
/// client's address.
#[test]
fn a_missing_peer_address_behind_a_trusted_proxy_causes_a_warning() {
    let live = live(Policy::builder().exempt_networks(["203.0.113.0/24"]).unwrap());
    let layer = RobotsLayer::new(&live).forwarded_for(["10.0.0.0/8"]).unwrap();
    let app = pages().layer(layer);
    let warned = warnings(|| assert_eq!(answer(&app, Evidence::NamedByProxy.request()).0, 403));
    assert!(matches!(&warned[..], [text] if text.contains("set RobotsLayer::address_from")), "{warned:?}");
    assert_eq!(live.status().without_address, 1);
}

/// The proxy is not listed, so its address would silently count as the client's.
#[test]
fn a_proxy_that_is_not_listed_causes_a_warning() {
    let office = || Policy::builder().exempt_networks(["203.0.113.0/24"]).unwrap();
    let through = |peer: &str, field: Option<&'static str>| {
        let mut request = request("/drafts/x");
        let peer: SocketAddr = format!("{peer}:4711").parse().unwrap();
        request.extensions_mut().insert(ConnectInfo(peer));
        if let Some(name) = field {
            let value = if name == "forwarded" { "for=203.0.113.9" } else { "203.0.113.9" };
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        request
    };
    for (policy, peer, field, is_warned) in [
        (office(), "127.0.0.1", Some("x-forwarded-for"), true),
        (office(), "10.0.0.7", Some("forwarded"), true),
        (Policy::builder().rate(RateMode::Refuse), "127.0.0.1", Some("x-forwarded-for"), true),
        // A client can send the field itself, so it proves nothing about a public peer.
        (office(), "198.51.100.7", Some("x-forwarded-for"), false),
        (office(), "127.0.0.1", None, false),
        // No setting needs the address.
        (Policy::builder(), "127.0.0.1", Some("x-forwarded-for"), false),
    ] {
        let live = live(policy);
        let app = pages().route("/page", get(async || "a page")).layer(RobotsLayer::for_axum08(&live));
        let warned = warnings(|| {
            answer(&app, through(peer, field));
            let mut allowed = through(peer, field);
            *allowed.uri_mut() = "/page".parse().unwrap();
            answer(&app, allowed);
        });
        assert_eq!(warned.len(), usize::from(is_warned), "{peer} {field:?}: {warned:?}");
        assert!(warned.iter().all(|text| text.contains("forwarded_for does not list")), "{warned:?}");
        assert_eq!(live.status().without_address > 0, is_warned, "{peer} {field:?}");
    }
}

/// Every crawler would be exempt, because the address of a proxy is in an exempt network.
#[test]
fn a_proxy_in_an_exempt_network_causes_a_warning() {
    let peer = |extensions: &http::Extensions| Some(extensions.get::<ConnectInfo<SocketAddr>>()?.0.ip());
    let layers = |live: &LiveRobots| {
        [
            RobotsLayer::for_axum08(live),
            RobotsLayer::new(live).address_from(peer),
            RobotsLayer::new(live).address_from(peer).forwarded_for(["192.0.2.0/24", "10.0.0.0/8"]).unwrap(),
        ]
    };
    for (exempt, peer, forwarded, want) in [
        ("10.0.0.0/8", "10.0.0.5", Some("203.0.113.9"), [Some("does not list"), Some("does not list"), None]),
        ("172.16.0.0/12", "10.0.0.5", Some("203.0.113.9, 172.16.0.9"), [Some("does not list"); 3]),
        ("127.0.0.1", "127.0.0.1", None, [Some("if this is a proxy"); 3]),
        ("::1", "::ffff:127.0.0.1", Some("127.0.0.1"), [None; 3]),
        // The client itself is in the exempt network.
        ("10.0.0.0/8", "192.0.2.7", Some("10.1.2.3"), [None; 3]),
        ("192.168.0.0/16", "10.0.0.5", Some("192.168.0.3"), [Some("does not list"), Some("does not list"), None]),
        ("203.0.113.0/24", "203.0.113.9", None, [None; 3]),
    ] {
        let names = ["for_axum08", "address_from", "forwarded_for"];
        for (at, (name, want)) in names.into_iter().zip(want).enumerate() {
            let live = live(Policy::builder().exempt_networks([exempt]).unwrap());
            let app = pages().layer(layers(&live)[at].clone());
            let warned = warnings(|| {
                for _ in 0..2 {
                    let mut request = request("/drafts/x");
                    request.extensions_mut().insert(ConnectInfo(SocketAddr::new(peer.parse().unwrap(), 80)));
                    if let Some(forwarded) = forwarded {
                        request.headers_mut().insert("x-forwarded-for", forwarded.parse().unwrap());
                    }
                    answer(&app, request);
                }
            });
            assert_eq!(warned.len(), usize::from(want.is_some()), "{name}, {peer}, {forwarded:?}: {warned:?}");
            assert!(warned.iter().all(|text| text.contains(want.unwrap())), "{name}, {peer}: {warned:?}");
        }
    }
}

#[test]
fn an_override_that_a_later_override_replaces_is_reported() {
    const LINE: &str = "the override for agent \"gptbot\" has no effect, because the later override for category \
                        \"ai-training\" also applies";
    let gptbot = |mode| Override::agent("GPTBot", mode).unwrap();
    let training = |mode| Override::category(Category::AiTraining, mode);
    let claimed = Policy::builder;
    let verified = || Policy::builder().identity_needed(IdentityNeeded::Verified);
    for (policy, first, second, is_replaced) in [
        (claimed(), gptbot(Mode::Refuse), training(Mode::Observe), true),
        (claimed(), gptbot(Mode::Observe), training(Mode::Refuse), true),
        (claimed(), gptbot(Mode::Refuse), training(Mode::Refuse), false),
        (claimed(), gptbot(Mode::Refuse), training(Mode::Observe).until(std::time::SystemTime::now()), false),
        (claimed(), gptbot(Mode::Refuse), Override::category(Category::Search, Mode::Observe), false),
        (claimed(), training(Mode::Observe), gptbot(Mode::Refuse), false),
        (verified(), gptbot(Mode::Refuse), training(Mode::Observe), false),
        (verified(), gptbot(Mode::Observe), training(Mode::Refuse), true),
    ] {
        let live = live(policy.with_override(first).with_override(second));
        let lines = live.snapshot().settings_without_effect();
        assert_eq!(lines.iter().any(|line| line.starts_with(LINE)), is_replaced, "{lines:?}");
    }
}

#[test]
fn a_rate_override_that_does_not_limit_its_crawlers_is_reported() {
    const DELAY: &str = "User-agent: *\nCrawl-delay: 5\n";
    const OWN_DELAY: &str = "User-agent: bingbot\nCrawl-delay: 5\n";
    let engines = || Override::index_engines(RateMode::Refuse);
    let search = || Override::category(Category::Search, RateMode::Observe);
    let of_agent = |name, mode| Override::agent(name, mode).unwrap();
    for (robots, over, want) in [
        (FILE, engines(), Some("the rate override for index engines does not limit")),
        (FILE, search(), Some("the rate override for category \"search\" does not limit")),
        (FILE, Override::index_engines(RateMode::Off), None),
        (FILE, of_agent("bingbot", RateMode::Off), None),
        (FILE, of_agent("bingbot", RateMode::Refuse), Some("the rate override for agent \"bingbot\" has no effect")),
        (FILE, of_agent("GPTBot", RateMode::Refuse), None),
        (DELAY, of_agent("bingbot", RateMode::Refuse), Some("the rate override for agent \"bingbot\" only records")),
        (DELAY, of_agent("bingbot", RateMode::Observe), None),
        (DELAY, of_agent("GPTBot", RateMode::Refuse), None),
        (OWN_DELAY, of_agent("bingbot", RateMode::Refuse), None),
        (OWN_DELAY, of_agent("GPTBot", RateMode::Refuse), Some("the rate override for agent \"gptbot\" has no effect")),
    ] {
        let policy = Policy::builder().mode(Mode::Refuse).rate(RateMode::Refuse).with_rate_override(over).build();
        let live = LiveRobots::text(robots).policy(policy).open().unwrap();
        let lines = live.snapshot().settings_without_effect();
        assert_eq!(lines.iter().filter(|line| line.contains("rate override")).count(), usize::from(want.is_some()));
        assert!(want.is_none_or(|want| lines.iter().any(|line| line.starts_with(want))), "{lines:?}");
    }
}

/// The pattern of a router would exempt nothing, or the wrong paths.
#[test]
fn a_router_pattern_is_refused_as_an_exempt_path() {
    for pattern in ["/api/{*rest}", "/users/{id}"] {
        let error = Policy::builder().exempt_paths([pattern]).unwrap_err().to_string();
        assert!(error.contains("has braces like a pattern of a router: write a pattern as in robots.txt"), "{error}");
    }
}

/// A second call adds values to those of the first call.
#[test]
fn repeated_calls_of_a_list_setting_add_values() {
    let policy =
        Policy::builder().exempt_networks(["203.0.113.0/24"]).unwrap().exempt_networks(["198.51.100.7"]).unwrap();
    let policy = policy.exempt_paths(["/drafts/a"]).unwrap().exempt_paths(["/drafts/b"]).unwrap();
    let app = |policy: PolicyBuilder| {
        let layer = RobotsLayer::for_axum08(live(policy)).forwarded_for(["10.0.0.0/8"]).unwrap();
        pages().layer(layer.forwarded_for([std::net::Ipv4Addr::new(192, 0, 2, 1)]).unwrap())
    };
    let exempt = app(policy);
    for (peer, client, target, want) in [
        ([10, 0, 0, 1], "203.0.113.9", "/drafts/x", 200),
        ([192, 0, 2, 1], "203.0.113.9", "/drafts/x", 200),
        ([192, 0, 2, 1], "198.51.100.7", "/drafts/x", 200),
        ([192, 0, 2, 1], "198.51.100.8", "/drafts/x", 403),
        ([192, 0, 2, 2], "203.0.113.9", "/drafts/x", 403),
        ([192, 0, 2, 2], "", "/drafts/a", 200),
        ([192, 0, 2, 2], "", "/drafts/b", 200),
    ] {
        let mut request = request(target);
        request.extensions_mut().insert(ConnectInfo(SocketAddr::from((peer, 80))));
        request.headers_mut().insert("x-forwarded-for", client.parse().unwrap());
        assert_eq!(answer(&exempt, request).0, want, "{peer:?} {client} {target}");
    }
    assert_eq!(answer(&exempt, request("/.well-known/x")).0, 404, "exempt as ever");
}

#[test]
fn the_default_gate_equals_gate_new() {
    assert_eq!(format!("{:?}", Gate::default()), format!("{:?}", Gate::new()));
    assert_ne!(format!("{:?}", Gate::default()), format!("{:?}", Gate::open()));
}

/// A response without a status becomes a refusal, and a response with a status keeps it.
#[test]
fn a_refusal_keeps_an_explicit_status_and_otherwise_gets_403() {
    let layer = || RobotsLayer::for_axum08(live(Policy::builder()));
    let page = || Bytes::from_static(b"no");
    let with_status = |status: StatusCode| Response::builder().status(status).body(Bytes::from_static(b"no")).unwrap();
    let robots: [(&str, RobotsLayer, u16); 8] = [
        ("Response::new", layer().refuse_with(move |_| Response::new(page())), 403),
        ("404", layer().refuse_with(move |_| with_status(StatusCode::NOT_FOUND)), 404),
        ("451", layer().refuse_with(move |_| with_status(StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS)), 451),
        ("302", layer().refuse_with(move |_| with_status(StatusCode::FOUND)), 302),
        ("Html", layer().refuse_with(|_| Html("no")), 403),
        ("Html of a String", layer().refuse_with(|event| Html(event.record.name().replace("GPTBot", "no"))), 403),
        ("(StatusCode, Html)", layer().refuse_with(|_| (StatusCode::GONE, Html("no"))), 410),
        ("(200, Response)", layer().refuse_with(move |_| (StatusCode::OK, Response::new(page()))), 200),
    ];
    for (which, robots, want) in robots {
        let app = pages().layer(robots);
        assert_eq!(answer(&app, request("/drafts/x")), (want, "no".to_owned()), "{which}");
        let response = block_on(app.oneshot(request("/drafts/x"))).unwrap();
        let is_html = response.headers().get("content-type").is_some_and(|kind| kind == "text/html; charset=utf-8");
        assert_eq!(is_html, which.contains("Html"), "{which}");
    }
}

#[test]
fn the_layer_can_be_wrapped_in_an_option_layer() {
    for (is_on, want) in [(true, 403), (false, 200)] {
        let layer = || is_on.then(|| RobotsLayer::for_axum08(live(Policy::builder())).same_body());
        let app = pages().layer(tower::util::option_layer(layer()));
        assert_eq!(answer(&app, request("/drafts/x")).0, want);
        let page = tower::service_fn(async |_: Request| {
            Ok::<_, std::convert::Infallible>(Response::new(Body::from("a draft")))
        });
        let service = tower::ServiceBuilder::new().option_layer(layer()).service(page);
        assert_eq!(block_on(service.oneshot(request("/drafts/x"))).unwrap().status().as_u16(), want);
    }
}

/// A rule for a field is checked when the layer gets it, because no request reveals the mistake.
#[test]
fn a_header_field_for_an_unknown_crawler_causes_a_warning() {
    let known = [Crawlers::agent("GPTBot").unwrap(), Crawlers::Operator("openai".into())];
    let unknown = [Crawlers::agent("GPTBott").unwrap(), Crawlers::Operator("OpenIA".into())];
    let rule = |crawlers| FieldRule::new("/", "X-Robots-Tag", "noindex").unwrap().for_crawlers(crawlers);
    let warned = |crawlers: [Crawlers; 2]| {
        let live = LiveRobots::text(FILE).open().unwrap();
        events(|| drop(RobotsLayer::new(live).signals(Signals::default().field(rule(crawlers)))))
    };
    assert_eq!(warned(known), []);
    let [(_, _, name), (Level::WARN, "tower_robots::layer", operator)] = &warned(unknown)[..] else { panic!() };
    let name_help = "the rule for the field x-robots-tag for \"gptbott\" has no effect, because no crawler and no group \
                     has this name: did you mean \"GPTBot\"?";
    assert_eq!(name, name_help);
    assert!(operator.ends_with("operator: did you mean \"OpenAI\"?"), "{operator}");
}

/// A list of crawlers from a configuration may be empty. The field must not go to every client.
#[test]
fn a_header_field_with_an_empty_crawler_list_is_never_sent_and_causes_a_warning() {
    let rule = FieldRule::new("/", "X-Robots-Tag", "noindex").unwrap();
    for (rule, want) in [(rule.clone(), 1), (rule.for_crawlers([]), 0)] {
        let mut app = Router::new();
        let warned = warnings(|| {
            let layer = RobotsLayer::for_axum08(live(Policy::builder())).signals(Signals::default().field(rule));
            app = Router::new().route("/page", get(async || "a page")).layer(layer);
        });
        let response = block_on(app.oneshot(request("/page"))).unwrap();
        assert_eq!(response.headers().get_all("x-robots-tag").iter().count(), want);
        assert_eq!(warned.len(), 1 - want, "{warned:?}");
        assert!(warned.iter().all(|text| text.contains("because its list of crawlers is empty")), "{warned:?}");
    }
}

#[test]
fn a_verify_layer_without_a_verifier_or_an_address_causes_a_warning() {
    let layer = || RobotsLayer::new(LiveRobots::text(FILE).open().unwrap());
    let warned = |layer: RobotsLayer, wait| events(|| drop(VerifyLayer::new(&layer, wait)));
    let fetcher = Fetcher::builder().connect_to(|_, _| Some(("127.0.0.1".into(), 9))).start().unwrap();
    let verifier = Verifier::builder(Registry::builtin()).fetcher(&fetcher).without_names().start().unwrap();
    assert_eq!(warned(layer(), Duration::ZERO), []);
    let checked = || layer().verifier(SenderCheck::new(&verifier));
    assert_eq!(warned(checked().address_from(|_| None), VerifyLayer::MAX_WAIT), []);
    for (layer, setter) in [(layer(), "verifier"), (checked(), "address_from")] {
        let [(Level::WARN, "tower_robots::layer", text)] = &warned(layer, VerifyLayer::MAX_WAIT)[..] else { panic!() };
        assert!(text.contains(&format!("requests do not wait for evidence: call RobotsLayer::{setter}")), "{text}");
    }
}
