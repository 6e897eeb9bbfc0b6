//! The variant of the layer for axum 0.8: it is correct in nested routers, and judges each request
//! once.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{OriginalUri, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn, from_fn_with_state, map_request};
use axum::response::Response;
use axum::routing::get;
use tower::{Layer, ServiceBuilder, ServiceExt};
use tower_robots::agent::{Identity, Refutation};
use tower_robots::layer::RobotsLayer;
use tower_robots::layer::axum08::CrawlerRequest;
use tower_robots::live::LiveRobots;
use tower_robots::policy::{Impostors, Mode, Policy, SuspectHuman};
use tower_robots::source::{HostMap, IntoSites, SiteMap, Sites};

const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";
const GPTBOT: &str = "GPTBot/1.2";
const FILE: &str = "User-agent: GPTBot\nDisallow: /a/b/drafts/\nDisallow: /drafts/\nAllow: /drafts/open\n\nUser-agent: CCBot\nDisallow: /x/\n";

fn live(file: &str, mode: Mode) -> LiveRobots {
    LiveRobots::text(file).policy(Policy::builder().mode(mode).build()).open().unwrap()
}

fn request(target: &str, agent: &str) -> Request {
    Request::get(target).header("user-agent", agent).body(Body::empty()).unwrap()
}

async fn status(app: &Router, target: &str, agent: &str) -> StatusCode {
    app.clone().oneshot(request(target, agent)).await.unwrap().status()
}

fn pages() -> Router {
    Router::new().route("/drafts/{page}", get(async || "a draft")).route("/open/{page}", get(async || "open"))
}

/// Returns an app for each place of the layer below the prefix `/a/b`.
fn nested(layer: &RobotsLayer) -> Vec<(&'static str, Router)> {
    let at_a_b = |router: Router| Router::new().nest("/a", Router::new().nest("/b", router));
    let layered = || pages().layer(layer.clone());
    let page = || get(async || "a page").layer(layer.clone());
    vec![
        ("layer of the inner router", at_a_b(layered())),
        ("layer of its routes", at_a_b(pages().route_layer(layer.clone()))),
        ("layer of a method router", at_a_b(Router::new().route("/{folder}/{page}", page()))),
        (
            "layer of the router between",
            Router::new().nest("/a", Router::new().nest("/b", pages()).layer(layer.clone())),
        ),
        ("layer of the outer router", at_a_b(pages()).layer(layer.clone())),
        (
            "layer of each",
            Router::new().nest("/a", Router::new().nest("/b", layered()).layer(layer.clone())).layer(layer.clone()),
        ),
        ("nested in one step", Router::new().nest("/a/b", layered())),
        ("below captures", Router::new().nest("/{one}/{two}", layered())),
        ("a nested service", Router::new().nest_service("/a", Router::new().nest_service("/b", layered()))),
        ("the layer in front of a nested service", Router::new().nest_service("/a/b", layer.layer(pages()))),
        (
            "fallback of the inner router",
            Router::new().nest("/a/b", Router::new().fallback(async || "a page").layer(layer.clone())),
        ),
        (
            "fallback service",
            Router::new().nest("/a", Router::new().fallback_service(Router::new().nest("/b", layered()))),
        ),
        (
            "route service",
            Router::new()
                .nest("/a", Router::new().route_service("/b/{folder}/{page}", layer.layer(get(async || "a page")))),
        ),
        ("merged", Router::new().route("/", get(async || "home")).merge(at_a_b(layered()))),
    ]
}

#[tokio::test]
async fn a_disallowed_crawler_is_refused_at_every_place_of_the_layer_in_nested_routers() {
    let live = live("User-agent: GPTBot\nDisallow: /a/b/drafts/\n", Mode::Refuse);
    for (place, app) in nested(&RobotsLayer::for_axum08(&live)) {
        for prefix in ["", "http://example.com"] {
            for (path, agent, want) in [
                ("/a/b/drafts/x", GPTBOT, StatusCode::FORBIDDEN),
                ("/a/b/drafts/x?y=1", GPTBOT, StatusCode::FORBIDDEN),
                ("/a/b/open/x", GPTBOT, StatusCode::OK),
                ("/a/b/drafts/x", FIREFOX, StatusCode::OK),
            ] {
                assert_eq!(status(&app, &format!("{prefix}{path}"), agent).await, want, "{place}: {path}");
            }
        }
    }
    assert_eq!((live.status().stripped_targets, live.status().faults), (0, 0));
}

