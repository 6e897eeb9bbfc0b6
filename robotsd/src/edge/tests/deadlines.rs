//! Tests of deadlines for heads, bodies, idle connections, and clients that do not read.

use super::flood::{GREETING, PING, head};
use super::http2_stalls::until;
use super::*;
use crate::http_common::frames::{DATA, END_STREAM};
use crate::http_common::test_peer::frame;

#[tokio::test]
async fn a_silent_connection_is_closed() {
    let edge = ServedEdge::start(brief(|limits| limits.first_byte = MOMENT), service_fn(mirror));
    let opened = Instant::now();
    assert_eq!(edge.client().await.rest().await, "");
    assert!(opened.elapsed() >= MOMENT);
    edge.reports(ConnectionErrorKind::Slow).await;
}

#[tokio::test]
async fn a_connection_with_an_incomplete_head_is_closed_after_the_deadline() {
    // The deadline for heads applies while the first bytes may belong to either protocol.
    for begun in ["GET / HTTP/1.1\r\nHost: h\r\nX: ", "PRI * HT", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let limits = brief(|limits| (limits.first_byte, limits.header_read) = (HOUR, MOMENT));
        let edge = ServedEdge::start(limits, service_fn(mirror));
        let mut client = edge.client().await;
        let opened = Instant::now();
        client.send(begun).await;
        client.rest().await;
        assert!(opened.elapsed() >= MOMENT, "{begun:?}");
    }
}

#[tokio::test]
async fn an_idle_connection_has_a_longer_deadline_than_a_head() {
    let limits = brief(|limits| {
        limits.header_read = MOMENT;
        limits.keep_alive = MOMENT * 3;
    });
    let edge = ServedEdge::start(limits, service_fn(mirror));
    let mut client = edge.client().await;
    let asked = Instant::now();
    assert_eq!(client.ask(GET).await.status(), 200);
    assert_eq!(client.rest().await, "");
    assert!(asked.elapsed() >= MOMENT * 3, "{:?}", asked.elapsed());
    assert!(!edge.has_reported(ConnectionErrorKind::Slow));
}

#[tokio::test]
async fn a_request_body_that_stalls_fails_with_a_timeout() {
    let service = service_fn(|request: Request<RequestBody>| async {
        let status = match request.into_body().collect().await {
            Err(RequestBodyError::Idle) => StatusCode::REQUEST_TIMEOUT,
            _ => StatusCode::OK,
        };
        Ok(Response::builder().status(status).body(Empty::new()).unwrap())
    });
    let edge = ServedEdge::start(brief(|limits| limits.body_idle = MOMENT), service);
    let answer = edge.ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nab").await;
    assert_eq!(answer.status(), 408);
}

#[tokio::test]
async fn a_client_that_does_not_read_its_response_is_disconnected() {
    let (edge, dropped) = endless_once(brief(|limits| limits.body_idle = MOMENT));
    let _client = edge.sent("GET /endless HTTP/1.1\r\nHost: h\r\n\r\n").await;
    soon(dropped).await.unwrap_err();
    edge.reports(ConnectionErrorKind::Broken).await;
}

#[tokio::test]
async fn an_unread_http_2_stream_ends_without_ending_its_connection() {
    let (edge, dropped) = endless_once(brief(|limits| limits.body_idle = MOMENT));
    let mut client = edge.http2().await;
    let (untaken, _) = client.begin(get("http://h.test/endless"), true).await;
    let untaken = untaken.await.unwrap();
    soon(dropped).await.unwrap_err();
    assert_eq!(client.ask(get("http://h.test/other")).await.unwrap().status(), 200);
    assert!(bytes(untaken.into_body()).await.is_err(), "a cut stream must not look complete");
}

#[tokio::test]
async fn pings_do_not_start_the_head_deadline_of_an_idle_http_2_connection() {
    let edge = ServedEdge::start(brief(|limits| limits.header_read = MOMENT), service_fn(mirror));
    // The first request arrives together with the preface, so that the deadline for heads cannot
    // pass before the request. Afterwards, only long deadlines apply.
    let mut client = edge.sent([GREETING, &head(2, END_STREAM, 1)].concat()).await;
    until(&mut client, DATA, 1).await;
    let answered = Instant::now();
    // A PING is not the start of a head, so the deadline for heads does not apply.
    while answered.elapsed() < MOMENT * 3 {
        client.send(frame(PING, 0, 0, &[0; 8])).await;
        until(&mut client, PING, 0).await;
        tokio::time::sleep(MOMENT / 5).await;
    }
    client.send(head(2, END_STREAM, 3)).await;
    until(&mut client, DATA, 3).await;
}

#[tokio::test]
async fn an_idle_http_2_connection_ends_without_an_error() {
    let edge = ServedEdge::start(brief(|limits| limits.keep_alive = MOMENT), service_fn(mirror));
    let mut client = edge.http2().await;
    client.ask(get("http://h.test/")).await.unwrap();
    soon(client.connected).await.unwrap().unwrap();
    assert!(!edge.has_reported(ConnectionErrorKind::Slow));
}
