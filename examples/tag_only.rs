//! Refuse no one: mark the request, and let the app decide.
//!
//!     cargo run --example tag_only
//!     curl -A GPTBot http://127.0.0.1:3000/drafts/x
#![expect(clippy::print_stderr, reason = "an example's log")]

use axum::routing::get;
use axum::{Extension, Router};
use tower_robots::layer::{Record, RobotsLayer};
use tower_robots::live::{LiveRobots, Rejection};
use tower_robots::policy::{Mode, Policy};

async fn page(record: Option<Extension<Record>>) -> String {
    match record {
        Some(Extension(record)) => {
            format!("a summary for {}, whom line {} asks to stay away\n", record.agent(), record.line())
        }
        None => "the whole draft\n".to_owned(),
    }
}

fn app() -> Result<Router, Rejection> {
    let live = LiveRobots::inline("User-agent: GPTBot\nDisallow: /drafts/\n")
        .policy(Policy::builder().mode(Mode::Tag).build())
        .open()?;
    let layer = RobotsLayer::new(live).observe(|event| {
        eprintln!("{} asked for {}", event.record().agent().escape_debug(), event.target().escape_ascii());
    });
    Ok(Router::new().route("/drafts/{page}", get(page)).layer(layer))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app()?).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use tower::ServiceExt;

    async fn body(agent: &str) -> String {
        let request = Request::get("/drafts/x").header("user-agent", agent).body(Body::empty()).expect("a request");
        let response = super::app().expect("the robots.txt").oneshot(request).await.expect("infallible");
        let bytes = to_bytes(response.into_body(), 1024).await.expect("a body");
        String::from_utf8(bytes.to_vec()).expect("text")
    }

    #[tokio::test]
    async fn the_app_sees_who_was_asked_to_stay_away() {
        assert_eq!(body("GPTBot/1.2").await, "a summary for GPTBot, whom line 2 asks to stay away\n");
        assert_eq!(body("curl/8.5.0").await, "the whole draft\n");
    }
}
