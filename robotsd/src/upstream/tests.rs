//! Tests of an upstream. The origins are raw sockets, so that the tests choose every byte.

mod caps;
mod http2;
mod http2_bad_streams;
mod http2_connections;
mod http2_frames;
mod http2_secure;
mod http2_streams;
mod interim;
mod names;
mod paths;
mod requests;
mod responses;
mod reuse;
mod secure;
mod several;
mod stalled;
mod trailers;
mod unix;
mod websockets;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;

use http::header::{CONTENT_LENGTH, HOST};

use super::failure::UpstreamFailure;
use super::failure_kind::FailureKind;
use super::*;
use crate::edge::test_edge::ServedEdge;
use crate::edge::{EdgeLimits, ListenerSettings, Trusted};
use crate::http_common::test_peer::{Raw, accepting, refusing, shared, soon, wait_until};

const MOMENT: Duration = Duration::from_millis(150);
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

const HANDSHAKE: &str = "GET /chat HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n";

/// An origin server that runs a script for each of its connections.
struct Origin {
    address: SocketAddr,
    connections: &'static AtomicUsize,
    versions: HttpVersions,
    /// Signal that makes an HTTP/2 connection of the origin send a GOAWAY.
    goodbye: &'static Notify,
}

impl Origin {
    /// Starts an HTTP/1.1 origin. The script gets the number of its connection, counted from zero.
    fn start<F>(script: impl Fn(usize, Raw) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::of_sockets(HttpVersions::Http1, move |number, socket| script(number, Raw::new(socket)))
    }

