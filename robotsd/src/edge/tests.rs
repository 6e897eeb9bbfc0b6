//! The edge on real sockets, before services made for each question.

mod flood;
mod recycling;

use std::convert::Infallible;
use std::error::Error;
use std::future::{Future, pending};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Either, Empty, Full};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tower::{Service, service_fn};

use super::*;
use crate::edge::connection_error::ConnectionErrorKind;
use crate::edge::raw::{Raw, soon};

struct Edge {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
    troubles: Arc<Mutex<Vec<ConnectionErrorKind>>>,
    /// The same in words.
    told: Arc<Mutex<Vec<String>>>,
}

impl Edge {
    async fn start<S, B>(limits: EdgeLimits, service: S) -> Self
    where
        S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
        S::Future: Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        Self::start_behind(ListenerSettings::default(), limits, service).await
    }

    async fn start_behind<S, B>(entrance: ListenerSettings, limits: EdgeLimits, service: S) -> Self
    where
        S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
        S::Future: Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let troubles = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::<Mutex<Vec<_>>>::default();
        let (kinds, words) = (Arc::clone(&troubles), Arc::clone(&told));
        let on_error = move |trouble: &ConnectionError| {
            words.lock().unwrap().push(trouble.to_string());
            kinds.lock().unwrap().push(trouble.kind);
        };
        let serving = async move {
            let stopped = async {
                let _ = stopped.await;
            };
            crate::edge::Edge::new(limits, on_error, None).serve(listener, entrance, service, stopped).await;
        };
        Self { address, stop: Some(stop), served: tokio::spawn(serving), troubles, told }
    }

    async fn client(&self) -> Raw {
        Raw::connect(self.address).await
    }

    async fn ask(&self, request: &str) -> raw::RawMessage {
        self.client().await.ask(request).await
    }

    fn begin_shutdown(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    fn has_told(&self, kind: ConnectionErrorKind) -> bool {
        self.troubles.lock().unwrap().contains(&kind)
    }

    async fn tells(&self, kind: ConnectionErrorKind) {
        soon(async {
            while !self.has_told(kind) {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

fn brief(change: impl FnOnce(&mut EdgeLimits)) -> EdgeLimits {
    let mut limits = EdgeLimits::default();
    change(&mut limits);
    limits
}

const MOMENT: Duration = Duration::from_millis(150);

/// Answers with the request as it arrived: the request line, then the fields.
async fn mirror(request: Request<RequestBody>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut text = format!("{} {}\n", request.method(), request.uri());
    for (name, value) in request.headers() {
        text.push_str(&format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes())));
    }
    let Some(peer) = request.extensions().get::<Peer>() else {
        return Ok(Response::builder().status(500).body(Full::default()).unwrap());
    };
    assert!(peer.address.ip().is_loopback());
    let own = peer.connection.map_or("shared", |_| "own");
    Ok(Response::builder().header("x-connection", own).body(Full::from(text)).unwrap())
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

#[tokio::test]
async fn what_arrives_is_end_to_end_and_ours() {
    let edge = Edge::start(EdgeLimits::default(), service_fn(mirror)).await;
    let seen = edge
        .ask(
            "GET http://h.test/a%2Fb?c HTTP/1.1\r\nHost: other\r\nConnection: Robots-Verdict, X-Forwarded-For, X-Own\r\n\
             X-Own: 1\r\nRobots-Verdict: allow\r\nRobots_Verdict: allow\r\nX-Forwarded-For: 6.6.6.6\r\n\
             X_Forwarded_For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nX-Original-URL: /x\r\n\
             X-Request-Id: mine\r\nTE: trailers\r\nKeep-Alive: 1\r\nUpgrade: h2c\r\nProxy-Authorization: x\r\n\r\n",
        )
        .await;
    assert_eq!(seen.status(), 200);
    assert!(has_line(&seen.body, "GET /a%2Fb?c"), "{}", seen.body);
    assert!(has_line(&seen.body, "host: h.test"), "{}", seen.body);
    assert!(has_line(&seen.body, "x-forwarded-for: 127.0.0.1"), "{}", seen.body);
    assert!(has_line(&seen.body, "x-forwarded-host: h.test"), "{}", seen.body);
    assert!(has_line(&seen.body, "x-forwarded-proto: http"), "{}", seen.body);
    assert_eq!(names(&seen.body), OURS);
}

/// As plain requests, as hyper's (`TE` ends at the edge), and over HTTP/2.
#[tokio::test]
async fn fields_that_name_the_client_or_a_proxy_come_from_trusted_peers_or_not_at_all() {
    let trusted = || Arc::new(Trusted { networks: vec!["127.0.0.0/8".parse().unwrap()], agent_header: None });
    let fields = [
        ("proxy", "http://6.6.6.6/"),
        ("cf-connecting-ip", "192.0.2.1"),
        ("cf_connecting_ip", "6.6.6.6"),
        ("true-client-ip", "192.0.2.1"),
        ("true_client_ip", "6.6.6.6"),
    ];
    for (trusted, kept, connection) in
        [(Arc::default(), &[][..], "own"), (trusted(), &["cf-connecting-ip", "true-client-ip"], "shared")]
    {
        let entrance = ListenerSettings { trusted, ..ListenerSettings::default() };
        let edge = Edge::start_behind(entrance, EdgeLimits::default(), service_fn(mirror)).await;
        let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let mut seen = Vec::new();
        for more in ["", "TE: trailers\r\n"] {
            let answer = edge.ask(&format!("GET / HTTP/1.1\r\nHost: h\r\n{lines}{more}\r\n")).await;
            // A trusted proxy's connection carries many clients, so it counts for none of them.
            assert_eq!(answer.field("x-connection"), Some(connection));
            seen.push(answer.body);
        }
        let request = fields.iter().fold(get("http://h/"), |request, (name, value)| request.header(*name, *value));
        let answer = h2(&edge).await.send_request(request.body(Empty::new()).unwrap()).await.unwrap();
        seen.push(String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap());
        for text in seen {
            let names: Vec<&str> = names(&text).into_iter().filter(|name| !OURS.contains(name)).collect();
            assert_eq!(names, kept, "{text}");
            assert!(!text.contains("6.6.6.6"), "{text}");
        }
    }
}

#[tokio::test]
async fn request_ids_are_new_and_told_to_both_sides() {
    let edge = Edge::start(EdgeLimits::default(), service_fn(mirror)).await;
    let mut client = edge.client().await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let answer = client.ask("GET / HTTP/1.1\r\nHost: h\r\nX-Request-Id: mine\r\n\r\n").await;
        let id = answer.field("x-request-id").unwrap().to_owned();
        assert!(has_line(&answer.body, &format!("x-request-id: {id}")), "{}", answer.body);
        ids.push(id);
    }
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn responses_lose_what_is_not_the_clients() {
    let service = service_fn(|_| async {
        let response = Response::builder()
            .header("connection", "x-hop")
            .header("x-hop", "secret")
            .header("keep-alive", "timeout=77")
            .header("proxy-authenticate", "x")
            .header("upgrade", "h2c")
            .header("x-end", "1");
        Ok(response.body(Full::from("ok")).unwrap())
    });
    let edge = Edge::start(EdgeLimits::default(), service).await;
    let answer = edge.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    assert_eq!(names(&answer.head), ["content-length", "date", "x-end", "x-request-id"]);
}

#[tokio::test]
async fn refusals_are_plain_never_stored_and_end_the_connection() {
    let edge = Edge::start(EdgeLimits::default(), service_fn(mirror)).await;
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", 400),
        ("TRACE / HTTP/1.1\r\nHost: h\r\n\r\n", 405),
        ("CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n", 405),
        ("GET /a\\b HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\nExpect: x\r\n\r\n", 417),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400),
    ] {
        let mut client = edge.client().await;
        let answer = client.ask(&format!("{request}GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n")).await;
        assert_eq!(answer.status(), status, "{request}");
        assert_eq!(answer.field("cache-control"), Some("no-store"), "{request}");
        assert_eq!(answer.field("content-type"), Some("text/plain; charset=utf-8"), "{request}");
        assert_eq!(client.rest().await, "", "{request}");
    }
}

#[tokio::test]
async fn http_1_0_needs_no_host() {
    let edge = Edge::start(EdgeLimits::default(), service_fn(mirror)).await;
    let answer = edge.ask("GET / HTTP/1.0\r\n\r\n").await;
    assert_eq!(answer.status(), 200);
    assert_eq!(names(&answer.body), ["x-forwarded-for", "x-forwarded-proto", "x-request-id"]);
}

#[tokio::test]
async fn heads_are_bounded() {
    let edge = Edge::start(EdgeLimits::default(), service_fn(mirror)).await;
    let fields = |count| (0..count).map(|n| format!("X-{n}: v\r\n")).collect::<String>();
    let big = |length| "b".repeat(length);
    for (request, status) in [
        (format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", fields(99)), 200),
        (format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", fields(100)), 431),
        (format!("GET / HTTP/1.1\r\nHost: h\r\nX-Big: {}\r\n\r\n", big(50 * 1024)), 200),
        (format!("GET / HTTP/1.1\r\nHost: h\r\nX-Big: {}\r\n\r\n", big(65 * 1024)), 431),
        (format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", big(8 * 1024 - 1)), 200),
        (format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", big(8 * 1024)), 414),
    ] {
        assert_eq!(edge.ask(&request).await.status(), status, "{:.60}… {}", request, request.len());
    }
}

#[tokio::test]
async fn a_silent_connection_is_closed() {
    let edge = Edge::start(brief(|limits| limits.first_byte = MOMENT), service_fn(mirror)).await;
    let opened = Instant::now();
    assert_eq!(edge.client().await.rest().await, "");
    assert!(opened.elapsed() >= MOMENT);
    edge.tells(ConnectionErrorKind::Slow).await;
}

#[tokio::test]
async fn a_head_that_does_not_end_is_closed() {
    // Also where the first octets could still become either protocol.
    for begun in ["GET / HTTP/1.1\r\nHost: h\r\nX: ", "PRI * HT", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let edge = Edge::start(brief(|limits| limits.header_read = MOMENT), service_fn(mirror)).await;
        let mut client = edge.client().await;
        let opened = Instant::now();
        client.send(begun).await;
        client.rest().await;
        assert!(opened.elapsed() >= MOMENT, "{begun:?}");
        assert!(opened.elapsed() < EdgeLimits::default().first_byte, "{begun:?}");
    }
}

#[tokio::test]
async fn an_idle_connection_has_a_longer_deadline_than_a_head() {
    let limits = brief(|limits| {
        limits.header_read = MOMENT;
        limits.keep_alive = MOMENT * 3;
    });
    let edge = Edge::start(limits, service_fn(mirror)).await;
    let mut client = edge.client().await;
    assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.status(), 200);
    let answered = Instant::now();
    assert_eq!(client.rest().await, "");
    assert!(answered.elapsed() >= MOMENT * 2, "{:?}", answered.elapsed());
    assert!(!edge.has_told(ConnectionErrorKind::Slow));
}

#[tokio::test]
async fn a_request_body_that_stands_still_ends() {
    let service = service_fn(|request: Request<RequestBody>| async {
        let status = match request.into_body().collect().await {
            Err(RequestBodyError::Idle) => StatusCode::REQUEST_TIMEOUT,
            _ => StatusCode::OK,
        };
        Ok(Response::builder().status(status).body(Empty::new()).unwrap())
    });
    let edge = Edge::start(brief(|limits| limits.body_idle = MOMENT), service).await;
    let answer = edge.ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nab").await;
    assert_eq!(answer.status(), 408);
}

/// Endless, and tells when it is dropped.
struct Endless {
    dropped: Option<oneshot::Sender<()>>,
}

impl Endless {
    fn new() -> (Self, oneshot::Receiver<()>) {
        let (dropped, is_dropped) = oneshot::channel();
        (Self { dropped: Some(dropped) }, is_dropped)
    }
}

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'e'; 4096])))))
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        self.dropped.take().map(|dropped| dropped.send(()));
    }
}

