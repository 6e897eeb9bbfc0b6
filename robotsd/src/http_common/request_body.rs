//! The request body that a client sends.
//!
//! The body fails if it makes no progress before the idle deadline. Trailers are forwarded only
//! from an HTTP/2 client to an HTTP/2 upstream. The names of the trailers must also be
//! [allowed](super::trailers), because trailers arrive after the head has been checked.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use http::HeaderMap;
use http::header::EXPECT;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Either;
use hyper::body::Incoming;
use tower::BoxError;

use super::fields;
use super::idle_timeout::IdleTimeout;
use super::interim::InterimResponses;
use super::trailers;

#[derive(Debug)]
pub(crate) struct RequestBody {
    /// The part of the body that has not been read yet; `None` if there is no body, and after the
    /// end of the body or an error. The body is boxed, because most requests have no body, and
    /// requests are moved often.
    unread: Option<Box<IncomingBody>>,
}

#[derive(Debug)]
struct IncomingBody {
    /// The source of the bytes. `None` after the end of the client's body, or if `again` contains
    /// the whole body.
    incoming: Option<ClientBody>,
    idle: IdleTimeout,
    /// Bytes to return again, because an upstream received but did not process them.
    again: VecDeque<Bytes>,
    forwards_trailers: bool,
}

pub(crate) type ClientBody = Either<Incoming, RequestStream>;

impl IncomingBody {
    fn boxed(incoming: Option<ClientBody>, idle: Duration) -> Box<Self> {
        let (idle, again) = (IdleTimeout::new(idle), VecDeque::new());
        Box::new(Self { incoming, idle, again, forwards_trailers: false })
    }
}

impl RequestBody {
    pub(crate) fn empty() -> Self {
        Self { unread: None }
    }

    pub(crate) fn new(incoming: ClientBody, idle: Duration) -> Self {
        let is_whole = incoming.is_end_stream();
        Self { unread: (!is_whole).then(|| IncomingBody::boxed(Some(incoming), idle)) }
    }

    /// Makes the body return the allowed trailers of an HTTP/2 client. Trailers are dropped by
    /// default, and are never returned for HTTP/1.1 clients.
    pub(crate) fn with_trailers(mut self) -> Self {
        if let Some(unread) = &mut self.unread {
            unread.forwards_trailers = matches!(unread.incoming, Some(Either::Right(_)));
        }
        self
    }

    pub(crate) fn preceded_by(mut self, bytes: Vec<Bytes>) -> Self {
        let unread = self.unread.get_or_insert_with(|| IncomingBody::boxed(None, Duration::MAX));
        unread.again.extend(bytes);
        self
    }

    /// Records progress of the exchange, so that the idle deadline starts again. This call is not
    /// needed for bytes from the client: the body restarts the deadline when such bytes arrive.
    pub(crate) fn note_progress(&mut self) {
        if let Some(unread) = &mut self.unread {
            unread.idle.reset();
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = RequestBodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, RequestBodyError>>> {
        let this = self.get_mut();
        loop {
            let Some(IncomingBody { incoming, idle, again, forwards_trailers }) = this.unread.as_deref_mut() else {
                return Poll::Ready(None);
            };
            if let Some(bytes) = again.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            let Some(incoming) = incoming else {
                this.unread = None;
                return Poll::Ready(None);
            };
            let end = match Pin::new(incoming).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) if frame.is_data() => {
                    idle.reset();
                    return Poll::Ready(Some(Ok(frame)));
                }
                // Trailers are the last frame of a body.
                Poll::Ready(Some(Ok(frame))) => {
                    let fields = frame.into_trailers().ok().filter(|_| *forwards_trailers);
                    match fields.and_then(|fields| trailers::allowed(fields, trailers::of_request)) {
                        Some(fields) => Some(Ok(Frame::trailers(fields))),
                        None => continue,
                    }
                }
                Poll::Ready(Some(Err(error))) => Some(Err(RequestBodyError::Broken(error))),
                Poll::Ready(None) => None,
                Poll::Pending => {
                    ready!(idle.poll_expired(cx));
                    Some(Err(RequestBodyError::Idle))
                }
            };
            this.unread = None;
            return Poll::Ready(end);
        }
    }

    fn is_end_stream(&self) -> bool {
        self.unread.as_ref().is_none_or(|unread| {
            unread.again.is_empty() && unread.incoming.as_ref().is_none_or(ClientBody::is_end_stream)
        })
    }

    fn size_hint(&self) -> SizeHint {
        let Some(unread) = &self.unread else { return SizeHint::with_exact(0) };
        let again = unread.again.iter().map(|bytes| bytes.len() as u64).sum::<u64>();
        let left = unread.incoming.as_ref().map_or_else(|| SizeHint::with_exact(0), ClientBody::size_hint);
        left.exact().map_or(left, |left| SizeHint::with_exact(left + again))
    }
}

/// The body of a request on an HTTP/2 stream. The flow-control window grows only when bytes are
/// read from the body, so the number of unread bytes never exceeds the window.
#[derive(Debug)]
pub(crate) struct RequestStream {
    stream: RecvStream,
    /// Number of bytes still to come, if the head declares the length; the HTTP library enforces
    /// this length.
    left: Option<u64>,
    has_data: bool,
    /// Handle to a client that waits for 100 (Continue) before it sends the body (RFC 9110, section
    /// 10.1.1).
    expectant: Option<InterimResponses>,
}

impl RequestStream {
    pub(crate) fn new(stream: RecvStream, head: &HeaderMap, client: InterimResponses) -> Self {
        if stream.is_end_stream() {
            return Self { stream, left: Some(0), has_data: true, expectant: None };
        }
        let left = fields::content_length(head);
        let expects = head.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        Self { stream, left, has_data: true, expectant: expects.then_some(client) }
    }
}

impl Body for RequestStream {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let this = self.get_mut();
        while this.has_data {
            let polled = this.stream.poll_data(cx);
            // No 100 response is needed if the body has already begun to arrive.
            if let Some(client) = this.expectant.take()
                && polled.is_pending()
            {
                client.send_continue();
            }
            match ready!(polled) {
                Some(Ok(data)) => {
                    // The caller takes the data, so the client may send the same number of further
                    // bytes. An error is ignored, because the next poll returns the error of the
                    // stream.
                    let _ = this.stream.flow_control().release_capacity(data.len());
                    this.left = this.left.map(|left| left.saturating_sub(data.len() as u64));
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => this.has_data = false,
            }
        }
        this.stream.poll_trailers(cx).map(|trailers| trailers.transpose().map(|fields| fields.map(Frame::trailers)))
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// The reason why a request body ended early. The cause is always the client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestBodyError {
    #[error("the client stopped sending its request body")]
    Idle,
    #[error("the client's request body is broken")]
    Broken(#[source] BoxError),
}
