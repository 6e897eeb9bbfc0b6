//! Plain requests and others, on real sockets.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use tokio::net::TcpListener;
use tower::service_fn;

use super::super::raw::{Raw, soon};
use super::super::{Edge, Entrance, Limits, RequestBody};

/// A body in pieces of unknown length; `None` breaks it.
struct Pieces(VecDeque<Option<&'static str>>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.0.pop_front().map(|piece| match piece {
            Some(text) => Ok(Frame::data(Bytes::from_static(text.as_bytes()))),
            None => Err(std::io::Error::other("broken")),
        }))
    }
}

/// Answers as the path says.
async fn answer(request: Request<RequestBody>) -> Result<Response<Pieces>, Infallible> {
    let mut response = Response::builder();
    let pieces: &[Option<&'static str>] = match request.uri().path() {
        "/pieces" => &[Some("ab"), Some(""), Some("cde")],
        "/length" => {
            response = response.header("content-length", "5");
            &[Some("ab"), Some("cde")]
        }
        "/short" => {
            response = response.header("content-length", "5");
            &[Some("ab")]
        }
        "/long" => {
            response = response.header("content-length", "5");
            &[Some("ab"), Some("cdefgh")]
        }
        "/broken" => &[Some("ab"), None],
        "/nothing" => {
            response = response.status(204).header("content-length", "5");
            &[]
        }
        "/unchanged" => {
            response = response.status(304).header("content-length", "5");
            &[]
        }
        _ => {
            let length = request.into_body().collect().await.map_or(0, |body| body.to_bytes().len());
            response = response.header("x-length", length);
            &[Some("ok")]
        }
    };
    Ok(response.body(Pieces(pieces.iter().copied().collect())).unwrap())
}

async fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let edge = Edge::new(Limits::default(), |_| {}, None);
        edge.serve(listener, Entrance::default(), service_fn(answer), std::future::pending()).await;
    });
    address
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n")
}

#[tokio::test]
async fn bodies_are_framed_as_they_come() {
    let mut client = Raw::connect(start().await).await;
    let answer = client.ask(&get("/pieces")).await;
    assert_eq!((&*answer.body, answer.field("transfer-encoding")), ("abcde", Some("chunked")));
    let answer = client.ask(&get("/length")).await;
    assert_eq!((&*answer.body, answer.field("transfer-encoding")), ("abcde", None));
    assert!(answer.field("date").is_some());
}

#[tokio::test]
async fn answers_without_a_body_have_none() {
    let mut client = Raw::connect(start().await).await;
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
async fn a_body_that_is_not_what_was_said_ends_the_connection() {
    let address = start().await;
    for (path, rest) in [("/short", "ab"), ("/long", "ab"), ("/broken", "2\r\nab\r\n")] {
        let mut client = Raw::connect(address).await;
        client.send(get(path)).await;
        let head = client.until(b"\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        let said = client.rest().await;
        assert!(rest.starts_with(&said) && !said.ends_with("0\r\n\r\n"), "{path}: {said:?}");
    }
}

#[tokio::test]
async fn requests_of_every_kind_share_a_connection() {
    let address = start().await;
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
    let mut client = Raw::connect(start().await).await;
    client.send(format!("{}{}", get("/length"), get("/"))).await;
    assert_eq!(client.message().await.body, "abcde");
    assert_eq!(client.message().await.body, "ok");
    assert_eq!(client.ask(&get("/length")).await.body, "abcde");
}

#[tokio::test]
async fn a_head_in_pieces_is_a_head() {
    let mut client = Raw::connect(start().await).await;
    assert_eq!(client.ask(&get("/")).await.body, "ok");
    client.send("GET /length HT").await;
    tokio::task::yield_now().await;
    client.send("TP/1.1\r\nHost: h\r\n\r\n").await;
    assert_eq!(client.message().await.body, "abcde");
}

#[tokio::test]
async fn a_parked_connection_answers_as_before() {
    let mut client = Raw::connect(start().await).await;
    for _ in 0..3 {
        assert_eq!(client.ask(&get("/length")).await.body, "abcde");
        // Parking cannot be seen from outside; whether it has happened, nothing may differ.
        tokio::time::sleep(super::PARK * 4).await;
    }
    soon(client.finish()).await;
    assert_eq!(client.rest().await, "");
}