/// An edge that answers `/endless` with one endless body and everything else with none, and the news of its end.
async fn endless_once(limits: EdgeLimits) -> (Edge, oneshot::Receiver<()>) {
    let (endless, dropped) = Endless::new();
    let endless = Arc::new(Mutex::new(Some(endless)));
    let service = service_fn(move |request: Request<RequestBody>| {
        let body = match request.uri().path() {
            "/endless" => Either::Left(endless.lock().unwrap().take().unwrap()),
            _ => Either::Right(Empty::new()),
        };
        async { Ok(Response::new(body)) }
    });
    (Edge::start(limits, service).await, dropped)
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    let (edge, dropped) = endless_once(brief(|limits| limits.body_idle = MOMENT)).await;
    let mut client = edge.client().await;
    client.send("GET /endless HTTP/1.1\r\nHost: h\r\n\r\n").await;
    soon(dropped).await.unwrap();
    edge.tells(ConnectionErrorKind::Broken).await;
}

type H2 = hyper::client::conn::http2::SendRequest<Empty<Bytes>>;

async fn h2(edge: &Edge) -> H2 {
    let socket = TokioIo::new(TcpStream::connect(edge.address).await.unwrap());
    let (sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), socket).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn get(uri: &str) -> http::request::Builder {
    Request::builder().uri(uri)
}

