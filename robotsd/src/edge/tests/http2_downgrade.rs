//! Tests of HTTP/2 requests that would have another meaning on HTTP/1.1. The tests build these
//! requests from bytes. None of the requests may reach the service.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::flood::framed;
use super::*;
use crate::http_common::frames::{self, CONTINUATION, END_HEADERS, END_STREAM, RST_STREAM};
use crate::http_common::test_peer::{field, frame};

/// Builds a field section with this method and path, the scheme `http` and the host `h.test`.
fn section(method: &str, path: &str, fields: &[Vec<u8>]) -> Vec<u8> {
    let mut section =
        [field(":method", method), field(":scheme", "http"), field(":authority", "h.test"), field(":path", path)]
            .concat();
    section.extend(fields.concat());
    section
}

fn headers(flags: u8, section: &[u8]) -> Vec<u8> {
    frame(frames::HEADERS, END_HEADERS | flags, 1, section)
}

/// Number of requests that reached the service: their heads, and their complete bodies.
#[derive(Debug, Default)]
struct Reached {
    heads: AtomicUsize,
    bodies: AtomicUsize,
}

fn counting() -> (ServedEdge, &'static Reached) {
    let reached = shared::<Reached>();
    let service = service_fn(move |request: Request<RequestBody>| async move {
        reached.heads.fetch_add(1, Ordering::SeqCst);
        if request.into_body().collect().await.is_ok() {
            reached.bodies.fetch_add(1, Ordering::SeqCst);
        }
        Ok(Response::new(Empty::<Bytes>::new()))
    });
    (ServedEdge::start(EdgeLimits::default(), service), reached)
}

/// How the edge reacted to a request on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answered {
    Response,
    Reset,
    /// The edge ended the connection.
    Goaway,
}

async fn answered(edge: &ServedEdge, bytes: &[u8]) -> Answered {
    let mut client = framed(edge).await;
    client.try_send(bytes).await;
    loop {
        match soon(client.frame()).await {
            Some(frame) if frame.stream == 1 && frame.kind == frames::HEADERS => return Answered::Response,
            Some(frame) if frame.stream == 1 && frame.kind == RST_STREAM => return Answered::Reset,
            Some(frame) if frame.kind == frames::GOAWAY => return Answered::Goaway,
            Some(_) => {}
            None => return Answered::Goaway,
        }
    }
}

#[tokio::test]
async fn valid_requests_reach_the_service_completely() {
    let (edge, reached) = counting();
    for (bytes, what) in [
        (headers(END_STREAM, &section("GET", "/", &[])), "GET"),
        (headers(END_STREAM, &section("GET", "/", &[field("te", "trailers")])), "te: trailers"),
        (headers(END_STREAM, &section("GET", "/", &[field("host", "h.test")])), "the same host"),
        (
            [headers(0, &section("POST", "/", &[field("content-length", "2")])), frame(0, END_STREAM, 1, b"ok")]
                .concat(),
            "POST",
        ),
    ] {
        assert_eq!(answered(&edge, &bytes).await, Answered::Response, "{what}");
    }
    assert_eq!((reached.heads.load(Ordering::SeqCst), reached.bodies.load(Ordering::SeqCst)), (4, 4));
}

