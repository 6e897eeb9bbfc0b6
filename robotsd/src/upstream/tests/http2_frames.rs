//! Tests of frames that an HTTP/2 server must not send. No client may receive them as a response.

use super::http2::upstream_to;
use super::*;
use crate::http_common::frames::{END_HEADERS, END_STREAM};
use crate::http_common::test_peer::{field, frame};

/// The field `:status: 200` as an index of HPACK's static table.
pub(super) const STATUS: &[u8] = &[0x88];

fn headers(flags: u8, fields: &[&[u8]]) -> Vec<u8> {
    frame(1, END_HEADERS | flags, 1, &fields.concat())
}

/// Starts a server that sends these bytes after the head of any request.
fn saying(bytes: Vec<u8>) -> Origin {
    Origin::start(move |_, mut peer| {
        let bytes = bytes.clone();
        async move {
            peer.send(frame(4, 0, 0, &[])).await;
            // The server reads the preface, and at least the header of one frame.
            peer.bytes(24 + 9).await;
            peer.try_send(&bytes).await;
            peer.drain().await;
        }
    })
}

/// Forwards an HTTP/1.1 request to a server that sends `bytes`. Returns the status and the body of
/// the response. The body is `None` if the response was cut off.
async fn through(bytes: Vec<u8>) -> (u16, Option<String>) {
    let origin = saying(bytes);
    let upstream = upstream_to([origin.address], |limits| limits.response_header = Duration::from_secs(2));
    let response = soon(upstream.forward(request("GET", "/"))).await;
    let status = response.status().as_u16();
    let body = soon(response.into_body().collect()).await;
    (status, body.ok().map(|body| String::from_utf8(body.to_bytes().to_vec()).unwrap()))
}

#[tokio::test]
async fn a_valid_http_2_response_is_passed_on() {
    let bytes = [headers(0, &[STATUS, &field("content-length", "2")]), frame(0, END_STREAM, 1, b"ok")].concat();
    assert_eq!(through(bytes).await, (200, Some("ok".to_owned())));
    // The response after the interim response is the response to the request.
    let interim = [headers(0, &[&field(":status", "103")]), headers(END_STREAM, &[STATUS])].concat();
    assert_eq!(through(interim).await, (200, Some(String::new())));
    // No body follows a 304 response, whatever length it declares.
    let unmodified = headers(END_STREAM, &[&field(":status", "304"), &field("content-length", "5")]);
    assert_eq!(through(unmodified).await, (304, Some(String::new())));
}

/// Further heads are tested in `http2_bad_streams`, with their effects on the stream and the
/// connection.
#[tokio::test]
async fn a_response_head_that_http_1_1_would_read_differently_is_rejected() {
    let switch = [headers(0, &[&field(":status", "101")]), headers(END_STREAM, &[STATUS])].concat();
    assert_eq!(through(switch).await.0, 502);
    let without_body = headers(END_STREAM, &[STATUS, &field("content-length", "5")]);
    assert_eq!(through(without_body).await.0, 502);
}

#[tokio::test]
async fn floods_of_frames_end_the_connection_and_not_the_process() {
    let interim = headers(0, &[&field(":status", "103")]).repeat(10_000);
    assert_eq!(through(interim).await.0, 502);
    let large: Vec<Vec<u8>> = (0..4000).map(|at| field("x-a", &format!("{at:0>120}"))).collect();
    let head = frame(1, 0, 1, &[STATUS].concat());
    let pieces = large.chunks(100).map(|chunk| frame(9, 0, 1, &chunk.concat())).collect::<Vec<_>>().concat();
    let oversize = [head, pieces, frame(9, END_HEADERS, 1, &field("x-b", "1"))].concat();
    assert_eq!(through(oversize).await.0, 502);
    // A field section that never ends.
    let endless = [frame(1, 0, 1, STATUS), frame(9, 0, 1, &[]).repeat(100_000)].concat();
    assert_eq!(through(endless).await.0, 502);
    // More content than the window allows.
    let beyond = [headers(0, &[STATUS]), frame(0, 0, 1, &[b'x'; 16 * 1024]).repeat(64)].concat();
    assert_eq!(through(beyond).await, (200, None));
    // PING, SETTINGS and PRIORITY frames.
    for (kind, payload) in [(6, &[0; 8][..]), (4, &[]), (2, &[0; 5])] {
        let stream = u32::from(kind == 2);
        let flood = [frame(kind, 0, stream, payload).repeat(200_000), headers(END_STREAM, &[STATUS])].concat();
        let origin = saying(flood);
        let upstream = upstream_to([origin.address], |limits| limits.idle_timeout = Duration::from_secs(3600));
        assert_eq!(status(&upstream, "GET").await, 502, "{kind}");
        wait_until(|| open_connections(&upstream) == 0).await;
        assert_eq!(origin.connections(), 1, "{kind}");
    }
}