#[tokio::test]
async fn an_http_2_stream_that_is_not_taken_ends_alone() {
    let (edge, dropped) = endless_once(brief(|limits| limits.body_idle = MOMENT)).await;
    let mut client = h2(&edge).await;
    let untaken = client.send_request(get("http://h.test/endless").body(Empty::new()).unwrap()).await.unwrap();
    soon(dropped).await.unwrap();
    let other = soon(client.send_request(get("http://h.test/other").body(Empty::new()).unwrap())).await.unwrap();
    assert_eq!(other.status(), 200);
    assert!(soon(untaken.into_body().collect()).await.is_err(), "a cut stream must not look complete");
}

#[tokio::test]
async fn http_2_requests_arrive_like_others() {
    let edge = Edge::start(EdgeLimits::default(), service_fn(mirror)).await;
    let mut client = h2(&edge).await;
    let request =
        get("http://h.test/a?b").header("cookie", "a=b").header("cookie", "c=d").header("robots-verdict", "x");
    let answer = client.send_request(request.body(Empty::new()).unwrap()).await.unwrap();
    let text = String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap();
    assert!(has_line(&text, "GET /a?b"), "{text}");
    assert!(has_line(&text, "host: h.test"), "{text}");
    assert!(has_line(&text, "cookie: a=b; c=d"), "{text}");
    assert_eq!(names(&text)[0], "cookie");
    assert_eq!(names(&text)[1..], OURS);

    let differing = get("http://h.test/").header("host", "evil.test").body(Empty::new()).unwrap();
    assert_eq!(client.send_request(differing).await.unwrap().status(), 400);
}

