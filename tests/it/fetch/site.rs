//! A site whose robots.txt is fetched: the live version after every response.

use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

use tower_robots::internals::{RemoteSource, Schedule};
use tower_robots::live::{
    Cause, Gate, LiveRobots, ProblemKind, RejectionKind, Reload, ReloadOutcome, StateDir, WhenMissing,
};
use tower_robots::source::LiveBuilder;
use tower_robots::source::fetch::Fetcher;

use super::server::{Server, Stream, nowhere, response, robots};
use crate::waiting::{PATIENCE, body, wait_for};

/// Returns a schedule with such long pauses that only requested fetches occur.
fn seldom() -> Schedule {
    Schedule { retry_first: PATIENCE * 10, retry_most: PATIENCE * 10, ..Schedule::default() }
}

fn often() -> Schedule {
    let tick = Duration::from_millis(20);
    Schedule { every: tick, least: tick, most: tick, retry_first: tick, retry_most: tick, ..Schedule::default() }
}

fn url(server: &Server) -> LiveBuilder<RemoteSource> {
    LiveRobots::url(&server.url("/robots.txt")).unwrap().schedule(seldom())
}

fn reload(live: &LiveRobots) -> Reload {
    live.reload_blocking()
}

/// Returns why the fetched file was not accepted.
fn kept(reload: &Reload) -> RejectionKind {
    match &reload.outcome {
        ReloadOutcome::Kept { rejection, .. } => rejection.kind,
        other => panic!("{other:?}"),
    }
}

/// Opens a site whose file is live.
fn good() -> (Server, LiveRobots) {
    let server = Server::saying(robots("# good"));
    let live = url(&server).when_missing(WhenMissing::Fail).open().unwrap();
    assert_eq!(body(&live).as_deref(), Some("# good"));
    (server, live)
}

#[test]
fn a_fetched_file_and_its_next_version_go_live() {
    let (server, live) = good();
    assert_eq!(live.status().last_reload.cause, Cause::Start);
    server.now_says(robots("# next"));
    let reloaded = reload(&live);
    assert_eq!(reloaded.cause, Cause::Request);
    assert!(matches!(reloaded.outcome, ReloadOutcome::Published { .. }), "{reloaded}");
    assert_eq!(body(&live).as_deref(), Some("# next"));
    assert!(matches!(reload(&live).outcome, ReloadOutcome::Unchanged { .. }));
    assert_eq!(live.status().fetch.unwrap().failures, 0);
    assert!(live.status().fetch.unwrap().confirmed.is_some());
}

#[test]
fn a_changed_file_is_fetched_on_schedule() {
    let server = Server::saying(robots("# good"));
    let live = url(&server).schedule(often()).open().unwrap();
    wait_for("the first version", || body(&live).as_deref() == Some("# good"));
    server.now_says(robots("# next"));
    wait_for("the next version", || body(&live).as_deref() == Some("# next"));
    server.now_says(response("500 I", "", ""));
    wait_for("problem", || live.status().fetch.unwrap().failures > 2);
    server.now_says(robots("# last"));
    wait_for("the last version", || body(&live).as_deref() == Some("# last"));
    wait_for("no problem", || live.status().fetch.unwrap().failing_since.is_none());
}

#[test]
fn a_site_enforces_no_rules_after_a_cold_start_until_the_origin_responds() {
    let server = Server::saying(response("503 S", "Retry-After: 0\r\n", ""));
    let live = url(&server).schedule(often()).open().unwrap();
    wait_for("problem", || live.status().fetch.unwrap().failures > 1);
    let snapshot = live.snapshot();
    assert!(snapshot.content.is_none());
    assert_eq!(snapshot.when_missing, WhenMissing::Unavailable);
    let reloaded = live.status().last_reload.to_string();
    assert!(
        reloaded.ends_with(
            "the file cannot be fetched: the server answered 503 Service Unavailable; no version is live, so nothing \
             is enforced"
        ),
        "{reloaded}"
    );
    server.now_says(robots("# up"));
    wait_for("the origin's bytes", || body(&live).as_deref() == Some("# up"));
}

