//! An upstream against origins made of raw sockets, one behaviour each.

mod caps;
mod names;
mod paths;
mod secure;
mod several;
mod stalled;
#[cfg(unix)]
mod unix;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc, oneshot};

use http::header::{CONTENT_LENGTH, HOST};

use super::failure::UpstreamFailure;
use super::failure_kind::FailureKind;
use super::*;
use crate::edge;
use crate::edge::test_peer::{Raw, soon};

const MOMENT: Duration = Duration::from_millis(150);
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// An origin that runs a script for each of its connections, with the connection's number from zero.
struct Origin {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Origin {
    async fn start<F>(script: impl Fn(usize, Raw) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(script(counted.fetch_add(1, Ordering::SeqCst), Raw::new(socket)));
            }
        });
        Self { address, connections }
    }

    /// Reads one request, says one thing, and keeps the connection open.
    async fn saying(answer: impl Into<String>) -> Self {
        let answer = answer.into();
        Self::start(move |_, mut peer| {
            let answer = answer.clone();
            async move {
                peer.until(b"\r\n\r\n").await;
                peer.send(answer).await;
                peer.rest().await;
            }
        })
        .await
    }

    fn upstream(&self) -> Upstream {
        self.upstream_with(|_| {})
    }

    fn upstream_with(&self, change: impl FnOnce(&mut UpstreamLimits)) -> Upstream {
        let mut limits = UpstreamLimits::default();
        change(&mut limits);
        upstream([self.address], limits)
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn settings<T: ToString>(urls: impl IntoIterator<Item = T>) -> OriginsSettings {
    let endpoint = |url: T| Endpoint::parse(&url.to_string(), std::path::Path::new("")).unwrap();
    OriginsSettings {
        endpoints: urls.into_iter().map(endpoint).collect(),
        health: HealthPolicy::default(),
        tls: TlsSettings::default(),
    }
}

/// Everything a site's upstreams say about themselves.
type Events = Arc<std::sync::Mutex<Vec<UpstreamEvent>>>;

fn origins(settings: &OriginsSettings, limits: UpstreamLimits, surroundings: &SharedResources) -> (Origins, Events) {
    let events = Events::default();
    let told = Arc::clone(&events);
    let tell = move |event: &UpstreamEvent| told.lock().unwrap().push(event.clone());
    (Origins::new(settings, limits, surroundings, tell).unwrap(), events)
}

/// Waits until an event of a kind has been told, and gives its detail.
async fn told(events: &Events, kind: &str) -> String {
    let found = || events.lock().unwrap().iter().find(|event| event.kind.as_str() == kind).map(|e| e.detail.clone());
    soon(async {
        loop {
            if let Some(detail) = found() {
                return detail;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await
}

fn times_told(events: &Events, kind: &str) -> usize {
    events.lock().unwrap().iter().filter(|event| event.kind.as_str() == kind).count()
}

fn upstream(addresses: impl IntoIterator<Item = SocketAddr>, limits: UpstreamLimits) -> Upstream {
    let settings = settings(addresses.into_iter().map(|address| format!("http://{address}")));
    Upstream::new(&Origins::new(&settings, limits, &SharedResources::system(), |_| {}).unwrap(), NonZeroUsize::MIN)
}

fn request(method: &str, target: &str) -> Box<Request<RequestBody>> {
    let request = Request::builder().method(method).uri(target).header(HOST, "h.test");
    Box::new(request.body(RequestBody::empty()).unwrap())
}

#[tokio::test]
async fn answers_of_every_form_share_a_connection() {
    const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n";
    const LENGTH: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde";
    const INTERIM: &str = "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde";
    for order in
        [[LENGTH, LENGTH, CHUNKED, LENGTH], [LENGTH, INTERIM, LENGTH, CHUNKED], [CHUNKED, LENGTH, CHUNKED, LENGTH]]
    {
        let origin = Origin::start(move |_, mut peer| async move {
            for answer in order {
                assert!(peer.until(b"\r\n\r\n").await.starts_with("GET /x HTTP/1.1\r\n"));
                peer.send(answer).await;
            }
            peer.rest().await;
        })
        .await;
        let upstream = origin.upstream();
        for answer in order {
            let response = soon(upstream.forward(request("GET", "/x"))).await;
            assert_eq!(response.status(), 200, "{answer:?}");
            assert_eq!(soon(response.into_body().collect()).await.unwrap().to_bytes(), "abcde", "{answer:?}");
        }
        assert_eq!(origin.connections(), 1);
    }
}

#[tokio::test]
async fn an_answer_in_pieces_is_an_answer() {
    let body = "b".repeat(300 * 1024);
    let whole = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nX-A: 1\r\n\r\n{body}", body.len());
    // In the status line, in a field, before the body, and in it.
    for cut in [9, 30, whole.len() - body.len(), whole.len() - 7] {
        let whole = whole.clone();
        let origin = Origin::start(move |_, mut peer| {
            let whole = whole.clone();
            async move {
                loop {
                    if !peer.heard(b"\r\n\r\n").await {
                        return;
                    }
                    peer.send(&whole[..cut]).await;
                    // Long enough to be read by itself, most of the time.
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    peer.send(&whole[cut..]).await;
                }
            }
        })
        .await;
        let upstream = origin.upstream();
        for _ in 0..2 {
            let response = soon(upstream.forward(request("GET", "/x"))).await;
            assert_eq!(response.headers()["x-a"], "1");
            assert!(soon(response.into_body().collect()).await.unwrap().to_bytes() == body, "cut at {cut}");
        }
        assert_eq!(origin.connections(), 1, "cut at {cut}");
    }
}

async fn status(upstream: &Upstream, method: &str) -> u16 {
    let (head, body) = soon(upstream.forward(request(method, "/"))).await.into_parts();
    // The connection is free again only once the body has been read.
    let _ = soon(body.collect()).await;
    head.status.as_u16()
}

/// The whole proxy in front of an upstream; for what needs a client.
async fn proxy(upstream: Upstream) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        edge::Edge::new(edge::EdgeLimits::default(), |_| {}, None)
            .serve(listener, edge::ListenerSettings::default(), upstream, std::future::pending())
            .await;
    });
    address
}

#[tokio::test]
async fn the_target_arrives_as_it_came() {
    let (told, mut heads) = mpsc::unbounded_channel();
    let origin = Origin::start(move |_, mut peer| {
        let told = told.clone();
        async move {
            told.send(peer.until(b"\r\n\r\n").await).unwrap();
            peer.send(OK).await;
        }
    })
    .await;
    let target = "/a%2Fb/%2e%2E//c;d?x=%zz&y=\\^|";
    assert_eq!(soon(origin.upstream().forward(request("GET", target))).await.status(), 200);
    let head = heads.recv().await.unwrap();
    assert!(head.starts_with(&format!("GET {target} HTTP/1.1\r\n")), "{head}");
    assert!(head.contains("\r\nhost: h.test\r\n"), "{head}");
    assert!(!head.contains("transfer-encoding") && !head.contains("content-length"), "{head}");
}

#[tokio::test]
async fn connections_are_used_again() {
    let origin = Origin::start(|_, mut peer| async move {
        loop {
            peer.until(b"\r\n\r\n").await;
            peer.send(OK).await;
        }
    })
    .await;
    let upstream = origin.upstream();
    for method in ["GET", "POST", "HEAD"] {
        assert_eq!(status(&upstream, method).await, 200);
    }
    assert_eq!(origin.connections(), 1);
}

/// Answers the first request of a connection and says `then` to the second before closing; counts requests.
async fn dying(then: &'static str) -> (Origin, Arc<AtomicUsize>) {
    let delivered = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&delivered);
    let origin = Origin::start(move |_, mut peer| {
        let counter = Arc::clone(&counter);
        async move {
            peer.until(b"\r\n\r\n").await;
            counter.fetch_add(1, Ordering::SeqCst);
            peer.send(OK).await;
            peer.until(b"\r\n\r\n").await;
            counter.fetch_add(1, Ordering::SeqCst);
            peer.send(then).await;
        }
    })
    .await;
    (origin, delivered)
}

#[tokio::test]
async fn an_idempotent_request_is_sent_again_when_an_idle_connection_dies() {
    for method in ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"] {
        let (origin, delivered) = dying("").await;
        let upstream = origin.upstream();
        assert_eq!(status(&upstream, "GET").await, 200);
        assert_eq!(status(&upstream, method).await, 200, "{method}");
        assert_eq!((origin.connections(), delivered.load(Ordering::SeqCst)), (2, 3), "{method}");
    }
}

