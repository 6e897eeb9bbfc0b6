//! Single requests, and the server's response as it was sent.

use http::header::{ACCEPT_ENCODING, LOCATION, USER_AGENT};
use http::{HeaderValue, StatusCode};
use tower_robots::internals::FetchAnswer;
use tower_robots::source::fetch::FetchRequest;
use tower_robots::source::fetch::{FetchError, FetchErrorKind, Fetcher};

use super::server::{Server, nowhere, response, robots};

fn exchange(fetcher: &Fetcher, request: FetchRequest) -> Result<FetchAnswer, FetchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(fetcher.exchange(request))
}

fn get(url: &str) -> FetchRequest {
    FetchRequest::new(url.parse().unwrap())
}

#[test]
fn a_single_exchange_returns_a_redirect_without_following_it() {
    let server = Server::saying(response("301 Moved", "Location: http://192.0.2.1/x\r\n", "gone"));
    let answer = exchange(&Fetcher::new().unwrap(), get(&server.url("/robots.txt"))).unwrap();
    assert_eq!((answer.address, answer.status), (Some(server.address), StatusCode::MOVED_PERMANENTLY));
    assert_eq!((answer.headers[LOCATION].as_bytes(), &*answer.body), (&b"http://192.0.2.1/x"[..], &b""[..]));
}

#[test]
fn the_caller_can_set_the_header_fields_of_a_request() {
    let server = Server::saying(robots("# packed or not"));
    let fetcher = Fetcher::new().unwrap();
    let mut request = get(&server.url("/robots.txt"));
    request.headers.insert(USER_AGENT, HeaderValue::from_static("another/1"));
    assert_eq!(exchange(&fetcher, request).unwrap().body, b"# packed or not");
    let head = server.last_head().to_ascii_lowercase();
    assert!(head.contains("user-agent: another/1\r\n") && !head.contains("accept-encoding"), "{head}");
    let mut request = get(&server.url("/robots.txt"));
    request.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    exchange(&fetcher, request).unwrap();
    let head = server.last_head().to_ascii_lowercase();
    assert!(head.contains("user-agent: robotsd/") && head.contains("accept-encoding: gzip\r\n"), "{head}");
}

#[test]
fn a_body_is_read_up_to_the_requested_size() {
    let server = Server::saying(robots("0123456789"));
    let fetcher = Fetcher::new().unwrap();
    for (most, body, is_cut) in [(4, "0123", true), (9, "012345678", true), (10, "0123456789", false)] {
        let answer = exchange(&fetcher, FetchRequest { most, ..get(&server.url("/")) }).unwrap();
        assert_eq!((&*answer.body, answer.is_cut), (body.as_bytes(), is_cut), "{most}");
    }
}

#[test]
fn the_error_contains_the_address_only_after_a_connection() {
    let fetcher = Fetcher::new().unwrap();
    let broken = Server::saying("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n# be");
    let error = exchange(&fetcher, get(&broken.url("/robots.txt"))).unwrap_err();
    assert_eq!((error.kind, error.address), (FetchErrorKind::Broken, Some(broken.address)));
    let error = exchange(&fetcher, get(&format!("http://{}/robots.txt", nowhere()))).unwrap_err();
    assert_eq!((error.kind, error.address), (FetchErrorKind::Connect, None));
}

#[test]
fn a_host_can_be_mapped_to_another_address() {
    let server = Server::saying(robots("# the new server"));
    let port = server.address.port();
    let fetcher = Fetcher::builder()
        .connect_to(move |host, at| (host == "www.example.com" && at == 80).then(|| ("127.0.0.1".to_owned(), port)))
        .start()
        .unwrap();
    // A public server may redirect to a host that the user has configured, even if that host is on
    // loopback.
    let request = FetchRequest { led_from: Some([192, 0, 2, 1].into()), ..get("http://www.example.com/robots.txt") };
    assert_eq!(exchange(&fetcher, request).unwrap().body, b"# the new server");
    assert!(server.last_head().to_ascii_lowercase().contains("host: www.example.com\r\n"), "{}", server.last_head());
    let led = FetchRequest { led_from: Some([8, 8, 8, 8].into()), ..get(&server.url("/robots.txt")) };
    assert_eq!(exchange(&fetcher, led).unwrap_err().kind, FetchErrorKind::RedirectAddress);
}

#[test]
fn a_streamed_body_ends_at_the_requested_size_and_reports_truncation() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let fetcher = Fetcher::new().unwrap();
    let read = |request: FetchRequest| {
        runtime.block_on(async {
            let (answering, mut parts) = fetcher.stream(request);
            let answer = answering.await;
            let (mut body, mut error) = (Vec::new(), None);
            while let Some(part) = parts.part().await {
                match part {
                    Ok(part) => body.extend_from_slice(&part),
                    Err(found) => error = Some(found.kind),
                }
            }
            (answer, body, error)
        })
    };
    let large = "0123456789".repeat(100_000);
    let server = Server::saying(robots(&large));
    for most in [0, 9, 999_999, 1_000_000, 2_000_000] {
        let (answer, body, error) = read(FetchRequest { most, ..get(&server.url("/")) });
        let answer = answer.unwrap();
        assert_eq!((answer.address, answer.status, answer.body), (Some(server.address), StatusCode::OK, vec![]));
        let whole = usize::try_from(most).unwrap().min(large.len());
        assert!(body == large.as_bytes()[..whole] && error.is_none(), "{most}: {} bytes, {error:?}", body.len());
    }
    let server = Server::saying(response("301 Moved", "Location: http://192.0.2.1/x\r\n", "gone"));
    let (answer, body, error) = read(get(&server.url("/")));
    assert_eq!((answer.unwrap().status, &body[..], error), (StatusCode::MOVED_PERMANENTLY, &b""[..], None));
    let broken = Server::saying("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n# be");
    let (answer, body, error) = read(get(&broken.url("/")));
    assert!(answer.is_ok());
    assert_eq!((&body[..], error), (&b"# be"[..], Some(FetchErrorKind::Broken)));
    let (answer, _, error) = read(get(&format!("http://{}/", nowhere())));
    assert_eq!((answer.unwrap_err().kind, error), (FetchErrorKind::Connect, None));
    // If nobody reads a body to its end, the thread still continues with other requests.
    let (answering, parts) = fetcher.stream(get(&Server::saying(robots(&large)).url("/")));
    assert!(runtime.block_on(answering).is_ok());
    drop(parts);
    assert!(exchange_of(&fetcher, &robots("# other")).is_ok());
}

fn exchange_of(fetcher: &Fetcher, answer: &str) -> Result<(), FetchErrorKind> {
    let server = Server::saying(answer.to_owned());
    exchange(fetcher, get(&server.url("/"))).map(drop).map_err(|error| error.kind)
}
