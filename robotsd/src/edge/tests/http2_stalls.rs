//! Tests of HTTP/2 streams that stall or end: refusals, responses, uploads, and silent clients.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;

use super::flood::{PREFACE, WINDOW_UPDATE, framed, head, is_sent_calm_down, request, reset, window};
use super::*;
use crate::http_common::frames::{self, DATA, END_STREAM, GOAWAY, RST_STREAM};
use crate::http_common::test_peer::frame;

/// Builds a SETTINGS frame with a window of zero, so that no stream may carry content.
fn no_window() -> Vec<u8> {
    frame(frames::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0])
}

/// Reads frames until a frame of this kind arrives on the stream. Panics if the connection ends.
pub(super) async fn until(client: &mut Raw, kind: u8, stream: u32) {
    loop {
        let received = soon(client.frame()).await.expect("an open connection");
        if received.kind == kind && received.stream == stream {
            return;
        }
        assert_ne!(received.kind, GOAWAY, "before {} of {stream}", frames::name(kind));
    }
}

#[tokio::test]
async fn a_refusal_that_the_flow_control_window_blocks_is_reset_after_a_timeout() {
    let edge = ServedEdge::start(brief(|limits| limits.body_idle = MOMENT), service_fn(mirror));
    let mut client = framed(&edge).await;
    client.send(&[no_window(), request(2, "/a\\b", END_STREAM, 1)].concat()).await;
    until(&mut client, RST_STREAM, 1).await;
}

#[tokio::test]
async fn bytes_blocked_by_flow_control_are_not_logged_as_sent() {
    let (logged, mut log) = mpsc::unbounded_channel();
    let on_access = move |record: Box<AccessRecord>| {
        let _ = logged.send((record.sent, record.is_whole));
    };
    let limits = brief(|limits| limits.body_idle = MOMENT);
    let edge = Edge::new(limits, |_: &ConnectionError| {}, Some(Arc::new(on_access)));
    let edge = ServedEdge::of(edge, listen().0, ListenerSettings::default(), service_fn(mirror));
    for path in ["/", "/a\\b"] {
        let mut client = framed(&edge).await;
        client.send(&[no_window(), request(2, path, END_STREAM, 1)].concat()).await;
        assert_eq!(soon(log.recv()).await.unwrap(), (0, false), "{path}");
        let mut client = framed(&edge).await;
        client.send(&request(2, path, END_STREAM, 1)).await;
        let (sent, is_whole) = soon(log.recv()).await.unwrap();
        assert!(sent > 0 && is_whole, "{path}");
    }
}

#[tokio::test]
async fn the_number_of_requests_that_are_reset_once_they_are_accepted_is_limited() {
    let begun = shared::<AtomicUsize>();
    let service = service_fn(move |_: Request<RequestBody>| {
        begun.fetch_add(1, Ordering::Relaxed);
        pending::<Result<Response<Empty<Bytes>>, Infallible>>()
    });
    let edge = ServedEdge::start(EdgeLimits::default(), service);
    let mut client = framed(&edge).await;
    let mut is_flood = false;
    for round in 0..20 {
        let streams = || (0..100).map(|number| 2 * (100 * round + number) + 1);
        client.try_send(&streams().flat_map(|stream| head(2, END_STREAM, stream)).collect::<Vec<_>>()).await;
        tokio::select! {
            is_calm_down = is_sent_calm_down(&mut client) => {
                is_flood = is_calm_down;
                break;
            }
            () = wait_until(|| begun.load(Ordering::Relaxed) >= 100 * (round as usize + 1)) => {}
        }
        client.try_send(&streams().flat_map(reset).collect::<Vec<_>>()).await;
    }
    assert!(is_flood || is_sent_calm_down(&mut client).await);
    // If the client stayed connected, the edge would read from it for a while.
    drop(client);
    edge.reports(ConnectionErrorKind::Flood).await;
    // The client may reset all requests of a page together, and then all requests of another page.
    assert!(begun.load(Ordering::Relaxed) >= 200);
}

/// Starts an edge that mirrors requests, but does not read bodies for `/stuck`.
fn stuck() -> ServedEdge {
    let service = service_fn(|request: Request<RequestBody>| async move {
        if request.uri().path() == "/stuck" {
            let _body = request;
            return pending().await;
        }
        let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        Ok::<_, Infallible>(Response::new(Full::new(body)))
    });
    ServedEdge::start(EdgeLimits::default(), service)
}

#[tokio::test]
async fn unread_uploads_do_not_block_other_uploads() {
    let edge = stuck();
    let mut client = framed(&edge).await;
    // Before this frame arrives, the connection's window has the protocol's default size.
    until(&mut client, WINDOW_UPDATE, 0).await;
    for stream in (1..100).step_by(2) {
        client.send(&request(3, "/stuck", 0, stream)).await;
        for _ in 0..4 {
            client.send(&frame(DATA, 0, stream, &[b'x'; 16_000])).await;
        }
    }
    client.send(&[request(3, "/", 0, 101), frame(DATA, END_STREAM, 101, b"ok")].concat()).await;
    until(&mut client, DATA, 101).await;
}

#[tokio::test]
async fn unread_small_data_frames_do_not_end_the_connection() {
    let edge = stuck();
    let mut client = framed(&edge).await;
    client.send(&request(3, "/stuck", 0, 1)).await;
    client.send(&frame(DATA, 0, 1, &[b'x'; 16]).repeat(4_000)).await;
    client.send(&[request(3, "/", 0, 3), frame(DATA, END_STREAM, 3, b"ok")].concat()).await;
    until(&mut client, DATA, 3).await;
}

/// The PING waits behind unread bytes for longer than the time limit for its answer.
#[tokio::test]
async fn a_client_that_cannot_answer_a_ping_behind_unread_bytes_stays_connected() {
    let limits = brief(|limits| (limits.keep_alive, limits.header_read) = (MOMENT, MOMENT));
    let (edge, _dropped) = endless_once(limits);
    // Everything is sent in one write; otherwise the deadline for heads could pass.
    let settings = frame(frames::SETTINGS, 0, 0, &[0, 4, 0x7F, 0xFF, 0xFF, 0xFF]);
    let asking = [PREFACE, &settings, &window(0, 0x7FFF_0000), &request(2, "/endless", END_STREAM, 1)].concat();
    let mut client = edge.sent(asking).await;
    tokio::time::sleep(5 * MOMENT).await;
    assert!(edge.reported.lock().is_empty());
    until(&mut client, DATA, 1).await;
}

#[tokio::test]
async fn a_connection_without_a_request_ends_with_a_goaway() {
    let edge = ServedEdge::start(brief(|limits| limits.header_read = MOMENT), service_fn(mirror));
    let mut client = framed(&edge).await;
    while soon(client.frame()).await.expect("a GOAWAY before the end").kind != GOAWAY {}
}