#[tokio::test]
async fn a_head_that_would_have_another_meaning_on_http_1_1_never_reaches_the_service() {
    let (edge, reached) = counting();
    let fields: [(&str, Vec<u8>); 25] = [
        ("CR and LF in a value", field("x-a", "b\r\nhost: evil")),
        ("LF in a value", field("x-a", "b\nc")),
        ("CR in a value", field("x-a", "b\rc")),
        ("NUL in a value", field("x-a", "b\0c")),
        ("CR and LF in a name", field("x-a\r\nhost", "evil")),
        ("a colon in a name", field("x-a:b", "c")),
        ("a request in a name", field("x: y\r\n\r\nget /private http/1.1", "c")),
        ("a space in a name", field("x-a b", "c")),
        ("an empty name", field("", "c")),
        ("capitals in a name", field("X-A", "b")),
        ("connection", field("connection", "close")),
        ("proxy-connection", field("proxy-connection", "close")),
        ("keep-alive", field("keep-alive", "timeout=5")),
        ("transfer-encoding", field("transfer-encoding", "chunked")),
        ("upgrade", field("upgrade", "websocket")),
        ("te", field("te", "trailers, chunked")),
        ("an unknown pseudo-header", field(":sent", "1")),
        ("a pseudo-header of responses", field(":status", "200")),
        ("a pseudo-header after fields", [field("x-a", "b"), field(":path", "/private")].concat()),
        ("another path", field(":path", "/private")),
        ("another method", field(":method", "POST")),
        ("another authority", field(":authority", "evil")),
        ("another host", field("host", "evil")),
        ("two hosts", [field("host", "h.test"), field("host", "evil")].concat()),
        ("a protocol without CONNECT", field(":protocol", "websocket")),
    ];
    for (what, end) in fields {
        answered(&edge, &headers(END_STREAM, &section("GET", "/", &[end]))).await;
        assert_eq!(reached.heads.load(Ordering::SeqCst), 0, "{what}");
    }
    let pseudo =
        |fields: &[(&str, &str)]| fields.iter().flat_map(|(name, value)| field(name, value)).collect::<Vec<u8>>();
    let all = [(":method", "GET"), (":scheme", "http"), (":authority", "h.test"), (":path", "/")];
    let without = |name: &str| pseudo(&all.into_iter().filter(|(found, _)| *found != name).collect::<Vec<_>>());
    let with = |name: &str, value: &str| {
        pseudo(&all.map(|(found, before)| (found, if found == name { value } else { before })))
    };
    for (what, section) in [
        ("no method", without(":method")),
        ("no path", without(":path")),
        ("no scheme", without(":scheme")),
        ("a request in the method", with(":method", "GET /private HTTP/1.1\r\nx:")),
        ("a space in the method", with(":method", "GET /private")),
        ("a request in the path", with(":path", "/ HTTP/1.1\r\nhost: evil\r\n\r\nGET /private")),
        ("a space in the path", with(":path", "/ HTTP/1.1")),
        ("an empty path", with(":path", "")),
        ("a path without its slash", with(":path", "private")),
        ("a path that is a URL", with(":path", "http://evil/")),
        ("CR and LF in the authority", with(":authority", "h.test\r\nx-a: b")),
        ("a space in the authority", with(":authority", "h.test evil")),
        ("a path in the authority", with(":authority", "h.test/private?")),
        ("a user in the authority", with(":authority", "h.test@evil")),
        ("CONNECT", pseudo(&[(":method", "CONNECT"), (":authority", "h.test:443")])),
        ("an extended CONNECT", [with(":method", "CONNECT"), field(":protocol", "websocket")].concat()),
    ] {
        answered(&edge, &headers(END_STREAM, &section)).await;
        assert_eq!(reached.heads.load(Ordering::SeqCst), 0, "{what}");
    }
    // The violations have ended streams or connections, but the edge still serves new connections.
    assert_eq!(answered(&edge, &headers(END_STREAM, &section("GET", "/", &[]))).await, Answered::Response);
}

#[tokio::test]
async fn a_request_with_a_wrong_content_length_or_a_reset_body_is_never_complete() {
    let (edge, reached) = counting();
    let length = |length: &str| section("POST", "/", &[field("content-length", length)]);
    for (what, bytes) in [
        ("longer than the body", [headers(0, &length("5")), frame(0, END_STREAM, 1, b"ok")].concat()),
        ("shorter than the body", [headers(0, &length("1")), frame(0, END_STREAM, 1, b"ok")].concat()),
        ("no body", headers(END_STREAM, &length("5"))),
        ("no number", [headers(0, &length("2, 2")), frame(0, END_STREAM, 1, b"ok")].concat()),
        ("an empty number", headers(END_STREAM, &length(""))),
        ("a sign", [headers(0, &length("+2")), frame(0, END_STREAM, 1, b"ok")].concat()),
        (
            "two numbers",
            [
                headers(0, &section("POST", "/", &[field("content-length", "2"), field("content-length", "3")])),
                frame(0, END_STREAM, 1, b"ok"),
            ]
            .concat(),
        ),
        (
            "a body that its client breaks off",
            [headers(0, &section("POST", "/", &[])), frame(0, 0, 1, b"ok"), frame(RST_STREAM, 0, 1, &[0; 4])].concat(),
        ),
    ] {
        let mut client = framed(&edge).await;
        client.try_send(&bytes).await;
        // The PING is answered only after all earlier bytes have been processed.
        client.try_send(&frame(6, 0, 0, &[7; 8])).await;
        while let Some(frame) = soon(client.frame()).await {
            if frame.kind == 6 && frame.flags == frames::ACK {
                break;
            }
        }
        assert_eq!(reached.bodies.load(Ordering::SeqCst), 0, "{what}");
    }
}

/// The field sections have no end, or an end that comes too late.
#[tokio::test]
async fn floods_of_continuation_frames_end_the_connection() {
    for piece in [vec![], field("x-a", "b"), field("x-a", &"b".repeat(100))] {
        let (edge, reached) = counting();
        let begun = frame(frames::HEADERS, END_STREAM, 1, &section("GET", "/", &[]));
        let flood = frame(CONTINUATION, 0, 1, &piece).repeat(20_000);
        assert_eq!(answered(&edge, &[begun, flood].concat()).await, Answered::Goaway);
        assert_eq!(reached.heads.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn a_head_that_is_too_large_never_reaches_the_service() {
    let (edge, reached) = counting();
    let begun = frame(frames::HEADERS, END_STREAM, 1, &section("GET", "/", &[]));
    let large: Vec<u8> =
        (0..10).flat_map(|_| frame(CONTINUATION, 0, 1, &field("x-a", &"b".repeat(120)).repeat(120))).collect();
    answered(&edge, &[begun, large, frame(CONTINUATION, END_HEADERS, 1, &field("x-a", "b"))].concat()).await;
    assert_eq!(reached.heads.load(Ordering::SeqCst), 0);
}
