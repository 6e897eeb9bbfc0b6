//! Tests of SPOP, with the bytes that HAProxy sends.

use std::convert::Infallible;
use std::time::Duration;

use http_body_util::Full;
use tokio::sync::Semaphore;
use tower::service_fn;

use super::frames::{
    self, HaproxyFrame, MAX_FRAME_BYTES, SpopError, push_integer, push_number, push_string, push_text, split_integer,
};
use super::*;
use crate::edge::test_edge::ServedEdge;
use crate::edge::{EdgeLimits, ListenerSettings};
use crate::http_common::test_peer::Raw;

const HELLO: u8 = 1;
const DISCONNECT: u8 = 2;
const NOTIFY: u8 = 3;

fn frame(kind: u8, flags: u32, stream: u64, number: u64, payload: &[u8]) -> Vec<u8> {
    let mut body = [&[kind][..], &flags.to_be_bytes()].concat();
    push_integer(&mut body, stream);
    push_integer(&mut body, number);
    body.extend_from_slice(payload);
    [&(body.len() as u32).to_be_bytes()[..], &body].concat()
}

fn hello(versions: &[u8], max_frame_size: u32, more: &[u8]) -> Vec<u8> {
    let mut items = Vec::new();
    push_string(&mut items, b"supported-versions");
    push_text(&mut items, versions);
    push_string(&mut items, b"max-frame-size");
    push_number(&mut items, max_frame_size);
    push_string(&mut items, b"capabilities");
    push_text(&mut items, b"pipelining, async");
    [&items[..], more].concat()
}

/// Builds a message whose only argument is the target of a request.
fn message(target: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    push_string(&mut message, b"question");
    message.push(2);
    push_string(&mut message, b"address");
    message.extend_from_slice(&[6, 192, 0, 2, 1]);
    push_string(&mut message, b"target");
    push_text(&mut message, target);
    message
}

#[test]
fn integers_are_encoded_and_decoded_in_the_format_of_haproxy() {
    for (number, bytes) in [
        (0, &[0][..]),
        (239, &[239]),
        (240, &[240, 0]),
        (2287, &[255, 127]),
        (2288, &[240, 128, 0]),
        (264_431, &[255, 255, 127]),
        (264_432, &[240, 128, 128, 0]),
    ] {
        let mut written = Vec::new();
        push_integer(&mut written, number);
        assert_eq!(written, bytes, "{number}");
        assert_eq!(split_integer(bytes), Some((number, &[][..])));
        assert_eq!(split_integer(&bytes[..bytes.len() - 1]), None);
    }
    for number in [u64::from(u32::MAX), u64::MAX] {
        let mut written = Vec::new();
        push_integer(&mut written, number);
        assert_eq!(split_integer(&written), Some((number, &[][..])));
    }
    assert_eq!(split_integer(&[0xFF; 20]), None);
}

#[test]
fn a_failed_handshake_reports_which_item_is_missing_or_invalid() {
    let agreed = frames::agree(&hello(b"1.0, 2.0", 16_380, b"")).unwrap();
    assert_eq!((agreed.max_frame_size, agreed.has_pipelining, agreed.is_health_check), (16_380, true, false));
    assert_eq!(frames::agree(&hello(b"2.0", u32::MAX, b"")).unwrap().max_frame_size, MAX_FRAME_BYTES);
    let mut check = Vec::new();
    push_string(&mut check, b"healthcheck");
    check.push(0x11);
    assert!(frames::agree(&hello(b"2.0", 256, &check)).unwrap().is_health_check);
    let status = |payload: &[u8]| frames::agree(payload).unwrap_err().status;
    assert_eq!(status(&hello(b"1.0", 16_380, b"")), 8);
    assert_eq!(status(&hello(b"2.0", 255, b"")), 9);
    assert_eq!(status(b""), 5);
    assert_eq!(status(b"\x01"), 4);
    let mut version = Vec::new();
    push_string(&mut version, b"supported-versions");
    push_text(&mut version, b"2.0");
    assert_eq!(status(&version), 6);
}

#[test]
fn a_frame_is_read_only_after_it_has_arrived_completely() {
    let whole = frame(NOTIFY, 1, 300, 7, b"payload");
    for cut in 0..whole.len() {
        let mut bytes = BytesMut::from(&whole[..cut]);
        assert_eq!(frames::take(&mut bytes, MAX_FRAME_BYTES), Ok(None), "{cut}");
    }
    let mut bytes = BytesMut::from(&[&whole[..], &whole[..3]].concat()[..]);
    let taken = frames::take(&mut bytes, MAX_FRAME_BYTES).unwrap();
    assert_eq!(taken, Some(HaproxyFrame::Notify { stream: 300, frame: 7, payload: Bytes::from_static(b"payload") }));
    assert_eq!(bytes.len(), 3);
    let error = |bytes: &[u8]| frames::take(&mut BytesMut::from(bytes), 256).unwrap_err();
    assert_eq!(error(&257u32.to_be_bytes()), SpopError::TOO_BIG);
    assert_eq!(error(&frame(NOTIFY, 0, 1, 1, b"")).status, 10);
    assert_eq!(error(&frame(0, 1, 1, 1, b"")).status, 10);
    assert_eq!(error(&[0, 0, 0, 1, NOTIFY]), SpopError::INVALID);
}

