//! The body of a response. The body owns its connection to the upstream.
//!
//! Polling the body drives the connection, which returns to the pool at the end of the body. If the
//! body is dropped before its end, the connection is closed, so that the upstream notices that the
//! client has left.
//!
//! While the client does not read, the body is not polled. The code that writes to the client then
//! drives the connection through the [`Transfer`]. If the rest of the body is small, it is [read
//! ahead](super::read_ahead), which frees the connection.
//!
//! On HTTP/1.1, trailers are dropped, as RFC 9110, section 6.5.1 allows.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::endpoint::UpstreamLimits;
use super::failure_kind::{Cause, ResponseBodyError};
use super::http1_connection::{Http1Pool, UpstreamConnection};
use super::http1_fast::{FastBody, UnreadBody};
use super::http2::{Http2Body, Http2Slot};
use super::read_ahead::{BufferBudget, ReadAhead};
use super::usage::Usage;
use crate::http_common::{IdleTimeout, StallObserver, Transfer};

/// The body of an upstream's response, or the fixed text of a response that robotsd has generated.
#[derive(Debug)]
pub(crate) struct ResponseBody(Content);

#[derive(Debug)]
enum Content {
    Generated(Option<Bytes>),
    Upstream(Arc<StreamingBody>),
    /// A body on an HTTP/2 stream. The stream occupies a slot on the connection until the body
    /// ends. Such a body is aborted at its own deadlines, but never to free a connection for other
    /// requests.
    Http2(Box<Http2Body>),
}

/// A body that is passed from the upstream to the client. One task polls the connections to the
/// upstream and to the client.
#[derive(Debug)]
struct StreamingBody {
    flow: Mutex<StreamState>,
    usage: Arc<Usage>,
}

#[derive(Debug)]
struct StreamState {
    incoming: UnreadBody,
    /// The connection is `None` after it has ended or returned to the pool.
    connection: Option<Box<UpstreamConnection>>,
    pool: Arc<Http1Pool>,
    idle: IdleTimeout,
    buffer_bytes: usize,
    ahead: ReadAhead,
    has_ended: bool,
    failed: Option<ResponseBodyError>,
    /// Time when the upstream last accepted a part of the request. `None` if a byte of the response
    /// is available, or if the upstream does not wait for the client to continue the request.
    awaits_upload: Option<Instant>,
}

/// The side that must act before the connection can become free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitsFor {
    Upstream,
    Client,
}

impl ResponseBody {
    pub(super) fn generated(text: Bytes) -> Self {
        Self(Content::Generated(Some(text)))
    }

    pub(super) fn empty() -> Self {
        Self(Content::Generated(None))
    }

    pub(super) fn new(
        incoming: UnreadBody,
        connection: Box<UpstreamConnection>,
        pool: Arc<Http1Pool>,
        limits: &UpstreamLimits,
        buffers: &Arc<BufferBudget>,
    ) -> Self {
        match incoming {
            // The whole body has arrived, so the connection is free even if the client still reads.
            UnreadBody::Fast(FastBody { first, left: 0, .. }) => {
                pool.put(connection);
                Self(Content::Generated(Some(first).filter(|first| !first.is_empty())))
            }
            UnreadBody::Hyper(incoming) if incoming.is_end_stream() => {
                pool.put(connection);
                Self::empty()
            }
            incoming => {
                let usage = Arc::clone(&connection.progress.usage);
                let flow = StreamState {
                    incoming,
                    connection: Some(connection),
                    pool,
                    idle: IdleTimeout::new(limits.body_idle),
                    buffer_bytes: limits.buffer_bytes,
                    ahead: ReadAhead::new(limits, buffers),
                    has_ended: false,
                    failed: None,
                    awaits_upload: None,
                };
                Self(Content::Upstream(Arc::new(StreamingBody { flow: Mutex::new(flow), usage })))
            }
        }
    }

    pub(super) fn http2(mut body: Http2Body, slot: Option<Box<Http2Slot>>) -> Self {
        if body.is_end_stream() {
            return Self::empty();
        }
        if let Some(slot) = slot {
            body.hold(slot);
        }
        Self(Content::Http2(Box::new(body)))
    }

    /// Returns the transfer, which lets the code that writes to the client drive the connection.
    /// Returns `None` if the body occupies no HTTP/1.1 connection.
    pub(super) fn transfer(&self) -> Option<Transfer> {
        match &self.0 {
            Content::Generated(_) | Content::Http2(_) => None,
            Content::Upstream(coupling) => Some(Transfer::new(coupling)),
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = ResponseBodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        match &mut self.get_mut().0 {
            Content::Generated(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Content::Upstream(coupling) => coupling.poll_bytes(cx).map_ok(Frame::data),
            Content::Http2(body) => body.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Generated(text) => text.is_none(),
            Content::Upstream(coupling) => coupling.flow.lock().is_end_stream(),
            Content::Http2(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Generated(text) => SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64)),
            Content::Upstream(coupling) => coupling.flow.lock().size_hint(),
            Content::Http2(body) => body.size_hint(),
        }
    }
}

impl StreamingBody {
    fn poll_bytes(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ResponseBodyError>>> {
        let mut flow = self.flow.lock();
        let bytes = flow.poll_bytes(cx);
        let uploading = flow
            .connection
            .as_ref()
            .map(|connection| &connection.progress.upload)
            .filter(|upload| upload.awaits_client.is_set());
        let sent = uploading.filter(|_| bytes.is_pending()).map(|upload| upload.last_accepted());
        if flow.awaits_upload != sent {
            // The upload has made progress, or a part of the response has arrived.
            flow.awaits_upload = sent;
            // A connection that has returned to the pool may already serve another request.
            if flow.connection.is_some() {
                self.usage.moved();
            }
        }
        if sent.is_some() {
            self.usage.stall();
            if self.usage.poll_aborted(cx).is_ready() {
                return flow.fail(ResponseBodyError::GivenUp, cx);
            }
        }
        bytes
    }
}

impl StallObserver for StreamingBody {
    fn poll_stalled(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut flow = self.flow.lock();
        let waits_for = flow.read_ahead(cx);
        if flow.connection.is_none() {
            // The connection has already returned to the pool.
            return Poll::Pending;
        }
        match waits_for {
            WaitsFor::Upstream => {
                self.usage.moved();
                Poll::Pending
            }
            WaitsFor::Client => {
                self.usage.stall();
                self.usage.poll_aborted(cx)
            }
        }
    }