#[tokio::test]
async fn a_start_does_not_wait_for_an_origin_that_hangs() {
    let (release, hung) = mpsc::channel::<()>();
    let hung = Mutex::new(hung);
    // The request hangs until the test ends, so `open` would hang if it waited for a response.
    let server = Server::start(move |_, _| hung.lock().unwrap().recv().unwrap_or_default());
    let live = url(&server).open().unwrap();
    let status = live.status();
    assert!(status.last_reload.to_string().contains("the file has not been fetched yet"));
    let reloading = live.reload();
    drop(live);
    assert_eq!(kept(&reloading.await), RejectionKind::Interrupted, "a caller that waits gets an answer");
    drop(release);
}

#[test]
fn a_start_with_when_missing_fail_waits_for_the_fetch_and_returns_its_error() {
    let open = |url: &str| LiveRobots::url(url).unwrap().when_missing(WhenMissing::Fail).open().unwrap_err();
    let down = open(&format!("http://{}/robots.txt", nowhere()));
    assert_eq!(down.kind, RejectionKind::Unreachable);
    assert!(down.to_string().contains("cannot connect: 127.0.0.1:"), "{down}");
    assert_eq!(open(&Server::saying(response("404 N", "", "")).url("/")).kind, RejectionKind::Missing);
    assert_eq!(open(&Server::saying(robots("<html>")).url("/")).kind, RejectionKind::Html);
}

#[test]
fn every_failure_keeps_the_last_good_version() {
    let (server, live) = good();
    for (bytes, kind) in [
        (response("500 I", "", "x"), RejectionKind::Unreachable),
        (response("429 T", "", "x"), RejectionKind::Unreachable),
        (String::new(), RejectionKind::Unreachable),
        ("SSH-2.0-x\r\n".to_owned(), RejectionKind::Unreachable),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n# half".to_owned(), RejectionKind::Unreachable),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n".to_owned(), RejectionKind::Unreachable),
        (response("206 P", "", "# part"), RejectionKind::Unreachable),
        (response("304 N", "", ""), RejectionKind::Unreachable),
        (response("302 F", "Location: /robots.txt\r\n", ""), RejectionKind::Unreachable),
        (response("302 F", "Location: ftp://a.example/\r\n", ""), RejectionKind::Unreachable),
        (response("200 OK", "Content-Encoding: gzip\r\n", "# a"), RejectionKind::Unreachable),
        (robots("<!doctype html><title>Log in</title>"), RejectionKind::Html),
        (robots("\0\0\0\0"), RejectionKind::Binary),
        (robots(""), RejectionKind::Empty),
        (robots("Not here"), RejectionKind::NoField),
        (robots("{\"error\": \"not found\"}"), RejectionKind::NoField),
        (robots("Error: cannot connect to database"), RejectionKind::NoField),
        ("HTTP/1.1 204 No Content\r\n\r\n".to_owned(), RejectionKind::Empty),
        ("HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n# a".to_owned(), RejectionKind::TooLarge),
        (format!("HTTP/1.1 200 OK\r\n\r\n{}", "#".repeat((8 << 20) + 1)), RejectionKind::TooLarge),
    ] {
        let shown: String = bytes.chars().take(120).collect();
        server.now_says(bytes);
        let reloaded = reload(&live);
        assert_eq!(kept(&reloaded), kind, "{shown:?}: {reloaded}");
        assert!(reloaded.to_string().ends_with("stays live"), "{reloaded}");
        assert_eq!(body(&live).as_deref(), Some("# good"), "{shown:?}");
    }
    assert!(live.status().fetch.unwrap().failures >= 18);
    server.now_says(robots("# back"));
    assert!(matches!(reload(&live).outcome, ReloadOutcome::Published { .. }));
}

