//! Tests of HTTP/2 connections that several clients share, and of how one client affects the
//! others.

use std::collections::HashMap;

use parking_lot::Mutex;

use super::http2::{Http2Origin, answer, are_quick, endless, unread};
use super::http2_frames::STATUS;
use super::*;
use crate::http_common::frames::{ACK, DATA, END_HEADERS, END_STREAM, HEADERS, RST_STREAM, SETTINGS};
use crate::http_common::test_peer::{RawFrame, field, frame};
use crate::upstream::connection_limit::SEPARATE;
use crate::upstream::usage::millis;

const PING: u8 = 6;

/// Starts a server that answers each frame with the result of `script`, which is called with the
/// number of the connection. SETTINGS and PING are always answered.
fn scripted(script: impl Fn(usize, &RawFrame) -> Vec<u8> + Send + Sync + 'static) -> Origin {
    let script = Arc::new(script);
    Origin::of_sockets(HttpVersions::Http2, move |number, socket| {
        let (script, mut peer) = (Arc::clone(&script), Raw::new(socket));
        async move {
            peer.bytes(24).await;
            peer.send(frame(SETTINGS, 0, 0, &[])).await;
            while let Some(received) = peer.frame().await {
                if matches!(received.kind, SETTINGS | PING) && received.flags & ACK == 0 {
                    let payload: &[u8] = if received.kind == PING { &received.payload } else { &[] };
                    peer.try_send(frame(received.kind, ACK, 0, payload)).await;
                }
                peer.try_send(script(number, &received)).await;
            }
        }
    })
}