/// A plain layer in a nested router is a common mistake: disallowed crawlers pass. The status
/// counts such requests.
#[tokio::test]
async fn the_plain_layer_counts_requests_judged_by_a_stripped_target() {
    let live = live("User-agent: GPTBot\nDisallow: /a/b/drafts/\n", Mode::Refuse);
    let plain = || RobotsLayer::new(live.clone());
    let nested = |layer: RobotsLayer| Router::new().nest("/a/b", pages().layer(layer));
    assert_eq!(status(&nested(plain()), "/a/b/drafts/x", GPTBOT).await, StatusCode::OK);
    assert_eq!(live.status().stripped_targets, 1);
    assert_eq!(status(&nested(plain()), "/a/b/open/x", GPTBOT).await, StatusCode::OK);
    assert_eq!(live.status().stripped_targets, 2);
    // Requests of people are not counted, and neither are requests whose whole target the layer
    // finds.
    status(&nested(plain()), "/a/b/drafts/x", FIREFOX).await;
    let whole = Router::new().nest("/a/b", pages()).layer(plain());
    assert_eq!(status(&whole, "/a/b/drafts/x", GPTBOT).await, StatusCode::FORBIDDEN);
    let given = plain().target_from(|extensions| extensions.get::<OriginalUri>().map(|uri| &uri.0));
    assert_eq!(status(&nested(given), "/a/b/drafts/x", GPTBOT).await, StatusCode::FORBIDDEN);
    assert_eq!(live.status().stripped_targets, 2);
}

/// The app enforces a file that it does not serve.
#[tokio::test]
async fn requests_judged_only_in_a_nested_router_are_counted() {
    let site = live("User-agent: GPTBot\nDisallow: /a/b/drafts/\n", Mode::Refuse);
    let layer = RobotsLayer::for_axum08(&site);
    let nested = || Router::new().nest("/a", Router::new().nest("/b", pages().layer(layer.clone())));
    let alone = nested();
    assert_eq!(status(&alone, "/a/b/drafts/x", GPTBOT).await, StatusCode::FORBIDDEN);
    assert_eq!(site.status().nested_only, 1);
    assert_eq!(status(&alone, "/a/b/open/x", GPTBOT).await, StatusCode::OK);
    assert_eq!(site.status().nested_only, 2);
    // Requests of people, and of crawlers without a group, are not counted.
    for agent in [FIREFOX, "CCBot/2.0"] {
        assert_eq!(status(&alone, "/a/b/drafts/x", agent).await, StatusCode::OK);
    }
    // Requests that an outer layer judges are not counted, and neither are requests in the
    // outermost router.
    let other = RobotsLayer::for_axum08(live("User-agent: GPTBot\nAllow: /\n", Mode::Refuse));
    for outer in [layer.clone(), other] {
        let app = nested().layer(outer);
        assert_eq!(status(&app, "/a/b/drafts/x", GPTBOT).await, StatusCode::FORBIDDEN);
        assert_eq!(status(&app, "/a/b/open/x", GPTBOT).await, StatusCode::OK);
    }
    let merged = Router::new().route("/", get(async || "home")).merge(pages().layer(layer.clone()));
    assert_eq!(status(&merged, "/open/x", GPTBOT).await, StatusCode::OK);
    // An outer layer adds no mark to a request with two `User-Agent` lines.
    let mut two_agents = request("/a/b/open/x", GPTBOT);
    two_agents.headers_mut().append("user-agent", HeaderValue::from_static("CCBot/2.0"));
    assert_eq!(nested().layer(layer.clone()).oneshot(two_agents).await.unwrap().status(), StatusCode::OK);
    assert_eq!(site.status().nested_only, 2);
}

