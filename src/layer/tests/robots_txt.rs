//! Tests of serving `/robots.txt`.

use super::*;

#[tokio::test]
async fn robots_txt_is_served_to_everyone_with_validators() {
    let file = "User-agent: *\nDisallow: /\n";
    let layer = refusing_by(file);
    for target in ["/robots.txt", "/robots.txt?from=crawler", "/%72obots.txt"] {
        for agent in [FIREFOX, GPTBOT, ""] {
            let response = ask(layer.clone(), get(target, agent)).await;
            assert_eq!(response.status(), StatusCode::OK, "{target} {agent}");
            assert_eq!(field(&response, "content-type"), Some("text/plain; charset=utf-8"));
            assert_eq!(field(&response, "cache-control"), Some("public, max-age=3600"));
            assert_eq!(field(&response, "x-content-type-options"), Some("nosniff"));
            assert_eq!(field(&response, "vary"), None);
            assert_eq!(text(response).await, file);
        }
    }
    let response = ask(layer.clone(), get("/robots.txt", FIREFOX)).await;
    let etag = field(&response, "etag").expect("an entity tag").to_owned();
    for tags in [etag.clone(), format!("W/{etag}"), format!("\"x\", {etag}"), "*".to_owned()] {
        let request = with(get("/robots.txt", GPTBOT), "if-none-match", &tags);
        let response = ask(layer.clone(), request).await;
        assert_eq!(response.status(), StatusCode::NOT_MODIFIED, "{tags}");
        assert_eq!(field(&response, "etag"), Some(&*etag));
        assert_eq!(text(response).await, "");
    }
    for tags in ["\"other\"", "\"a,*,b\"", "x, *", "\"", ""] {
        let request = with(get("/robots.txt", GPTBOT), "if-none-match", tags);
        assert_eq!(ask(layer.clone(), request).await.status(), StatusCode::OK, "{tags}");
    }
    let mut request = get("/robots.txt", GPTBOT);
    *request.method_mut() = Method::HEAD;
    let response = ask(layer.clone(), request).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(field(&response, "content-length"), Some(&*file.len().to_string()));
    assert_eq!(text(response).await, "");
    for method in [Method::POST, Method::DELETE, Method::OPTIONS] {
        let mut request = get("/robots.txt", FIREFOX);
        *request.method_mut() = method;
        let response = ask(layer.clone(), request).await;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(field(&response, "allow"), Some("GET, HEAD"));
    }
}

#[tokio::test]
async fn if_modified_since_is_ignored_if_if_none_match_is_present() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("robots.txt");
    std::fs::write(&path, FILE).expect("written");
    let layer = RobotsLayer::new(LiveRobots::file(&path).open().expect("open"));
    let response = ask(layer.clone(), get("/robots.txt", FIREFOX)).await;
    let date = field(&response, "last-modified").expect("a date").to_owned();
    for (none_match, since, want) in [
        (None, &*date, StatusCode::NOT_MODIFIED),
        (None, "Sun, 06 Nov 1994 08:49:37 GMT", StatusCode::OK),
        (None, "yesterday", StatusCode::OK),
        (Some("\"other\""), &*date, StatusCode::OK),
    ] {
        let mut request = with(get("/robots.txt", FIREFOX), "if-modified-since", since);
        if let Some(tags) = none_match {
            add(&mut request, "if-none-match", tags);
        }
        assert_eq!(ask(layer.clone(), request).await.status(), want, "{none_match:?} {since}");
    }
}

#[tokio::test]
async fn a_file_modified_one_second_after_if_modified_since_is_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("robots.txt");
    std::fs::write(&path, FILE).expect("written");
    let changed = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    std::fs::File::options().write(true).open(&path).and_then(|file| file.set_modified(changed)).expect("dated");
    let layer = RobotsLayer::new(LiveRobots::file(&path).open().expect("open"));
    for (seconds, want) in [(0, StatusCode::NOT_MODIFIED), (1, StatusCode::OK), (2, StatusCode::OK)] {
        let since = httpdate::fmt_http_date(changed - Duration::from_secs(seconds));
        let request = with(get("/robots.txt", FIREFOX), "if-modified-since", &since);
        assert_eq!(ask(layer.clone(), request).await.status(), want, "{since}");
    }
}

#[tokio::test]
async fn nothing_is_enforced_while_no_robots_txt_is_known() {
    let cases = [(WhenMissing::Unavailable, StatusCode::SERVICE_UNAVAILABLE), (WhenMissing::Relay, StatusCode::OK)];
    for (when, status) in cases {
        let policy = Policy::builder().mode(Mode::Refuse).build();
        let live = LiveRobots::file("/nonexistent/robots.txt").policy(policy).when_missing(when).open().expect("open");
        let layer = RobotsLayer::new(live);
        let response = ask(layer.clone(), get("/robots.txt", GPTBOT)).await;
        assert_eq!(response.status(), status);
        assert_eq!(field(&response, "retry-after").is_some(), status == StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(ask(layer, get("/drafts/x", GPTBOT)).await.status(), StatusCode::OK);
    }
}