#[test]
fn a_missing_file_keeps_its_last_version_live_for_a_day_and_is_reported() {
    for status in ["404 Not Found", "410 Gone", "401 Unauthorized", "403 Forbidden"] {
        let (server, live) = good();
        server.now_says(response(status, "", ""));
        let reloaded = reload(&live);
        assert_eq!(kept(&reloaded), RejectionKind::Held);
        let ReloadOutcome::Kept { rejection, .. } = &reloaded.outcome else { panic!("{reloaded}") };
        let until = rejection.until.unwrap();
        let hours = until.duration_since(std::time::SystemTime::now()).unwrap().as_secs_f64() / 3600.0;
        assert!((23.0..24.1).contains(&hours), "{hours}");
        assert_eq!(live.status().fetch.unwrap().held_until, Some(until));
        let want = format!("the server answered {status}; the site keeps its live version until ");
        assert!(reloaded.to_string().contains(&want), "{reloaded}");
        assert_eq!(body(&live).as_deref(), Some("# good"));
        server.now_says(robots("# good"));
        assert!(matches!(reload(&live).outcome, ReloadOutcome::Unchanged { .. }));
        assert_eq!(live.status().fetch.unwrap().held_until, None);
    }
}

#[test]
fn a_removal_is_accepted_after_its_hold_time_and_the_file_may_return() {
    let (server, live) = {
        let server = Server::saying(robots("# good"));
        let live = url(&server).schedule(Schedule { hold: Duration::from_millis(300), ..often() }).open().unwrap();
        wait_for("the first version", || body(&live).is_some());
        (server, live)
    };
    server.now_says(response("404 N", "", ""));
    wait_for("its end", || body(&live).is_none());
    assert_eq!(live.snapshot().when_missing, WhenMissing::Relay, "the application behind says so itself");
    wait_for("the report", || matches!(live.status().last_reload.outcome, ReloadOutcome::Absent { status: 404, .. }));
    server.now_says(robots("# good"));
    wait_for("its return", || body(&live).as_deref() == Some("# good"));
}

#[test]
fn a_site_without_a_known_robots_txt_enforces_no_rules_after_the_first_404() {
    let server = Server::saying(response("404 N", "", ""));
    let live = url(&server).open().unwrap();
    let reloaded = reload(&live);
    assert!(matches!(reloaded.outcome, ReloadOutcome::Absent { status: 404, .. }), "{reloaded}");
    let want = "the server answered 404, so the site has no robots.txt and nothing is enforced";
    assert!(reloaded.to_string().ends_with(want), "{reloaded}");
    assert_eq!(live.snapshot().when_missing, WhenMissing::Relay);
}

/// Returns a builder for a site with a state directory, whose robots.txt is fetched from this URL.
fn remembering(state: &StateDir, url: &str) -> LiveBuilder<RemoteSource> {
    LiveRobots::url(url).unwrap().schedule(seldom()).state(state, "shop")
}

#[test]
fn the_last_good_version_is_live_after_a_restart_with_the_origin_down() {
    let folder = tempfile::tempdir().unwrap();
    let (server, down) = (Server::saying(robots("# kept")), format!("http://{}/robots.txt", nowhere()));
    {
        let state = StateDir::open(folder.path()).unwrap();
        let live = remembering(&state, &server.url("/robots.txt")).when_missing(WhenMissing::Fail).open().unwrap();
        assert_eq!(body(&live).as_deref(), Some("# kept"));
    }
    let state = StateDir::open(folder.path()).unwrap();
    let live = remembering(&state, &down).when_missing(WhenMissing::Fail).open().unwrap();
    assert_eq!(body(&live).as_deref(), Some("# kept"));
    assert_eq!(kept(&reload(&live)), RejectionKind::Unreachable);
    assert_eq!(body(&live).as_deref(), Some("# kept"));
    drop(live);
    // The file existed before the restart and is missing afterwards, so the site keeps its version.
    server.now_says(response("404 N", "", ""));
    let live = remembering(&state, &server.url("/robots.txt")).open().unwrap();
    assert_eq!(kept(&reload(&live)), RejectionKind::Held);
    assert_eq!(body(&live).as_deref(), Some("# kept"));
    server.now_says(robots("# new"));
    assert!(matches!(reload(&live).outcome, ReloadOutcome::Published { .. }));
}