#[tokio::test]
async fn only_the_outermost_router_serves_robots_txt() {
    let layer = RobotsLayer::for_axum08(live(FILE, Mode::Refuse));
    let inner = Router::new().nest("/a", Router::new().fallback(async || "the fallback").layer(layer.clone()));
    let response = inner.clone().oneshot(request("/a/robots.txt", GPTBOT)).await.unwrap();
    assert_eq!(to_bytes(response.into_body(), 1000).await.unwrap(), "the fallback");
    assert_eq!(status(&inner, "/robots.txt", GPTBOT).await, StatusCode::NOT_FOUND);
    let response = inner.layer(layer).oneshot(request("/robots.txt", GPTBOT)).await.unwrap();
    assert_eq!(to_bytes(response.into_body(), 1000).await.unwrap(), FILE);
    // In a router without routes, the layer wraps the fallback.
    let bare = Router::new().layer(RobotsLayer::for_axum08(live(FILE, Mode::Refuse)));
    assert_eq!(status(&bare, "/robots.txt", GPTBOT).await, StatusCode::OK);
}

/// Tests the table in `docs/src/howto/library.md`. `ours` and `theirs` are the routes of two teams.
#[tokio::test]
async fn robots_txt_is_served_only_if_the_layer_wraps_the_final_fallback() {
    let layer = RobotsLayer::for_axum08(live(
        "User-agent: GPTBot\nDisallow: /cart\nDisallow: /shop/cart\nDisallow: /account\n",
        Mode::Refuse,
    ));
    let ours = || Router::<()>::new().route("/cart", get(async || "the cart"));
    let robots = || ours().layer(layer.clone());
    let theirs = || Router::<()>::new().route("/account", get(async || "the account"));
    let page = async || (StatusCode::NOT_FOUND, "no such page");
    for (which, app, cart, want) in [
        (
            "merged, the layer last",
            ours().merge(theirs()).fallback(page).layer(layer.clone()),
            "/cart",
            [200, 403, 403],
        ),
        ("nested, the layer last", theirs().nest("/shop", ours()).layer(layer.clone()), "/shop/cart", [200, 403, 403]),
        ("theirs.merge(ours)", theirs().merge(robots()), "/cart", [200, 403, 200]),
        ("ours.merge(theirs)", robots().merge(theirs()), "/cart", [404, 403, 200]),
        ("their fallback", theirs().fallback(page).merge(robots()), "/cart", [404, 403, 200]),
        ("a fallback later", robots().merge(theirs()).fallback(page), "/cart", [404, 403, 200]),
        ("nested", theirs().nest("/shop", robots()), "/shop/cart", [404, 403, 200]),
    ] {
        for (path, want) in ["/robots.txt", cart, "/account"].into_iter().zip(want) {
            assert_eq!(status(&app, path, GPTBOT).await.as_u16(), want, "{which}: {path}");
        }
    }
}

/// Counts the calls of a layer's address function (one per judged request) and of its observers.
#[derive(Clone, Default)]
struct Counts {
    judged: Arc<AtomicUsize>,
    observed: Arc<AtomicUsize>,
}

impl Counts {
    fn count(&self, layer: RobotsLayer) -> RobotsLayer {
        let (judged, observed) = (self.judged.clone(), self.observed.clone());
        layer
            .address_from(move |_| {
                judged.fetch_add(1, Ordering::Relaxed);
                None
            })
            .on_disallowed(move |_| {
                observed.fetch_add(1, Ordering::Relaxed);
            })
    }

    fn take(&self) -> (usize, usize) {
        (self.judged.swap(0, Ordering::Relaxed), self.observed.swap(0, Ordering::Relaxed))
    }
}

fn in_two_layers(outer: RobotsLayer, inner: RobotsLayer) -> Router {
    Router::new().nest("/a", Router::new().nest("/b", pages()).layer(inner)).layer(outer)
}

