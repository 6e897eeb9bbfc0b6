//! The layer in an axum app. One `.layer(...)` serves robots.txt and enforces it.
//!
//!     cargo run --example axum --features axum08,tracing
//!     curl -A GPTBot http://127.0.0.1:3000/drafts/x

use axum::Router;
use axum::routing::get;
use tower_robots::layer::RobotsLayer;
use tower_robots::live::{LiveRobots, Rejection};
use tower_robots::policy::Mode;

fn app(robots: &str) -> Result<Router, Rejection> {
    let live = LiveRobots::file(robots).mode(Mode::Refuse).open()?;
    // A nested router strips its prefix, but rules apply to the path that the client sent. This
    // variant of the layer judges that path.
    let layer = RobotsLayer::for_axum08(live);
    let drafts = Router::new().route("/{*page}", get(async || "a draft\n"));
    Ok(Router::new().route("/", get(async || "home\n")).nest("/drafts", drafts).layer(layer))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().init();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app("examples/site/robots.txt")?).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::{Request, StatusCode};
    use tower::ServiceExt;

    async fn status(agent: &str, path: &str) -> StatusCode {
        let app = super::app("examples/site/robots.txt").expect("the example's robots.txt");
        let request = Request::get(path).header("user-agent", agent).body(Body::empty()).expect("a request");
        app.oneshot(request).await.expect("infallible").status()
    }

    #[tokio::test]
    async fn the_layer_serves_robots_txt_and_refuses_disallowed_requests() {
        assert_eq!(status("GPTBot/1.2", "/robots.txt").await, StatusCode::OK);
        assert_eq!(status("GPTBot/1.2", "/drafts/x").await, StatusCode::FORBIDDEN);
        assert_eq!(status("GPTBot/1.2", "/").await, StatusCode::OK);
        assert_eq!(
            status("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", "/drafts/x").await,
            StatusCode::OK
        );
    }
}