#[test]
fn a_removed_file_does_not_come_back_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::saying(robots("# good"));
    let url = server.url("/robots.txt");
    {
        let state = StateDir::open(folder.path()).unwrap();
        let live = remembering(&state, &url).schedule(Schedule { hold: Duration::ZERO, ..seldom() });
        let live = live.when_missing(WhenMissing::Fail).open().unwrap();
        server.now_says(response("404 N", "", ""));
        assert!(matches!(reload(&live).outcome, ReloadOutcome::Absent { .. }));
    }
    server.now_says(response("500 I", "", ""));
    {
        let live = remembering(&StateDir::open(folder.path()).unwrap(), &url).open().unwrap();
        assert_eq!((body(&live), live.snapshot().when_missing), (None, WhenMissing::Relay));
        assert_eq!(kept(&reload(&live)), RejectionKind::Unreachable);
        assert_eq!(body(&live), None);
        server.now_says(response("404 N", "", ""));
        assert!(matches!(reload(&live).outcome, ReloadOutcome::Absent { .. }));
        server.now_says(robots("# good"));
        assert!(matches!(reload(&live).outcome, ReloadOutcome::Published { .. }));
    }
    server.now_says(response("500 I", "", ""));
    let live = remembering(&StateDir::open(folder.path()).unwrap(), &url).open().unwrap();
    assert_eq!(body(&live).as_deref(), Some("# good"));
}

#[test]
fn a_possibly_outdated_version_is_reported_until_the_origin_answers() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::saying(robots("# kept"));
    let state = StateDir::open(folder.path()).unwrap();
    drop(remembering(&state, &server.url("/robots.txt")).when_missing(WhenMissing::Fail).open().unwrap());
    std::fs::remove_file(folder.path().join("sites/shop/live")).unwrap();
    server.now_says(response("500 I", "", ""));
    drop(state);
    let live = remembering(&StateDir::open(folder.path()).unwrap(), &server.url("/robots.txt")).open().unwrap();
    assert_eq!(body(&live).as_deref(), Some("# kept"));
    let problem = live.status().state_problem(ProblemKind::Behind).unwrap().to_owned();
    assert!(problem.ends_with(" is missing from the state directory, and may have been a later one"), "{problem}");
    server.now_says(robots("# kept"));
    assert!(matches!(reload(&live).outcome, ReloadOutcome::Unchanged { .. }));
    assert_eq!(live.status().state_problem(ProblemKind::Behind), None);
}

#[test]
fn a_fetched_version_is_examined_by_the_gate_and_can_be_rolled_back() {
    let served = Arc::new(Mutex::new(("1", "User-agent: *\nDisallow: /a\n")));
    let server = tagged(&served);
    let gate = Gate::new();
    let live = url(&server).gate(gate).when_missing(WhenMissing::Fail).open().unwrap();
    *served.lock().unwrap() = ("2", "User-agent: *\nDisallow: /\n");
    let reloaded = reload(&live);
    let ReloadOutcome::Gated { pending, .. } = &reloaded.outcome else { panic!("{reloaded}") };
    let hash = pending.hash();
    assert!(matches!(reload(&live).outcome, ReloadOutcome::Gated { .. }), "it waits on");
    *served.lock().unwrap() = ("3", "User-agent: *\nDisallow: /b\n");
    assert!(matches!(reload(&live).outcome, ReloadOutcome::Published { .. }));
    assert!(matches!(reload(&live).outcome, ReloadOutcome::Unchanged { .. }));
    live.rollback().unwrap();
    // A 304 response does not restore the rolled-back version.
    assert!(matches!(reload(&live).outcome, ReloadOutcome::Gated { .. }));
    assert!(matches!(reload(&live).outcome, ReloadOutcome::Gated { .. }));
    assert!(body(&live).unwrap().ends_with("/a\n"));
    *served.lock().unwrap() = ("2", "User-agent: *\nDisallow: /\n");
    assert!(matches!(reload(&live).outcome, ReloadOutcome::Gated { .. }));
    live.accept(&hash.to_string().parse().unwrap()).unwrap();
    assert!(body(&live).unwrap().ends_with("/\n"));
    assert!(matches!(reload(&live).outcome, ReloadOutcome::Unchanged { .. }));
}

