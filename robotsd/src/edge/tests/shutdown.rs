//! Tests of shutdowns, and of connections that end while their clients are still sending.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::TcpSocket;

use super::flood::{PING, PREFACE, head, window};
use super::*;
use crate::http_common::frames;
use crate::http_common::test_peer::frame;

#[tokio::test]
async fn shutdown_closes_idle_connections_and_finishes_requests() {
    let Held { mut edge, begun, release } = held(brief(|limits| limits.greeting = MOMENT));
    let mut idle = edge.client().await;
    let mut kept = edge.sent(GET).await;
    soon(begun.notified()).await;
    release.notify_one();
    assert_eq!(kept.message().await.status(), 200);
    let mut busy = edge.sent(GET).await;
    soon(begun.notified()).await;

    edge.begin_shutdown();
    assert_eq!(idle.rest().await, "");
    assert_eq!(kept.rest().await, "");
    edge.stops_listening().await;
    assert!(!edge.served.is_finished());
    release.notify_one();
    let answer = busy.message().await;
    assert_eq!((answer.status(), answer.field("connection")), (200, Some("close")));
    assert_eq!(busy.rest().await, "");
    soon(edge.served).await.unwrap();
    assert!(edge.reported.lock().is_empty());
}

#[tokio::test]
async fn shutdown_waits_a_moment_for_first_requests() {
    let limits = EdgeLimits { greeting: Duration::from_secs(60), ..EdgeLimits::default() };
    let mut edge = ServedEdge::start(limits, service_fn(mirror));
    let mut first = edge.client().await;
    edge.begin_shutdown();
    edge.stops_listening().await;
    assert_eq!(first.ask(GET).await.status(), 200);
    assert_eq!(first.rest().await, "");
    soon(edge.served).await.unwrap();
}

#[tokio::test]
async fn shutdown_has_a_deadline() {
    let Held { mut edge, begun, .. } = held(brief(|limits| limits.drain = MOMENT));
    let mut busy = edge.sent(GET).await;
    soon(begun.notified()).await;
    edge.begin_shutdown();
    assert_eq!(busy.rest().await, "");
    edge.reports(ConnectionErrorKind::Aborted).await;
    soon(edge.served).await.unwrap();
}

