//! The answer to a plain request, written as HTTP/1.1 (RFC 9112).

use std::error::Error;
use std::future::{Future, poll_fn};
use std::io::Write as _;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING};
use http::{HeaderValue, Response, StatusCode, response};
use http_body::Body;

use super::super::behind::yield_before_write;
use super::super::transfer::Transfer;
use super::client::Client;
use crate::date;

/// A body up to this size is copied behind its head and written with it, which costs less than writing from two places.
const SMALL: usize = 4 * 1024;

/// What becomes of the connection.
pub(super) enum After {
    /// It may take another request.
    Next,
    /// It is to be closed in order.
    Close,
    /// The client has left.
    Gone,
    /// It is of no more use; whoever reads a half response must see that it is one.
    Broken(Box<dyn Error + Send + Sync>),
}

/// Waits for a response and writes it.
pub(super) async fn answer<A, B, E>(mut client: Box<Client>, answering: A, is_head: bool) -> (Box<Client>, After)
where
    A: Future<Output = Result<Response<B>, E>>,
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut answering = pin!(answering);
    let answered = poll_fn(|cx| match answering.as_mut().poll(cx) {
        Poll::Ready(answered) => Poll::Ready(answered.ok()),
        Poll::Pending => client.poll_left(cx).map(|()| None),
    });
    let Some(response) = answered.await else { return (client, After::Gone) };
    let (mut head, body) = response.into_parts();
    client.carry(head.extensions.remove::<Transfer>());
    let is_last = head.headers.remove(CONNECTION).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close"))
        || client.stop.has_changed().unwrap_or(true);
    let framing = Framing::new(&mut head, &body, is_head);
    let clock = Arc::clone(&client.clock);
    write_head(client.out(), &head, framing, is_last, &clock);
    yield_before_write().await;
    let after = match write_body(&mut client, pin!(body), framing).await {
        After::Next if is_last => After::Close,
        after => after,
    };
    client.carry(None);
    (client, after)
}

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// There is none, whatever the head says.
    Absent,
    /// The head says so already, or has to.
    Length {
        octets: u64,
        is_said: bool,
    },
    Chunked,
}

impl Framing {
    fn new(head: &mut response::Parts, body: &impl Body, is_head: bool) -> Self {
        // RFC 9110, section 6.4.1.
        let has_none = matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        if head.status == StatusCode::NO_CONTENT {
            head.headers.remove(CONTENT_LENGTH);
        }
        head.headers.remove(TRANSFER_ENCODING);
        if is_head || has_none {
            return Self::Absent;
        }
        let said = head.headers.get(CONTENT_LENGTH).map(length);
        match (said, body.size_hint().exact()) {
            (Some(Some(octets)), _) => Self::Length { octets, is_said: true },
            (None, Some(octets)) => Self::Length { octets, is_said: false },
            (Some(None), exact) => {
                head.headers.remove(CONTENT_LENGTH);
                exact.map_or(Self::Chunked, |octets| Self::Length { octets, is_said: false })
            }
            (None, None) => Self::Chunked,
        }
    }
}

/// The number in a `Content-Length`, if it is one.
fn length(value: &HeaderValue) -> Option<u64> {
    let text = std::str::from_utf8(value.as_bytes()).ok()?;
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn write_head(out: &mut Vec<u8>, head: &response::Parts, framing: Framing, is_last: bool, clock: &Clock) {
    out.clear();
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(head.status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(head.status.canonical_reason().unwrap_or("<none>").as_bytes());
    out.extend_from_slice(b"\r\n");
    let mut has_date = false;
    for (name, value) in &head.headers {
        has_date |= name == DATE;
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    match framing {
        Framing::Length { octets, is_said: false } => {
            // Writing to a vector does not fail.
            let _ = write!(out, "content-length: {octets}\r\n");
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
}

/// Writes what waits to be written, and a body behind it.
async fn write_body<B>(client: &mut Client, mut body: Pin<&mut B>, framing: Framing) -> After
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut left = match framing {
        Framing::Absent | Framing::Length { octets: 0, .. } => {
            return client.send(Bytes::new()).await.map_or_else(|error| After::Broken(error.into()), |()| After::Next);
        }
        Framing::Length { octets, .. } => Some(octets),
        Framing::Chunked => None,
    };
    loop {
        let step = poll_fn(|cx| match body.as_mut().poll_frame(cx) {
            Poll::Ready(None) => Poll::Ready(Step::End),
            Poll::Ready(Some(Err(error))) => Poll::Ready(Step::Failed(error.into())),
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(Step::Data(frame.into_data().unwrap_or_default())),
            // What there is goes out before more is waited for, and a client that has left is not worth the wait.
            Poll::Pending => match client.poll_send(cx, &mut Bytes::new()) {
                Poll::Ready(Err(error)) => Poll::Ready(Step::Failed(error.into())),
                _ => client.poll_left(cx).map(|()| Step::Left),
            },
        })
        .await;
        let sent = match (step, &mut left) {
            (Step::Left, _) => return After::Gone,
            (Step::Failed(error), _) => {
                // The client gets as far as the upstream did.
                let _ = client.send(Bytes::new()).await;
                return After::Broken(error);
            }
            (Step::Data(data), _) if data.is_empty() => continue,
            (Step::End, None) => {
                client.out().extend_from_slice(b"0\r\n\r\n");
                client.send(Bytes::new()).await.map(|()| true)
            }
            (Step::End, Some(_)) => {
                let _ = client.send(Bytes::new()).await;
                return After::Broken("the body is shorter than its length".into());
            }
            (Step::Data(data), Some(left)) => {
                let Some(rest) = left.checked_sub(data.len() as u64) else {
                    return After::Broken("the body is longer than its length".into());
                };
                *left = rest;
                send(client, data).await.map(|()| rest == 0)
            }
            (Step::Data(data), None) => {
                let _ = write!(client.out(), "{:X}\r\n", data.len());
                let sent = send(client, data).await;
                // Goes out with what comes next.
                client.out().extend_from_slice(b"\r\n");
                sent.map(|()| false)
            }
        };
        match sent {
            Ok(true) => return After::Next,
            Ok(false) => {}
            Err(error) => return After::Broken(error.into()),
        }
    }
}

enum Step {
    Data(Bytes),
    End,
    Failed(Box<dyn Error + Send + Sync>),
    Left,
}

async fn send(client: &mut Client, data: Bytes) -> std::io::Result<()> {
    if data.len() > SMALL {
        return client.send(data).await;
    }
    client.out().extend_from_slice(&data);
    client.send(Bytes::new()).await
}

/// The `Date` of responses, put into words once a second.
#[derive(Debug, Default)]
pub(in super::super) struct Clock(Mutex<(u64, String)>);

impl Clock {
    fn write(&self, out: &mut Vec<u8>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
        // Only connections of one worker share a clock, so nobody ever waits.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (second, text) = &mut *kept;
        if *second != now || text.is_empty() {
            *second = now;
            *text = date::http(UNIX_EPOCH + Duration::from_secs(now));
        }
        out.extend_from_slice(text.as_bytes());
    }
}