#[tokio::test]
async fn two_axum_layers_judge_once_if_the_inner_one_adds_no_site_and_no_observer() {
    for mode in [Mode::Observe, Mode::Tag] {
        let counts = Counts::default();
        let site = live(FILE, mode);
        let layer = |sites: Sites| counts.count(RobotsLayer::for_axum08(sites));
        let hosts = || {
            let mut hosts = HostMap::new();
            hosts.insert("*", site.clone()).unwrap();
            hosts
        };
        let other = live(FILE, mode);
        let whole = layer(site.clone().into_sites());
        for (which, outer, inner, judged) in [
            ("clones", whole.clone(), whole.clone(), 1),
            ("an observer of its own", whole.clone(), layer(site.clone().into_sites()), 2),
            ("another site", whole.clone(), layer(other.clone().into_sites()), 2),
            ("a plain layer outside", counts.count(RobotsLayer::new(site.clone())), whole.clone(), 2),
        ] {
            let app = in_two_layers(outer, inner);
            assert_eq!(status(&app, "/a/b/drafts/x", GPTBOT).await, StatusCode::OK);
            assert_eq!(counts.take(), (judged, judged), "{mode}: {which}, disallowed");
            assert_eq!(status(&app, "/a/b/open/x", GPTBOT).await, StatusCode::OK);
            assert_eq!(counts.take(), (judged, 0), "{mode}: {which}, allowed");
        }
        // These layers have no observers of their own.
        let plain = |sites: Sites| {
            let judged = counts.judged.clone();
            RobotsLayer::for_axum08(sites).address_from(move |_| {
                judged.fetch_add(1, Ordering::Relaxed);
                None
            })
        };
        for (which, outer, inner) in [
            ("the same handle", whole.clone(), plain(site.clone().into_sites())),
            ("a host map with it", whole.clone(), plain(hosts().into_sites())),
            ("sites that can be replaced", plain(SiteMap::new(hosts()).into_sites()), plain(hosts().into_sites())),
        ] {
            let app = in_two_layers(outer, inner);
            assert_eq!(status(&app, "/a/b/drafts/x", GPTBOT).await, StatusCode::OK);
            assert_eq!(counts.take().0, 1, "{mode}: {which}");
        }
    }
}

#[tokio::test]
async fn each_observer_of_nested_layers_is_notified_once() {
    let (shared, own) = (Counts::default(), Counts::default());
    let count = |counts: &Counts| {
        let (judged, observed) = (counts.judged.clone(), counts.observed.clone());
        let add = |counter: &AtomicUsize| {
            counter.fetch_add(1, Ordering::Relaxed);
        };
        (move || add(&judged), move || add(&observed))
    };
    let watch = |layer: RobotsLayer, counts: &Counts| {
        let (crawler, disallowed) = count(counts);
        layer.on_crawler(move |_| crawler()).on_disallowed(move |_| disallowed())
    };
    for mode in [Mode::Observe, Mode::Tag] {
        let outer = watch(RobotsLayer::for_axum08(live(FILE, mode)), &shared);
        let inner = watch(outer.clone(), &own);
        // With three layers, the innermost has nothing to do.
        let innermost = pages().layer(outer.clone());
        let app = Router::new().nest("/a", Router::new().nest("/b", innermost).layer(inner)).layer(outer);
        for (path, notified) in [("/a/b/drafts/x", (1, 1)), ("/a/b/open/x", (1, 0))] {
            assert_eq!(status(&app, path, GPTBOT).await, StatusCode::OK);
            assert_eq!((shared.take(), own.take()), (notified, notified), "{mode}: {path}");
        }
        // No group names this crawler.
        assert_eq!(status(&app, "/a/b/drafts/x", "Googlebot/2.1").await, StatusCode::OK);
        assert_eq!((shared.take(), own.take()), ((1, 0), (1, 0)), "{mode}");
        assert_eq!(status(&app, "/a/b/drafts/x", FIREFOX).await, StatusCode::OK);
        assert_eq!((shared.take(), own.take()), ((0, 0), (0, 0)));
    }
}

