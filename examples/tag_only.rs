//! An app that refuses no request. The layer tells it which crawler has sent a request, and the app
//! decides how to respond.
//!
//!     cargo run --example tag_only --features axum08
//!     curl -A GPTBot http://127.0.0.1:3000/drafts/x
//!     curl -A GPTBot http://127.0.0.1:3000/news
#![expect(clippy::print_stderr, reason = "an example's log")]

use axum::routing::get;
use axum::{Extension, Router};
use tower_robots::layer::{Record, RobotsLayer};
use tower_robots::live::{LiveRobots, Rejection};
use tower_robots::policy::{Action, Mode};

/// Returns a draft. The layer adds a record to every request from a crawler, even if the request is
/// allowed.
async fn draft(record: Option<Extension<Record>>) -> String {
    match record {
        Some(Extension(record)) if record.action == Action::Tag => {
            format!(
                "a summary for {}, whom line {} asks to stay away\n",
                record.name().escape_debug(),
                record.line.unwrap_or_default()
            )
        }
        _ => "the whole draft\n".to_owned(),
    }
}

/// Returns a page that depends on the agent, so it has a `Vary` header for caches.
async fn news(crawler: Option<Extension<Record>>) -> ([(&'static str, &'static str); 1], String) {
    let text = match crawler {
        Some(Extension(crawler)) => format!("the news without pictures, for {}\n", crawler.name().escape_debug()),
        None => "the news\n".to_owned(),
    };
    ([("vary", "User-Agent")], text)
}

fn app() -> Result<Router, Rejection> {
    let live = LiveRobots::text("User-agent: GPTBot\nDisallow: /drafts/\n").mode(Mode::Tag).open()?;
    let layer = RobotsLayer::for_axum08(live)
        .with_crawler_extension()
        .on_disallowed(|event| {
            eprintln!(
                "{} is not to fetch {}",
                event.record.name().escape_debug(),
                event.request.target().escape_ascii()
            );
        })
        .on_crawler(|event| {
            eprintln!("{} asks for {}", event.record.name().escape_debug(), event.request.target().escape_ascii());
        });
    Ok(Router::new().route("/drafts/{page}", get(draft)).route("/news", get(news)).layer(layer))
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

    async fn body(path: &str, agent: &str) -> String {
        let request = Request::get(path).header("user-agent", agent).body(Body::empty()).expect("a request");
        let response = super::app().expect("the robots.txt").oneshot(request).await.expect("infallible");
        let bytes = to_bytes(response.into_body(), 1024).await.expect("a body");
        String::from_utf8(bytes.to_vec()).expect("text")
    }

    #[tokio::test]
    async fn the_app_receives_the_crawler_and_the_line_that_disallows_the_path() {
        assert_eq!(body("/drafts/x", "GPTBot/1.2").await, "a summary for GPTBot, whom line 2 asks to stay away\n");
        assert_eq!(body("/drafts/x", "curl/8.5.0").await, "the whole draft\n");
    }

    #[tokio::test]
    async fn the_app_receives_the_crawler_of_an_allowed_request() {
        assert_eq!(body("/news", "GPTBot/1.2").await, "the news without pictures, for GPTBot\n");
        assert_eq!(body("/news", "Googlebot/2.1").await, "the news without pictures, for Googlebot\n");
        assert_eq!(body("/news", "curl/8.5.0").await, "the news\n");
    }
}