#[tokio::test]
async fn cancelled_requests_do_not_end_streams_of_other_clients() {
    let cancelled = shared::<AtomicUsize>();
    let origin = scripted(move |_, received| match received.kind {
        HEADERS => {
            [frame(HEADERS, END_HEADERS, received.stream, &[0x88]), frame(DATA, 0, received.stream, b"some")].concat()
        }
        // After a reset, the server sends late data: on this stream, and on the first stream.
        RST_STREAM => {
            cancelled.fetch_add(1, Ordering::SeqCst);
            [frame(DATA, 0, received.stream, b"late"), frame(DATA, 0, 1, b"more")].concat()
        }
        _ => Vec::new(),
    });
    let upstream = origin.upstream();
    let mut kept = soon(upstream.forward(request("GET", "/"))).await.into_body();
    for _ in 0..3 {
        let mut cancelling = Vec::new();
        for _ in 0..100 {
            cancelling.push(soon(upstream.forward(request("GET", "/"))).await);
        }
        assert!(cancelling.iter().all(|response| response.status() == 200));
        drop(cancelling);
        settled().await;
    }
    wait_until(|| cancelled.load(Ordering::SeqCst) >= 300).await;
    let mut bytes = 0;
    while bytes < 4 + 300 * 4 {
        bytes += soon(kept.frame()).await.unwrap().unwrap().into_data().unwrap().len();
    }
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn many_small_unread_data_frames_do_not_end_streams_of_other_clients() {
    const WINDOW: usize = 16 * 1024;
    let (origin, sent) = endless(bytes::Bytes::from_static(&[0; 20]));
    let upstream = origin.upstream_with(|limits| limits.buffer_bytes = WINDOW);
    let held = unread(&upstream).await;
    soon(async {
        while sent.load(Ordering::SeqCst) < 8 * WINDOW {
            are_quick(&upstream, 1).await;
        }
    })
    .await;
    are_quick(&upstream, 20).await;
    assert_eq!(origin.connections(), 1);
    for response in held {
        assert!(soon(response.into_body().frame()).await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn empty_data_frames_of_many_responses_end_no_stream() {
    let origin = scripted(move |_, received| match received.kind {
        HEADERS => {
            let stream = received.stream;
            let head = frame(HEADERS, END_HEADERS, stream, &[0x88]);
            [head, frame(DATA, 0, stream, &[]), frame(DATA, 1, stream, b"ok")].concat()
        }
        _ => Vec::new(),
    });
    let upstream = origin.upstream();
    for _ in 0..110 {
        let response = soon(upstream.forward(request("GET", "/"))).await;
        assert_eq!(soon(response.into_body().collect()).await.unwrap().to_bytes(), "ok");
        settled().await;
    }
    // h2 would end a connection at its 101st empty frame.
    assert_eq!(origin.connections(), 3);
    assert!(!upstream.0.shared.connection_limit.are_requests_separate());
}

/// Builds a field section in which one field contains a line feed. On HTTP/1.1, this field would be
/// two fields. h2 ends the connection.
fn injected(stream: u32) -> Vec<u8> {
    let fields = [STATUS, &field("x-a", "b\r\nset-cookie: c=d")].concat();
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &fields)
}

/// The path that is answered with [`injected`], and its one-byte encoding (RFC 7541, appendix A).
const BAD_PATH: (&str, u8) = ("/index.html", 0x85);
/// The one-byte encoding of `:method: POST`.
const POST: u8 = 0x83;

/// The requests that arrived at a server: the number of the connection, and whether it is a POST.
type Came = Mutex<Vec<(usize, bool)>>;

/// Starts a server that answers `BAD_PATH` with [`injected`], and every other GET or HEAD normally.
/// If `waits` returns true for a request, the server does not answer it.
fn injectable(came: &'static Came, waits: impl Fn(usize, &RawFrame) -> bool + Send + Sync + 'static) -> Origin {
    scripted(move |connection, received| {
        if received.kind != HEADERS {
            return Vec::new();
        }
        came.lock().push((connection, received.payload.starts_with(&[POST])));
        match received.payload.contains(&BAD_PATH.1) {
            true => injected(received.stream),
            false if waits(connection, received) => Vec::new(),
            false => frame(HEADERS, END_HEADERS | END_STREAM, received.stream, STATUS),
        }
    })
}

async fn ask_for_bad(upstream: &Upstream) -> u16 {
    soon(upstream.forward(request("GET", BAD_PATH.0))).await.status().as_u16()
}

#[tokio::test]
async fn get_and_head_requests_survive_a_response_that_ends_their_connection() {
    let came = shared::<Came>();
    // On the first connection, only the first request is answered.
    let origin = injectable(came, |connection, received| connection == 0 && received.stream > 1);
    let (upstream, events) = origin.watched(|_| {});
    assert_eq!(status(&upstream, "GET").await, 200);
    settled().await;
    let others = ["GET", "GET", "HEAD", "POST", "DELETE"].map(|method| asking(&upstream, method));
    wait_until(|| came.lock().len() == 6).await;
    assert_eq!(ask_for_bad(&upstream).await, 502);
    assert_eq!(ended(others).await, [200, 200, 200, 502, 502]);
    // Each request was repeated on its own connection, including the one with the invalid response.
    let mut connections: Vec<_> = came.lock().iter().map(|(connection, _)| *connection).collect();
    connections.sort_unstable();
    assert_eq!(connections, [0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
    // A client that repeats this request cannot take the server out of service.
    for _ in 0..10 {
        assert_eq!(ask_for_bad(&upstream).await, 502);
    }
    assert_eq!(times_reported(&events, "ejected"), 0, "{events:?}");
}

#[tokio::test]
async fn each_connection_carries_one_request_for_a_minute_after_an_invalid_response() {
    let came = shared::<Came>();
    let is_post = |_, received: &RawFrame| received.payload.starts_with(&[POST]);
    let upstream = injectable(came, is_post).upstream();
    // Returns the connections of the last `count` POST requests.
    let posts = |count: usize| {
        let came = came.lock();
        let posts = came.iter().rev().filter(|(_, is_post)| *is_post).take(count);
        let connections: std::collections::HashSet<_> = posts.map(|(connection, _)| *connection).collect();
        connections.len()
    };
    let has_posts = |count: usize| came.lock().iter().filter(|(_, is_post)| *is_post).count() == count;
    assert_eq!(ask_for_bad(&upstream).await, 502);
    let waiting: [_; 5] = burst(&upstream, "POST");
    wait_until(|| has_posts(5)).await;
    assert_eq!(posts(5), 5);
    // After that, another invalid response ends only its own request.
    assert_eq!(ask_for_bad(&upstream).await, 502);
    settled().await;
    assert!(waiting.iter().all(|request| !request.is_finished()));
    let limit = &upstream.0.shared.connection_limit;
    let left = limit.separate_until.load(Ordering::SeqCst) - millis(limit.start);
    assert!((SEPARATE / 2..=SEPARATE).contains(&left) && SEPARATE == 60_000, "{left}");
    // Simulates that the minute is over.
    limit.separate_until.store(1, Ordering::SeqCst);
    let _sharing: [_; 5] = burst(&upstream, "POST");
    wait_until(|| has_posts(10)).await;
    assert_eq!(posts(5), 1);
}

#[tokio::test]
async fn requests_get_separate_connections_after_a_response_body_breaks_the_connection() {
    let origin = scripted(|_, received| match received.kind {
        HEADERS => {
            let head = frame(HEADERS, END_HEADERS, received.stream, STATUS);
            [head, frame(DATA, 0, received.stream, b"some"), injected(received.stream)].concat()
        }
        _ => Vec::new(),
    });
    let upstream = origin.upstream();
    let response = soon(upstream.forward(request("GET", "/"))).await;
    assert_eq!(response.status(), 200);
    assert!(soon(response.into_body().collect()).await.is_err());
    assert!(upstream.0.shared.connection_limit.are_requests_separate());
}

#[tokio::test]
async fn a_get_whose_response_cannot_be_read_is_sent_to_another_server() {
    let bad = scripted(|_, received| if received.kind == HEADERS { injected(received.stream) } else { Vec::new() });
    let good = Http2Origin::start(|_, respond| async move { answer(respond, "ok") });
    let (upstream, events) = watched_in(HttpVersions::Http2, [bad.address, good.address], |_| {});
    assert_eq!(statuses(&upstream, ["GET", "GET", "HEAD", "GET"]).await, [200; 4]);
    assert_eq!(statuses(&upstream, ["POST"; 4]).await, [502, 200, 502, 200]);
    assert_eq!(times_reported(&events, "ejected"), 0, "{events:?}");
}

#[tokio::test]
async fn a_burst_on_a_new_connection_respects_the_stream_limit_of_the_server() {
    let origin = Http2Origin::with(
        |builder| {
            builder.max_concurrent_streams(2);
        },
        |_, respond| async move {
            settled().await;
            answer(respond, "ok");
        },
    );
    let upstream = origin.upstream();
    assert_eq!(ended(burst(&upstream, "POST")).await, [200; 50]);
}

#[tokio::test]
async fn a_request_is_sent_at_most_twice() {
    let seen = shared::<AtomicUsize>();
    // The server answers only the first request of each connection. It closes the first connection
    // at the third request, and later connections at the second request.
    let origin = Origin::of_sockets(HttpVersions::Http2, move |number, socket| async move {
        let mut peer = Raw::new(socket);
        peer.bytes(24).await;
        let mut requests = 0;
        while requests < if number == 0 { 3 } else { 2 } {
            let received = peer.frame().await.unwrap();
            if received.kind != HEADERS {
                continue;
            }
            (requests, _) = (requests + 1, seen.fetch_add(1, Ordering::SeqCst));
            if requests == 1 {
                // Both frames are sent in one write. So a request that waits for one of the frames
                // comes after both frames.
                let answer = frame(HEADERS, END_HEADERS | 1, received.stream, &[0x88]);
                peer.send([frame(SETTINGS, 0, 0, &[]), answer].concat()).await;
            }
        }
    });
    let upstream = origin.upstream();
    assert_eq!(status(&upstream, "GET").await, 200);
    settled().await;
    let mut statuses = ended(burst(&upstream, "GET")).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 502]);
    assert_eq!(seen.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn a_connection_that_breaks_before_a_response_counts_as_one_failure() {
    let origin = Origin::start(|_, mut peer| async move {
        peer.send(frame(SETTINGS, 0, 0, &[])).await;
        // The server reads the preface, SETTINGS, the acknowledgement of its own SETTINGS, and then
        // as many bytes as five requests have.
        peer.bytes(24 + 9 + 9 + 5 * 20).await;
    });
    let (upstream, events) = watched_in(HttpVersions::Http2, [origin.address], |_| {});
    assert_eq!(ended(burst(&upstream, "POST")).await, [502; 5]);
    assert!(origin.connections() < 3, "{}", origin.connections());
    assert_eq!(times_reported(&events, "ejected"), 0, "{events:?}");
}

#[tokio::test]
async fn a_server_without_http_2_support_is_ejected() {
    let origin = Origin::start(|_, mut peer| async move {
        peer.bytes(24).await;
        peer.try_send("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n").await;
        peer.drain().await;
    });
    let (upstream, events) = watched_in(HttpVersions::Http2, [origin.address], |_| {});
    assert_eq!(statuses(&upstream, ["POST"; 3]).await, [502; 3]);
    event_detail(&events, "ejected").await;
}

#[tokio::test]
async fn a_silent_server_gets_one_ping_per_connection() {
    let pings = shared::<Mutex<HashMap<usize, usize>>>();
    let origin = scripted(move |connection, received| {
        if received.kind == PING && received.flags & ACK == 0 {
            *pings.lock().entry(connection).or_default() += 1;
        }
        Vec::new()
    });
    let upstream = origin.upstream_with(|limits| limits.response_header = MOMENT);
    // Requests are sent one after another, so that all use the same connection.
    let held = asking(&upstream, "GET");
    for _ in 0..4 {
        assert_eq!(status(&upstream, "GET").await, 504);
        tokio::time::sleep(MOMENT / 4).await;
    }
    soon(held).await.unwrap();
    let pings = pings.lock();
    assert!(pings.len() > 1 && pings.values().all(|times| *times == 1), "{pings:?}");
}
