//! The layer's decisions in a function of your own: axum's `middleware::from_fn`.
//!
//!     cargo run --example from_fn --features axum08
//!     curl -A GPTBot http://127.0.0.1:3000/drafts/x

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use tower_robots::layer::{OriginalRequest, RobotsLayer};
use tower_robots::live::{LiveRobots, Rejection};
use tower_robots::policy::{Mode, Policy};

async fn robots(State(layer): State<RobotsLayer>, mut request: Request, next: Next) -> Response {
    // The app's own exceptions go here: a client that is signed in is no crawler.
    if request.headers().contains_key("authorization") {
        return next.run(request).await;
    }
    match layer.answer(&OriginalRequest::of(&request)).carry_out(&mut request) {
        Some(response) => response.map(Body::from),
        None => next.run(request).await,
    }
}

fn app(robots_txt: &str) -> Result<Router, Rejection> {
    let live = LiveRobots::file(robots_txt).policy(Policy::builder().mode(Mode::Refuse).build()).open()?;
    let layer = RobotsLayer::for_axum08(live);
    let app = Router::new().route("/", get(async || "home\n")).route("/drafts/{page}", get(async || "a draft\n"));
    // `layer`, not `route_layer`: no route matches /robots.txt.
    Ok(app.layer(from_fn_with_state(layer, robots)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app("examples/site/robots.txt")?).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::{Request, StatusCode};
    use tower::ServiceExt;

    async fn status(path: &str, fields: &[(&str, &str)]) -> StatusCode {
        let app = super::app("examples/site/robots.txt").expect("the example's robots.txt");
        let request = fields.iter().fold(Request::get(path), |request, (name, value)| request.header(*name, *value));
        app.oneshot(request.body(Body::empty()).expect("a request")).await.expect("infallible").status()
    }

    #[tokio::test]
    async fn the_function_serves_and_enforces() {
        let bot = ("user-agent", "GPTBot/1.2");
        assert_eq!(status("/robots.txt", &[bot]).await, StatusCode::OK);
        assert_eq!(status("/drafts/x", &[bot]).await, StatusCode::FORBIDDEN);
        assert_eq!(status("/", &[bot]).await, StatusCode::OK);
        assert_eq!(status("/drafts/x", &[bot, ("authorization", "Basic eDp5")]).await, StatusCode::OK);
        assert_eq!(status("/drafts/x", &[("user-agent", "curl/8.5.0")]).await, StatusCode::OK);
    }
}