#[tokio::test]
async fn an_idle_http_2_connection_may_ping() {
    let edge = Edge::start(brief(|limits| limits.header_read = MOMENT), service_fn(mirror)).await;
    let socket = TokioIo::new(TcpStream::connect(edge.address).await.unwrap());
    let (mut client, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(MOMENT / 5)
        .keep_alive_while_idle(true)
        .handshake::<_, Empty<Bytes>>(socket)
        .await
        .unwrap();
    let mut connected = tokio::spawn(connection);
    let request = || get("http://h.test/").body(Empty::new()).unwrap();
    soon(soon(client.send_request(request())).await.unwrap().into_body().collect()).await.unwrap();
    assert!(timeout(MOMENT * 3, &mut connected).await.is_err(), "a ping is not the start of a head");
    assert_eq!(soon(client.send_request(request())).await.unwrap().status(), 200);
}

#[tokio::test]
async fn an_idle_http_2_connection_is_told_goodbye() {
    let edge = Edge::start(brief(|limits| limits.keep_alive = MOMENT), service_fn(mirror)).await;
    let socket = TokioIo::new(TcpStream::connect(edge.address).await.unwrap());
    let (mut client, connection) =
        hyper::client::conn::http2::handshake::<_, _, Empty<Bytes>>(TokioExecutor::new(), socket).await.unwrap();
    let connected = tokio::spawn(connection);
    let answer = client.send_request(get("http://h.test/").body(Empty::new()).unwrap()).await.unwrap();
    soon(answer.into_body().collect()).await.unwrap();
    soon(connected).await.unwrap().unwrap();
    assert!(!edge.has_told(ConnectionErrorKind::Slow));
}

#[tokio::test]
async fn an_interim_response_nobody_asked_for_is_a_bad_gateway() {
    let service = service_fn(|_| async { Ok(Response::builder().status(101).body(Full::from("x")).unwrap()) });
    let edge = Edge::start(EdgeLimits::default(), service).await;
    for fields in ["", "Connection: upgrade\r\nUpgrade: websocket\r\n"] {
        let answer = edge.ask(&format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n")).await;
        assert_eq!(answer.status(), 502);
    }
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_request() {
    let (alive, gone) = oneshot::channel::<()>();
    let alive = Arc::new(Mutex::new(Some(alive)));
    let begun = Arc::new(Notify::new());
    let began = Arc::clone(&begun);
    let service = service_fn(move |_: Request<RequestBody>| {
        let alive = alive.lock().unwrap().take();
        began.notify_one();
        async move {
            let _alive = alive;
            pending::<Result<Response<Empty<Bytes>>, Infallible>>().await
        }
    });
    let edge = Edge::start(EdgeLimits::default(), service).await;
    let mut client = edge.client().await;
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    soon(begun.notified()).await;
    drop(client);
    assert!(soon(gone).await.is_err());
}

/// An edge whose requests wait to be released, and tell when they have begun.
struct Held {
    edge: Edge,
    begun: Arc<Notify>,
    release: Arc<Notify>,
}

async fn held(limits: EdgeLimits) -> Held {
    let (begun, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, released) = (Arc::clone(&begun), Arc::clone(&release));
    let service = service_fn(move |_: Request<RequestBody>| {
        begins.notify_one();
        let released = Arc::clone(&released);
        async move {
            released.notified().await;
            Ok(Response::new(Empty::new()))
        }
    });
    Held { edge: Edge::start(limits, service).await, begun, release }
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_a_place_while_all_are_busy() {
    let Held { edge, begun, release } = held(brief(|limits| limits.connections = 2)).await;
    let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let mut busy = Vec::new();
    for _ in 0..2 {
        let mut client = edge.client().await;
        client.send(request).await;
        soon(begun.notified()).await;
        busy.push(client);
    }
    let mut waiting = edge.client().await;
    waiting.send(request).await;
    edge.tells(ConnectionErrorKind::Full).await;
    assert!(timeout(MOMENT, begun.notified()).await.is_err(), "served without a place");
    assert!(!edge.has_told(ConnectionErrorKind::Recycled));
    // The first to have been answered is idle, and gives way.
    release.notify_one();
    soon(begun.notified()).await;
    release.notify_waiters();
    assert_eq!(waiting.message().await.status(), 200);
    for mut client in busy {
        assert_eq!(client.message().await.status(), 200);
    }
    edge.tells(ConnectionErrorKind::Recycled).await;
}

#[tokio::test]
async fn shutdown_closes_idle_connections_and_finishes_requests() {
    let Held { mut edge, begun, release } = held(EdgeLimits::default()).await;
    let mut idle = edge.client().await;
    let mut kept = edge.client().await;
    kept.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    soon(begun.notified()).await;
    release.notify_one();
    assert_eq!(kept.message().await.status(), 200);
    let mut busy = edge.client().await;
    busy.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    soon(begun.notified()).await;

    edge.begin_shutdown();
    assert_eq!(idle.rest().await, "");
    assert_eq!(kept.rest().await, "");
    assert!(TcpStream::connect(edge.address).await.is_err(), "still listening");
    assert!(!edge.served.is_finished());
    release.notify_one();
    let answer = busy.message().await;
    assert_eq!((answer.status(), answer.field("connection")), (200, Some("close")));
    assert_eq!(busy.rest().await, "");
    soon(edge.served).await.unwrap();
    assert!(edge.troubles.lock().unwrap().is_empty());
}

#[tokio::test]
async fn shutdown_waits_a_moment_for_first_requests() {
    let limits = EdgeLimits { greeting: Duration::from_secs(60), ..EdgeLimits::default() };
    let mut edge = Edge::start(limits, service_fn(mirror)).await;
    let mut first = edge.client().await;
    edge.begin_shutdown();
    soon(async { while TcpStream::connect(edge.address).await.is_ok() {} }).await;
    assert_eq!(first.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.status(), 200);
    assert_eq!(first.rest().await, "");
    soon(edge.served).await.unwrap();
}

#[tokio::test]
async fn more_fields_than_usual_pass_where_they_are_granted() {
    let fields: String = (0..150).map(|number| format!("X-{number}: 1\r\n")).collect();
    let request = format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
    for (granted, status) in [(100, 431), (140, 431), (200, 200)] {
        let edge = Edge::start(EdgeLimits { fields: granted, ..EdgeLimits::default() }, service_fn(mirror)).await;
        assert_eq!(edge.ask(&request).await.status(), status, "{granted}");
    }
}

#[tokio::test]
async fn shutdown_has_a_deadline() {
    let Held { mut edge, begun, .. } = held(brief(|limits| limits.drain = MOMENT)).await;
    let mut busy = edge.client().await;
    busy.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    soon(begun.notified()).await;
    edge.begin_shutdown();
    assert_eq!(busy.rest().await, "");
    edge.tells(ConnectionErrorKind::Aborted).await;
    soon(edge.served).await.unwrap();
}

#[tokio::test]
async fn shutdown_serves_who_was_let_in_already() {
    // The listener's backlog is filled before the edge first runs, and the shutdown has begun.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut waiting = Raw::connect(listener.local_addr().unwrap()).await;
    waiting.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    let edge = crate::edge::Edge::new(EdgeLimits::default(), |_| {}, None);
    let serving: Pin<Box<dyn Future<Output = ()> + Send + '_>> =
        Box::pin(edge.serve(listener, ListenerSettings::default(), service_fn(mirror), async {}));
    let (answer, ()) = tokio::join!(waiting.message(), soon(serving));
    assert_eq!(answer.status(), 200);
}