#[tokio::test]
async fn an_exemption_in_an_outer_layer_does_not_exempt_the_request_in_an_inner_layer() {
    let policy = Policy::builder()
        .mode(Mode::Refuse)
        .exempt_networks(["10.0.0.0/8"])
        .unwrap()
        .session_cookies(["sid"])
        .unwrap()
        .suspect_human(SuspectHuman::Exempt);
    let site = LiveRobots::text(FILE).policy(policy.build()).open().unwrap();
    let outer = RobotsLayer::for_axum08(site.clone()).address_from(|_| Some([10, 0, 0, 1].into()));
    let inner = RobotsLayer::for_axum08(site.clone()).address_from(|_| Some([11, 0, 0, 1].into()));
    let app = in_two_layers(outer.clone(), inner.clone());
    assert_eq!(status(&app, "/a/b/drafts/x", GPTBOT).await, StatusCode::FORBIDDEN);
    assert_eq!(status(&in_two_layers(outer.clone(), outer), "/a/b/drafts/x", GPTBOT).await, StatusCode::OK);

    let counts = Counts::default();
    let observed = counts.observed.clone();
    let inner = inner.on_disallowed(move |_| {
        observed.fetch_add(1, Ordering::Relaxed);
    });
    let person = || {
        let mut request = request("/a/b/drafts/x", GPTBOT);
        request.headers_mut().insert("cookie", HeaderValue::from_static("sid=1"));
        request
    };
    let stripped = map_request(async |mut request: Request| {
        request.headers_mut().remove("cookie");
        request
    });
    let behind = |layer: RobotsLayer| Router::new().nest("/a", Router::new().nest("/b", pages()).layer(layer));
    let app = behind(inner.clone()).layer(stripped).layer(inner.clone());
    assert_eq!(app.oneshot(person()).await.unwrap().status(), StatusCode::FORBIDDEN);
    assert_eq!(counts.take().1, 2, "two decisions");
    let app = behind(inner.clone()).layer(inner);
    assert_eq!(app.oneshot(person()).await.unwrap().status(), StatusCode::OK);
    assert_eq!(counts.take().1, 1, "one decision");
}

#[tokio::test]
async fn an_inner_layer_with_its_own_site_enforces_its_own_rules() {
    let open = RobotsLayer::for_axum08(live("User-agent: GPTBot\nAllow: /\n", Mode::Refuse));
    let strict = RobotsLayer::for_axum08(live(FILE, Mode::Refuse));
    let app = in_two_layers(open, strict);
    assert_eq!(status(&app, "/a/b/drafts/x", GPTBOT).await, StatusCode::FORBIDDEN);
    assert_eq!(status(&app, "/a/b/open/x", GPTBOT).await, StatusCode::OK);
}

