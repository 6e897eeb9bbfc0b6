//! The layer's decisions in the application's own metrics: the number of requests per crawler and
//! action.
//!
//!     cargo run --example metrics --features axum08
//!     curl -A GPTBot http://127.0.0.1:3000/drafts/x; curl http://127.0.0.1:3000/metrics

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tower_robots::layer::{Event, Record, RobotsLayer};
use tower_robots::live::{LiveRobots, Rejection};
use tower_robots::policy::Mode;

const ROBOTS: &str = "User-agent: *\nDisallow: /drafts/\n";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    crawler: String,
    action: &'static str,
    /// What the mode `refuse` would do. While the mode is `observe`, a dashboard can show the
    /// effect of `refuse`.
    would: &'static str,
}

impl From<&Record> for Labels {
    /// Only names of registered crawlers become labels. A client can send any other name, and each
    /// such name would add a time series.
    fn from(request: &Record) -> Self {
        let agent = &request.agent;
        let crawler = agent.registered().map_or(agent.class().as_str(), |crawler| &crawler.name);
        Self { crawler: crawler.to_owned(), action: request.action.as_str(), would: request.would.as_str() }
    }
}

fn app() -> Result<Router, Rejection> {
    let requests = Family::<Labels, Counter>::default();
    let mut registry = Registry::default();
    registry.register("crawler_requests", "Requests of crawlers, by crawler and action", requests.clone());
    let registry = Arc::new(registry);

    let live = LiveRobots::text(ROBOTS).mode(Mode::Refuse).open()?;
    // The request waits until the observer returns, so the observer only counts. The metrics are
    // formatted later, when they are scraped.
    let count = move |event: &Event<'_>| {
        requests.get_or_create(&Labels::from(event.record)).inc();
    };
    let layer = RobotsLayer::for_axum08(live).on_crawler(count);
    let metrics = async move || {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &registry);
        ([("content-type", "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)
    };
    Ok(Router::new().route("/drafts/{page}", get(async || "a draft\n")).route("/metrics", get(metrics)).layer(layer))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app()?).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use tower::ServiceExt;

    async fn body(app: &Router, path: &str, agent: &str) -> String {
        let request = Request::get(path).header("user-agent", agent).body(Body::empty()).expect("a request");
        let response = app.clone().oneshot(request).await.expect("infallible");
        let body = to_bytes(response.into_body(), 1 << 20).await.expect("a body");
        String::from_utf8(body.to_vec()).expect("text")
    }

    #[tokio::test]
    async fn crawler_requests_are_counted_by_crawler_and_action() {
        let app = super::app().expect("the robots.txt");
        for agent in
            ["GPTBot/1.2", "GPTBot/1.2", "MadeUpBot/1.0 (+https://example.com/bot)", "Mozilla/5.0 Firefox/128.0"]
        {
            body(&app, "/drafts/x", agent).await;
        }
        let text = body(&app, "/metrics", "Prometheus/3.0").await;
        assert!(
            text.contains("crawler_requests_total{crawler=\"GPTBot\",action=\"refuse\",would=\"refuse\"} 2\n"),
            "{text}"
        );
        assert!(
            text.contains("crawler_requests_total{crawler=\"declared\",action=\"refuse\",would=\"refuse\"} 1\n"),
            "{text}"
        );
        assert!(!text.contains("MadeUp"), "{text}");
    }
}
