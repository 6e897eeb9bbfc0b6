//! The body of a response to the client, its framing, and the exchange, which ends with the last
//! byte of the body.
//!
//! HTTP/2 clients also get trailers, if [their names are allowed](trailers). On HTTP/1.1, trailers
//! are dropped, as RFC 9110, section 6.5.1, allows.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{StatusCode, response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::access_record::PendingRecord;
use crate::edge::connection_state::{ConnectionState, RequestInProgress};
use crate::edge::http2::frame_accounting::PIECE;
use crate::edge::http2::stream_timeout::StreamConsumer;
use crate::http_common::{Transfer, fields, trailers};

pin_project! {
    #[derive(Debug)]
    pub(crate) struct ResponseBody<B> {
        #[pin]
        content: Content<B>,
        // This field is boxed, because responses are moved often, and responses over HTTP/1.1 do
        // not need the field.
        stream: Option<Box<Http2Pieces>>,
        // Dropping the body also drops this value, and thereby ends the exchange.
        exchange: Option<Exchange>,
    }
}

/// Splits a body into pieces for an HTTP/2 stream. Each piece that has been sent shows that the
/// client still reads.
#[derive(Debug)]
struct Http2Pieces {
    consumer: StreamConsumer,
    /// The part of the last frame that has not been returned yet.
    queued: Bytes,
}

impl Http2Pieces {
    fn next_piece(&mut self) -> Option<Bytes> {
        if self.queued.is_empty() {
            return None;
        }
        self.consumer.note_frame_returned();
        Some(self.queued.split_to(self.queued.len().min(PIECE)))
    }

    /// Records that the body returns `frame`, which is `None` at the end of the body. If the frame
    /// is larger than one piece, keeps only the first piece in the frame and queues the other
    /// pieces.
    fn split_frame(&mut self, frame: Option<&mut Frame<Bytes>>) {
        self.consumer.note_frame_returned();
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
        Generated { text: Option<Bytes> },
        Inner {
            #[pin]
            body: B,
        },
    }
}

impl<B> ResponseBody<B> {
    pub(crate) fn generated(text: Bytes) -> Self {
        Self {
            content: Content::Generated { text: Some(text).filter(|text| !text.is_empty()) },
            stream: None,
            exchange: None,
        }
    }

    /// Creates the body of a response from the service. `stream` is `None` for an HTTP/1.1
    /// connection.
    pub(crate) fn inner(body: B, stream: Option<StreamConsumer>) -> Self {
        let stream = stream.map(|consumer| Box::new(Http2Pieces { consumer, queued: Bytes::new() }));
        Self { content: Content::Inner { body }, stream, exchange: None }
    }

    fn queued(&self) -> u64 {
        self.stream.as_ref().map_or(0, |stream| stream.queued.len() as u64)
    }

    pub(crate) fn with_exchange(self, exchange: Option<Exchange>) -> Self {
        Self { exchange, ..self }
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
        let mut body = match this.content.project() {
            ContentProjection::Generated { text } => return Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            ContentProjection::Inner { body } => body,
        };
        loop {
            match ready!(body.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) if !frame.is_data() => {
                    let allowed =
                        frame.into_trailers().ok().and_then(|fields| trailers::allowed(fields, trailers::of_response));
                    if let (Some(stream), Some(fields)) = (&*this.stream, allowed) {
                        stream.consumer.note_frame_returned();
                        return Poll::Ready(Some(Ok(Frame::trailers(fields))));
                    }
                }
                mut frame => {
                    if let Some(stream) = this.stream {
                        stream.split_frame(frame.as_mut().and_then(|frame| frame.as_mut().ok()));
                    }
                    return Poll::Ready(frame);
                }
            }
        }
    }

    /// Records the size of a frame, or the end of the body, in the access record, if there is one.
    /// On HTTP/2, this method does nothing, because the stream counts the bytes.
    fn record_frame(self: Pin<&mut Self>, bytes: Option<usize>) {
        let is_whole = bytes.is_none() || self.is_end_stream();
        let Some(record) = self.project().exchange.as_mut().and_then(Exchange::body_record) else {
            return;
        };
        record.sent(bytes.unwrap_or(0) as u64);
        if is_whole {
            record.set_complete();
        }
    }
}

