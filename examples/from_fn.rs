//! The layer's decisions in your own middleware function (axum's `middleware::from_fn`). Requests
//! with a session are never refused.
//!
//!     cargo run --example from_fn --features axum08
//!     curl -A GPTBot http://127.0.0.1:3000/drafts/x

use std::collections::HashSet;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use tower_robots::layer::RobotsLayer;
use tower_robots::live::{LiveRobots, Rejection};
use tower_robots::policy::Mode;

/// Marks a request with a valid session.
#[derive(Clone)]
struct Session;

/// Finds the session of a request. This middleware refuses no request. If yours answers 401, put it
/// inside the layer: a crawler that gets 401 for `/robots.txt` assumes that nothing is disallowed.
async fn sessions(State(open): State<Arc<HashSet<String>>>, mut request: Request, next: Next) -> Response {
    let field = request.headers().get(AUTHORIZATION).and_then(|field| field.to_str().ok());
    let token = field.and_then(|field| field.strip_prefix("Bearer "));
    // A real app looks up the token in its store. A header field or a cookie alone proves nothing,
    // because any client can send one.
    if token.is_some_and(|token| open.contains(token)) {
        request.extensions_mut().insert(Session);
    }
    next.run(request).await
}

async fn robots(State(layer): State<RobotsLayer>, mut request: Request, next: Next) -> Response {
    match layer.respond(&mut request) {
        Some(response) => response.map(Body::from),
        None => next.run(request).await,
    }
}

fn app(robots_txt: &str, open: HashSet<String>) -> Result<Router, Rejection> {
    let live = LiveRobots::file(robots_txt).mode(Mode::Refuse).open()?;
    // A request with a session is allowed, whatever its `User-Agent`. `exempt_if` also works if the
    // layer is added with `.layer(layer)` instead of this function.
    let layer = RobotsLayer::for_axum08(live).exempt_if(|extensions| extensions.get::<Session>().is_some());
    let app = Router::new().route("/", get(async || "home\n")).route("/drafts/{page}", get(async || "a draft\n"));
    // `route_layer` would not work, because no route matches /robots.txt.
    let app = app.layer(from_fn_with_state(layer, robots));
    Ok(app.layer(from_fn_with_state(Arc::new(open), sessions)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app("examples/site/robots.txt", HashSet::new())?).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::{Request, StatusCode};
    use tower::ServiceExt;

    async fn status(path: &str, fields: &[(&str, &str)]) -> StatusCode {
        let open = ["7f3a".to_owned()].into();
        let app = super::app("examples/site/robots.txt", open).expect("the example's robots.txt");
        let request = fields.iter().fold(Request::get(path), |request, (name, value)| request.header(*name, *value));
        app.oneshot(request.body(Body::empty()).expect("a request")).await.expect("infallible").status()
    }

    #[tokio::test]
    async fn the_function_serves_robots_txt_and_refuses_disallowed_crawlers_without_a_session() {
        let bot = ("user-agent", "GPTBot/1.2");
        assert_eq!(status("/robots.txt", &[bot]).await, StatusCode::OK);
        assert_eq!(status("/drafts/x", &[bot]).await, StatusCode::FORBIDDEN);
        assert_eq!(status("/", &[bot]).await, StatusCode::OK);
        let session = ("authorization", "Bearer 7f3a");
        assert_eq!(status("/drafts/x", &[bot, session]).await, StatusCode::OK);
        assert_eq!(status("/robots.txt", &[bot, session]).await, StatusCode::OK);
        for forged in ["Bearer 0000", "Bearer ", "Basic eDp5", "x"] {
            assert_eq!(status("/drafts/x", &[bot, ("authorization", forged)]).await, StatusCode::FORBIDDEN, "{forged}");
        }
        assert_eq!(status("/drafts/x", &[("user-agent", "curl/8.5.0")]).await, StatusCode::OK);
    }
}
