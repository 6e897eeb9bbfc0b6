//! A redirect instead of a refusal. Crawlers that may not read the drafts are redirected to the
//! terms of use.
//!
//!     cargo run --example redirect --features axum08
//!     curl -iA GPTBot http://127.0.0.1:3000/drafts/x

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::routing::get;
use tower_robots::layer::{Event, RobotsLayer};
use tower_robots::live::{LiveRobots, Rejection};
use tower_robots::policy::Mode;

/// The robots.txt. An exact `Allow` must allow the target of the redirect; otherwise the target
/// would redirect to itself.
const ROBOTS: &str = "User-agent: GPTBot\nAllow: /terms$\nDisallow: /\n";

/// Redirects with 307, which is temporary and keeps the method. Clients may cache 301 and 308. The
/// layer adds `Cache-Control: no-store` and `Vary: User-Agent`, so that no cache sends the redirect
/// to a person.
fn to_the_terms(_: &Event<'_>) -> Response<Bytes> {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/terms"));
    response
}

fn app() -> Result<Router, Rejection> {
    let live = LiveRobots::text(ROBOTS).mode(Mode::Refuse).open()?;
    let layer = RobotsLayer::for_axum08(live).refuse_with(to_the_terms);
    let drafts = Router::new().route("/{page}", get(async || "a draft\n"));
    Ok(Router::new().nest("/drafts", drafts).route("/terms", get(async || "the terms\n")).layer(layer))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app()?).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::{HeaderMap, Request, StatusCode};
    use tower::ServiceExt;

    async fn response(path: &str, agent: &str) -> (StatusCode, HeaderMap) {
        let request = Request::get(path).header("user-agent", agent).body(Body::empty()).expect("a request");
        let response = super::app().expect("the robots.txt").oneshot(request).await.expect("infallible");
        (response.status(), response.headers().clone())
    }

    #[tokio::test]
    async fn a_disallowed_crawler_is_redirected_to_the_terms_which_it_may_read() {
        let (status, fields) = response("/drafts/x", "GPTBot/1.2").await;
        assert_eq!(status, StatusCode::TEMPORARY_REDIRECT);
        assert_eq!(fields["location"], "/terms");
        assert_eq!(fields["cache-control"], "no-store");
        assert_eq!(fields["vary"], "User-Agent");
        assert_eq!(response("/terms", "GPTBot/1.2").await.0, StatusCode::OK);
        assert_eq!(response("/drafts/x", "curl/8.5.0").await.0, StatusCode::OK);
    }
}