    fn of_sockets<F>(versions: HttpVersions, script: impl Fn(usize, TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let connections = shared::<AtomicUsize>();
        let address = accepting(move |number, socket| {
            connections.store(number + 1, Ordering::SeqCst);
            script(number, socket)
        });
        Self { address, connections, versions, goodbye: shared() }
    }

    /// Starts an origin that sends the same answer to every request on every connection.
    fn always(answer: &'static str) -> Self {
        Self::start(move |_, mut peer| async move {
            while peer.heard(b"\r\n\r\n").await {
                peer.try_send(answer).await;
            }
        })
    }

    /// Starts an origin that reads one request per connection, sends `answer`, and keeps the
    /// connection open.
    fn saying(answer: impl Into<String>) -> Self {
        Self::once(answer.into(), true)
    }

    /// Starts an origin that reads one request per connection, sends `answer`, and closes the
    /// connection unless the peer closes it first.
    fn closing(answer: impl Into<String>) -> Self {
        Self::once(answer.into(), false)
    }

    fn once(answer: String, stays: bool) -> Self {
        Self::start(move |_, mut peer| {
            let answer = answer.clone();
            async move {
                peer.until(b"\r\n\r\n").await;
                peer.try_send(answer).await;
                if stays {
                    peer.rest().await;
                }
            }
        })
    }

    /// Starts an origin that sends `text` before any request, and keeps the connection open.
    fn blurting(text: &'static str) -> Self {
        Self::start(move |_, mut peer| async move {
            peer.try_send(text).await;
            peer.drain().await;
        })
    }

    fn upstream(&self) -> Upstream {
        self.upstream_with(|_| {})
    }

    fn upstream_with(&self, change: impl FnOnce(&mut UpstreamLimits)) -> Upstream {
        self.watched(change).0
    }

    fn watched(&self, change: impl FnOnce(&mut UpstreamLimits)) -> (Upstream, Events) {
        watched_in(self.versions, [self.address], change)
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn settings<T: ToString>(urls: impl IntoIterator<Item = T>) -> OriginsSettings {
    let endpoint = |url: T| Endpoint::parse(&url.to_string(), std::path::Path::new("")).unwrap();
    OriginsSettings {
        endpoints: urls.into_iter().map(endpoint).collect(),
        versions: HttpVersions::Http1,
        health: HealthPolicy::default(),
        tls: TlsSettings::default(),
    }
}

/// Lets every task process the bytes that were sent so far. All ends of a connection are on this
/// thread, and the event loop polls the system before it resumes a task that has yielded.
async fn settled() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Limits that no test reaches, even on a busy machine.
fn patient() -> UpstreamLimits {
    UpstreamLimits {
        connect: Duration::from_secs(30),
        idle_timeout: Duration::from_secs(600),
        ..UpstreamLimits::default()
    }
}

type Events = Arc<parking_lot::Mutex<Vec<UpstreamEvent>>>;

fn origins(settings: &OriginsSettings, limits: UpstreamLimits, surroundings: &SharedResources) -> (Origins, Events) {
    let events = Events::default();
    let seen = Arc::clone(&events);
    let observe = move |event: &UpstreamEvent| seen.lock().push(event.clone());
    (Origins::new(settings, limits, surroundings, observe).unwrap(), events)
}

/// Waits for the first event of this kind, and returns its detail.
async fn event_detail(events: &Events, kind: &str) -> String {
    wait_until(|| times_reported(events, kind) > 0).await;
    events.lock().iter().find(|event| event.kind.as_str() == kind).unwrap().detail.clone()
}

fn times_reported(events: &Events, kind: &str) -> usize {
    events.lock().iter().filter(|event| event.kind.as_str() == kind).count()
}

fn worker(origins: &Origins) -> Upstream {
    Upstream::new(origins, NonZeroUsize::MIN)
}

fn watched(settings: &OriginsSettings, limits: UpstreamLimits) -> (Upstream, Events) {
    let (origins, events) = origins(settings, limits, &SharedResources::system());
    (worker(&origins), events)
}

fn upstream(addresses: impl IntoIterator<Item = SocketAddr>, limits: UpstreamLimits) -> Upstream {
    watched_in(HttpVersions::Http1, addresses, |own| *own = limits).0
}

fn watched_in(
    versions: HttpVersions,
    addresses: impl IntoIterator<Item = SocketAddr>,
    change: impl FnOnce(&mut UpstreamLimits),
) -> (Upstream, Events) {
    let urls = addresses.into_iter().map(|address| format!("http://{address}"));
    let mut limits = patient();
    change(&mut limits);
    watched(&OriginsSettings { versions, ..settings(urls) }, limits)
}

/// Returns a function that limits the number of connections, and the time that a request waits for
/// a connection.
fn few(connections: usize, connect: Duration) -> impl FnOnce(&mut UpstreamLimits) {
    move |limits| (limits.connections, limits.connect) = (connections.try_into().unwrap(), connect)
}

fn open_connections(upstream: &Upstream) -> usize {
    upstream.0.shared.connection_limit.open.load(Ordering::SeqCst)
}

fn request(method: &str, target: &str) -> Box<Request<RequestBody>> {
    let request = Request::builder().method(method).uri(target).header(HOST, "h.test");
    Box::new(request.body(RequestBody::empty()).unwrap())
}

/// Repeats a part of a test until it returns a result. The part returns `None` if it exceeded one
/// of its short limits, which can happen on a busy machine.
async fn undisturbed<T>(mut part: impl AsyncFnMut() -> Option<T>) -> T {
    soon(async {
        loop {
            if let Some(outcome) = part().await {
                return outcome;
            }
        }
    })
    .await
}

/// Sends requests until one is answered with this status.
async fn until_answered(upstream: &Upstream, want: u16) {
    soon(async {
        while status(upstream, "GET").await != want {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

async fn status(upstream: &Upstream, method: &str) -> u16 {
    let (head, body) = soon(upstream.forward(request(method, "/"))).await.into_parts();
    // The connection becomes free only after the body has been read.
    let _ = soon(body.collect()).await;
    head.status.as_u16()
}

async fn text(response: Response<ResponseBody>) -> String {
    String::from_utf8(soon(response.into_body().collect()).await.unwrap().to_bytes().to_vec()).unwrap()
}

async fn answer(upstream: &Upstream, method: &str) -> (u16, String) {
    let response = soon(upstream.forward(request(method, "/"))).await;
    (response.status().as_u16(), text(response).await)
}

/// Sends requests with these methods one after another, and returns the statuses of the responses.
async fn statuses<const N: usize>(upstream: &Upstream, methods: [&str; N]) -> [u16; N] {
    let mut statuses = [0; N];
    for (status, method) in statuses.iter_mut().zip(methods) {
        *status = self::status(upstream, method).await;
    }
    statuses
}

/// Sends a request in a separate task, which returns the status.
fn asking(upstream: &Upstream, method: &'static str) -> JoinHandle<u16> {
    let upstream = upstream.clone();
    tokio::spawn(async move { status(&upstream, method).await })
}

fn burst<const N: usize>(upstream: &Upstream, method: &'static str) -> [JoinHandle<u16>; N] {
    std::array::from_fn(|_| asking(upstream, method))
}

async fn ended<const N: usize>(requests: [JoinHandle<u16>; N]) -> [u16; N] {
    let mut statuses = [0; N];
    for (status, request) in statuses.iter_mut().zip(requests) {
        *status = soon(request).await.unwrap();
    }
    statuses
}

/// Creates a channel whose sender all connections of an origin can share.
fn reporting<T>() -> (&'static mpsc::UnboundedSender<T>, mpsc::UnboundedReceiver<T>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Box::leak(Box::new(sender)), receiver)
}

/// Starts a proxy that forwards requests to `upstream`, for tests that need a client connection.
fn proxy(upstream: Upstream) -> SocketAddr {
    proxy_with(EdgeLimits::default(), ListenerSettings::default(), upstream)
}

fn proxy_with(limits: EdgeLimits, listener_settings: ListenerSettings, upstream: Upstream) -> SocketAddr {
    ServedEdge::start_behind(listener_settings, limits, upstream).address
}

/// Starts an origin that answers the first request of each connection. It answers the second
/// request with `then`, and closes the connection. Also returns the number of requests received.
fn dying(then: &'static str) -> (Origin, &'static AtomicUsize) {
    let delivered = shared::<AtomicUsize>();
    let origin = Origin::start(move |_, mut peer| async move {
        for answer in [OK, then] {
            peer.until(b"\r\n\r\n").await;
            delivered.fetch_add(1, Ordering::SeqCst);
            peer.send(answer).await;
        }
    });
    (origin, delivered)
}

/// Starts an origin that reads whole requests, and sends back the body of each request.
fn echo() -> Origin {
    Origin::start(|_, mut peer| async move {
        loop {
            let body = peer.message().await.body;
            peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())).await;
        }
    })
}