/// Starts a server that sends an entity tag and a body, and 304 to a client that has the tag.
fn tagged(served: &Arc<Mutex<(&'static str, &'static str)>>) -> Server {
    let served = served.clone();
    Server::start(move |head, stream| {
        let (tag, body) = *served.lock().unwrap();
        let fields = format!("ETag: \"{tag}\"\r\n");
        let answer = if head.to_lowercase().contains(&format!("if-none-match: \"{tag}\"")) {
            format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n")
        } else {
            response("200 OK", &fields, body)
        };
        let _ = stream.write_all(answer.as_bytes());
    })
}

#[test]
fn a_fetch_is_conditional_unless_the_last_fetched_file_was_rejected() {
    let served = Arc::new(Mutex::new(("1", "# one")));
    let server = tagged(&served);
    let live = url(&server).open().unwrap();
    reload(&live);
    assert!(matches!(reload(&live).outcome, ReloadOutcome::Unchanged { .. }));
    assert!(server.last_head().to_lowercase().contains("if-none-match: \"1\""));
    *served.lock().unwrap() = ("2", "# two");
    assert!(matches!(reload(&live).outcome, ReloadOutcome::Published { .. }));
    *served.lock().unwrap() = ("3", "<html>");
    assert_eq!(kept(&reload(&live)), RejectionKind::Html);
    assert_eq!(kept(&reload(&live)), RejectionKind::Html, "a 304 would have confirmed what is not live");
    assert!(!server.last_head().to_lowercase().contains("if-none-match"));
    *served.lock().unwrap() = ("2", "# two");
    assert!(matches!(reload(&live).outcome, ReloadOutcome::Unchanged { .. }));
}

#[test]
fn the_last_modified_date_of_the_origin_is_kept() {
    let server = Server::saying(response("200 OK", "Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT\r\n", "# a"));
    let live = url(&server).when_missing(WhenMissing::Fail).open().unwrap();
    let snapshot = live.snapshot();
    let date = snapshot.content.as_ref().unwrap().modified.unwrap();
    assert_eq!(httpdate::fmt_http_date(date), "Tue, 14 Nov 2023 22:13:20 GMT");
}

#[test]
fn an_upstream_request_has_the_sites_host_and_port() {
    let server = Server::saying(robots("# good"));
    let live = LiveRobots::upstream([server.address.to_string()], "Shop.example:8080").unwrap().open().unwrap();
    assert_eq!(live.snapshot().when_missing, WhenMissing::Relay);
    wait_for("its file", || body(&live).as_deref() == Some("# good"));
    let head = server.last_head().to_lowercase();
    assert!(head.starts_with("get /robots.txt http/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nhost: shop.example:8080\r\n"), "{head}");
    let origin = live.status().last_reload.origin.to_owned();
    assert_eq!(&*origin, format!("http://shop.example:8080/robots.txt at {}", server.address));
}

#[cfg(unix)]
#[test]
fn an_upstream_may_be_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().map_while(Result::ok) {
            let mut head = [0; 4096];
            let read = std::io::Read::read(&mut socket, &mut head).unwrap();
            let host = head[..read].windows(19).any(|part| part.eq_ignore_ascii_case(b"host: shop.example\r"));
            let answer = if host { robots("# by socket") } else { response("400 B", "", "") };
            let _ = std::io::Write::write_all(&mut socket, answer.as_bytes());
        }
    });
    let upstream = format!("unix:{}", path.display());
    let live = LiveRobots::upstream([&upstream], "shop.example").unwrap().when_missing(WhenMissing::Fail).open();
    assert_eq!(body(&live.unwrap()).as_deref(), Some("# by socket"));
    let gone = format!("{upstream}.gone");
    let live = LiveRobots::upstream([&gone], "shop.example").unwrap().when_missing(WhenMissing::Fail).open();
    let error = live.unwrap_err().to_string();
    assert!(error.contains(&format!("cannot connect: {gone}: ")), "{error}");
}

