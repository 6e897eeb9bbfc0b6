//! The two bodies of a request: what the client sends, and what it gets.
//!
//! Both end at the deadline for standing still and carry no trailers: a trailer field would arrive behind everything
//! that was checked, and gateways may drop them (RFC 9110, section 6.5.1).

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use pin_project_lite::pin_project;

use crate::edge::connection_state::state::Exchange;
use crate::edge::http2::stream_timeout::StreamConsumer;
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
                    idle.moved();
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

/// Why the body of a request ended early: always the client's doing.
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

pin_project! {
    /// The body of a response on its way to the client.
    #[derive(Debug)]
    pub(crate) struct ResponseBody<B> {
        #[pin]
        content: Content<B>,
        // Boxed: most bodies go out over HTTP/1.1, and a response is moved often.
        stream: Option<Box<Http2Pieces>>,
        // Held for its drop: the exchange ends with the body.
        exchange: Option<Exchange>,
    }
}

/// A body on its way to a stream of HTTP/2.
#[derive(Debug)]
struct Http2Pieces {
    consumer: StreamConsumer,
    /// What is left of a frame that is handed out in pieces.
    queued: Bytes,
}

/// The size of a frame of HTTP/2 (RFC 9113, section 4.2). That a piece was taken is the only sign that a client moves;
/// larger ones would make slow clients look like those that have stopped.
pub(crate) const PIECE: usize = 16 * 1024;

impl Http2Pieces {
    /// The next piece of the last frame.
    fn next_piece(&mut self) -> Option<Bytes> {
        if self.queued.is_empty() {
            return None;
        }
        self.consumer.is_served();
        Some(self.queued.split_to(self.queued.len().min(PIECE)))
    }

    /// Notes that a frame, or the end, is handed out, and keeps what is more than a piece.
    fn hand_out(&mut self, frame: Option<&mut Frame<Bytes>>) {
        self.consumer.is_served();
        if let Some(data) = frame.and_then(Frame::data_mut)
            && data.len() > PIECE
        {
            self.queued = data.split_off(PIECE);
        }
    }
}

pin_project! {
    #[project = ContentProjection]
    #[derive(Debug)]
    enum Content<B> {
        Own { text: Option<Bytes> },
        Inner { #[pin] body: B },
    }
}

impl<B> ResponseBody<B> {
    /// A text of the edge's own.
    pub(crate) fn own(text: Bytes) -> Self {
        Self {
            content: Content::Own { text: Some(text).filter(|text| !text.is_empty()) },
            stream: None,
            exchange: None,
        }
    }

    pub(crate) fn inner(body: B) -> Self {
        let stream = StreamConsumer::current().map(|consumer| Box::new(Http2Pieces { consumer, queued: Bytes::new() }));
        Self { content: Content::Inner { body }, stream, exchange: None }
    }

    /// Octets of the last frame that are still to be handed out.
    fn queued(&self) -> u64 {
        self.stream.as_ref().map_or(0, |stream| stream.queued.len() as u64)
    }

    pub(crate) fn ending(mut self, exchange: Option<Exchange>) -> Self {
        self.exchange = exchange;
        self
    }
}

impl<B: Body<Data = Bytes>> ResponseBody<B> {
    fn poll_content(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        if let Some(stream) = this.stream {
            stream.consumer.asks();
            if let Some(piece) = stream.next_piece() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
        }
        let mut body = match this.content.project() {
            ContentProjection::Own { text } => return Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            ContentProjection::Inner { body } => body,
        };
        loop {
            match ready!(body.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) if !frame.is_data() => {}
                mut frame => {
                    if let Some(stream) = this.stream {
                        stream.hand_out(frame.as_mut().and_then(|frame| frame.as_mut().ok()));
                    }
                    return Poll::Ready(frame);
                }
            }
        }
    }

    /// Counts what was handed out, where an account is kept.
    fn account(self: Pin<&mut Self>, octets: Option<usize>) {
        let is_whole = octets.is_none() || self.is_end_stream();
        let Some(visit) = self.project().exchange.as_mut().and_then(|exchange| exchange.visit.as_mut()) else { return };
        visit.sent(octets.unwrap_or(0));
        if is_whole {
            visit.whole();
        }
    }
}

impl<B: Body<Data = Bytes>> Body for ResponseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(self.as_mut().poll_content(cx));
        match &frame {
            None => self.account(None),
            Some(Ok(frame)) => {
                let octets = frame.data_ref().map_or(0, Bytes::len);
                self.account(Some(octets));
            }
            Some(Err(_)) => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Own { text } => text.is_none(),
            Content::Inner { body } => self.queued() == 0 && body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Own { text } => SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64)),
            Content::Inner { body } => match self.queued() {
                0 => body.size_hint(),
                queued => {
                    body.size_hint().exact().map_or_else(SizeHint::default, |left| SizeHint::with_exact(left + queued))
                }
            },
        }
    }
}
