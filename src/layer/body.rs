//! The body of a response, ours or the inner service's.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// The response body of [`Robots`](super::Robots): the inner service's, or bytes of our own.
    #[derive(Debug)]
    pub struct ResponseBody<B> {
        #[pin]
        source: Source<B>,
    }
}

pin_project! {
    #[project = SourceProjection]
    #[derive(Debug)]
    enum Source<B> {
        Inner { #[pin] body: B },
        Full { bytes: Option<Bytes> },
    }
}

impl<B> ResponseBody<B> {
    pub(super) const fn inner(body: B) -> Self {
        Self { source: Source::Inner { body } }
    }

    pub(super) fn full(bytes: Bytes) -> Self {
        Self { source: Source::Full { bytes: (!bytes.is_empty()).then_some(bytes) } }
    }
}

/// An empty body, for layers that answer by themselves: tower-http's `CorsLayer` and `TimeoutLayer`, for example.
impl<B> Default for ResponseBody<B> {
    fn default() -> Self {
        Self { source: Source::Full { bytes: None } }
    }
}

impl<B> Body for ResponseBody<B>
where
    B: Body<Data: From<Bytes>>,
{
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        match self.project().source.project() {
            SourceProjection::Inner { body } => body.poll_frame(context),
            SourceProjection::Full { bytes } => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes.into())))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Inner { body } => body.is_end_stream(),
            Source::Full { bytes } => bytes.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Inner { body } => body.size_hint(),
            Source::Full { bytes } => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
        }
    }
}