/// Starts a server that redirects `/robots.txt` to this location, and answers all other requests
/// with a robots.txt.
fn redirecting(location: impl Into<String>) -> Server {
    let location = location.into();
    Server::start(move |head, stream: &mut dyn Stream| {
        let answer = if head.starts_with("GET /robots.txt ") {
            response("301 M", &format!("Location: {location}\r\n"), "")
        } else {
            robots("# elsewhere")
        };
        let _ = stream.write_all(answer.as_bytes());
    })
}

#[test]
fn redirects_of_an_upstream_are_followed_only_within_the_site() {
    for location in ["/r", "http://shop.example/r", "//SHOP.example:8443/r"] {
        let server = redirecting(location);
        let live = LiveRobots::upstream([server.url("")], "shop.example").unwrap().schedule(seldom()).open().unwrap();
        reload(&live);
        assert_eq!(body(&live).as_deref(), Some("# elsewhere"), "{location}");
        assert!(server.last_head().contains("GET /r "), "the same upstream is asked");
    }
    let other = Server::saying(robots("# not ours"));
    for (location, why) in [
        (other.url("/r"), "is on another site"),
        ("http://evil.example/r".to_owned(), "is on another site"),
        ("http://shop.example.evil.example/r".to_owned(), "is on another site"),
        ("http://shop.example:9999/robots.txt".to_owned(), "differs from the requested URL only in scheme or port"),
        ("gopher://shop.example/r".to_owned(), "use http or https"),
    ] {
        let server = redirecting(&*location);
        let live = LiveRobots::upstream([server.url("")], "shop.example").unwrap().schedule(seldom()).open().unwrap();
        let reloaded = reload(&live);
        assert_eq!(kept(&reloaded), RejectionKind::Unreachable);
        assert!(reloaded.to_string().contains(why), "{reloaded}");
    }
    assert_eq!(other.heads().len(), 0);
}

#[test]
fn the_next_upstream_is_used_if_one_is_down_or_fails() {
    let (down, sick, well) =
        (nowhere().to_string(), Server::saying(response("500 I", "", "")), Server::saying(robots("# well")));
    let upstreams = [down, sick.address.to_string(), well.address.to_string()];
    let live = LiveRobots::upstream(upstreams, "shop.example").unwrap().schedule(often()).open().unwrap();
    wait_for("the one that is well", || body(&live).as_deref() == Some("# well"));
}

