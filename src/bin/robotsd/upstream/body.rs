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
    Upstream { incoming: Incoming, link: Option<Box<Link>>, pool: Arc<Pool>, idle: Idle },
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
        Self(Content::Upstream { incoming, link: Some(link), pool, idle: Idle::new(idle) })
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = ResponseBodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        let (incoming, link, pool, idle) = match &mut self.get_mut().0 {
            Content::Own(text) => return Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Content::Upstream { incoming, link, pool, idle } => (incoming, link, pool, idle),
        };
        let mut next = poll_incoming(incoming);
        if next.is_pending() {
            // Frames come out of the connection polled here, or out of its end.
            if let Some(active) = link
                && active.poll(cx).is_ready()
            {
                *link = None;
            }
            next = poll_incoming(incoming);
        }
        match next {
            Poll::Ready(Some(Ok(frame))) => {
                idle.moved();
                // With a known length nobody asks again after the last octet.
                if incoming.is_end_stream()
                    && let Some(link) = link.take()
                {
                    pool.put(link);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                *link = None;
                Poll::Ready(Some(Err(ResponseBodyError::Broken(error))))
            }
            Poll::Ready(None) => {
                if let Some(link) = link.take() {
                    pool.put(link);
                }
                Poll::Ready(None)
            }
            Poll::Pending => {
                ready!(idle.poll_expired(cx));
                *link = None;
                Poll::Ready(Some(Err(ResponseBodyError::Idle)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Own(text) => text.is_none(),
            Content::Upstream { incoming, .. } => incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Own(text) => SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64)),
            Content::Upstream { incoming, .. } => incoming.size_hint(),
        }
    }
}

/// The next frame, if the connection has brought one. Nobody is to be woken: the connection has the task's waker.
fn poll_incoming(incoming: &mut Incoming) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
    Pin::new(incoming).poll_frame(&mut Context::from_waker(Waker::noop()))
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