#[tokio::test]
async fn nothing_else_is_sent_again() {
    // A method that may not be repeated, and an answer that has begun.
    for (method, then) in [("POST", ""), ("PATCH", ""), ("GET", "HTTP/1.1 2")] {
        let (origin, delivered) = dying(then).await;
        let upstream = origin.upstream();
        assert_eq!(status(&upstream, "GET").await, 200);
        assert_eq!(status(&upstream, method).await, 502, "{method} {then}");
        assert_eq!((origin.connections(), delivered.load(Ordering::SeqCst)), (1, 2), "{method} {then}");
    }
    // A connection that was new.
    let origin = Origin::start(|_, mut peer| async move {
        peer.until(b"\r\n\r\n").await;
    })
    .await;
    assert_eq!(status(&origin.upstream(), "GET").await, 502);
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn a_request_with_a_body_is_not_sent_again() {
    let (origin, delivered) = dying("").await;
    let mut client = Raw::connect(proxy(origin.upstream()).await).await;
    assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.status(), 200);
    let put = "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab";
    assert_eq!(client.ask(put).await.status(), 502);
    assert_eq!((origin.connections(), delivered.load(Ordering::SeqCst)), (1, 2));
}

#[tokio::test]
async fn what_cannot_be_repeated_does_not_meet_a_closed_connection() {
    use std::io::{Read, Write};
    // An origin outside the event loop, and a test that does not let the loop turn between its close and the next
    // request: only the kernel knows by then.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let (close, may_close) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for socket in listener.incoming().take(2) {
            let mut socket = socket.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut octet = [0];
                socket.read_exact(&mut octet).unwrap();
                head.extend(octet);
            }
            socket.write_all(OK.as_bytes()).unwrap();
            may_close.recv().unwrap();
            socket.shutdown(std::net::Shutdown::Both).unwrap();
            tell.send(()).unwrap();
        }
    });
    let upstream = upstream([address], UpstreamLimits::default());
    for _ in 0..2 {
        assert_eq!(status(&upstream, "POST").await, 200);
        close.send(()).unwrap();
        told.recv_timeout(Duration::from_secs(20)).unwrap();
    }
}

