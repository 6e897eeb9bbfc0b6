//! Tests of HTTP/2 frames without message content: a few are accepted, and a flood is not.

use h2::Reason;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::http_common::frames::{self, END_STREAM, RST_STREAM};
use crate::http_common::test_peer::frame;

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The HTTP/2 preface, followed by an empty SETTINGS frame.
pub(super) const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const ACK: u8 = 1;
const PRIORITY: u8 = 2;
pub(super) const PING: u8 = 6;
pub(super) const WINDOW_UPDATE: u8 = 8;

/// Builds the head of a `GET` (2) or `POST` (3) request with the scheme `http` and the host
/// `h.test`.
pub(super) fn request(method: u8, path: &str, flags: u8, stream: u32) -> Vec<u8> {
    let length = u8::try_from(path.len()).unwrap();
    let fields = [&[0x80 | method, 0x86, 4, length], path.as_bytes(), &[1, 6], b"h.test"].concat();
    frame(frames::HEADERS, frames::END_HEADERS | flags, stream, &fields)
}

pub(super) fn head(method: u8, flags: u8, stream: u32) -> Vec<u8> {
    request(method, "/", flags, stream)
}

pub(super) fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])
}

pub(super) fn window(stream: u32, bytes: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

/// Connects a client and sends the preface. The client can then send any frames.
pub(super) async fn framed(edge: &ServedEdge) -> Raw {
    edge.sent(GREETING).await
}

/// Reads up to a GOAWAY or the end of the connection. Returns whether there was a GOAWAY with
/// ENHANCE_YOUR_CALM, the error code for a flood. The GOAWAY may also contain an explanation.
pub(super) async fn is_sent_calm_down(client: &mut Raw) -> bool {
    let calm = u32::from(Reason::ENHANCE_YOUR_CALM).to_be_bytes();
    while let Some(received) = soon(client.frame()).await {
        if received.kind == frames::GOAWAY {
            return received.payload[4..].starts_with(&calm);
        }
    }
    false
}

async fn after_the_body(request: Request<RequestBody>) -> Result<Response<Empty<Bytes>>, Infallible> {
    let _ = request.into_body().collect().await;
    Ok(Response::new(Empty::new()))
}

#[tokio::test]
async fn a_flood_of_any_kind_of_frame_ends_the_connection() {
    let open = head(3, 0, 1);
    let ended = [head(2, END_STREAM, 1), reset(1)].concat();
    let floods = [
        ("PING", vec![], frame(PING, 0, 0, &[0; 8])),
        ("PING", vec![], frame(PING, ACK, 0, &[0; 8])),
        ("SETTINGS", vec![], frame(frames::SETTINGS, 0, 0, &[])),
        ("SETTINGS", open.clone(), frame(frames::SETTINGS, 0, 0, &[0, 4, 0, 0, 0x40, 0])),
        ("PRIORITY", vec![], frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 1])),
        ("WINDOW_UPDATE", vec![], window(0, 1)),
        ("WINDOW_UPDATE", open, window(1, 1)),
        ("RST_STREAM", ended, reset(1)),
        ("unknown", vec![], frame(0x42, 0, 0, &[7; 100])),
    ];
    for (name, begin, frame) in floods {
        let edge = ServedEdge::start(EdgeLimits::default(), service_fn(after_the_body));
        let mut client = framed(&edge).await;
        client.send(&begin).await;
        let flood = frame.repeat(4_000);
        let (mut read, mut write) = client.socket.split();
        // The client must read the answers; otherwise the connection would stall.
        let drained = async {
            let mut received = Vec::new();
            let mut room = [0; 4096];
            while let Ok(length @ 1..) = read.read(&mut room).await {
                received.extend(&room[..length]);
            }
            received
        };
        let flooded = async { write.write_all(&flood).await };
        let (received, _) = soon(async { tokio::join!(drained, flooded) }).await;
        assert!(
            received.ends_with(&u32::from(Reason::ENHANCE_YOUR_CALM).to_be_bytes()),
            "{name}: {:?}",
            &received[received.len().saturating_sub(34)..]
        );
        // If the client stayed connected, the edge would read from it for one more second.
        drop(client);
        edge.reports(ConnectionErrorKind::Flood).await;
        let messages = edge.messages().join("\n");
        assert!(messages.starts_with("flood 127.0.0.1:"), "{messages}");
        let want = format!("the client sent more {name} frames than its requests need");
        assert!(messages.contains(&want), "{messages}");
    }
}

