//! Tests of requests that the fast path answers or hands over, on real sockets.

mod hyper_parity;

use std::cell::Cell;
use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tower::service_fn;

use crate::edge::EdgeLimits;
use crate::edge::test_edge::ServedEdge;
use crate::edge::tests::mirror;
use crate::http_common::test_peer::{Raw, RawMessage, accepting, as_escaped, soon};
use crate::http_common::{EdgeService, RequestBody};

/// A body of unknown length, which is sent in pieces.
type Pieces = StreamBody<tokio_stream::Iter<std::vec::IntoIter<std::io::Result<Frame<Bytes>>>>>;

/// Creates a body from pieces. `None` makes the body fail.
fn pieces(texts: &[Option<&'static str>]) -> Pieces {
    let piece = |text: &Option<&'static str>| match text {
        Some(text) => Ok(Frame::data(Bytes::from_static(text.as_bytes()))),
        None => Err(std::io::Error::other("broken")),
    };
    StreamBody::new(tokio_stream::iter(texts.iter().map(piece).collect::<Vec<_>>()))
}

/// Answers with a response whose status, framing and body depend on the path.
async fn answer(request: Request<RequestBody>) -> Result<Response<Pieces>, Infallible> {
    let (status, has_length, texts): (_, _, &[_]) = match request.uri().path() {
        "/pieces" => (200, false, &[Some("ab"), Some(""), Some("cde")]),
        "/length" => (200, true, &[Some("ab"), Some("cde")]),
        "/short" => (200, true, &[Some("ab")]),
        "/long" => (200, true, &[Some("ab"), Some("cdefgh")]),
        "/broken" => (200, false, &[Some("ab"), None]),
        "/nothing" => (204, true, &[]),
        "/unchanged" => (304, true, &[]),
        _ => {
            let length = request.into_body().collect().await.map_or(0, |body| body.to_bytes().len());
            return Ok(Response::builder().header("x-length", length).body(pieces(&[Some("ok")])).unwrap());
        }
    };
    let mut response = Response::builder().status(status);
    if has_length {
        response = response.header("content-length", "5");
    }
    Ok(response.body(pieces(texts)).unwrap())
}

fn start() -> SocketAddr {
    ServedEdge::start(EdgeLimits::default(), service_fn(answer)).address
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n")
}

#[tokio::test]
async fn a_body_of_unknown_length_is_chunked_and_a_known_length_is_not() {
    let mut client = Raw::connect(start()).await;
    let answer = client.ask(&get("/pieces")).await;
    assert_eq!((&*answer.body, answer.field("transfer-encoding")), ("abcde", Some("chunked")));
    let answer = client.ask(&get("/length")).await;
    assert_eq!((&*answer.body, answer.field("transfer-encoding")), ("abcde", None));
    assert!(answer.field("date").is_some());
}

#[tokio::test]
async fn responses_to_head_and_with_204_or_304_have_no_body() {
    let mut client = Raw::connect(start()).await;
    for (request, status, length) in [
        (get("/nothing"), 204, None),
        (get("/unchanged"), 304, Some("5")),
        (get("/length").replace("GET", "HEAD"), 200, Some("5")),
        (get("/pieces").replace("GET", "HEAD"), 200, None),
    ] {
        client.send(&request).await;
        let head = client.until(b"\r\n\r\n").await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        let said = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        assert_eq!(said, length, "{head}");
    }
    assert_eq!(client.ask(&get("/length")).await.body, "abcde");
}