#[tokio::test]
async fn an_answer_too_many_is_not_the_next_answer() {
    let origin = Origin::saying(format!("{OK}HTTP/1.1 200 OK\r\nX-Poison: 1\r\nContent-Length: 0\r\n\r\n")).await;
    let upstream = origin.upstream();
    for _ in 0..2 {
        let answer = soon(upstream.forward(request("GET", "/"))).await;
        assert!(!answer.headers().contains_key("x-poison"));
        answer.into_body().collect().await.unwrap();
    }
    assert_eq!(origin.connections(), 2);
}

#[tokio::test]
async fn answers_that_are_not_http_are_bad_gateways() {
    let flood = "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n".repeat(10_000);
    let big = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(600 * 1024));
    for answer in [
        "\x16\x03\x01 not http\n\n",
        "<html>",
        "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 5\r\n\r\nokoko",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        flood.as_str(),
        big.as_str(),
    ] {
        let origin = Origin::start({
            let answer = answer.to_owned();
            move |_, mut peer| {
                let answer = answer.clone();
                async move {
                    peer.until(b"\r\n\r\n").await;
                    // Who floods is hung up on before the end.
                    peer.try_send(answer).await;
                }
            }
        })
        .await;
        let answered = soon(origin.upstream().forward(request("GET", "/"))).await;
        assert_eq!(answered.status(), 502, "{answer:.60}");
        assert_eq!(answered.headers()["cache-control"], "no-store", "{answer:.60}");
        let failure = answered.extensions().get::<UpstreamFailure>().unwrap();
        assert_eq!(failure.kind, FailureKind::Invalid, "{answer:.60}: {failure}");
    }
}

