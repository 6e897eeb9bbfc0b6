//! The body that a client gets.
//!
//! Its trailers go to clients of HTTP/2, where every reader takes them, as far as they [are allowed](super::trailers). On HTTP/1.1
//! those that the head announces go to clients that say they take trailers; the others are dropped, as a gateway may (RFC 9110,
//! section 6.5.1).

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::edge::http2::session::PIECE;
use crate::edge::http2::stream_timeout::StreamConsumer;
use crate::edge::request::exchange::Exchange;
use crate::edge::request::trailers::{self, AnnouncedTrailers};

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

/// Hands a body to a stream of HTTP/2 in pieces, so that each piece shows whether the client reads.
#[derive(Debug)]
struct Http2Pieces {
    consumer: StreamConsumer,
    /// The rest of a frame that is handed out in pieces.
    queued: Bytes,
}

impl Http2Pieces {
    /// The next piece of the last frame.
    fn next_piece(&mut self) -> Option<Bytes> {
        if self.queued.is_empty() {
            return None;
        }
        self.consumer.handed_out();
        Some(self.queued.split_to(self.queued.len().min(PIECE)))
    }

    /// Notes that a frame, or the end, is handed out, and keeps the octets past a piece.
    fn hand_out(&mut self, frame: Option<&mut Frame<Bytes>>) {
        self.consumer.handed_out();
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
        Inner {
            #[pin]
            body: B,
            // What a client of HTTP/1.1 was announced.
            announced: Option<AnnouncedTrailers>,
        },
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

    /// A body of the service's, on its way to the connection or to a stream of HTTP/2. `announced` are the trailers that the head
    /// tells a client of HTTP/1.1 of.
    pub(crate) fn inner(body: B, stream: Option<StreamConsumer>, announced: Option<AnnouncedTrailers>) -> Self {
        let stream = stream.map(|consumer| Box::new(Http2Pieces { consumer, queued: Bytes::new() }));
        Self { content: Content::Inner { body, announced }, stream, exchange: None }
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
            stream.consumer.polled();
            if let Some(piece) = stream.next_piece() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
        }
        let (mut body, announced) = match this.content.project() {
            ContentProjection::Own { text } => return Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            ContentProjection::Inner { body, announced } => (body, announced),
        };
        loop {
            match ready!(body.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) if !frame.is_data() => {
                    let Some(allowed) = frame.into_trailers().ok().and_then(trailers::allowed_in_response) else {
                        continue;
                    };
                    let forwarded = match (&*this.stream, announced.as_ref()) {
                        (Some(stream), _) => {
                            stream.consumer.handed_out();
                            Some(allowed)
                        }
                        (None, Some(announced)) => announced.select(allowed),
                        (None, None) => None,
                    };
                    if let Some(fields) = forwarded {
                        return Poll::Ready(Some(Ok(Frame::trailers(fields))));
                    }
                }
                mut frame => {
                    if let Some(stream) = this.stream {
                        stream.hand_out(frame.as_mut().and_then(|frame| frame.as_mut().ok()));
                    }
                    return Poll::Ready(frame);
                }
            }
        }
    }

    /// Counts the octets that were handed out, where an access record is kept and no stream counts them.
    fn account(self: Pin<&mut Self>, octets: Option<usize>) {
        let is_whole = octets.is_none() || self.is_end_stream();
        let Some(record) = self.project().exchange.as_mut().and_then(Exchange::body_record) else {
            return;
        };
        record.sent(octets.unwrap_or(0) as u64);
        if is_whole {
            record.whole();
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
            Content::Inner { body, .. } => self.queued() == 0 && body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Own { text } => SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64)),
            Content::Inner { body, .. } => match self.queued() {
                0 => body.size_hint(),
                queued => {
                    body.size_hint().exact().map_or_else(SizeHint::default, |left| SizeHint::with_exact(left + queued))
                }
            },
        }
    }
}
