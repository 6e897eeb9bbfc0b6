//! Tests of connections, in every kind of idle state, that are closed to free their slots.

use super::flood::{GREETING, request};
use super::*;
use crate::edge::client_slots::CLAIM_AGAIN;
use crate::http_common::frames::END_STREAM;

const UPLOAD: &str = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab";

const PLACES: usize = 8;

fn few_places() -> EdgeLimits {
    brief(|limits| limits.connections = PLACES)
}

/// The ways in which a connection can be idle.
#[derive(Clone, Copy, Debug)]
enum Idling {
    Silent,
    Kept,
    /// Like `Kept`, but hyper drives the connection, because the request had a body.
    KeptAfterUpload,
    /// An HTTP/2 connection before its first request.
    Preface,
    Head,
    /// An HTTP/2 connection that has served a request, and then received one byte of a frame.
    PartialFrame,
    PartialFields,
    /// Only the header of a field section's last frame has arrived.
    PartialPayload,
}

impl Idling {
    /// Reports whether the connection waits for the rest of a message. The slot of such a
    /// connection is protected for a moment, and is claimed only if no other connection is idle.
    fn is_slow(self) -> bool {
        matches!(self, Self::Head | Self::PartialFrame | Self::PartialFields | Self::PartialPayload)
    }
}

async fn idle(edge: &ServedEdge, idling: Idling) -> Raw {
    let mut client = edge.client().await;
    match idling {
        Idling::Silent => {}
        Idling::Kept => assert_eq!(client.ask(GET).await.status(), 200),
        Idling::KeptAfterUpload => assert_eq!(client.ask(UPLOAD).await.status(), 200),
        Idling::Preface => client.send(GREETING).await,
        Idling::Head => client.send("G").await,
        Idling::PartialFrame => {
            ask_by_http_2(&mut client).await;
            client.send(b"\0").await;
        }
        Idling::PartialFields => client.send([GREETING, b"\0\0\x01\x01\x01\0\0\0\x01\x82"].concat()).await,
        Idling::PartialPayload => client.send([GREETING, b"\0\0\x0F\x01\x05\0\0\0\x01"].concat()).await,
    }
    client
}

async fn ask_by_http_2(client: &mut Raw) {
    // Preface and request are sent in one write; otherwise the deadline for heads could pass.
    client.send([GREETING, &request(2, "/tail", END_STREAM, 1)].concat()).await;
    assert!(soon(client.heard(b"GET /tail\n")).await);
}

