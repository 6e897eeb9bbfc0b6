//! Tests of invalid responses from an HTTP/2 server. Some of them end their stream, and others end
//! the connection.

use super::http2::upstream_to;
use super::http2_frames::STATUS;
use super::*;
use crate::http_common::frames::{CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PADDED, RST_STREAM};
use crate::http_common::test_peer::{RawFrame, field, frame};

/// Number of the stream with the invalid response; the valid response is on [`SOUND`].
const BAD: u32 = 3;
const SOUND: u32 = 1;

/// Maximum size of a head, which is also the window of a stream, in bytes.
const HEAD_BYTES: usize = 64 * 1024;

fn head(flags: u8, fields: &[&[u8]]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | flags, BAD, &fields.concat())
}

fn ok() -> Vec<u8> {
    head(0, &[STATUS])
}

/// Builds a response: a head with these fields after the status, and a body.
fn with(fields: &[u8]) -> Vec<u8> {
    [head(0, &[STATUS, fields]), frame(DATA, END_STREAM, BAD, b"ok")].concat()
}

/// Returns the body of the valid response.
fn sound_body() -> Vec<u8> {
    (0..40_000_u32).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// The outcomes of two responses on the same connection: an invalid one and a valid one.
#[derive(Debug)]
struct Outcome {
    status: u16,
    is_whole: bool,
    is_sound_whole: bool,
    /// Whether the client reset the stream of the invalid response, or ended the connection.
    is_reset: bool,
    is_given_up: bool,
}

/// Sends `bytes` as a response, while a valid response on the same connection is half sent.
async fn beside(bytes: Vec<u8>) -> Outcome {
    let (seen, mut came) = mpsc::unbounded_channel();
    let origin = Origin::start(move |_, mut peer| {
        let (bytes, seen) = (bytes.clone(), seen.clone());
        async move {
            peer.send(frame(4, 0, 0, &[])).await;
            peer.bytes(24).await;
            let body = sound_body();
            loop {
                let Some(RawFrame { kind, stream, payload, .. }) = peer.frame().await else { return };
                if let (HEADERS, SOUND) = (kind, stream) {
                    let begun = [frame(HEADERS, END_HEADERS, SOUND, STATUS), frame(DATA, 0, SOUND, &body[..16_000])];
                    peer.send(begun.concat()).await;
                }
                if let (HEADERS, BAD) = (kind, stream) {
                    peer.try_send(&bytes).await;
                    let (middle, end) = (&body[16_000..32_000], &body[32_000..]);
                    let end = [frame(DATA, 0, SOUND, middle), frame(DATA, END_STREAM, SOUND, end)];
                    peer.try_send(end.concat()).await;
                }
                if seen.send((kind, stream, payload)).is_err() || kind == GOAWAY {
                    return;
                }
            }
        }
    });
    let upstream = upstream_to([origin.address], |limits| {
        (limits.body_idle, limits.buffer_bytes) = (Duration::from_secs(3), HEAD_BYTES);
    });
    let sound = soon(upstream.forward(request("GET", "/sound"))).await;
    assert_eq!(sound.status(), 200);
    // The request is a POST, because a GET would be repeated.
    let response = soon(upstream.forward(request("POST", "/bad"))).await;
    let status = response.status().as_u16();
    let body = soon(response.into_body().collect()).await;
    let sound = soon(sound.into_body().collect()).await;
    let is_sound_whole = sound.is_ok_and(|body| body.to_bytes() == sound_body());
    settled().await;
    let frames: Vec<_> = std::iter::from_fn(|| came.try_recv().ok()).collect();
    let is_reset = frames.iter().any(|(kind, stream, _)| (*kind, *stream) == (RST_STREAM, BAD));
    let is_given_up = frames.iter().any(|(kind, ..)| *kind == GOAWAY);
    Outcome { status, is_whole: body.is_ok(), is_sound_whole, is_reset, is_given_up }
}

/// Builds a head with this number of fields, each of 155 bytes.
fn large_head(fields: usize) -> Vec<u8> {
    let fields: Vec<Vec<u8>> = (0..fields).map(|at| field("x-a", &format!("{at:0>120}"))).collect();
    let pieces = fields.chunks(120).flat_map(|chunk| frame(CONTINUATION, 0, BAD, &chunk.concat()));
    let end = frame(CONTINUATION, END_HEADERS, BAD, &field("x-b", "1"));
    [frame(HEADERS, 0, BAD, STATUS), pieces.collect(), end].concat()
}

#[tokio::test]
async fn an_invalid_response_resets_only_its_own_stream() {
    let lengths = [field("content-length", "2"), field("content-length", "3")].concat();
    // These heads would have another meaning on HTTP/1.1, or are invalid.
    let heads: Vec<(&str, Vec<u8>)> = vec![
        ("no status", head(0, &[&field("x-a", "b")])),
        ("two statuses", with(STATUS)),
        ("connection", with(&field("connection", "close"))),
        ("transfer-encoding", with(&field("transfer-encoding", "chunked"))),
        ("upgrade", with(&field("upgrade", "websocket"))),
        ("keep-alive", with(&field("keep-alive", "timeout=5"))),
        ("te", with(&field("te", "gzip"))),
        ("a length that is no number", with(&field("content-length", "x"))),
        ("a length that is two", with(&field("content-length", "2, 3"))),
        ("two lengths", with(&lengths)),
        ("a head of 70 KiB", large_head(460)),
    ];
    let others: Vec<(&str, Vec<u8>)> = vec![
        ("a body longer than its length", with(&field("content-length", "1"))),
        ("a body shorter than its length", with(&field("content-length", "3"))),
        ("trailers that do not end it", [ok(), ok()].concat()),
        ("more than the window", [ok(), frame(DATA, 0, BAD, &[b'x'; 16_000]).repeat(9)].concat()),
        ("10,000 interim responses", head(0, &[&field(":status", "103")]).repeat(10_000)),
        ("a stream that depends on itself", frame(2, 0, BAD, &[0, 0, 0, 3, 0])),
    ];
    let mut wrong = Vec::new();
    let cases = heads.into_iter().map(|case| (case, true)).chain(others.into_iter().map(|case| (case, false)));
    for ((what, bytes), is_head) in cases {
        let outcome = beside(bytes).await;
        let is_told = outcome.status == 502 || !is_head && !outcome.is_whole;
        if !(is_told && outcome.is_sound_whole && outcome.is_reset && !outcome.is_given_up) {
            wrong.push((what, outcome));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// If h2 cannot parse a response, or a response exceeds h2's limits, the connection ends. The
/// client never gets a different response instead.
#[tokio::test]
async fn a_response_that_cannot_be_read_ends_the_connection() {
    let empty = |count: usize| frame(DATA, 0, BAD, &[]).repeat(count);
    let huffman = [&[0, 3][..], b"x-a", &[0x84, 0xff, 0xff, 0xff, 0xf3]].concat();
    // These heads would have another meaning on HTTP/1.1, or are invalid.
    let heads: Vec<(&str, Vec<u8>)> = vec![
        ("CR and LF in a value", with(&field("x-a", "b\r\nset-cookie: c=d"))),
        ("CR in a value", with(&field("x-a", "b\rc"))),
        ("LF in a value", with(&field("x-a", "b\nc"))),
        ("NUL in a value", with(&field("x-a", "b\0c"))),
        ("LF in a coded value", with(&huffman)),
        ("CR and LF in a name", with(&field("x-a\r\nb", "c"))),
        ("a colon in a name", with(&field("x-a:b", "c"))),
        ("capitals in a name", with(&field("X-A", "b"))),
        ("a space in a name", with(&field("x a", "b"))),
        ("an empty name", with(&field("", "b"))),
        ("an unknown pseudo-header", with(&field(":sent", "b"))),
        ("a status of letters", head(END_STREAM, &[&field(":status", "abc")])),
        ("a status of four digits", head(END_STREAM, &[&field(":status", "2000")])),
        ("a status below 100", head(END_STREAM, &[&field(":status", "099")])),
        ("a head of 250 KiB", large_head(1_600)),
        ("a head of 300 KiB", large_head(1_980)),
        ("a head of 3 MiB", large_head(20_000)),
        ("an index of nothing", head(0, &[&[0xff, 0x7f]])),
        ("a field that is cut", head(0, &[&[0x40, 0x05, b'a']])),
        ("DATA before the head", [frame(DATA, 0, BAD, b"ok"), ok()].concat()),
    ];
    let others: Vec<(&str, Vec<u8>)> = vec![
        ("101 DATA frames without bytes", [ok(), empty(101)].concat()),
        ("10,000 of them", [ok(), empty(10_000)].concat()),
        ("101 of padding alone", [ok(), frame(DATA, PADDED, BAD, &[3, 0, 0, 0]).repeat(101)].concat()),
        ("LF in the trailers", [ok(), head(END_STREAM, &[&field("x-a", "b\nc")])].concat()),
        ("WINDOW_UPDATE of nothing", frame(8, 0, BAD, &[0; 4])),
        ("PUSH_PROMISE", frame(5, END_HEADERS, BAD, &[0, 0, 0, 2, 0x82])),
        ("padding beyond the frame", [ok(), frame(DATA, PADDED, BAD, &[9, 0])].concat()),
        ("another frame in a field section", [frame(HEADERS, 0, BAD, STATUS), frame(DATA, 0, BAD, b"ok")].concat()),
        (
            "1,000 CONTINUATION frames",
            [frame(HEADERS, 0, BAD, STATUS), frame(CONTINUATION, 0, BAD, &[]).repeat(1_000)].concat(),
        ),
        ("HEADERS of no stream", frame(HEADERS, END_HEADERS, 99, STATUS)),
    ];
    let cases = heads.into_iter().map(|case| (case, true)).chain(others.into_iter().map(|case| (case, false)));
    for ((what, bytes), is_head) in cases {
        let outcome = beside(bytes).await;
        let is_told = outcome.status == 502 || !is_head && !outcome.is_whole;
        assert!(is_told && !outcome.is_sound_whole, "{what}: {outcome:?}");
    }
}