#[tokio::test]
async fn an_inner_layer_judges_a_changed_request_again() {
    let layer = RobotsLayer::for_axum08(live(FILE, Mode::Refuse));
    let between = |change: fn(&mut Request)| {
        let change = map_request(move |mut request: Request| {
            change(&mut request);
            ready(request)
        });
        let inner = pages().layer(layer.clone()).layer(change);
        Router::new().fallback_service(inner).layer(layer.clone())
    };
    let agent = between(|request| {
        request.headers_mut().insert("user-agent", HeaderValue::from_static(GPTBOT));
    });
    let second_agent = between(|request| {
        request.headers_mut().append("user-agent", HeaderValue::from_static(GPTBOT));
    });
    let original_uri = between(|request| {
        request.extensions_mut().insert(OriginalUri(Uri::from_static("/drafts/x")));
    });
    for (what, app, target, agent) in [
        ("agent", agent, "/drafts/x", "CCBot/2.0"),
        ("second agent", second_agent, "/drafts/x", "CCBot/2.0"),
        ("original URI", original_uri, "/drafts/open", GPTBOT),
    ] {
        assert_eq!(status(&app, target, agent).await, StatusCode::FORBIDDEN, "{what}");
    }
    // Without a change between the layers, both requests pass.
    let app = between(|_| {});
    assert_eq!(status(&app, "/drafts/x", "CCBot/2.0").await, StatusCode::OK);
    assert_eq!(status(&app, "/drafts/open", GPTBOT).await, StatusCode::OK);

    // The two layers judge different targets, because the target is rewritten between them.
    let rewritten = ServiceBuilder::new()
        .layer(layer.clone())
        .map_request(|mut request: Request| {
            *request.uri_mut() = Uri::from_static("/drafts/x");
            request
        })
        .service(pages().layer(layer));
    let response = rewritten.oneshot(request("/drafts/open", GPTBOT)).await.unwrap();
    assert_eq!(response.status(), StatusCode::FORBIDDEN);

    // The method has changed since the request was judged: the groups for `*` do not apply to POST.
    let star = live("User-agent: *\nDisallow: /drafts/\n", Mode::Refuse);
    let layer = RobotsLayer::for_axum08(star).on_crawler(|_| {});
    let change = map_request(async |mut request: Request| {
        *request.method_mut() = Method::GET;
        request
    });
    let app = Router::new().fallback_service(pages().layer(layer.clone()).layer(change)).layer(layer);
    let mut request = request("/drafts/x", GPTBOT);
    *request.method_mut() = Method::POST;
    assert_eq!(app.oneshot(request).await.unwrap().status(), StatusCode::FORBIDDEN);
}

