//! Two sites, each with its own robots.txt. An admin page shows both files, and publishes a new
//! robots.txt while the app runs.
//!
//!     cargo run --example two_hosts --features axum08
//!     curl -H 'Host: shop.example' http://127.0.0.1:3000/robots.txt
//!     curl http://127.0.0.1:3001/
//!     curl -T examples/next.txt http://127.0.0.1:3001/sites/shop.example

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, put};
use tower_robots::layer::RobotsLayer;
use tower_robots::live::{Gate, LiveRobots};
use tower_robots::policy::{Mode, Policy};
use tower_robots::source::HostMap;

const HOSTS: [(&str, &str); 2] = [
    ("shop.example", "User-agent: *\nDisallow: /cart\n"),
    ("news.example", "User-agent: GPTBot\nDisallow: /archive/\n\nUser-agent: *\nAllow: /\n"),
];

fn sites() -> Result<HostMap<LiveRobots>, Box<dyn std::error::Error>> {
    // A robots.txt that blocks Googlebot is not published, because it is usually the staging
    // system's file.
    let gate = Gate::new().must_allow(["Googlebot"], ["/"]);
    let policy = Policy::builder().mode(Mode::Refuse).build();
    let mut sites = HostMap::new();
    for (host, text) in HOSTS {
        let live = LiveRobots::text(text).policy(policy.clone()).gate(gate.clone()).open()?;
        sites.insert(&format!("www.{host}"), live.clone())?;
        sites.insert(host, live)?;
    }
    // The app answers for any host. Without a site for `*`, a crawler could bypass the rules by
    // sending the server's address or an invented name in `Host`.
    sites.insert("*", LiveRobots::text("User-agent: *\nDisallow: /\n").policy(policy).open()?)?;
    Ok(sites)
}

/// Returns the app with its robots layer.
fn app(sites: &HostMap<LiveRobots>) -> Router {
    Router::new().fallback(async || "a page\n").layer(RobotsLayer::for_axum08(sites.clone()))
}

/// Returns the admin routes. Anyone who can reach them can change what crawlers may read, so they
/// have their own listener, on this machine only.
fn admin(sites: HostMap<LiveRobots>) -> Router {
    Router::new().route("/", get(overview)).route("/sites/{host}", put(publish)).with_state(sites)
}

async fn overview(State(sites): State<HostMap<LiveRobots>>) -> String {
    let line = |live: &LiveRobots, host| format!("{host}: {}\n", live.status().last_reload);
    HOSTS.iter().filter_map(|(host, _)| Some(line(sites.get(host)?, host))).collect()
}

async fn publish(
    State(sites): State<HostMap<LiveRobots>>,
    Path(host): Path<String>,
    text: Bytes,
) -> (StatusCode, String) {
    // Only these exact names are accepted. Any other name would match the site for `*`.
    let is_ours = HOSTS.iter().any(|(ours, _)| *ours == host);
    let Some(live) = sites.get(&host).filter(|_| is_ours).cloned() else {
        return (StatusCode::NOT_FOUND, format!("there is no site {host:?}\n"));
    };
    match live.publish(text).await {
        Ok(reload) => (StatusCode::OK, format!("{reload}\n")),
        Err(rejection) => (StatusCode::UNPROCESSABLE_ENTITY, format!("{rejection}\n")),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sites = sites()?;
    let public = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    let local = tokio::net::TcpListener::bind("127.0.0.1:3001").await?;
    let (app, admin) = (app(&sites), admin(sites));
    tokio::try_join!(axum::serve(public, app).into_future(), axum::serve(local, admin).into_future())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::http::{Request, StatusCode};
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    async fn send(router: &Router, request: Request<Body>) -> (StatusCode, String) {
        let response = router.clone().oneshot(request).await.expect("infallible");
        let status = response.status();
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        (status, String::from_utf8(body.to_vec()).expect("text"))
    }

    async fn get(app: &Router, host: &str, path: &str) -> (StatusCode, String) {
        let request = Request::get(path).header("host", host).header("user-agent", "GPTBot/1.2");
        send(app, request.body(Body::empty()).expect("a request")).await
    }

    async fn put(admin: &Router, path: &str, text: &'static str) -> (StatusCode, String) {
        send(admin, Request::put(path).body(text.into()).expect("a request")).await
    }

    #[tokio::test]
    async fn each_host_has_its_own_robots_txt_and_the_admin_page_can_replace_it() {
        let sites = super::sites().expect("both files");
        let (app, admin) = (super::app(&sites), super::admin(sites));
        assert_eq!(get(&app, "shop.example", "/cart").await.0, StatusCode::FORBIDDEN);
        assert_eq!(get(&app, "news.example", "/cart").await.0, StatusCode::OK);
        assert_eq!(get(&app, "www.shop.example", "/cart").await.0, StatusCode::FORBIDDEN);
        for other in ["other.example", "127.0.0.1:3000"] {
            assert_eq!(get(&app, other, "/").await.0, StatusCode::FORBIDDEN, "{other}");
        }
        let (status, text) = put(&admin, "/sites/shop.example", "User-agent: *\nDisallow: /checkout\n").await;
        assert!(status == StatusCode::OK && text.contains("is live"), "{status}: {text}");
        assert_eq!(get(&app, "shop.example", "/cart").await.0, StatusCode::OK);
        assert_eq!(get(&app, "shop.example", "/checkout").await.0, StatusCode::FORBIDDEN);
        assert!(get(&app, "shop.example", "/robots.txt").await.1.ends_with("Disallow: /checkout\n"));
    }

    #[tokio::test]
    async fn a_file_that_blocks_every_crawler_is_held_with_the_reason() {
        let sites = super::sites().expect("both files");
        let admin = super::admin(sites);
        let (status, text) = put(&admin, "/sites/news.example", "User-agent: *\nDisallow: /\n").await;
        assert!(
            status == StatusCode::UNPROCESSABLE_ENTITY && text.contains("is held until accepted"),
            "{status}: {text}"
        );
        assert_eq!(put(&admin, "/sites/other.example", "User-agent: *\n").await.0, StatusCode::NOT_FOUND);
        let overview = send(&admin, Request::get("/").body(Body::empty()).expect("a request")).await.1;
        assert!(overview.lines().count() == 2 && overview.contains("news.example: "), "{overview}");
    }
}