#[test]
fn variables_that_do_not_fit_into_a_frame_are_left_out() {
    let mut variables = VariableList::of_frame(256);
    variables.text("first", &[b'x'; 150]);
    variables.text("second", &[b'y'; 150]);
    variables.number("third", 3);
    let mut out = Vec::new();
    frames::push_ack(&mut out, u64::MAX, u64::MAX, &variables);
    assert!(out.len() <= 4 + 256, "{}", out.len());
    let has = |name: &[u8]| memchr::memmem::find(&out, name).is_some();
    assert!(has(b"first") && !has(b"second") && has(b"third"));
}

/// Starts an edge whose service answers with the question that it received, and connects a client.
async fn edge(limits: EdgeLimits) -> (Raw, ServedEdge) {
    edge_that_waits(limits, Arc::new(Semaphore::new(Semaphore::MAX_PERMITS))).await
}

fn no_permits() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(0))
}

/// Connects a client that completes the handshake.
async fn greeted(limits: EdgeLimits, permits: Arc<Semaphore>) -> (Raw, ServedEdge) {
    let (mut client, edge) = edge_that_waits(limits, permits).await;
    client.send(frame(HELLO, 1, 0, 0, &hello(b"2.0", 16_380, b""))).await;
    assert_eq!(next(&mut client).await.0, 101);
    (client, edge)
}

/// Starts an edge that answers as many questions as there are permits. `/quick` needs no permit.
async fn edge_that_waits(limits: EdgeLimits, permits: Arc<Semaphore>) -> (Raw, ServedEdge) {
    let messages = SpopMessages {
        request: |arguments| {
            let target = arguments.bytes(b"target").unwrap_or(b"/none");
            Request::builder().uri(target).header("host", "a.test").body(()).unwrap()
        },
        variables: |response, variables| variables.text("body", response.body()),
    };
    let service = service_fn(move |request: Request<RequestBody>| {
        let permits = Arc::clone(&permits);
        async move {
            if request.uri().path() != "/quick" {
                permits.acquire().await.unwrap().forget();
            }
            Ok::<_, Infallible>(Response::new(Full::from(format!("asked {}", request.uri()))))
        }
    });
    let settings = ListenerSettings { messages: Some(messages), ..ListenerSettings::default() };
    let edge = ServedEdge::start_behind(settings, limits, service);
    (edge.client().await, edge)
}

/// Returns the type of the next frame, and the bytes after its flags.
async fn next(client: &mut Raw) -> (u8, Vec<u8>) {
    let length = client.bytes(4).await.try_into().map(u32::from_be_bytes).unwrap();
    let mut frame = client.bytes(length as usize).await;
    let rest = frame.split_off(5);
    (frame[0], rest)
}

async fn ended(client: &mut Raw) -> bool {
    client.rest().await.is_empty()
}

fn has(bytes: &[u8], text: &str) -> bool {
    memchr::memmem::find(bytes, text.as_bytes()).is_some()
}

#[tokio::test]
async fn pipelined_decision_requests_are_answered_even_if_they_arrive_in_pieces() {
    let (mut client, _) = edge(EdgeLimits::default()).await;
    let mut bytes = frame(HELLO, 1, 0, 0, &hello(b"2.0", 16_380, b""));
    bytes.extend(frame(NOTIFY, 1, 300, 1, &message(b"/first")));
    // This frame type is unknown. A future version of SPOP might define it.
    bytes.extend(frame(77, 1, 0, 0, b"?"));
    bytes.extend(frame(NOTIFY, 1, 301, 2, &message(b"/second")));
    let (before, after) = bytes.split_at(bytes.len() - 9);
    client.send(before).await;
    let (kind, items) = next(&mut client).await;
    assert!(kind == 101 && has(&items, "version") && has(&items, "pipelining") && !has(&items, "async"), "{items:?}");
    let (kind, first) = next(&mut client).await;
    // The ACK contains the stream and frame numbers of the question, and then the variable.
    assert!(kind == 103 && first.starts_with(&[252, 3, 1, 1, 3, 2]) && has(&first, "asked /first"), "{first:?}");
    client.send(after).await;
    assert!(has(&next(&mut client).await.1, "asked /second"));
    client.send(frame(DISCONNECT, 1, 0, 0, b"")).await;
    assert_eq!(next(&mut client).await.0, 102);
    assert!(ended(&mut client).await);
}

