//! The body of a request on a stream of HTTP/2.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, EXPECT};
use http_body::{Body, Frame, SizeHint};

use super::interim::InterimResponses;

/// The body of a request on a stream. What is not read, the client has no window for.
#[derive(Debug)]
pub(crate) struct RequestStream {
    stream: RecvStream,
    /// Octets still to come, where the head says so. The HTTP library holds the client to it.
    left: Option<u64>,
    has_data: bool,
    /// A client that waits to be told to go on (RFC 9110, section 10.1.1).
    expectant: Option<InterimResponses>,
}

impl RequestStream {
    pub(crate) fn new(stream: RecvStream, fields: &HeaderMap, client: InterimResponses) -> Self {
        let said = fields.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let left = if stream.is_end_stream() { Some(0) } else { said };
        let expects = fields.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
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
            // Not to one that has not waited.
            if let Some(client) = this.expectant.take()
                && polled.is_pending()
            {
                client.send_continue();
            }
            match ready!(polled) {
                Some(Ok(data)) => {
                    // It is passed on, so there is room for as much again. An error would be the stream's, and comes next.
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