#[tokio::test]
async fn a_body_that_is_broken_or_has_another_length_ends_the_connection() {
    let address = start();
    for (path, rest) in [("/short", "ab"), ("/long", "ab"), ("/broken", "2\r\nab\r\n")] {
        let mut client = Raw::sent(address, get(path)).await;
        let head = client.until(b"\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        let said = client.rest().await;
        assert!(rest.starts_with(&said) && !said.ends_with("0\r\n\r\n"), "{path}: {said:?}");
    }
}

#[tokio::test]
async fn requests_for_the_fast_path_and_for_hyper_share_a_connection() {
    let address = start();
    let post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
    for _ in 0..2 {
        let mut client = Raw::connect(address).await;
        for _ in 0..3 {
            assert_eq!(client.ask(&get("/")).await.body, "ok");
        }
        let answer = client.ask(post).await;
        assert_eq!((&*answer.body, answer.field("x-length")), ("ok", Some("3")));
        assert_eq!(client.ask(&get("/length")).await.body, "abcde");
    }
}

#[tokio::test]
async fn requests_sent_at_once_are_answered_in_order() {
    let mut client = Raw::sent(start(), format!("{}{}", get("/length"), get("/"))).await;
    assert_eq!(client.message().await.body, "abcde");
    assert_eq!(client.message().await.body, "ok");
    assert_eq!(client.ask(&get("/length")).await.body, "abcde");
}

#[tokio::test]
async fn a_head_that_arrives_in_pieces_is_answered() {
    let mut client = Raw::connect(start()).await;
    assert_eq!(client.ask(&get("/")).await.body, "ok");
    client.send("GET /length HT").await;
    tokio::task::yield_now().await;
    client.send("TP/1.1\r\nHost: h\r\n\r\n").await;
    assert_eq!(client.message().await.body, "abcde");
}

#[tokio::test]
async fn a_parked_connection_still_answers_requests() {
    let mut client = Raw::connect(start()).await;
    for _ in 0..3 {
        assert_eq!(client.ask(&get("/length")).await.body, "abcde");
        // The next response must be correct, whether or not the connection has been parked.
        tokio::time::sleep(super::socket::PARK * 4).await;
    }
    soon(client.finish()).await;
    assert_eq!(client.rest().await, "");
}

/// Sends the first request of a new connection, and returns the answer.
async fn answered(address: SocketAddr, line: &[u8], fields: &[u8]) -> RawMessage {
    Raw::sent(address, [line, b"\r\nHost: h\r\n", fields, b"\r\n"].concat()).await.message().await
}

fn targets() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        3 => any::<u8>().prop_map(|byte| vec![byte]),
        3 => (0x21..0x7Fu8).prop_map(|byte| vec![byte]),
        1 => (0x80..=0xFFu8).prop_map(|byte| vec![byte]),
        3 => prop::sample::select(&[
            "/", "?", "#", "%", "%2F", "%e9", "<", ">", "`", "\"", "\\", "\u{e9}", "{", "|", "^", "a", " ", "\u{1F600}", "//", "..",
        ][..])
        .prop_map(|piece| piece.as_bytes().to_vec()),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| [&b"/"[..], &pieces.concat()].concat())
}

fn extra_fields() -> impl Strategy<Value = Vec<u8>> {
    let value = prop::collection::vec(prop_oneof![0x20..0x7Fu8, 0x80..=0xFFu8], 0..8);
    let name = prop::sample::select(&["X-A", "Accept", "Cookie", "X_Real_IP", "Referer", "User-Agent"][..]);
    prop::collection::vec((name, value), 0..3).prop_map(|fields| {
        fields.into_iter().flat_map(|(name, value)| [name.as_bytes(), b": ", &value, b"\r\n"].concat()).collect()
    })
}

#[tokio::test]
async fn targets_with_bytes_that_hyper_rejects_are_answered() {
    let address = ServedEdge::start(EdgeLimits::default(), service_fn(mirror)).address;
    for (target, want) in [
        (&b"/q?x=caf\xe9"[..], "/q?x=caf%E9"),
        (b"/caf\xe9", "/caf%E9"),
        (b"/<b>`?\"<>", "/%3Cb%3E%60?%22%3C%3E"),
        (b"/{a}|^\"?{a}|^`", "/{a}|^\"?{a}|^`"),
    ] {
        for (method, version, fields) in [
            ("GET", "1.1", ""),
            ("GET", "1.1", "Connection: close\r\n"),
            ("GET", "1.0", ""),
            ("POST", "1.1", "Content-Length: 0\r\n"),
        ] {
            let line = [method.as_bytes(), b" ", target, b" HTTP/", version.as_bytes()].concat();
            let answer = answered(address, &line, fields.as_bytes()).await;
            assert_eq!((answer.status(), answer.body.lines().next()), (200, Some(&*format!("{method} {want}"))));
        }
        // The fast path also answers the later requests of a connection if hyper rejects their
        // target.
        let mut client = Raw::connect(address).await;
        let get = [b"GET ", target, b" HTTP/1.1\r\nHost: h\r\n\r\n"].concat();
        for _ in 0..2 {
            client.send(&get).await;
            assert!(client.message().await.body.starts_with(&format!("GET {want}\n")));
        }
        assert_eq!(client.ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n").await.status(), 200);
        client.send(&get).await;
        assert_eq!(client.message().await.status() == 200, want.starts_with("/{"));
    }
    for target in [&b"/a\\b"[..], b"/<\\", b"/\x01<", b"/\0", b"/\x7f\xe9", b"/a b", b"/\t\xff"] {
        let answer = answered(address, &[b"GET ", target, b" HTTP/1.1"].concat(), b"").await;
        assert_eq!(answer.status(), 400, "{}", target.escape_ascii());
    }
    // The length limit applies to the escaped target.
    let long = |bytes: usize| [&b"GET /"[..], &vec![0xFF; bytes], b" HTTP/1.1"].concat();
    assert_eq!(answered(address, &long(2730), b"").await.status(), 200);
    assert_eq!(answered(address, &long(2731), b"").await.status(), 414);
}