#[test]
fn a_url_that_cannot_be_fetched_is_refused_immediately() {
    for (url, why) in [
        ("ftp://example.com/robots.txt", "ftp is not supported"),
        ("example.com/robots.txt", "has no scheme"),
        ("http://user@example.com/", "contains a user name"),
    ] {
        let error = LiveRobots::url(url).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let none: [&str; 0] = [];
    assert!(LiveRobots::upstream(none, "shop.example").is_err());
    assert!(LiveRobots::upstream(["unix:"], "shop.example").is_err());
    assert!(LiveRobots::upstream(["127.0.0.1:3000"], "*.shop.example").is_err());
    assert!(LiveRobots::upstream(["127.0.0.1:3000"], "shop.example/x").is_err());
    let path = LiveRobots::upstream(["http://127.0.0.1:3000/app"], "shop.example").unwrap_err().to_string();
    assert!(path.contains("write the upstream without it"), "{path}");
}

#[test]
fn one_fetcher_serves_many_sites_with_a_limited_number_of_concurrent_fetches() {
    let (now, most) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    // No fetch is answered until all sites are open and all fetch slots are in use.
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let (seen, closed) = (most.clone(), gate.clone());
    let server = Server::start(move |_, stream| {
        {
            let mut now = now.lock().unwrap();
            *now += 1;
            let mut most = seen.lock().unwrap();
            *most = (*most).max(*now);
        }
        let (is_open, opened) = &*closed;
        drop(opened.wait_while(is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
        *now.lock().unwrap() -= 1;
        let _ = stream.write_all(robots("# good").as_bytes());
    });
    // The time limit is long. After a timeout, another fetch would begin while the server still
    // handles the first.
    let fetcher = Fetcher::builder().at_once(4).fetch_within(PATIENCE * 10).start().unwrap();
    let sites: Vec<_> = (0..200)
        .map(|number| {
            let url = server.url(&format!("/{number}"));
            LiveRobots::url(&url).unwrap().schedule(seldom()).fetcher(&fetcher).open().unwrap()
        })
        .collect();
    wait_for("as many fetches as there may be", || *most.lock().unwrap() >= 4);
    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
    wait_for("all sites", || sites.iter().all(|live| body(live).is_some()));
    assert_eq!(*most.lock().unwrap(), 4, "at once");
}

#[test]
fn the_fetches_of_a_site_stop_when_the_site_is_dropped() {
    let (server, other) = (Server::saying(robots("# good")), Server::saying(robots("# good")));
    let fetcher = Fetcher::new().unwrap();
    let live = url(&server).schedule(often()).fetcher(&fetcher).open().unwrap();
    let _other = url(&other).schedule(often()).fetcher(&fetcher).open().unwrap();
    wait_for("a few fetches", || server.heads().len() > 2);
    drop(live);
    let more_of_the_other = || {
        let before = other.heads().len();
        wait_for("more fetches of the other site", || other.heads().len() > before + 10);
    };
    let before = server.heads().len();
    more_of_the_other();
    // A fetch that was in progress may be counted late.
    let more = server.heads().len() - before;
    assert!(more <= 1, "{more} fetches more");
}

#[test]
fn scheduled_fetches_continue_after_a_listener_panics() {
    let server = Server::saying(robots("# good"));
    let live = url(&server).schedule(often()).on_reload(|_, _| panic!("as a test")).open().unwrap();
    wait_for("the first version", || body(&live).as_deref() == Some("# good"));
    server.now_says(robots("# next"));
    wait_for("the next version", || body(&live).as_deref() == Some("# next"));
}

#[test]
fn a_listener_may_reload_the_site() {
    let server = Server::saying(robots("# good"));
    let ((give, given), (report, reported)) = (mpsc::channel::<LiveRobots>(), mpsc::channel());
    let given = Mutex::new(given);
    let live = url(&server).when_missing(WhenMissing::Fail).on_reload(move |_, _| {
        if let Ok(live) = given.lock().unwrap().try_recv() {
            report.send(live.reload_blocking()).unwrap();
        }
    });
    let live = live.open().unwrap();
    give.send(live.clone()).unwrap();
    server.now_says(robots("# next"));
    drop(live.reload());
    let inner = reported.recv_timeout(PATIENCE).expect("the fetch does not wait for the listener");
    assert!(matches!(inner.outcome, ReloadOutcome::Unchanged { .. }), "{inner}");
    server.now_says(robots("# last"));
    assert!(matches!(reload(&live).outcome, ReloadOutcome::Published { .. }));
}

#[test]
fn a_repeated_failure_is_reported_once() {
    let server = Server::saying(response("500 I", "", ""));
    let reported = Arc::new(Mutex::new(Vec::new()));
    let ear = reported.clone();
    let live = url(&server)
        .schedule(often())
        .on_reload(move |reload, _| ear.lock().unwrap().push(reload.to_string()))
        .open()
        .unwrap();
    wait_for("many failures", || live.status().fetch.unwrap().failures > 5);
    server.now_says(robots("# good"));
    wait_for("its end", || body(&live).is_some());
    wait_for("the news", || reported.lock().unwrap().len() > 1);
    let reported = reported.lock().unwrap();
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert!(
        reported[0].contains("the file cannot be fetched: the server answered 500 Internal Server Error"),
        "{reported:?}"
    );
}
