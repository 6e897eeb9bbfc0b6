//! A single fetch, and how a crawler interprets it.

use std::time::{Duration, SystemTime};

use tower_robots::internals::Validators;
use tower_robots::live::LiveRobots;
use tower_robots::source::fetch::{
    CrawlerCache, CrawlerReading, FetchErrorKind, FetchOutcome, FetchUrl, Fetcher, FetcherBuilder,
};

use super::server::{Server, nowhere, response, robots};
use crate::waiting::{PATIENCE, wait_for};

/// Runs a future to completion. Any executor may do this.
fn wait<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
        .block_on(async { tokio::time::timeout(PATIENCE, future).await.expect("an answer in time") })
}

/// Creates a fetcher whose own limits never end a fetch in these tests.
fn patient() -> FetcherBuilder {
    Fetcher::builder().connect_within(PATIENCE * 2).fetch_within(PATIENCE * 2)
}

fn fetch_with(builder: FetcherBuilder, url: &str, known: Option<&Validators>) -> FetchOutcome {
    let url: FetchUrl = url.parse().unwrap();
    let fetcher = builder.start().unwrap();
    wait(fetcher.fetch(&url, known))
}

fn fetch(url: &str) -> FetchOutcome {
    fetch_with(patient(), url, None)
}

fn answer_to(bytes: impl Into<Vec<u8>>) -> FetchOutcome {
    fetch(&Server::saying(bytes).url("/robots.txt"))
}