/// For example, a question that waits for a rate store must not delay questions that need no store.
#[tokio::test]
async fn a_waiting_decision_request_does_not_delay_other_decision_requests() {
    let permits = no_permits();
    let (mut client, mut edge) = greeted(EdgeLimits::default(), Arc::clone(&permits)).await;
    let ask = |number: u64, target: &[u8]| frame(NOTIFY, 1, 300, number, &message(target));
    client.send([ask(1, b"/waits"), ask(2, b"/quick")].concat()).await;
    assert!(has(&next(&mut client).await.1, "asked /quick"));
    permits.add_permits(1);
    assert!(has(&next(&mut client).await.1, "asked /waits"));
    // Sends more questions than may wait at the same time. The other questions are processed later.
    let many: Vec<u8> = (1..=200).flat_map(|number| ask(number, b"/waits")).collect();
    client.send(many).await;
    permits.add_permits(200);
    for _ in 0..200 {
        assert_eq!(next(&mut client).await.0, 103);
    }
    // The last question is answered before the connection ends.
    client.send([ask(1, b"/waits"), ask(2, b"/quick")].concat()).await;
    assert!(has(&next(&mut client).await.1, "asked /quick"));
    edge.begin_shutdown();
    permits.add_permits(1);
    assert_eq!([next(&mut client).await.0, next(&mut client).await.0], [103, 102]);
}

#[tokio::test]
async fn a_protocol_violation_ends_the_connection_with_an_explanation() {
    let greeting = frame(HELLO, 1, 0, 0, &hello(b"2.0", 16_380, b""));
    let big = [&[0, 1, 0, 1][..], &[0; 16]].concat();
    for (bytes, word) in [
        (frame(NOTIFY, 1, 1, 1, &message(b"/early")), "invalid"),
        ([&greeting[..], &greeting].concat(), "invalid"),
        ([&greeting[..], &frame(NOTIFY, 1, 1, 1, b"\x05ab")].concat(), "invalid"),
        (frame(HELLO, 1, 0, 0, &hello(b"3.0", 16_380, b"")), "2.0"),
        (big, "big"),
    ] {
        let (mut client, _) = edge(EdgeLimits::default()).await;
        client.send(bytes).await;
        let mut answer = next(&mut client).await;
        if answer.0 == 101 {
            answer = next(&mut client).await;
        }
        assert!(answer.0 == 102 && has(&answer.1, word), "{word}: {answer:?}");
        assert!(ended(&mut client).await);
    }
}

#[tokio::test]
async fn a_connection_ends_after_a_health_check_a_timeout_or_a_shutdown() {
    let (mut client, _) = edge(EdgeLimits::default()).await;
    let mut check = Vec::new();
    push_string(&mut check, b"healthcheck");
    check.push(0x11);
    client.send(frame(HELLO, 1, 0, 0, &hello(b"2.0", 16_380, &check))).await;
    assert_eq!(next(&mut client).await.0, 101);
    assert!(ended(&mut client).await);

    let moment = Duration::from_millis(150);
    let limits = EdgeLimits { header_read: moment, keep_alive: moment, ..EdgeLimits::default() };
    let (mut client, _) = edge(limits.clone()).await;
    client.send([0, 0, 0, 40, 1]).await;
    assert!(has(&next(&mut client).await.1, "timeout") && ended(&mut client).await);
    let (mut client, _) = greeted(limits, no_permits()).await;
    assert!(has(&next(&mut client).await.1, "normal") && ended(&mut client).await);

    let (mut client, mut edge) = greeted(EdgeLimits::default(), no_permits()).await;
    edge.begin_shutdown();
    assert!(has(&next(&mut client).await.1, "normal") && ended(&mut client).await);
}

#[tokio::test]
async fn a_frame_that_arrives_slowly_must_be_complete_before_the_deadline() {
    let limits = EdgeLimits { header_read: Duration::from_millis(200), ..EdgeLimits::default() };
    let (mut client, _) = greeted(limits, no_permits()).await;
    client.send(1000u32.to_be_bytes()).await;
    for _ in 0..900 {
        client.send([NOTIFY]).await;
        if tokio::time::timeout(Duration::from_millis(20), client.some()).await.is_ok() {
            assert!(has(&next(&mut client).await.1, "timeout"));
            return;
        }
    }
    panic!("a frame takes as long as its client likes");
}

#[tokio::test]
async fn a_shutdown_ends_a_connection_that_always_has_a_waiting_decision_request() {
    let permits = no_permits();
    let (mut client, mut edge) = greeted(EdgeLimits::default(), Arc::clone(&permits)).await;
    let question = frame(NOTIFY, 1, 300, 1, &message(b"/x"));
    client.send(&question).await;
    edge.begin_shutdown();
    for _ in 0..1000 {
        // While a question waits, the next one arrives. Sending fails once the connection is
        // closed.
        client.try_send(&question).await;
        tokio::task::yield_now().await;
        permits.add_permits(1);
        let (kind, items) = next(&mut client).await;
        if kind == 102 {
            assert!(has(&items, "normal"), "{items:?}");
            return;
        }
        assert_eq!(kind, 103);
    }
    panic!("the connection goes on");
}

/// SPOP is an invalid request on a listener without SPOP, or after an HTTP request.
#[tokio::test]
async fn spop_is_rejected_on_a_connection_that_has_used_http() {
    let (mut client, _) = edge(EdgeLimits::default()).await;
    client.send(b"GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    assert_eq!(client.message().await.body, "asked /x");
    client.send(frame(HELLO, 1, 0, 0, &hello(b"2.0", 16_380, b""))).await;
    let rest = client.rest().await;
    assert!(!rest.contains("pipelining"), "{rest:?}");
}