#[tokio::test]
async fn some_interim_responses_are_fine() {
    let origin = Origin::saying(format!("{}{OK}", "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100))).await;
    assert_eq!(status(&origin.upstream(), "GET").await, 200);
}

#[tokio::test]
async fn a_response_has_one_framing() {
    let origin = Origin::saying(
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    )
    .await;
    let answer = soon(origin.upstream().forward(request("GET", "/"))).await;
    assert!(!answer.headers().contains_key(CONTENT_LENGTH));
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "ok");
}

#[tokio::test]
async fn an_upstream_that_does_not_answer_is_a_gateway_timeout() {
    let origin = Origin::saying("HTTP/1.1 200 OK\r\nX-").await;
    let upstream = origin.upstream_with(|limits| limits.response_header = MOMENT);
    let asked = Instant::now();
    assert_eq!(status(&upstream, "GET").await, 504);
    assert!(asked.elapsed() >= MOMENT);
}

#[tokio::test]
async fn a_response_body_that_stands_still_ends() {
    let origin = Origin::saying("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab").await;
    let upstream = origin.upstream_with(|limits| limits.body_idle = MOMENT);
    let answer = soon(upstream.forward(request("GET", "/"))).await;
    assert_eq!(answer.status(), 200);
    let error = soon(answer.into_body().collect()).await.unwrap_err();
    assert_eq!(error.to_string(), "the upstream stopped sending its response body");
}

#[tokio::test]
async fn a_cut_response_does_not_look_complete() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nzz\r\n",
    ] {
        let origin = Origin::start(move |_, mut peer| async move {
            peer.until(b"\r\n\r\n").await;
            peer.send(answer).await;
        })
        .await;
        let mut client = Raw::connect(proxy(origin.upstream()).await).await;
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
        let received = client.rest().await;
        assert!(received.starts_with("HTTP/1.1 200 OK\r\n"), "{received}");
        assert!(!received.ends_with("0\r\n\r\n"), "{received}");
    }
}

#[tokio::test]
async fn head_keeps_the_length_it_would_have() {
    let origin = Origin::saying("HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n").await;
    let mut client = Raw::connect(proxy(origin.upstream()).await).await;
    client.send("HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await;
    let answer = client.rest().await;
    assert!(answer.contains("content-length: 12345\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn the_next_address_is_tried() {
    // Bound but not listening any more: connecting is refused.
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let origin = Origin::saying(OK).await;
    let both = upstream([closed, origin.address], UpstreamLimits::default());
    for _ in 0..2 {
        // Not read to its end, so that the second does not find a connection.
        assert_eq!(soon(both.forward(request("POST", "/"))).await.status(), 200);
    }
    let nowhere = upstream([closed], UpstreamLimits::default());
    let answer = soon(nowhere.forward(request("GET", "/"))).await;
    assert_eq!(answer.status(), 502);
    assert_eq!(answer.extensions().get::<UpstreamFailure>().unwrap().kind, FailureKind::Connect);
    assert_eq!(status(&upstream([], UpstreamLimits::default()), "GET").await, 502);
}

#[tokio::test]
async fn requests_beyond_the_limit_are_told_to_come_back() {
    let origin = Origin::saying("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab").await;
    let upstream = origin.upstream_with(|limits| {
        limits.connections = 1;
        limits.connect = MOMENT;
    });
    let first = soon(upstream.forward(request("GET", "/"))).await;
    let second = soon(upstream.forward(request("GET", "/"))).await;
    assert_eq!((second.status().as_u16(), second.headers()["retry-after"].to_str().unwrap()), (503, "1"));
    drop(first);
    assert_eq!(soon(upstream.forward(request("GET", "/"))).await.status(), 200);
}

#[tokio::test]
async fn a_client_that_leaves_releases_the_upstream() {
    let (told, closed) = oneshot::channel();
    let told = std::sync::Mutex::new(Some(told));
    let begun = Arc::new(Notify::new());
    let began = Arc::clone(&begun);
    let origin = Origin::start(move |_, mut peer| {
        let told = told.lock().unwrap().take();
        let began = Arc::clone(&began);
        async move {
            peer.until(b"\r\n\r\n").await;
            began.notify_one();
            peer.rest().await;
            told.map(|told| told.send(()));
        }
    })
    .await;
    let mut client = Raw::connect(proxy(origin.upstream()).await).await;
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    soon(begun.notified()).await;
    drop(client);
    soon(closed).await.unwrap();
}

/// Reads whole requests and answers each with the body it got.
async fn echo() -> Origin {
    Origin::start(|_, mut peer| async move {
        loop {
            let body = peer.message().await.body;
            peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())).await;
        }
    })
    .await
}

#[tokio::test]
async fn request_bodies_keep_their_framing() {
    let address = proxy(echo().await.upstream()).await;
    let mut client = Raw::connect(address).await;
    for method in ["POST", "GET"] {
        let known = format!("{method} / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab");
        assert_eq!(client.ask(&known).await.body, "ab", "{method}");
        let chunked = format!(
            "{method} / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2;x=y\r\nab\r\n0\r\nX: 1\r\n\r\n"
        );
        assert_eq!(client.ask(&chunked).await.body, "ab", "{method}");
    }
    assert_eq!(client.ask("POST / HTTP/1.1\r\nHost: h\r\n\r\n").await.body, "");
}

#[tokio::test]
async fn bodies_larger_than_every_window_pass_through_http_2() {
    let address = proxy(echo().await.upstream()).await;
    let socket = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (mut client, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), socket).await.unwrap();
    tokio::spawn(connection);
    let body = "0123456789abcdef".repeat(64 * 1024);
    let request = Request::post("http://h.test/").body(Full::<bytes::Bytes>::from(body.clone())).unwrap();
    let answer = soon(client.send_request(request)).await.unwrap();
    assert_eq!(soon(answer.into_body().collect()).await.unwrap().to_bytes(), body);
}