/// `User-Agent` lines that a trusted proxy kept are treated like the request's own.
#[tokio::test]
async fn an_inner_layer_judges_again_if_a_proxys_user_agent_lines_have_changed() {
    type Kept = Vec<HeaderValue>;
    let kept = |lines: &[&'static str]| lines.iter().map(|line| HeaderValue::from_static(line)).collect::<Kept>();
    let counts = Counts::default();
    let layer = counts
        .count(RobotsLayer::for_axum08(live(FILE, Mode::Refuse)))
        .agent_from(|extensions| extensions.get::<Kept>().map(Vec::as_slice));
    for (before, behind, want, judged) in [
        (kept(&["CCBot/2.0"]), kept(&["CCBot/2.0"]), StatusCode::OK, 1),
        (kept(&["CCBot/2.0"]), kept(&[GPTBOT]), StatusCode::FORBIDDEN, 2),
        // Each layer judges a request with several lines.
        (kept(&["CCBot/2.0", FIREFOX]), kept(&["CCBot/2.0", GPTBOT]), StatusCode::FORBIDDEN, 2),
    ] {
        let outside = map_request(move |mut request: Request| {
            request.extensions_mut().insert(before.clone());
            ready(request)
        });
        let between = map_request(move |mut request: Request| {
            request.extensions_mut().insert(behind.clone());
            ready(request)
        });
        let inner = pages().layer(layer.clone()).layer(between);
        let app = Router::new().fallback_service(inner).layer(layer.clone()).layer(outside);
        assert_eq!(status(&app, "/drafts/x", "x").await, want);
        assert_eq!(counts.take().0, judged);
    }
}

#[tokio::test]
async fn a_request_with_the_copied_extensions_of_a_judged_request_is_judged() {
    let layer = RobotsLayer::for_axum08(live(FILE, Mode::Refuse));
    let inner = pages().layer(layer.clone());
    let copy = from_fn_with_state(inner, async |State(inner): State<Router>, outside: Request, _: Next| -> Response {
        let mut request = request("/drafts/x", GPTBOT);
        *request.extensions_mut() = outside.extensions().clone();
        request.extensions_mut().remove::<OriginalUri>();
        inner.oneshot(request).await.unwrap()
    });
    let app = pages().layer(copy).layer(layer);
    assert_eq!(status(&app, "/drafts/open", GPTBOT).await, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn an_application_middleware_on_two_nested_routers_judges_a_request_once() {
    async fn robots(State(layer): State<RobotsLayer>, mut request: Request, next: Next) -> Response {
        match layer.respond(&mut request) {
            Some(response) => response.map(Body::from),
            None => next.run(request).await,
        }
    }
    let counts = Counts::default();
    let layer = counts.count(RobotsLayer::for_axum08(live(FILE, Mode::Observe)));
    let function = || from_fn_with_state(layer.clone(), robots);
    let app = Router::new().nest("/a/b", pages().layer(function())).layer(function());
    assert_eq!(status(&app, "/a/b/drafts/x", GPTBOT).await, StatusCode::OK);
    assert_eq!(counts.take(), (1, 1));
}

#[tokio::test]
async fn an_inner_layer_adds_its_extension_even_if_an_outer_layer_has_judged_the_request() {
    use tower_robots::layer::Record;
    let site = live(FILE, Mode::Observe);
    let outer = RobotsLayer::for_axum08(site.clone());
    let inner = RobotsLayer::for_axum08(site).with_crawler_extension();
    let show = from_fn(async |request: Request, next: Next| -> Response {
        let crawler = request.extensions().get::<Record>().cloned();
        let mut response = next.run(request).await;
        if let Some(crawler) = crawler {
            response.extensions_mut().insert(crawler);
        }
        response
    });
    let app = Router::new().nest("/a/b", pages().layer(show).layer(inner)).layer(outer);
    let response = app.oneshot(request("/a/b/drafts/x", GPTBOT)).await.unwrap();
    assert_eq!(response.extensions().get::<Record>().unwrap().name(), "GPTBot");
}

#[tokio::test]
async fn an_impostor_is_refused_if_either_of_two_nested_layers_checks_senders() {
    let impostor = Identity::Refuted(Refutation::NotListed);
    let policy = Policy::builder().mode(Mode::Refuse).impostors(Impostors::Refuse).build();
    let live = LiveRobots::text(FILE).policy(policy).open().unwrap();
    let unchecked = RobotsLayer::for_axum08(live.clone());
    let checked = RobotsLayer::for_axum08(live).identity_from(move |_| Some(impostor));
    let crawler = |layer: &RobotsLayer| layer.clone().with_crawler_extension();
    for (outer, inner) in [(&unchecked, &checked), (&checked, &unchecked), (&checked, &checked)] {
        for app in [in_two_layers(outer.clone(), inner.clone()), in_two_layers(crawler(outer), crawler(inner))] {
            assert_eq!(status(&app, "/a/b/open/x", GPTBOT).await, StatusCode::FORBIDDEN);
        }
    }
}

#[tokio::test]
async fn a_handler_can_extract_the_name_of_the_crawler_that_sends_the_request() {
    let name = async |crawler: Option<CrawlerRequest>| {
        crawler.map_or("nobody".to_owned(), |crawler| crawler.name().to_owned())
    };
    let only = async |crawler: CrawlerRequest| crawler.name().to_owned();
    let file = format!("{FILE}\nUser-agent: curl\nDisallow: /x/\n");
    let pages = Router::new().route("/open", get(name)).route("/only", get(only));
    let app = Router::new().nest("/a", pages).layer(RobotsLayer::for_axum08(live(&file, Mode::Refuse)));
    for (target, agent, status, text) in [
        ("/a/open", GPTBOT, StatusCode::OK, "GPTBot"),
        ("/a/open", "OtherBot/1.0 (+https://other.test/bot)", StatusCode::OK, "OtherBot"),
        ("/a/open", FIREFOX, StatusCode::OK, "nobody"),
        // A group names curl, but curl is not a crawler.
        ("/a/open", "curl/8.5.0", StatusCode::OK, "nobody"),
        ("/a/only", GPTBOT, StatusCode::OK, "GPTBot"),
        ("/a/only", FIREFOX, StatusCode::NOT_FOUND, ""),
    ] {
        let response = app.clone().oneshot(request(target, agent)).await.unwrap();
        assert_eq!(response.status(), status, "{target} {agent}");
        let body = to_bytes(response.into_body(), 100).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&body), text, "{target} {agent}");
    }
}
