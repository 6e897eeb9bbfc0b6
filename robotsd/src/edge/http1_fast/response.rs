//! Writes responses as HTTP/1.1 on the fast path (RFC 9112).

use std::future::{Future as _, poll_fn};
use std::io::Write as _;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http::header::{CONNECTION, DATE};
use http::{Method, Request, response};
use http_body::Body;
use tower::BoxError;

use super::socket::{DateClock, FastSocket};
use crate::edge::request::request_id::RequestId;
use crate::edge::request::response_body::Framing;
use crate::edge::request::service::{RequestService, ResponseWriter};
use crate::edge::request::trusted::X_REQUEST_ID;
use crate::http_common::{EdgeService, RequestBody, Transfer, fields, yield_before_write};

/// Maximum size of a body that is copied into the buffer of the response head, in bytes. Head and
/// body are then written together. For small bodies, copying is cheaper than a vectored write.
const SMALL: usize = 4 * 1024;

pub(crate) enum AfterResponse {
    Next,
    Close,
    Gone,
    /// The response is incomplete. The connection must not be closed gracefully: otherwise, the
    /// client could consider the response complete.
    Broken(BoxError),
}

/// Answers a request. The service is called here and not by the caller, so that the large future of
/// the service is not moved.
pub(crate) async fn answer<S: EdgeService>(
    mut client: Box<FastSocket>,
    service: Arc<RequestService<S>>,
    request: Request<()>,
) -> (Box<FastSocket>, AfterResponse) {
    let is_head = request.method() == Method::HEAD;
    let (id, answering) = service.answer(request.map(|()| RequestBody::empty()), ResponseWriter::Fast);
    let mut answering = pin!(answering);
    let answered = poll_fn(|cx| match answering.as_mut().poll(cx) {
        Poll::Ready(response) => Poll::Ready(Ok(Some(response))),
        Poll::Pending => match client.poll_send_interim(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => client.poll_disconnected(cx).map(|()| Ok(None)),
        },
    });
    let response = match answered.await {
        Ok(Some(response)) => response,
        Ok(None) => return (client, AfterResponse::Gone),
        Err(error) => return (client, AfterResponse::Broken(error.into())),
    };
    client.take_interim();
    let (mut head, body) = response.into_parts();
    client.transfer = head.extensions.remove::<Transfer>();
    let is_stopped = client.stop.has_changed().unwrap_or(true);
    let framing = Framing::new(&mut head, &body, is_head);
    let clock = Arc::clone(&client.clock);
    let is_last = write_head(&mut client.out, &head, framing, is_stopped, (&id, &clock));
    yield_before_write().await;
    let after = match write_body(&mut client, pin!(body), framing).await {
        AfterResponse::Next if is_last => AfterResponse::Close,
        after => after,
    };
    client.transfer = None;
    (client, after)
}

/// Appends the head of a response to `out`, which may already contain interim responses. Returns
/// whether the connection ends after this response: because `is_last` is set, or because the
/// response contains `Connection: close`.
fn write_head(
    out: &mut Vec<u8>,
    head: &response::Parts,
    framing: Framing,
    mut is_last: bool,
    (id, clock): (&RequestId, &DateClock),
) -> bool {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(head.status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(head.status.canonical_reason().unwrap_or("<none>").as_bytes());
    out.extend_from_slice(b"\r\n");
    let mut has_date = false;
    for (name, value) in &head.headers {
        has_date |= name == DATE;
        // robotsd writes `Connection` and `X-Request-Id` itself.
        match *name {
            CONNECTION => is_last |= value.as_bytes().eq_ignore_ascii_case(b"close"),
            _ if name == X_REQUEST_ID => {}
            _ => fields::write_field(out, name, value.as_bytes()),
        }
    }
    fields::write_field(out, &X_REQUEST_ID, id.bytes());
    match framing {
        Framing::Length { bytes, is_in_head: false } | Framing::Absent { length: Some(bytes) } => {
            out.extend_from_slice(b"content-length: ");
            out.extend_from_slice(itoa::Buffer::new().format(bytes).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        Framing::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        _ => {}
    }
    if is_last {
        out.extend_from_slice(b"connection: close\r\n");
    }
    if !has_date {
        out.extend_from_slice(b"date: ");
        clock.write(out);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    is_last
}

async fn write_body<B>(client: &mut FastSocket, mut body: Pin<&mut B>, framing: Framing) -> AfterResponse
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    let mut left = match framing {
        Framing::Absent { .. } | Framing::Length { bytes: 0, .. } => {
            return client
                .send(Bytes::new())
                .await
                .map_or_else(|error| AfterResponse::Broken(error.into()), |()| AfterResponse::Next);
        }
        Framing::Length { bytes, .. } => Some(bytes),
        Framing::Chunked => None,
    };
    loop {
        let step = poll_fn(|cx| match body.as_mut().poll_frame(cx) {
            Poll::Ready(None) => Poll::Ready(BodyStep::End),
            Poll::Ready(Some(Err(error))) => Poll::Ready(BodyStep::Failed(error.into())),
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(BodyStep::Data(frame.into_data().unwrap_or_default())),
            // Bytes that are already available are sent before waiting for more of the body.
            Poll::Pending => match client.poll_send(cx, &mut Bytes::new()) {
                Poll::Ready(Err(error)) => Poll::Ready(BodyStep::Failed(error.into())),
                _ => client.poll_disconnected(cx).map(|()| BodyStep::Left),
            },
        })
        .await;
        let sent = match (step, &mut left) {
            (BodyStep::Left, _) => return AfterResponse::Gone,
            (BodyStep::Failed(error), _) => {
                // If the body fails, the client still receives everything that the upstream has
                // sent before.
                let _ = client.send(Bytes::new()).await;
                return AfterResponse::Broken(error);
            }
            (BodyStep::Data(data), _) if data.is_empty() => continue,
            (BodyStep::End, None) => {
                client.out.extend_from_slice(b"0\r\n\r\n");
                client.send(Bytes::new()).await.map(|()| true)
            }
            (BodyStep::End, Some(_)) => {
                let _ = client.send(Bytes::new()).await;
                return AfterResponse::Broken("the body is shorter than its declared length".into());
            }
            (BodyStep::Data(data), Some(left)) => {
                let Some(rest) = left.checked_sub(data.len() as u64) else {
                    return AfterResponse::Broken("the body is longer than its declared length".into());
                };
                *left = rest;
                send(client, data).await.map(|()| rest == 0)
            }
            (BodyStep::Data(data), None) => {
                let _ = write!(client.out, "{:X}\r\n", data.len());
                let sent = send(client, data).await;
                // The CRLF after the chunk is sent together with the next bytes.
                client.out.extend_from_slice(b"\r\n");
                sent.map(|()| false)
            }
        };
        match sent {
            Ok(true) => return AfterResponse::Next,
            Ok(false) => {}
            Err(error) => return AfterResponse::Broken(error.into()),
        }
    }
}

enum BodyStep {
    Data(Bytes),
    End,
    Failed(BoxError),
    Left,
}

async fn send(client: &mut FastSocket, data: Bytes) -> std::io::Result<()> {
    if data.len() > SMALL {
        return client.send(data).await;
    }
    client.out.extend_from_slice(&data);
    client.send(Bytes::new()).await
}
