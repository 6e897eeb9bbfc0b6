//! The responses to a client of the site while its robots.txt is being fetched.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tower::{ServiceBuilder, ServiceExt, service_fn};
use tower_robots::internals::{RemoteSource, Schedule};
use tower_robots::layer::RobotsLayer;
use tower_robots::live::{LiveRobots, ReloadOutcome};
use tower_robots::policy::{Mode, Policy};
use tower_robots::source::LiveBuilder;

use super::server::{Server, response, robots};
use crate::waiting::PATIENCE;

const ROBOTS: &str = "User-agent: GPTBot\nDisallow: /private/\n";

/// Returns the status and body that a crawler gets. The application answers with 200 and `app`.
fn get(live: &LiveRobots, target: &str) -> (StatusCode, String) {
    let app = service_fn(async |_: Request<Full<Bytes>>| {
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"app"))))
    });
    let service = ServiceBuilder::new().layer(RobotsLayer::new(live.clone())).service(app);
    let request = Request::get(target).header("User-Agent", "GPTBot/1.2").body(Full::default()).unwrap();
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
        let (head, body) = service.oneshot(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (head.status, String::from_utf8(body.to_vec()).unwrap())
    })
}

fn open(builder: LiveBuilder<RemoteSource>) -> LiveRobots {
    let policy = Policy::builder().mode(Mode::Refuse).build();
    builder
        .policy(policy)
        .schedule(Schedule { retry_first: PATIENCE * 10, retry_most: PATIENCE * 10, ..Schedule::default() })
        .open()
        .unwrap()
}

fn refused(live: &LiveRobots) -> bool {
    get(live, "/private/x").0 == StatusCode::FORBIDDEN
}

#[test]
fn robots_txt_is_503_after_a_cold_start_until_the_origin_serves_a_file() {
    let server = Server::saying(response("500 I", "", ""));
    let live = open(LiveRobots::url(&server.url("/robots.txt")).unwrap());
    for _ in 0..2 {
        let (status, _) = get(&live, "/robots.txt");
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(!refused(&live), "no disallow is invented");
        assert!(matches!(live.reload_blocking().outcome, ReloadOutcome::Kept { .. }));
    }
    server.now_says(robots(ROBOTS));
    assert!(matches!(live.reload_blocking().outcome, ReloadOutcome::Published { .. }));
    assert_eq!(get(&live, "/robots.txt"), (StatusCode::OK, ROBOTS.to_owned()));
    assert!(refused(&live));
    server.now_says(response("500 I", "", ""));
    assert!(matches!(live.reload_blocking().outcome, ReloadOutcome::Kept { .. }));
    assert_eq!(get(&live, "/robots.txt"), (StatusCode::OK, ROBOTS.to_owned()), "the last good version stays");
    assert!(refused(&live));
}

#[test]
fn requests_for_robots_txt_reach_the_upstream_until_the_first_successful_fetch() {
    let server = Server::saying(response("500 I", "", ""));
    let live = open(LiveRobots::upstream([server.address.to_string()], "shop.example").unwrap());
    assert!(matches!(live.reload_blocking().outcome, ReloadOutcome::Kept { .. }));
    assert_eq!(get(&live, "/robots.txt"), (StatusCode::OK, "app".to_owned()));
    assert!(!refused(&live));
    server.now_says(robots(ROBOTS));
    assert!(matches!(live.reload_blocking().outcome, ReloadOutcome::Published { .. }));
    assert_eq!(get(&live, "/robots.txt"), (StatusCode::OK, ROBOTS.to_owned()));
    assert!(refused(&live));
}

#[test]
fn a_missing_robots_txt_enforces_nothing_and_requests_for_it_reach_the_application() {
    let server = Server::saying(response("404 N", "", ""));
    for live in [
        open(LiveRobots::url(&server.url("/robots.txt")).unwrap()),
        open(LiveRobots::upstream([server.address.to_string()], "shop.example").unwrap()),
    ] {
        assert!(matches!(live.reload_blocking().outcome, ReloadOutcome::Absent { status: 404, .. }));
        assert_eq!(get(&live, "/robots.txt"), (StatusCode::OK, "app".to_owned()));
        assert!(!refused(&live));
    }
}