/// The connection stalls when the edge has written only a part of a frame. Then the client floods
/// the connection, and reads only afterwards.
#[tokio::test]
async fn a_flooding_client_that_reads_late_still_receives_the_goaway() {
    let (edge, dropped) = endless_once(EdgeLimits::default());
    let mut client = framed(&edge).await;
    // The largest possible windows.
    client.send(&frame(frames::SETTINGS, 0, 0, &[0, 4, 0x7F, 0xFF, 0xFF, 0xFF])).await;
    client.send(&window(0, 0x7FFF_0000)).await;
    client.send(&request(2, "/endless", END_STREAM, 1)).await;
    tokio::time::sleep(MOMENT).await;
    client.try_send(&frame(PRIORITY, 0, 3, &[0, 0, 0, 0, 1]).repeat(80_000)).await;
    assert!(is_sent_calm_down(&mut client).await);
    drop(client);
    soon(dropped).await.unwrap_err();
    edge.reports(ConnectionErrorKind::Flood).await;
}

#[tokio::test]
async fn the_number_of_empty_data_frames_is_limited() {
    let edge = ServedEdge::start(EdgeLimits::default(), service_fn(after_the_body));
    let mut client = framed(&edge).await;
    client.send(&head(3, 0, 1)).await;
    client.try_send(&frame(frames::DATA, 0, 1, &[]).repeat(4_000)).await;
    assert!(is_sent_calm_down(&mut client).await);
}

#[tokio::test]
async fn the_number_of_requests_that_are_reset_at_once_is_limited() {
    // Each request opens a stream, which the client resets immediately.
    let edge = ServedEdge::start(EdgeLimits::default(), service_fn(mirror));
    let mut client = framed(&edge).await;
    let given_up = |stream| [head(2, END_STREAM, stream), reset(stream)].concat();
    let flood: Vec<u8> = (0..4_000).flat_map(|number| given_up(2 * number + 1)).collect();
    client.try_send(&flood).await;
    assert!(is_sent_calm_down(&mut client).await);
}

#[tokio::test]
async fn a_client_that_sends_many_small_window_updates_gets_its_download() {
    for (count, length) in [(512, 16 * 1024), (4_000, 20)] {
        let piece = move |_| Ok::<_, Infallible>(Frame::data(Bytes::from(vec![b'x'; length])));
        let service = service_fn(move |_| async move {
            Ok(Response::new(StreamBody::new(tokio_stream::iter((0..count).map(piece)))))
        });
        let edge = ServedEdge::start(EdgeLimits::default(), service);
        let mut client = framed(&edge).await;
        client.send(&head(2, END_STREAM, 1)).await;
        let (mut bytes, mut small) = (0, 0);
        loop {
            let received = soon(client.frame()).await.expect("an open connection");
            if received.kind != frames::DATA {
                assert!(received.kind != frames::GOAWAY && received.kind != RST_STREAM, "{received:?}");
                continue;
            }
            bytes += received.payload.len();
            if received.flags & END_STREAM != 0 {
                break;
            }
            // The client updates both windows for each KiB, and sends a PING for each DATA frame.
            let mut back = frame(PING, 0, 0, &[0; 8]);
            for at in (0..received.payload.len()).step_by(1024) {
                let piece = u32::try_from((received.payload.len() - at).min(1024)).unwrap();
                back.extend([window(0, piece), window(1, piece)].concat());
                small += 2;
            }
            client.send(&back).await;
        }
        assert_eq!(bytes, count * length);
        assert!(small > 2_000, "{small}");
        assert!(edge.reported.lock().is_empty());
    }
}

#[tokio::test]
async fn a_client_with_a_hundred_concurrent_streams_is_not_treated_as_a_flood() {
    let edge = ServedEdge::start(EdgeLimits::default(), service_fn(mirror));
    let mut client = framed(&edge).await;
    let mut stream = 1;
    for _ in 0..20 {
        let mut batch = Vec::new();
        for _ in 0..100 {
            // For each request, the client sends a priority and a larger window, as browsers did.
            batch.extend(head(2, END_STREAM, stream));
            batch.extend(frame(PRIORITY, 0, stream, &[0, 0, 0, 0, 9]));
            batch.extend(window(stream, 1 << 20));
            stream += 2;
        }
        client.send(&batch).await;
        let mut ended = 0;
        while ended < 100 {
            let received = soon(client.frame()).await.expect("an open connection");
            assert!(received.kind != frames::GOAWAY && received.kind != RST_STREAM, "{received:?}");
            if received.kind == frames::DATA {
                client.send(&window(0, u32::try_from(received.payload.len()).unwrap().max(1))).await;
                ended += usize::from(received.flags & END_STREAM != 0);
            }
        }
    }
    assert!(edge.reported.lock().is_empty());
}
