//! A refusal as an HTML page of the site, instead of plain text.
//!
//!     cargo run --example html_refusal --features axum08
//!     curl -iA GPTBot http://127.0.0.1:3000/drafts/x

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::routing::get;
use tower_robots::layer::{Event, RobotsLayer};
use tower_robots::live::{LiveRobots, Rejection};
use tower_robots::policy::Mode;

/// Returns the page that a refused client gets. The layer adds `Cache-Control: no-store` and `Vary:
/// User-Agent`, and removes the body from the response to a HEAD request.
fn page(event: &Event<'_>) -> Response<Bytes> {
    let record = event.record;
    // The client sends the name and the path, so they could contain a script and must be escaped.
    let html = format!(
        "<!doctype html>\n<title>Not for crawlers</title>\n<h1>Not for {agent}</h1>\n\
         <p>Line {line} of <a href=\"/robots.txt\">robots.txt</a>, <code>Disallow: {rule}</code>, asks {agent} not to fetch \
         <code>{target}</code>.</p>\n",
        agent = escaped(record.name()),
        line = record.line.unwrap_or_default(),
        rule = escaped(record.rule.as_deref().unwrap_or_default()),
        target = escaped(&event.request.target().escape_ascii().to_string()),
    );
    let mut response = Response::new(html.into());
    *response.status_mut() = StatusCode::FORBIDDEN;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            char if char.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            char => out.push(char),
        }
    }
    out
}

fn app() -> Result<Router, Rejection> {
    let live = LiveRobots::text("User-agent: *\nDisallow: /drafts/\n").mode(Mode::Refuse).open()?;
    let layer = RobotsLayer::for_axum08(live).refuse_with(page);
    Ok(Router::new().route("/drafts/{page}", get(async || "a draft\n")).layer(layer))
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
    use axum::http::{Request, StatusCode};
    use tower::ServiceExt;

    async fn response(path: &str, agent: &str) -> (StatusCode, String) {
        let request = Request::get(path).header("user-agent", agent).body(Body::empty()).expect("a request");
        let response = super::app().expect("the robots.txt").oneshot(request).await.expect("infallible");
        if response.status() == StatusCode::FORBIDDEN {
            assert_eq!(response.headers()["content-type"], "text/html; charset=utf-8");
            assert_eq!(response.headers()["cache-control"], "no-store");
            assert_eq!(response.headers()["vary"], "User-Agent");
        }
        let status = response.status();
        let body = to_bytes(response.into_body(), 10_000).await.expect("a body");
        (status, String::from_utf8(body.to_vec()).expect("text"))
    }

    #[tokio::test]
    async fn a_refusal_is_an_html_page_with_the_line_of_the_rule() {
        let (status, page) = response("/drafts/x", "GPTBot/1.2").await;
        assert_eq!(status, StatusCode::FORBIDDEN);
        assert!(page.contains("<h1>Not for GPTBot</h1>") && page.contains("Line 2 of"), "{page}");
        assert_eq!(response("/drafts/x", "curl/8.5.0").await, (StatusCode::OK, "a draft\n".to_owned()));
    }

    #[tokio::test]
    async fn the_path_and_the_user_agent_are_escaped_in_the_page() {
        for (path, agent) in [
            ("/drafts/x?a=%3Cscript%3E&b='", "EvilBot<script>/1.0 (+https://evil.example/bot)"),
            ("/drafts/%3Cb%3E", "Evil'Bot&amp;/1.0 (compatible; \"Evil\"Bot; +https://evil.example/bot)"),
        ] {
            let (status, page) = response(path, agent).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{agent}");
            let tags = [
                "!doctype html",
                "title",
                "/title",
                "h1",
                "/h1",
                "p",
                "/p",
                "code",
                "/code",
                "a href=\"/robots.txt\"",
                "/a",
            ];
            let mut found = page.split('<').skip(1).map(|rest| rest.split('>').next().expect("a tag"));
            assert!(found.all(|tag| tags.contains(&tag)), "{page}");
            assert!(!page.contains("='"), "{page}");
        }
    }
}