#[tokio::test]
async fn shutdown_serves_connections_in_the_listen_backlog() {
    // All clients connect before the edge runs, and the shutdown begins immediately. So the
    // connections are still in the listener's backlog.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut waiting = Raw::sent(listener.local_addr().unwrap(), GET).await;
    let edge = Edge::new(brief(|limits| limits.greeting = HOUR), |_| {}, None);
    let serving: Pin<Box<dyn Future<Output = ()> + Send + '_>> =
        Box::pin(edge.serve(listener, ListenerSettings::default(), service_fn(mirror), async {}));
    let (answer, ()) = tokio::join!(waiting.message(), soon(serving));
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn shutdown_serves_a_connection_that_waits_for_a_slot() {
    let Held { mut edge, begun, release } = held(brief(|limits| (limits.connections, limits.greeting) = (1, HOUR)));
    let mut busy = edge.sent(GET).await;
    soon(begun.notified()).await;
    let mut waiting = edge.sent(GET).await;
    edge.reports(ConnectionErrorKind::Full).await;
    edge.begin_shutdown();
    for client in [&mut busy, &mut waiting] {
        release.notify_one();
        assert_eq!(client.message().await.status(), 200);
    }
    soon(edge.served).await.unwrap();
}

const OLD: &str = "GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n";

#[tokio::test]
async fn with_a_successor_process_connections_close_after_a_response_with_connection_close() {
    let mut edge = ServedEdge::start(brief(|limits| limits.drain = HOUR), service_fn(mirror));
    let mut clients = Vec::new();
    // Four connections: on the fast path, with hyper, without any bytes, and with HTTP/1.0.
    let post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n";
    let cases = [(GET, None, GET), (post, None, GET), ("", None, GET), (OLD, Some("keep-alive"), OLD)];
    for (first, connection, last) in cases {
        let mut client = edge.client().await;
        if !first.is_empty() {
            assert_eq!(client.ask(first).await.field("connection"), connection);
        }
        clients.push((client, last));
    }
    wait_until(|| edge.edge.traffic().open >= clients.len()).await;
    edge.edge.set_successor();
    edge.begin_shutdown();
    edge.stops_listening().await;
    for (mut client, last) in clients {
        let answer = client.ask(last).await;
        assert_eq!((answer.status(), answer.field("connection")), (200, Some("close")));
        assert_eq!(client.rest().await, "");
    }
    soon(edge.served).await.unwrap();
    assert!(edge.reported.lock().is_empty());
}

#[tokio::test]
async fn with_a_successor_process_idle_connections_are_closed_after_a_deadline() {
    let mut edge = ServedEdge::start(EdgeLimits::default(), service_fn(mirror));
    let mut kept = edge.client().await;
    assert_eq!(kept.ask(GET).await.status(), 200);
    edge.edge.set_successor();
    edge.begin_shutdown();
    // Nothing more is sent, so the clock can be paused. The deadlines then take no real time.
    tokio::time::pause();
    assert_eq!(kept.rest().await, "");
    soon(edge.served).await.unwrap();
    // No requests were cut off.
    assert!(edge.reported.lock().is_empty());
}

/// Size of an answer that does not fit into the buffers of a client from [`little_room`], nor into
/// HTTP/2's initial window. The server's buffers have room for it.
const LATE: usize = 100_000;

/// Connects a client with small buffers.
pub(in crate::edge) async fn little_room(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    soon(socket.connect(address)).await.unwrap()
}

/// Answers with [`LATE`] bytes, when the test releases the answers.
#[derive(Clone, Copy)]
pub(in crate::edge) struct LateAnswers {
    begun: &'static Notify,
    release: &'static Notify,
}

impl LateAnswers {
    pub(in crate::edge) fn new() -> Self {
        Self { begun: shared(), release: shared() }
    }

    pub(in crate::edge) fn service(self) -> impl EdgeService {
        service_fn(move |_: Request<RequestBody>| async move {
            self.begun.notify_one();
            self.release.notified().await;
            Ok(Response::new(Full::from(vec![b'l'; LATE])))
        })
    }
}

/// Sends a request, and receives the announcement that the server closes the connection. Sends more
/// bytes before reading the answer, as if the client had sent them before the announcement arrived.
pub(in crate::edge) async fn read_late<S>(mut edge: ServedEdge, answers: LateAnswers, mut client: Raw<S>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let settings = frame(frames::SETTINGS, 0, 0, &[0, 4, 0x7F, 0xFF, 0xFF, 0xFF]);
    client.send([PREFACE, &settings, &window(0, 0x7FFF_0000), &head(2, frames::END_STREAM, 1)].concat()).await;
    let opening = soon(client.frame()).await.unwrap();
    assert_eq!(opening.kind, frames::SETTINGS);
    edge.begin_shutdown();
    loop {
        let received = soon(client.frame()).await.expect("an open connection");
        match received.kind {
            PING => client.send(frame(PING, frames::ACK, 0, &received.payload)).await,
            frames::GOAWAY if received.payload[..4] == 1_u32.to_be_bytes() => break,
            frames::DATA => panic!("the answer comes before the GOAWAY"),
            _ => {}
        }
    }
    answers.release.notify_one();
    // The server has time to answer and to close the connection.
    tokio::time::sleep(MOMENT).await;
    for bytes in [window(0, 1), window(1, 1), head(2, frames::END_STREAM, 3), window(0, 1)] {
        client.try_send(bytes).await;
        tokio::time::sleep(MOMENT / 10).await;
    }
    let mut taken = 0;
    while let Some(received) = soon(client.frame()).await {
        assert_ne!((received.kind, received.stream), (frames::HEADERS, 3), "a request behind the GOAWAY");
        taken += if received.kind == frames::DATA { received.payload.len() } else { 0 };
        if received.stream == 0 {
            client.send(window(0, 1)).await;
        }
    }
    assert_eq!(taken, LATE);
    assert_eq!(soon(client.socket.read(&mut [0])).await.unwrap(), 0, "an end in order");
    drop(client);
    soon(edge.served).await.unwrap();
    assert!(edge.reported.lock().is_empty());
}

#[tokio::test]
async fn rfc_9112_9_6_bytes_sent_after_a_goaway_do_not_destroy_pending_responses() {
    let answers = LateAnswers::new();
    let edge = ServedEdge::start(EdgeLimits::default(), answers.service());
    let client = Raw::new(little_room(edge.address).await);
    read_late(edge, answers, client).await;
}

const UPLOAD: usize = 4 << 20;

fn upload() -> Vec<u8> {
    let head = format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {UPLOAD}\r\n\r\n");
    [head.as_bytes(), &vec![b'u'; UPLOAD]].concat()
}

#[tokio::test]
async fn rfc_9112_9_6_a_response_sent_before_the_end_of_the_request_body_arrives() {
    let edge = ServedEdge::start(EdgeLimits::default(), service_fn(mirror));
    let mut client = edge.client().await;
    // The client reads nothing before it has sent everything.
    assert_eq!(client.ask(std::str::from_utf8(&upload()).unwrap()).await.status(), 200);
    assert_eq!(soon(client.socket.read(&mut [0])).await.unwrap(), 0, "an end in order");
}

#[tokio::test]
async fn rfc_9112_9_6_requests_after_the_last_response_do_not_destroy_it() {
    let answers = LateAnswers::new();
    let mut edge = ServedEdge::start(EdgeLimits::default(), answers.service());
    let mut client = Raw::new(little_room(edge.address).await);
    client.send(GET).await;
    soon(answers.begun.notified()).await;
    edge.begin_shutdown();
    edge.stops_listening().await;
    client.send(GET).await;
    answers.release.notify_one();
    // The server has time to answer and to close the connection.
    tokio::time::sleep(MOMENT).await;
    client.try_send(GET).await;
    let answer = client.message().await;
    assert_eq!((answer.body.len(), answer.field("connection")), (LATE, Some("close")));
    assert_eq!(soon(client.socket.read(&mut [0])).await.unwrap(), 0, "an end in order");
}

/// After the last answer, the connection lasts only a limited time, whatever the client does, and
/// its slot can be claimed.
#[tokio::test]
async fn a_client_that_stays_connected_after_its_last_response_is_disconnected() {
    for sends in [false, true] {
        let limits = brief(|limits| (limits.connections, limits.drain) = (1, HOUR));
        let mut edge = ServedEdge::start(limits, service_fn(mirror));
        let mut stays = Vec::new();
        for _ in 0..3 {
            let mut client = edge.client().await;
            client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n").await;
            assert_eq!(client.message().await.status(), 200);
            stays.push(client);
        }
        edge.reports(ConnectionErrorKind::Recycled).await;
        edge.begin_shutdown();
        // The clock is paused, so that the deadlines take no real time.
        tokio::time::pause();
        let last = stays.pop().unwrap();
        let sending = async move {
            let mut last = last;
            loop {
                if sends {
                    last.try_send("x").await;
                }
                tokio::time::sleep(MOMENT * 4).await;
            }
        };
        tokio::select! {
            served = soon(edge.served) => served.unwrap(),
            () = sending => {}
        }
        tokio::time::resume();
        assert!(!edge.reported.lock().iter().any(|error| error.kind != ConnectionErrorKind::Recycled));
    }
}
