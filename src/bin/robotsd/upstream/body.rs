//! The body of a response, and the connection it comes from.
//!
//! Whoever asks for a frame moves the connection. When the body has ended the connection goes back to the pool; when
//! it is dropped before that, the connection closes, which is how the upstream learns that the client has left.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::link::Link;
use super::pool::Pool;
use crate::edge::Idle;

/// The body of an upstream's response, or a text in its place.
#[derive(Debug)]
pub(crate) struct ResponseBody(Content);

#[derive(Debug)]
enum Content {
    Own(Option<Bytes>),
    Upstream(Upstream),
}

#[derive(Debug)]
struct Upstream {
    incoming: Incoming,
    /// None once the connection has ended or gone back to the pool.
    link: Option<Box<Link>>,
    pool: Arc<Pool>,
    idle: Idle,
    failed: Option<ResponseBodyError>,
}

impl ResponseBody {
    pub(super) fn own(text: Bytes) -> Self {
        Self(Content::Own(Some(text)))
    }

    pub(super) fn empty() -> Self {
        Self(Content::Own(None))
    }

    pub(super) fn new(incoming: Incoming, link: Box<Link>, pool: Arc<Pool>, idle: Duration) -> Self {
        if incoming.is_end_stream() {
            pool.put(link);
            return Self::empty();
        }
        Self(Content::Upstream(Upstream { incoming, link: Some(link), pool, idle: Idle::new(idle), failed: None }))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = ResponseBodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        match &mut self.get_mut().0 {
            Content::Own(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Content::Upstream(upstream) => upstream.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Own(text) => text.is_none(),
            Content::Upstream(upstream) => upstream.incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Own(text) => SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64)),
            Content::Upstream(upstream) => upstream.incoming.size_hint(),
        }
    }
}

impl Upstream {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Some(Err(error)));
        }
        match self.poll_incoming(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                self.idle.moved();
                // With a known length nobody asks again after the last octet.
                if self.incoming.is_end_stream() {
                    self.release();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => self.fail(ResponseBodyError::Broken(error), cx),
            Poll::Ready(None) => {
                self.release();
                Poll::Ready(None)
            }
            Poll::Pending => {
                ready!(self.idle.poll_expired(cx));
                self.fail(ResponseBodyError::Idle, cx)
            }
        }
    }

    fn poll_incoming(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        // Frames come out of the connection, or out of its end; it has the task's waker, so nobody else is to be woken.
        let mut silent = Context::from_waker(Waker::noop());
        let frame = Pin::new(&mut self.incoming).poll_frame(&mut silent);
        let (Poll::Pending, Some(link)) = (&frame, &mut self.link) else { return frame };
        if link.poll(cx).is_ready() {
            self.link = None;
        }
        Pin::new(&mut self.incoming).poll_frame(&mut silent)
    }

    /// Gives the connection back.
    fn release(&mut self) {
        if let Some(link) = self.link.take() {
            self.pool.put(link);
        }
    }

    /// Ends the body early, at the next poll: hyper drops what it has not yet written when a body fails, and the client
    /// should get as far as the upstream did.
    fn fail(
        &mut self,
        error: ResponseBodyError,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        self.link = None;
        self.failed = Some(error);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Why a response body ended early. The client sees its connection or stream cut off, never a complete body.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum ResponseBodyError {
    /// Nothing came for too long.
    Idle,
    /// The connection broke, or the framing is invalid.
    Broken(hyper::Error),
}

impl fmt::Display for ResponseBodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "the upstream stopped sending its response body",
            Self::Broken(_) => "the upstream's response body is broken",
        })
    }
}

impl Error for ResponseBodyError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Idle => None,
            Self::Broken(error) => Some(error),
        }
    }
}