/// Returns how a crawler interprets the outcome: `allow`, `disallow`, or the body.
fn reading(answer: FetchOutcome) -> String {
    let now = SystemTime::now();
    let mut cache = CrawlerCache::new("http://127.0.0.1").unwrap();
    cache.record(answer, now);
    match cache.permission(now) {
        CrawlerReading::AllowAll => "allow".into(),
        CrawlerReading::DisallowAll => "disallow".into(),
        CrawlerReading::Rules(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("{other:?}"),
    }
}

fn kind(answer: FetchOutcome) -> FetchErrorKind {
    match answer {
        FetchOutcome::Failed(error) => {
            assert!(!error.to_string().is_empty());
            error.kind
        }
        other => panic!("no failure: {other:?}"),
    }
}

/// Starts a server that answers `/N` with a redirect to `/N-1`, and `/0` with a robots.txt.
fn chain() -> Server {
    Server::start(|head, stream| {
        let hops: usize = head.split(['/', ' ']).nth(2).unwrap().parse().unwrap();
        let answer = match hops {
            0 => robots("# the end"),
            _ => response("301 Moved Permanently", &format!("Location: /{}\r\n", hops - 1), "# not read"),
        };
        let _ = stream.write_all(answer.as_bytes());
    })
}

#[test]
fn the_body_of_a_successful_response_is_read_in_every_framing() {
    assert_eq!(reading(answer_to(robots("# a"))), "# a");
    assert_eq!(reading(answer_to("HTTP/1.1 204 No Content\r\n\r\n")), "");
    assert_eq!(reading(answer_to("HTTP/1.0 200 OK\r\n\r\n# until the end")), "# until the end");
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n# a\r\n1;x=y\r\nb\r\n0\r\nT: t\r\n\r\n";
    assert_eq!(reading(answer_to(chunked)), "# ab");
    let early = format!("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n{}", robots("# a"));
    assert_eq!(reading(answer_to(early)), "# a");
}

#[test]
fn the_request_contains_its_user_agent_host_and_target() {
    let server = Server::saying(robots("# a"));
    fetch(&server.url("/robots.txt?v=1#top"));
    let head = server.last_head().to_lowercase();
    assert!(head.starts_with("get /robots.txt?v=1 http/1.1\r\n"), "{head}");
    for field in [
        format!("host: {}", server.address),
        format!("user-agent: robotsd/{}", env!("CARGO_PKG_VERSION")),
        "accept-encoding: identity".to_owned(),
        "connection: close".to_owned(),
    ] {
        assert!(head.contains(&format!("\r\n{field}\r\n")), "{field} is not in {head}");
    }
}

#[test]
fn five_redirects_are_followed_and_the_sixth_is_treated_like_404() {
    let server = chain();
    for hops in 1..=5 {
        assert_eq!(reading(fetch(&server.url(&format!("/{hops}")))), "# the end", "{hops} hops");
    }
    let before = server.heads().len();
    assert_eq!(reading(fetch(&server.url("/6"))), "allow");
    assert_eq!(server.heads().len(), before + 6, "no more than five are followed");
}

#[test]
fn redirects_to_other_hosts_are_followed() {
    let other = Server::saying(robots("# other"));
    let location = format!("Location: {}\r\n", other.url("/r"));
    for status in ["301 M", "302 F", "303 S", "307 T", "308 P"] {
        assert_eq!(reading(answer_to(response(status, &location, ""))), "# other", "{status}");
    }
}

#[test]
fn a_redirect_from_loopback_to_a_link_local_or_multicast_address_is_refused() {
    for host in ["169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "224.0.0.1"] {
        let answer = answer_to(response("302 F", &format!("Location: http://{host}/latest/meta-data/\r\n"), ""));
        let FetchOutcome::Failed(error) = &answer else { panic!("no failure: {answer:?}") };
        assert!(error.to_string().contains("configure the URL directly"), "{error}");
        assert_eq!(reading(answer.clone()), "disallow");
        assert_eq!(kind(answer), FetchErrorKind::RedirectAddress, "{host}");
    }
}

#[test]
fn a_redirect_that_cannot_be_followed_is_treated_like_404() {
    assert_eq!(reading(answer_to(response("301 M", "", ""))), "allow");
    assert_eq!(reading(answer_to(response("302 F", "Location: ftp://a.example/robots.txt\r\n", ""))), "allow");
    assert_eq!(reading(answer_to(response("302 F", "Location: http://\r\n", ""))), "allow");
    assert_eq!(reading(answer_to(response("300 Multiple Choices", "Location: /x\r\n", ""))), "allow");
    let server = Server::saying(response("302 F", "Location: /robots.txt\r\n", ""));
    assert_eq!(reading(fetch(&server.url("/robots.txt"))), "allow", "round and round");
    assert_eq!(server.heads().len(), 6);
}

#[test]
fn client_errors_allow_everything_and_429_and_server_errors_disallow_everything() {
    for status in ["400 B", "401 U", "403 F", "404 N", "410 G", "418 T", "451 L"] {
        assert_eq!(reading(answer_to(response(status, "", "<html>"))), "allow", "{status}");
    }
    for status in ["429 T", "500 I", "502 B", "503 S", "504 G", "599 X"] {
        assert_eq!(reading(answer_to(response(status, "", "<html>"))), "disallow", "{status}");
    }
    match answer_to(response("503 S", "Retry-After: 120\r\n", "")) {
        FetchOutcome::Status { retry_after, .. } => assert_eq!(retry_after, Some(Duration::from_secs(120))),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_unchanged_file_is_confirmed_by_a_conditional_request() {
    let server = Server::start(|head, stream| {
        let is_known = head.to_lowercase().contains("if-none-match: \"1\"");
        let answer = if is_known {
            "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\n\r\n".to_owned()
        } else {
            response("200 OK", "ETag: \"1\"\r\nLast-Modified: Tue, 14 Nov 2023 22:13:20 GMT\r\n", "# a")
        };
        let _ = stream.write_all(answer.as_bytes());
    });
    let url = server.url("/robots.txt");
    let FetchOutcome::Found { validators, .. } = fetch(&url) else { panic!("found") };
    let again = fetch_with(patient(), &url, Some(&validators));
    assert!(
        matches!(again, FetchOutcome::NotModified(freshness) if freshness.private() == Some(Duration::from_secs(60)))
    );
    assert!(server.last_head().to_lowercase().contains("if-modified-since: tue, 14 nov 2023 22:13:20 gmt\r\n"));
    // The validators do not apply to another resource.
    assert!(matches!(fetch_with(patient(), &server.url("/other"), Some(&validators)), FetchOutcome::Found { .. }));
}

#[test]
fn an_unknown_host_name_or_a_failed_connection_fails_the_fetch() {
    let answer = fetch(&format!("http://{}/robots.txt", nowhere()));
    assert_eq!(reading(answer.clone()), "disallow");
    assert_eq!(kind(answer), FetchErrorKind::Connect);
    // A reserved name that never exists (RFC 6761, section 6.4).
    assert_eq!(kind(fetch("http://robots.invalid/robots.txt")), FetchErrorKind::Name);
}

#[test]
fn a_truncated_response_is_an_error() {
    for bytes in [
        "",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n# half",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n# half",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n# half\r\n",
    ] {
        assert_eq!(kind(answer_to(bytes)), FetchErrorKind::Broken, "{bytes:?}");
    }
}

#[test]
fn an_invalid_response_disallows_everything() {
    for bytes in [
        &b"\x00\xff\x00\xff"[..],
        b"<html>\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 20x OK\r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n# a",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n# a",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n# a",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n# a\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n# a",
        b"HTTP/1.1 200 OK\r\nBad Field: x\r\n\r\n# a",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"HTTP/1.1 600 Odd\r\nContent-Length: 0\r\n\r\n",
    ] {
        let shown = String::from_utf8_lossy(bytes);
        assert_eq!(reading(answer_to(bytes)), "disallow", "{shown:?}");
    }
}

#[test]
fn an_unrequested_compressed_response_fails_the_fetch() {
    for coding in ["gzip", "br", "identity, gzip"] {
        let answer = answer_to(response("200 OK", &format!("Content-Encoding: {coding}\r\n"), "# a"));
        assert_eq!(kind(answer), FetchErrorKind::BadResponse, "{coding}");
    }
    assert_eq!(kind(answer_to(b"HTTP/1.1 200 OK\r\n\r\n\x1F\x8B\x08\0")), FetchErrorKind::BadResponse);
    assert_eq!(reading(answer_to(response("200 OK", "Content-Encoding: identity\r\n", "# a"))), "# a");
}

#[test]
fn a_connection_that_is_reset_is_a_failure() {
    // The server closes the connection before reading, so the kernel answers with a reset.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let mut first = [0];
            let _ = std::io::Read::read(&mut { socket }, &mut first);
        }
    });
    assert_eq!(kind(fetch(&format!("http://{address}/robots.txt"))), FetchErrorKind::Broken);
}

