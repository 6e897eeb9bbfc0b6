//! The layer outside and inside every layer that an application is likely to have: tower-http's,
//! axum's and Tower's.
//!
//! Each test covers both orders, in an axum app, which has the strictest requirements for a
//! service: `Clone`, `Send`, `Sync`, a body that axum accepts, and no error. In both orders a
//! crawler is refused and can read `/robots.txt`, whatever the other layer is.

mod axum_own;
mod tower_http;
mod tower_own;

use std::convert::Infallible;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response, StatusCode};
use axum::routing::get;
use bytes::Bytes;
use http_body_util::Full;
use tower::{ServiceBuilder, ServiceExt, service_fn};
use tower_robots::layer::RobotsLayer;
use tower_robots::live::LiveRobots;
use tower_robots::policy::{Mode, Policy};

const FILE: &str = "User-agent: GPTBot\nDisallow: /drafts/\n";
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";

fn robots() -> RobotsLayer {
    let policy = Policy::builder().mode(Mode::Refuse).build();
    RobotsLayer::new(LiveRobots::text(FILE).policy(policy).open().unwrap())
}

fn app() -> Router {
    Router::new().route("/drafts/{page}", get(async || "a draft"))
}

/// Creates a request that every layer here lets through.
fn request(agent: &str, target: &str) -> Request<Body> {
    let request = Request::get(target).header("user-agent", agent).header("host", "example.com");
    let request = request.header("accept", "text/plain").header("authorization", "Bearer token");
    request.body(Body::empty()).unwrap()
}

async fn fetch(app: &Router, agent: &str, target: &str) -> (StatusCode, Bytes) {
    let response = app.clone().oneshot(request(agent, target)).await.unwrap();
    (response.status(), to_bytes(response.into_body(), 10_000).await.unwrap())
}

/// Checks that a person can read the page, and that a crawler can read the file but not the page.
async fn assert_enforces(app: Router) {
    assert_eq!(fetch(&app, FIREFOX, "/drafts/x").await, (StatusCode::OK, "a draft".into()));
    assert_eq!(fetch(&app, "GPTBot/1.2", "/robots.txt").await, (StatusCode::OK, FILE.into()));
    let (status, refusal) = fetch(&app, "GPTBot/1.2", "/drafts/x").await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(refusal.starts_with(b"403 Forbidden\n\n"), "{refusal:?}");
}

/// Creates a test for each layer, with this crate's layer outside it and inside it. The handler
/// after `under` is outside both layers, because axum requires errors to be handled.
macro_rules! in_both_orders {
    ($($name:ident: $layer:expr $(, under $handler:expr)?;)+) => {$(
        #[tokio::test]
        async fn $name() {
            let stack = tower::ServiceBuilder::new();
            let above = stack.clone()$(.layer($handler))?.layer(super::robots()).layer($layer);
            super::assert_enforces(super::app().layer(above)).await;
            let below = stack$(.layer($handler))?.layer($layer).layer(super::robots());
            super::assert_enforces(super::app().layer(below)).await;
        }
    )+};
}
use in_both_orders;

/// Layers that create responses need an empty body, so the response body must implement `Default`.
#[tokio::test]
async fn cors_and_timeout_layers_work_outside_the_robots_layer_without_axum() {
    async fn page(_: Request<Full<Bytes>>) -> Result<Response<Full<Bytes>>, Infallible> {
        Ok(Response::new(Full::from("a page")))
    }
    let service = ServiceBuilder::new()
        .layer(::tower_http::cors::CorsLayer::permissive())
        .layer(::tower_http::timeout::TimeoutLayer::with_status_code(
            StatusCode::GATEWAY_TIMEOUT,
            std::time::Duration::from_secs(60),
        ))
        .layer(robots())
        .service(service_fn(page));
    let preflight = Request::options("/drafts/x").header("user-agent", "GPTBot/1.2");
    let preflight = preflight.header("access-control-request-method", "GET").body(Full::default()).unwrap();
    let response = service.clone().oneshot(preflight).await.unwrap();
    let want = (StatusCode::OK, &b"*"[..]);
    assert_eq!((response.status(), response.headers()["access-control-allow-origin"].as_bytes()), want);
    let request = Request::get("/drafts/x").header("user-agent", "GPTBot/1.2").body(Full::default()).unwrap();
    assert_eq!(service.oneshot(request).await.unwrap().status(), StatusCode::FORBIDDEN);
}
