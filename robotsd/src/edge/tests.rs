//! Tests of the edge on real sockets. Each test has its own service.

mod deadlines;
mod flood;
mod http2;
mod http2_downgrade;
mod http2_stalls;
mod interim;
mod recycling;
mod requests;
pub(super) mod shutdown;

use std::convert::Infallible;
use std::future::{Future, pending};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Either, Empty, Full, StreamBody};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;
use tower::service_fn;

use super::*;
use crate::edge::connection_error::ConnectionErrorKind;
use crate::edge::test_edge::ServedEdge;
use crate::http_common::test_peer::{Raw, bytes, listen, shared, soon, wait_until};
use crate::http_common::{
    ClientRequest, EdgeService, RequestBody, RequestBodyError, StallObserver, Transfer, Tunnel, test_peer,
};

fn brief(change: impl FnOnce(&mut EdgeLimits)) -> EdgeLimits {
    let mut limits = EdgeLimits::default();
    change(&mut limits);
    limits
}

const MOMENT: Duration = Duration::from_millis(150);

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// A duration that no test reaches.
const HOUR: Duration = Duration::from_secs(3600);

/// Answers with the request as the service received it: the request line, then the fields.
pub(super) async fn mirror(request: Request<RequestBody>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut text = format!("{} {}\n", request.method(), request.uri());
    for (name, value) in request.headers() {
        text.push_str(&format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes())));
    }
    let Some(peer) = ClientRequest::peer_of(request.extensions()) else {
        return Ok(Response::builder().status(500).body(Full::default()).unwrap());
    };
    assert!(peer.address.ip().is_loopback());
    let own = peer.connection.map_or("shared", |_| "own");
    Ok(Response::builder().header("x-connection", own).body(Full::from(text)).unwrap())
}

/// Returns a 101 response with a tunnel whose other end sends `early` and then echoes. Returns
/// `None` if the request does not ask for a WebSocket.
pub(super) fn echo(request: &Request<RequestBody>, early: &'static [u8]) -> Option<Response<Full<Bytes>>> {
    ClientRequest::of(request.extensions()).filter(|known| known.wants_websocket)?;
    let (near, far) = tokio::io::duplex(1024);
    tokio::spawn(async move {
        let (mut read, mut write) = tokio::io::split(far);
        tokio::io::copy(&mut read, &mut write).await
    });
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.extensions_mut().insert(Tunnel::new(near, Bytes::from_static(early), None));
    Some(response)
}

fn has_line(text: &str, line: &str) -> bool {
    text.lines().any(|found| found == line)
}

fn names<'t>(text: &'t str) -> Vec<&'t str> {
    let mut names: Vec<&'t str> = text.lines().skip(1).filter_map(|line| Some(line.split_once(':')?.0)).collect();
    names.sort_unstable();
    names
}

const OURS: [&str; 5] = ["host", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-request-id"];

/// Starts an edge that answers the first request for `/endless` with an endless body, and every
/// other request with an empty body. The receiver fails when the endless body is dropped.
fn endless_once(limits: EdgeLimits) -> (ServedEdge, oneshot::Receiver<()>) {
    let (alive, dropped) = oneshot::channel();
    let piece = move || {
        let _ = &alive;
        Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[b'e'; 4096])))
    };
    let endless = StreamBody::new(tokio_stream::iter(std::iter::repeat_with(piece)));
    let endless = Arc::new(Mutex::new(Some(endless)));
    let service = service_fn(move |request: Request<RequestBody>| {
        let body = match request.uri().path() {
            "/endless" => Either::Left(endless.lock().take().unwrap()),
            _ => Either::Right(Empty::new()),
        };
        async { Ok(Response::new(body)) }
    });
    (ServedEdge::start(limits, service), dropped)
}

fn get(uri: &str) -> http::request::Builder {
    Request::builder().uri(uri)
}

/// Starts an edge whose service never answers. Also returns signals for the beginning and the end
/// of a request.
fn unanswered() -> (ServedEdge, &'static Notify, oneshot::Receiver<()>) {
    let (alive, gone) = oneshot::channel::<()>();
    let alive = Arc::new(Mutex::new(Some(alive)));
    let begun = shared::<Notify>();
    let service = service_fn(move |_: Request<RequestBody>| {
        let alive = alive.lock().take();
        begun.notify_one();
        async move {
            let _alive = alive;
            pending::<Result<Response<Empty<Bytes>>, Infallible>>().await
        }
    });
    (ServedEdge::start(EdgeLimits::default(), service), begun, gone)
}

#[tokio::test]
async fn a_request_is_dropped_when_its_client_disconnects() {
    let (edge, begun, gone) = unanswered();
    let client = edge.sent(GET).await;
    soon(begun.notified()).await;
    drop(client);
    assert!(soon(gone).await.is_err());
}

/// An edge whose requests signal that they have begun, and then wait until the test releases them.
struct Held {
    edge: ServedEdge,
    begun: &'static Notify,
    release: &'static Notify,
}

fn held(limits: EdgeLimits) -> Held {
    let begun = shared::<Notify>();
    let release = shared::<Notify>();
    let service = service_fn(move |_: Request<RequestBody>| {
        begun.notify_one();
        async move {
            release.notified().await;
            Ok(Response::new(Empty::new()))
        }
    });
    Held { edge: ServedEdge::start(limits, service), begun, release }
}

#[tokio::test]
async fn a_connection_beyond_the_limit_waits_for_a_slot_while_all_others_are_busy() {
    let Held { edge, begun, release } = held(brief(|limits| limits.connections = 2));
    let mut busy = Vec::new();
    for _ in 0..2 {
        let client = edge.sent(GET).await;
        soon(begun.notified()).await;
        busy.push(client);
    }
    let mut waiting = edge.sent(GET).await;
    edge.reports(ConnectionErrorKind::Full).await;
    assert!(timeout(MOMENT, begun.notified()).await.is_err(), "served without a place");
    assert!(!edge.has_reported(ConnectionErrorKind::Recycled));
    // Only this connection is idle, because its request was answered. So its slot is claimed.
    release.notify_one();
    soon(begun.notified()).await;
    release.notify_waiters();
    assert_eq!(waiting.message().await.status(), 200);
    for mut client in busy {
        assert_eq!(client.message().await.status(), 200);
    }
    edge.reports(ConnectionErrorKind::Recycled).await;
}