#[tokio::test]
async fn a_partial_frame_has_the_same_deadline_as_a_head() {
    let limits = || {
        brief(|limits| {
            limits.header_read = MOMENT;
            (limits.first_byte, limits.keep_alive) = (HOUR, HOUR);
        })
    };
    for idling in [Idling::PartialFrame, Idling::PartialFields, Idling::PartialPayload] {
        let edge = ServedEdge::start(limits(), service_fn(mirror));
        idle(&edge, idling).await.rest().await;
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_a_buffered_http_2_response_is_disconnected() {
    let limits = || brief(|limits| (limits.body_idle, limits.header_read) = (MOMENT, MOMENT));
    for renews in [false, true] {
        let edge = ServedEdge::start(limits(), service_fn(mirror));
        let mut client = edge.client().await;
        // The client sets a window of one byte (RFC 9113, section 6.5.2).
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\x01").await;
        let ending = async {
            for stream in (1..=199).step_by(2) {
                let head = [&b"\0\0\x0F\x01\x05\0\0\0"[..], &[stream], b"\x82\x86\x04\x05/tail\x01\x04h.te"];
                client.try_send(head.concat()).await;
                // Responses to other requests do not protect the connection while the client leaves
                // one response unread.
                if !renews || timeout(MOMENT / 3, client.rest()).await.is_ok() {
                    break;
                }
            }
            client.rest().await;
        };
        soon(ending).await;
    }
}

#[tokio::test]
async fn idle_connections_of_every_kind_are_closed_for_new_ones() {
    use Idling::*;
    for idling in [Silent, Kept, KeptAfterUpload, Preface, Head, PartialFrame, PartialFields, PartialPayload] {
        // No deadline passes during this test, so no deadline frees a slot.
        let limits = EdgeLimits { first_byte: HOUR, header_read: HOUR, keep_alive: HOUR, ..few_places() };
        let edge = ServedEdge::start(limits, service_fn(mirror));
        let mut idle_ones = Vec::new();
        for _ in 0..PLACES {
            idle_ones.push(idle(&edge, idling).await);
        }
        let mut kept = edge.client().await;
        assert_eq!(kept.ask(GET).await.status(), 200, "{idling:?}");
        edge.reports(ConnectionErrorKind::Recycled).await;
        // No more connections than necessary were closed. The connections that became idle last are
        // still open.
        idle_ones[0].rest().await;
        for _ in 1..PLACES / 2 {
            assert_eq!(edge.ask(GET).await.status(), 200, "{idling:?}");
        }
        if !idling.is_slow() && !matches!(idling, Preface) {
            assert_eq!(idle_ones[PLACES - 1].ask(GET).await.status(), 200, "{idling:?}");
        }
        // Connections that do not wait for the rest of a message are closed first.
        if !idling.is_slow() {
            assert_eq!(kept.ask(GET).await.status(), 200, "{idling:?}");
        }
    }
}

#[tokio::test]
async fn clients_beyond_the_limit_are_all_answered() {
    let edge = ServedEdge::start(few_places(), service_fn(mirror));
    let mut kept = Raw::kept(10 * PLACES, edge.address, GET).await;
    // A connection is closed cleanly, not within a response.
    for client in &mut kept[..9 * PLACES] {
        assert_eq!(client.rest().await, "");
    }
}

#[tokio::test]
async fn an_idle_http_2_connection_gets_a_goaway_for_a_new_one() {
    let edge = ServedEdge::start(brief(|limits| limits.connections = 1), service_fn(mirror));
    let mut client = edge.http2().await;
    for _ in 0..3 {
        client.ask(get("http://h.test/")).await.unwrap();
    }
    assert_eq!(edge.ask(GET).await.status(), 200);
    // A GOAWAY without an error ends the connection in an orderly way.
    soon(client.connected).await.unwrap().unwrap();
    edge.reports(ConnectionErrorKind::Recycled).await;
    assert!(!edge.has_reported(ConnectionErrorKind::Broken));

    let mut raw = edge.sent(GREETING).await;
    raw.until(b"\0\0\0\x04\x01\0\0\0\0").await;
    assert_eq!(edge.ask(GET).await.status(), 200);
    let rest = raw.rest().await;
    assert!(rest.ends_with("\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0"), "{rest:?}");
}

#[tokio::test]
async fn connections_with_requests_in_progress_are_never_closed_for_others() {
    let Held { edge, begun, release } = held(few_places());
    let mut busy = Vec::new();
    // All slots except one are in use, by the fast path and by hyper. One of the clients sends its
    // body slowly, and another uses HTTP/2.
    for request in [GET, GET, UPLOAD, UPLOAD, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nab"] {
        let client = edge.sent(request).await;
        soon(begun.notified()).await;
        busy.push(client);
    }
    let (streamed, _) = edge.http2().await.begin(get("http://h.test/"), true).await;
    soon(begun.notified()).await;
    let mut idle_ones = Vec::new();
    for _ in 0..20 {
        idle_ones.push(idle(&edge, Idling::Silent).await);
    }
    idle_ones.push(idle(&edge, Idling::Preface).await);
    let mut last = edge.sent(GET).await;
    soon(begun.notified()).await;
    edge.reports(ConnectionErrorKind::Recycled).await;
    release.notify_waiters();
    assert_eq!(last.message().await.status(), 200);
    for client in &mut busy {
        assert_eq!(client.message().await.status(), 200);
    }
    assert_eq!(soon(streamed).await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_connection_with_an_unread_response_is_not_closed_for_others() {
    // The answer is one piece that is larger than the client's socket buffers. hyper then buffers
    // the whole answer, and no request is in progress any more.
    const LENGTH: usize = 32 << 20;
    let service = service_fn(|request: Request<RequestBody>| async move {
        let is_small = request.uri().path() == "/small";
        let body = if is_small { Full::default() } else { Full::from(vec![b'x'; LENGTH]) };
        // The HTTP/2 client gets a shorter answer, which fits into the buffer of its stream.
        let is_last = request.uri().path() == "/tail";
        Ok(Response::new(if is_last { Full::from(vec![b'x'; 60_000]) } else { body }))
    });
    let edge = ServedEdge::start(brief(|limits| limits.connections = 3), service);
    let mut upload = edge.sent(UPLOAD).await;
    upload.until(b"\r\n\r\n").await;
    // The client sets a window that is smaller than the answer (RFC 9113, section 6.5.2).
    let mut http2 = edge.sent(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\x03\xE8").await;
    http2.send(b"\0\0\x0F\x01\x05\0\0\0\x01\x82\x86\x04\x05/tail\x01\x04h.te").await;
    assert!(soon(http2.heard(&[b'x'; 1000])).await);
    let _kept = Raw::kept(6, edge.address, "GET /small HTTP/1.1\r\nHost: h\r\n\r\n").await;
    edge.reports(ConnectionErrorKind::Recycled).await;
    http2.send(b"\0\0\x04\x08\0\0\0\0\x01\0\x01\0\0").await;
    assert!(soon(http2.heard(&[b'x'; 16_000])).await);
    upload.exactly(LENGTH).await;
}

#[tokio::test]
async fn a_tunnel_is_not_idle() {
    // A connection that has switched protocols has no request in progress, but it is not idle.
    let service =
        service_fn(|request: Request<RequestBody>| async move { Ok(echo(&request, b"").unwrap_or_default()) });
    let edge = ServedEdge::start(brief(|limits| limits.connections = 2), service);
    let mut tunnel = edge.client().await;
    let upgrade = "GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    assert_eq!(tunnel.ask(upgrade).await.status(), 101);
    let mut kept = Vec::new();
    for _ in 0..4 {
        kept.extend(Raw::kept(1, edge.address, GET).await);
        tunnel.send("echo").await;
        assert_eq!(tunnel.exactly(4).await, "echo");
    }
}

/// A worker: a thread that serves connections with its own runtime.
struct Worker {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

impl Worker {
    fn start(edge: Edge, service: impl EdgeService) -> Self {
        let (sender, address) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            runtime().block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                sender.send(listener.local_addr().unwrap()).unwrap();
                let stopped = async { drop(stopped.await) };
                edge.serve(listener, ListenerSettings::default(), service, stopped).await;
            });
        });
        Self { address: address.recv().unwrap(), stop, thread }
    }

    fn end(self) {
        drop(self.stop);
        self.thread.join().unwrap();
    }
}

/// Creates an edge for several workers. Also returns a receiver of its reports.
fn for_workers() -> (Edge, std::sync::mpsc::Receiver<(ConnectionErrorKind, String)>) {
    let (errors, reported) = std::sync::mpsc::channel();
    let on_error = move |error: &ConnectionError| drop(errors.send((error.kind, error.detail.clone())));
    (Edge::new(few_places(), on_error, None), reported)
}

#[test]
fn a_blocked_worker_loses_only_as_many_connections_as_needed() {
    let (edge, reported) = for_workers();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let (begins, begun) = std::sync::mpsc::channel::<()>();
    let service = service_fn(move |request: Request<RequestBody>| {
        if request.uri().path() == "/late" {
            // Blocks the worker, as a long computation would.
            let _ = begins.send(());
            let _ = released.lock().recv_timeout(Duration::from_secs(60));
        }
        mirror(request)
    });
    let late = Worker::start(edge.clone(), service);
    let other = Worker::start(edge, service_fn(mirror));
    runtime().block_on(async {
        let mut idle_ones = Raw::kept(PLACES, late.address, GET).await;
        idle_ones[0].send("GET /late HTTP/1.1\r\nHost: h\r\n\r\n").await;
        begun.recv_timeout(Duration::from_secs(60)).unwrap();
        let mut new = Raw::sent(other.address, GET).await;
        while reported.recv_timeout(Duration::from_secs(60)).unwrap().0 != ConnectionErrorKind::Recycled {}
        // During this time, the edge could claim many more connections.
        assert!(timeout(CLAIM_AGAIN * 20, new.some()).await.is_err());
        release.send(()).unwrap();
        assert_eq!(new.message().await.status(), 200);
        assert_eq!(idle_ones[0].message().await.status(), 200);
        // Only one connection had to be closed.
        for client in &mut idle_ones[2..] {
            assert_eq!(client.ask(GET).await.status(), 200);
        }
    });
    late.end();
    other.end();
}

#[test]
fn idle_connections_of_another_worker_are_closed_for_new_ones() {
    let (edge, reported) = for_workers();
    let first = Worker::start(edge.clone(), service_fn(mirror));
    let second = Worker::start(edge.clone(), service_fn(mirror));
    runtime().block_on(async {
        let mut idle_ones = Raw::kept(PLACES, first.address, GET).await;
        let mut kept = Raw::connect(second.address).await;
        assert_eq!(kept.ask(GET).await.status(), 200);
        assert_eq!(idle_ones[0].rest().await, "");
        assert_eq!(idle_ones[1].ask(GET).await.status(), 200);
        // If the number of slots is reduced, only idle connections are closed.
        edge.set_connection_slots(PLACES, 1);
        for client in idle_ones.iter_mut().skip(2) {
            assert_eq!(client.rest().await, "");
        }
    });
    let (kind, detail) = reported.recv().unwrap();
    assert_eq!(kind, ConnectionErrorKind::Recycled);
    let want = "the limit of open connections is reached: a connection that was idle for ";
    assert!(detail.starts_with(want), "{detail}");
    first.end();
    second.end();
}
