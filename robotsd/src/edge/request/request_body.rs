//! The body that a client sends.
//!
//! It ends at the deadline for standing still and carries no trailers: a trailer field would arrive after everything that
//! was checked, and gateways may drop them (RFC 9110, section 6.5.1).

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::edge::idle_timeout::IdleTimeout;

/// The body of a request from a client.
#[derive(Debug)]
pub(crate) struct RequestBody {
    /// None once the end, or an error, has been passed on; and for a request without a body, which is why it is boxed:
    /// most have none, and a request is moved often.
    coming: Option<Box<IncomingBody>>,
}

#[derive(Debug)]
struct IncomingBody {
    incoming: Incoming,
    idle: IdleTimeout,
}

impl RequestBody {
    /// A body without content.
    pub(crate) fn empty() -> Self {
        Self { coming: None }
    }

    pub(crate) fn new(incoming: Incoming, idle: Duration) -> Self {
        let coming =
            (!incoming.is_end_stream()).then(|| Box::new(IncomingBody { incoming, idle: IdleTimeout::new(idle) }));
        Self { coming }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = RequestBodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, RequestBodyError>>> {
        let this = self.get_mut();
        loop {
            let Some(IncomingBody { incoming, idle }) = this.coming.as_deref_mut() else { return Poll::Ready(None) };
            let end = match Pin::new(incoming).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) if frame.is_data() => {
                    idle.reset();
                    return Poll::Ready(Some(Ok(frame)));
                }
                // A trailer section is the end of a body.
                Poll::Ready(Some(Ok(_))) => continue,
                Poll::Ready(Some(Err(error))) => Some(Err(RequestBodyError::Broken(error))),
                Poll::Ready(None) => None,
                Poll::Pending => {
                    ready!(idle.poll_expired(cx));
                    Some(Err(RequestBodyError::Idle))
                }
            };
            this.coming = None;
            return Poll::Ready(end);
        }
    }

    fn is_end_stream(&self) -> bool {
        self.coming.as_ref().is_none_or(|coming| coming.incoming.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.coming.as_ref().map_or_else(|| SizeHint::with_exact(0), |coming| coming.incoming.size_hint())
    }
}

/// Why the body of a request ended early; the client always causes it.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum RequestBodyError {
    /// Nothing came for too long.
    Idle,
    /// The client left, or its framing is broken.
    Broken(hyper::Error),
}

impl fmt::Display for RequestBodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "the client stopped sending its request body",
            Self::Broken(_) => "the client's request body is broken",
        })
    }
}

impl Error for RequestBodyError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Idle => None,
            Self::Broken(error) => Some(error),
        }
    }
}