    fn resumed(&self) {
        if self.flow.lock().connection.is_some() {
            self.usage.moved();
        }
    }
}

impl StreamState {
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ResponseBodyError>>> {
        if !self.ahead.bytes.is_empty() {
            return Poll::Ready(Some(Ok(self.ahead.take())));
        }
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Some(Err(error)));
        }
        if self.has_ended {
            return Poll::Ready(None);
        }
        self.poll_next(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.bytes.is_empty() && self.failed.is_none() && (self.has_ended || self.incoming.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let ahead = self.ahead.bytes.len() as u64;
        let left = if self.has_ended { Some(0) } else { self.incoming.size_hint().exact() };
        left.map_or_else(SizeHint::default, |left| SizeHint::with_exact(ahead + left))
    }

    /// Reads ahead while the client does not read, until it is certain that the rest of the body
    /// does not fit into the budget. Returns the side that must act next.
    fn read_ahead(&mut self, cx: &mut Context<'_>) -> WaitsFor {
        while self.connection.is_some() && self.failed.is_none() && !self.has_ended {
            let left = self.incoming.size_hint().exact();
            if !self.ahead.has_room(left) {
                break;
            }
            match self.poll_next(cx) {
                Poll::Ready(Some(Ok(bytes))) => self.ahead.push(&bytes),
                Poll::Ready(Some(Err(error))) => self.failed = Some(error),
                Poll::Ready(None) => {}
                // A body of unknown length may be endless, so the transfer waits for the client,
                // not for the end of the body.
                Poll::Pending if left.is_some() => return WaitsFor::Upstream,
                Poll::Pending => break,
            }
        }
        WaitsFor::Client
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ResponseBodyError>>> {
        match self.poll_incoming(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                self.idle.reset();
                // A body with a known length ends with its last byte, without another poll.
                if self.incoming.is_end_stream() {
                    self.release();
                }
                match frame.into_data() {
                    Ok(bytes) => Poll::Ready(Some(Ok(bytes))),
                    // Trailers end the body.
                    Err(_) => self.poll_next(cx),
                }
            }
            Poll::Ready(Some(Err(error))) => self.fail(ResponseBodyError::Broken(error), cx),
            Poll::Ready(None) => {
                self.has_ended = true;
                self.release();
                Poll::Ready(None)
            }
            Poll::Pending => {
                ready!(self.idle.poll_expired(cx));
                self.fail(ResponseBodyError::Idle, cx)
            }
        }
    }

    fn poll_incoming(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cause>>> {
        let incoming = match &mut self.incoming {
            UnreadBody::Hyper(incoming) => incoming,
            UnreadBody::Fast(rest) if !rest.first.is_empty() => {
                return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut rest.first)))));
            }
            UnreadBody::Fast(FastBody { left: 0, .. }) => return Poll::Ready(None),
            UnreadBody::Fast(rest) => {
                let Some(connection) = &mut self.connection else { return Poll::Ready(None) };
                let read = ready!(connection.poll_body(cx, rest.left, self.buffer_bytes));
                return Poll::Ready(Some(match read {
                    Ok(bytes) => {
                        rest.left -= bytes.len() as u64;
                        Ok(Frame::data(bytes))
                    }
                    Err(error) => Err(Cause::Socket(error)),
                }));
            }
        };
        // The body needs no waker, because frames arrive only through the connection, which is
        // polled with the task's waker.
        let mut silent = Context::from_waker(Waker::noop());
        let mut frame = Pin::new(&mut *incoming).poll_frame(&mut silent);
        if let (Poll::Pending, Some(connection)) = (&frame, &mut self.connection) {
            if connection.poll(cx).is_ready() {
                self.connection = None;
            }
            frame = Pin::new(incoming).poll_frame(&mut silent);
        }
        frame.map_err(Cause::Protocol)
    }

    fn release(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.put(connection);
        }
    }

    /// Ends the body with an error, but only at the next poll: hyper drops unwritten data when a
    /// body fails. The client should receive everything that the upstream has sent.
    fn fail<T>(&mut self, error: ResponseBodyError, cx: &mut Context<'_>) -> Poll<T> {
        self.connection = None;
        self.failed = Some(error);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
