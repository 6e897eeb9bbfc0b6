//! The effects of one client or one answer on a connection of HTTP/2 that others use too.

use std::collections::HashMap;

use parking_lot::Mutex;

use super::http2::{Http2Origin, answer, are_quick, endless, unread};
use super::*;
use crate::exchange::frames::{ACK, DATA, END_HEADERS, HEADERS, RST_STREAM, SETTINGS};
use crate::exchange::test_peer::{RawFrame, frame};

const PING: u8 = 6;

/// A server that answers each frame, on the connection of this number, by a script. SETTINGS and PING are answered in any case.
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
async fn clients_that_cancel_end_no_stream_of_others() {
    let cancelled = shared::<AtomicUsize>();
    let origin = scripted(move |_, received| match received.kind {
        HEADERS => {
            [frame(HEADERS, END_HEADERS, received.stream, &[0x88]), frame(DATA, 0, received.stream, b"some")].concat()
        }
        // As if it had been under way: on the stream, and for the first of all.
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
    let mut octets = 0;
    while octets < 4 + 300 * 4 {
        octets += soon(kept.frame()).await.unwrap().unwrap().into_data().unwrap().len();
    }
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn small_pieces_that_a_client_does_not_read_end_no_stream_of_others() {
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
async fn empty_pieces_of_many_responses_neither_end_nor_retire_a_connection() {
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
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn a_burst_on_a_cold_connection_keeps_to_what_the_server_takes() {
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
    // Answers the first request of each connection, and closes the first connection at the third and others at the second.
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
                // Together, so that a request which waits for the one comes after the other.
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
async fn a_connection_that_breaks_before_an_answer_is_one_failure() {
    let origin = Origin::start(|_, mut peer| async move {
        peer.send(frame(SETTINGS, 0, 0, &[])).await;
        // The preface, SETTINGS and its acknowledgement, and then as much as five requests have.
        peer.bytes(24 + 9 + 9 + 5 * 20).await;
    });
    let (upstream, events) = watched_in(HttpVersions::Http2, [origin.address], |_| {});
    assert_eq!(ended(burst(&upstream, "POST")).await, [502; 5]);
    assert!(origin.connections() < 3, "{}", origin.connections());
    assert_eq!(times_reported(&events, "ejected"), 0, "{events:?}");
}

#[tokio::test]
async fn a_server_that_speaks_no_http_2_is_put_out() {
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
async fn a_server_that_sends_nothing_gets_one_ping() {
    let pings = shared::<Mutex<HashMap<usize, usize>>>();
    let origin = scripted(move |connection, received| {
        if received.kind == PING && received.flags & ACK == 0 {
            *pings.lock().entry(connection).or_default() += 1;
        }
        Vec::new()
    });
    let upstream = origin.upstream_with(|limits| limits.response_header = MOMENT);
    // One request at a time, so that the connection is the same while it takes requests.
    let held = asking(&upstream, "GET");
    for _ in 0..4 {
        assert_eq!(status(&upstream, "GET").await, 504);
        tokio::time::sleep(MOMENT / 4).await;
    }
    soon(held).await.unwrap();
    let pings = pings.lock();
    assert!(pings.len() > 1 && pings.values().all(|times| *times == 1), "{pings:?}");
}