impl<B: Body<Data = Bytes>> Body for ResponseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(self.as_mut().poll_content(cx));
        match &frame {
            None => self.record_frame(None),
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                self.record_frame(Some(bytes));
            }
            Some(Err(_)) => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Generated { text } => text.is_none(),
            Content::Inner { body } => self.queued() == 0 && body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Generated { text } => SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64)),
            Content::Inner { body } => match self.queued() {
                0 => body.size_hint(),
                queued => {
                    body.size_hint().exact().map_or_else(SizeHint::default, |left| SizeHint::with_exact(left + queued))
                }
            },
        }
    }
}

/// How the client finds the end of a response body (RFC 9112, section 6; RFC 9113, section 8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// No body follows. For the response to a HEAD request, `length` is the `Content-Length` that
    /// must be added to the head, if any.
    Absent { length: Option<u64> },
    /// The length is known. If `is_in_head` is true, the head already contains the length as
    /// `Content-Length`.
    Length { bytes: u64, is_in_head: bool },
    /// The length is unknown. Chunks on HTTP/1.1, or frames on HTTP/2, delimit the body.
    Chunked,
}

impl Framing {
    /// Chooses the framing for a head and a body. Removes an invalid or forbidden `Content-Length`
    /// from the head. The caller must have removed the hop-by-hop fields, such as
    /// `Transfer-Encoding`.
    pub(crate) fn new(head: &mut response::Parts, body: &impl Body, is_head: bool) -> Self {
        // Responses with these status codes have no body (RFC 9110, section 6.4.1).
        let has_none = matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        if head.status == StatusCode::NO_CONTENT {
            head.headers.remove(CONTENT_LENGTH);
        }
        if has_none {
            return Self::Absent { length: None };
        }
        let size = if body.is_end_stream() { Some(0) } else { body.size_hint().exact() };
        if is_head {
            let has_length_field = head.headers.contains_key(CONTENT_LENGTH);
            return Self::Absent { length: size.filter(|size| *size > 0 && !has_length_field) };
        }
        let declared_length = head.headers.get(CONTENT_LENGTH).map(|value| fields::length(value.as_bytes()));
        match (declared_length, size) {
            (Some(Some(bytes)), _) => Self::Length { bytes, is_in_head: true },
            (None, Some(bytes)) => Self::Length { bytes, is_in_head: false },
            (Some(None), exact) => {
                head.headers.remove(CONTENT_LENGTH);
                exact.map_or(Self::Chunked, |bytes| Self::Length { bytes, is_in_head: false })
            }
            (None, None) => Self::Chunked,
        }
    }
}

/// One request and its response. The exchange ends when this value is dropped: after the last byte
/// of the body, or when the client disconnects.
#[derive(Debug)]
pub(crate) struct Exchange {
    // Must be declared before `record`, because fields are dropped in this order: dropping the
    // record logs it, and the connection must count as idle by then.
    in_progress: RequestInProgress,
    holds_transfer: bool,
    is_answered: bool,
    /// The access record, if there is an access log.
    pub(crate) record: Option<Box<PendingRecord>>,
    /// The HTTP/2 stream of the response; `None` on HTTP/1.1. The stream counts the sent bytes,
    /// because only the stream knows how many bytes `h2` has accepted.
    pub(crate) stream: Option<StreamConsumer>,
}

impl Exchange {
    pub(crate) fn begin(connection: &Arc<ConnectionState>, http2: bool) -> Self {
        let in_progress = connection.begin(http2);
        Self { in_progress, holds_transfer: false, is_answered: false, record: None, stream: None }
    }

    /// Returns the access record if the body must count its bytes in the record. `None` if the
    /// stream counts the bytes, or if there is no access log.
    pub(crate) fn body_record(&mut self) -> Option<&mut PendingRecord> {
        self.record.as_deref_mut().filter(|_| self.stream.is_none())
    }

    pub(crate) fn connection(&self) -> &Arc<ConnectionState> {
        &self.in_progress.0
    }

    pub(crate) fn count_response(&mut self, status: StatusCode) {
        self.is_answered = true;
        self.connection().counts.count_response(status);
    }

    pub(crate) fn set_transfer(&mut self, transfer: Transfer) {
        self.holds_transfer = true;
        *self.connection().delivery.transfer.lock() = Some(transfer);
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.is_answered {
            self.connection().counts.count_unanswered();
        }
        if self.holds_transfer {
            *self.connection().delivery.transfer.lock() = None;
        }
        if let (Some(stream), Some(record)) = (&self.stream, &mut self.record) {
            record.sent(stream.sent());
            if stream.is_ended.is_set() {
                record.set_complete();
            }
        }
    }
}