#[tokio::test]
async fn a_slow_upload_is_not_the_upstreams_fault() {
    let upstream = echo().await.upstream_with(|limits| limits.response_header = MOMENT);
    let mut client = Raw::connect(proxy(upstream).await).await;
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n").await;
    for octet in ["a", "b", "c"] {
        // Slowness is what is tested: nothing is waited for.
        tokio::time::sleep(MOMENT).await;
        client.send(octet).await;
    }
    let answer = client.message().await;
    assert_eq!((answer.status(), answer.body.as_str()), (200, "abc"));
}

#[tokio::test]
async fn a_broken_request_body_is_the_clients_fault() {
    let mut client = Raw::connect(proxy(echo().await.upstream()).await).await;
    let answer = client.ask("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").await;
    assert_eq!(answer.status(), 400);
    assert_eq!(client.rest().await, "");
}

#[tokio::test]
async fn expectations_are_met_at_the_edge() {
    let mut client = Raw::connect(proxy(echo().await.upstream()).await).await;
    client.send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n").await;
    assert_eq!(client.until(b"\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("ab").await;
    assert_eq!(client.message().await.body, "ab");
}

const HANDSHAKE: &str = "GET /chat HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n";

#[tokio::test]
async fn a_websocket_is_tunnelled_from_its_first_octet() {
    let origin = Origin::start(|_, mut peer| async move {
        let head = peer.until(b"\r\n\r\n").await;
        assert!(head.contains("\r\nupgrade: websocket\r\n") && head.contains("\r\nconnection: upgrade\r\n"), "{head}");
        let switch =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Accept: k\r\n\r\nhello";
        peer.send(switch).await;
        assert_eq!(peer.exactly(4).await, "ping");
        peer.send("pong").await;
        assert_eq!(peer.rest().await, "");
        peer.send("last").await;
    })
    .await;
    let mut client = Raw::connect(proxy(origin.upstream()).await).await;
    // Both sides speak before the other has had the time to switch.
    client.send(format!("{HANDSHAKE}ping")).await;
    let head = client.until(b"\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{head}");
    assert!(head.contains("\r\nupgrade: websocket\r\n") && head.contains("\r\nx-accept: k\r\n"), "{head}");
    assert_eq!(client.exactly(9).await, "hellopong");
    client.finish().await;
    assert_eq!(client.rest().await, "last");
}

#[tokio::test]
async fn a_refused_websocket_leaves_http() {
    let origin = Origin::start(|_, mut peer| async move {
        loop {
            peer.until(b"\r\n\r\n").await;
            peer.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n").await;
        }
    })
    .await;
    let mut client = Raw::connect(proxy(origin.upstream()).await).await;
    for _ in 0..2 {
        assert_eq!(client.ask(HANDSHAKE).await.status(), 403);
    }
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn idle_connections_are_swept() {
    let (told, mut closed) = mpsc::unbounded_channel();
    let origin = Origin::start(move |_, mut peer| {
        let told = told.clone();
        async move {
            peer.until(b"\r\n\r\n").await;
            peer.send(OK).await;
            assert_eq!(peer.rest().await, "");
            told.send(()).unwrap();
        }
    })
    .await;
    let upstream = origin.upstream_with(|limits| limits.idle_timeout = MOMENT);
    assert_eq!(status(&upstream, "GET").await, 200);
    soon(closed.recv()).await.unwrap();
}