/// Starts a server that never stops sending.
fn drip(start: &'static str, again: &'static str, pause: Duration) -> Server {
    Server::start(move |_, stream| {
        let mut writing = stream.write_all(start.as_bytes());
        while writing.is_ok() {
            std::thread::sleep(pause);
            writing = stream.write_all(again.as_bytes());
        }
    })
}

#[test]
fn a_response_that_takes_too_long_in_any_part_is_a_timeout() {
    let tick = Duration::from_millis(20);
    // This is the maximum number of interim responses. With more, the fetch would fail for another
    // reason than the timeout.
    let interim = "HTTP/1.1 102 Processing\r\n\r\n".repeat(16).leak();
    let servers = [
        ("silence", drip("", "", tick)),
        ("a slow head", drip("HTTP/1.1 200 OK\r\nA: ", "a", tick)),
        ("a slow body", drip("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", "#", tick)),
        ("a slow chunk", drip("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\n#\r\n", tick)),
        ("answers before the answer", drip(interim, "", tick)),
    ];
    let fetcher = Fetcher::builder().fetch_within(Duration::from_millis(300)).start().unwrap();
    let under_way = servers.map(|(what, server)| (what, fetcher.fetch(&server.url("/").parse().unwrap(), None)));
    for (what, fetching) in under_way {
        assert_eq!(kind(wait(fetching)), FetchErrorKind::Timeout, "{what}");
    }
}

#[test]
fn all_redirects_share_the_time_limit_of_one_fetch() {
    let server = Server::start(|_, stream| {
        std::thread::sleep(Duration::from_millis(200));
        let _ = stream.write_all(response("302 F", "Location: /x\r\n", "").as_bytes());
    });
    let within = Fetcher::builder().fetch_within(Duration::from_millis(500));
    assert_eq!(kind(fetch_with(within, &server.url("/"), None)), FetchErrorKind::Timeout);
}

#[test]
fn an_endless_head_is_an_error_and_an_endless_body_is_cut_at_the_size_limit() {
    let flood = "#".repeat(1 << 16);
    let endless: &'static str = Box::leak(flood.into_boxed_str());
    let now = Duration::ZERO;
    let head = drip("HTTP/1.1 200 OK\r\nA: ", endless, now);
    assert_eq!(kind(fetch(&head.url("/"))), FetchErrorKind::BadResponse, "a head");
    let fields = drip("HTTP/1.1 200 OK\r\n", "A: b\r\nC: d\r\n", now);
    assert_eq!(kind(fetch(&fields.url("/"))), FetchErrorKind::BadResponse, "fields");
    let body = drip("HTTP/1.1 200 OK\r\n\r\n", endless, now);
    match fetch(&body.url("/")) {
        FetchOutcome::Found { bytes, .. } => {
            assert_eq!(bytes.len() as u64, LiveRobots::MAX_FILE, "crawlers obey what they have read")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn sixteen_interim_responses_are_accepted_and_seventeen_are_an_error() {
    let interim = |number| "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".repeat(number);
    assert_eq!(reading(answer_to(interim(16) + &robots("# a"))), "# a");
    for answers in [interim(17) + &robots("# a"), interim(17)] {
        assert_eq!(kind(answer_to(answers)), FetchErrorKind::InterimAnswers);
    }
    // Endless interim responses are detected long before the timeout.
    for pause in [Duration::ZERO, Duration::from_millis(1)] {
        let flood = drip("", "HTTP/1.1 102 Processing\r\n\r\n", pause);
        let answer = fetch(&flood.url("/"));
        let FetchOutcome::Failed(error) = &answer else { panic!("no failure: {answer:?}") };
        assert!(error.to_string().contains("too many interim answers (1xx): a server may send at most 16"), "{error}");
        assert_eq!(kind(answer), FetchErrorKind::InterimAnswers);
    }
}

#[test]
fn a_flood_of_interim_responses_does_not_block_fetches_from_other_servers() {
    let flood = drip("", "HTTP/1.1 102 Processing\r\n\r\n", Duration::ZERO);
    let fetcher = patient().start().unwrap();
    let flooded: Vec<_> = (0..2).map(|_| fetcher.fetch(&flood.url("/").parse().unwrap(), None)).collect();
    wait_for("the flood", || flood.heads().len() == 2);
    let server = Server::saying(robots("# heard"));
    assert_eq!(reading(wait(fetcher.fetch(&server.url("/").parse().unwrap(), None))), "# heard");
    drop(flooded);
}

#[test]
fn a_fetch_is_stopped_when_its_fetcher_is_dropped() {
    let server = drip("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", "#", Duration::from_millis(5));
    let fetcher = patient().start().unwrap();
    let fetching = fetcher.fetch(&server.url("/").parse().unwrap(), None);
    wait_for("the request", || !server.heads().is_empty());
    drop(fetcher);
    assert_eq!(kind(wait(fetching)), FetchErrorKind::Stopped);
}
