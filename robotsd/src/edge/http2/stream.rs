//! Serves one request on an HTTP/2 stream and sends its response (RFC 9113, section 8).

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::header::{CONTENT_LENGTH, DATE, HeaderMap};
use http::{Response, response};
use http_body::Body;

use super::stream_timeout::StreamConsumer;
use crate::edge::http1_fast::DateClock;
use crate::edge::request::response_body::Framing;
use crate::http_common::{InterimClient, interim, yield_before_write};

/// Serves one stream: waits for the service's response and sends it. Stops if the client resets the
/// stream. If the response is complete before the request, the stream is reset, so that the client
/// does not send the rest of its request.
pub(crate) async fn serve<B: Body<Data = Bytes>>(
    answering: impl Future<Output = Response<B>>,
    mut respond: SendResponse<Bytes>,
    consumer: StreamConsumer,
    is_head: bool,
    clock: Option<Arc<DateClock>>,
) {
    let Some(response) = answer(answering, &mut respond, &consumer).await else { return };
    let (mut head, body) = response.into_parts();
    let framing = Framing::new(&mut head, &body, is_head);
    complete_head(&mut head, framing, clock.as_deref());
    let left = match framing {
        Framing::Absent { .. } | Framing::Length { bytes: 0, .. } => Some(0),
        Framing::Length { bytes, .. } => Some(bytes),
        Framing::Chunked => None,
    };
    // An empty body may be followed by trailers.
    let is_whole = matches!(framing, Framing::Absent { .. }) || left == Some(0) && body.is_end_stream();
    match respond.send_response(Response::from_parts(head, ()), is_whole) {
        Ok(stream) if !is_whole => send_body(body, stream, left, &consumer).await,
        Ok(_) => consumer.is_ended.set(true),
        Err(_) => respond.send_reset(Reason::INTERNAL_ERROR),
    }
}

/// Sends the interim responses as they arrive, and returns the final response. Returns `None` if
/// the client has reset the stream.
async fn answer<R>(
    answering: impl Future<Output = R>,
    respond: &mut SendResponse<Bytes>,
    consumer: &StreamConsumer,
) -> Option<R> {
    let mut answering = pin!(answering);
    let (mut sent, mut bytes) = (0, 0);
    poll_fn(|cx| {
        let answered = answering.as_mut().poll(cx);
        // A reset is detected here only while there is no response. Later, sending the response
        // fails if the client has reset the stream.
        if answered.is_pending() && respond.poll_reset(cx).is_ready() {
            return Poll::Ready(None);
        }
        let queue = consumer.interim();
        if queue.is_waiting() {
            while let Some(head) = queue.take() {
                sent += 1;
                bytes += interim::size(&head);
                // `h2` buffers the interim responses that the client does not accept. So the limits
                // of the interim queue apply to all interim responses of a request together.
                if sent <= interim::WAITING && bytes <= interim::WAITING_OCTETS {
                    // An error here is ignored: it concerns the whole stream or connection, so
                    // sending the final response will fail, too.
                    let _ = respond.send_informational(head);
                }
            }
            queue.note_written();
        }
        answered.map(Some)
    })
    .await
}

fn complete_head(head: &mut response::Parts, framing: Framing, clock: Option<&DateClock>) {
    // An empty body needs no `Content-Length`, because END_STREAM already shows its length.
    if let Framing::Length { bytes: bytes @ 1.., is_in_head: false } | Framing::Absent { length: Some(bytes) } = framing
    {
        head.headers.insert(CONTENT_LENGTH, bytes.into());
    }
    if let Some(clock) = clock.filter(|_| !head.headers.contains_key(DATE)) {
        head.headers.insert(DATE, clock.value());
    }
}

/// Sends a body. If the body is shorter or longer than its declared length `left`, the stream is
/// reset. Without the reset, the client would consider the body complete.
async fn send_body<B>(body: B, mut stream: SendStream<Bytes>, mut left: Option<u64>, consumer: &StreamConsumer)
where
    B: Body<Data = Bytes>,
{
    let mut body = pin!(body);
    loop {
        let step = poll_fn(|cx| {
            let frame = body.as_mut().poll_frame(cx);
            // A reset by the client is checked here only if there is no frame to send. If there is
            // a frame, sending it fails after a reset.
            if frame.is_pending() && stream.poll_reset(cx).is_ready() {
                return Poll::Ready(BodyStep::Reset);
            }
            Poll::Ready(match ready!(frame) {
                None => BodyStep::Ended(None),
                Some(Err(_)) => BodyStep::Failed,
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => BodyStep::Data(data),
                    Err(frame) => frame
                        .into_trailers()
                        .map_or(BodyStep::Data(Bytes::new()), |fields| BodyStep::Ended(Some(fields))),
                },
            })
        })
        .await;
        let data = match step {
            BodyStep::Reset => return,
            BodyStep::Data(data) => data,
            BodyStep::Ended(trailers) if left.unwrap_or(0) == 0 => {
                let end = match trailers {
                    Some(fields) => stream.send_trailers(fields),
                    None => stream.send_data(Bytes::new(), true),
                };
                if end.is_ok() {
                    consumer.is_ended.set(true);
                }
                return;
            }
            BodyStep::Ended(_) | BodyStep::Failed => return stream.send_reset(Reason::INTERNAL_ERROR),
        };
        if let Some(left) = &mut left {
            let Some(rest) = left.checked_sub(data.len() as u64) else {
                return stream.send_reset(Reason::INTERNAL_ERROR);
            };
            *left = rest;
        }
        let is_last = left.unwrap_or(0) == 0 && body.is_end_stream();
        if data.is_empty() && !is_last {
            continue;
        }
        if !data.is_empty() && !wait_for_capacity(&mut stream, consumer).await {
            return;
        }
        let bytes = data.len();
        if stream.send_data(data, is_last).is_err() {
            return;
        }
        consumer.note_sent(bytes);
        if is_last {
            return consumer.is_ended.set(true);
        }
    }
}

enum BodyStep {
    Data(Bytes),
    Ended(Option<HeaderMap>),
    Failed,
    Reset,
}

/// Waits until the client accepts more bytes. Must be called only if there is something to send,
/// because other streams cannot use a window that is reserved for this stream. The client counts as
/// stalled during the wait, even if the body was polled before the wait.
async fn wait_for_capacity(stream: &mut SendStream<Bytes>, consumer: &StreamConsumer) -> bool {
    stream.reserve_capacity(1);
    if stream.capacity() == 0 {
        // The buffer of the stream may still contain bytes that the connection has not sent yet.
        // The buffer may have room after the other tasks have run.
        consumer.polled();
        yield_before_write().await;
    }
    consumer.note_frame_returned();
    let has_room = poll_fn(|cx| {
        while stream.capacity() == 0 {
            match ready!(stream.poll_capacity(cx)) {
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Poll::Ready(false),
            }
        }
        Poll::Ready(true)
    })
    .await;
    consumer.polled();
    has_room
}
