//! The body of a response on an HTTP/2 stream. The flow-control window grows only when the client
//! reads, so unread bytes never exceed the window.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use http_body::{Frame, SizeHint};
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use super::pool::Http2Slot;
use super::request_upload::UploadTask;
use crate::http_common::poll_due;
use crate::upstream::failure_kind::{Cause, ResponseBodyError};

/// Maximum time to wait for the end of a stream whose declared bytes have all arrived.
const LAST_FRAME: Duration = Duration::from_secs(1);

/// The body of a response. Dropping this value before the end of the body resets the stream, so
/// that the server notices that the client has left. If all bytes have arrived and only the end of
/// the stream is missing, the stream is not reset immediately.
#[derive(Debug)]
pub(in crate::upstream) struct Http2Body {
    part: BodyPart,
    left: ExpectedBody,
    idle: Duration,
    /// The timer is created at the first wait, and is not reset for each frame.
    timer: Option<Pin<Box<Sleep>>>,
    /// Time when the current wait for data began; `None` after data has arrived.
    moved: Option<Instant>,
    // Fields are dropped in order, so the slot must be declared after the upload and the stream.
    // Dropping these two resets the stream; only then may another request use the slot.
    upload: Option<UploadTask>,
    stream: Option<RecvStream>,
    slot: Option<Box<Http2Slot>>,
    failed: Option<ResponseBodyError>,
}

/// The length of the rest of the body, as declared in the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectedBody {
    /// No body follows, even if the head declares a length.
    Absent,
    Length(u64),
    /// The head declares no length; the body ends with the stream.
    Open,
}

impl ExpectedBody {
    fn is_complete(self) -> bool {
        matches!(self, Self::Absent | Self::Length(0))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyPart {
    Data,
    Trailers,
    End,
}

/// A stream whose body is complete according to its declared length, but whose end has not arrived.
/// The complete body is not polled any more, so a task waits for the end of the stream. The stream
/// keeps its slot, so the stream limit also limits the number of these tasks.
#[derive(Debug)]
struct EndingStream {
    stream: RecvStream,
    part: BodyPart,
    // Must be the last field: the stream is dropped before its slot is released.
    _slot: Option<Box<Http2Slot>>,
}

impl Http2Body {
    pub(super) fn new(stream: RecvStream, left: ExpectedBody, upload: Option<UploadTask>, idle: Duration) -> Self {
        let (part, stream) = (BodyPart::Data, Some(stream));
        let (timer, moved, slot, failed) = Default::default();
        let mut body = Self { part, left, idle, timer, moved, upload, stream, slot, failed };
        if body.stream.as_ref().is_none_or(RecvStream::is_end_stream) {
            body.end();
        }
        body
    }

    pub(in crate::upstream) fn hold(&mut self, slot: Box<Http2Slot>) {
        if self.part != BodyPart::End {
            self.slot = Some(slot);
        }
    }

    pub(in crate::upstream) fn is_end_stream(&self) -> bool {
        self.part == BodyPart::End && self.failed.is_none()
    }

    pub(in crate::upstream) fn size_hint(&self) -> SizeHint {
        match self.left {
            _ if self.part == BodyPart::End => SizeHint::with_exact(0),
            ExpectedBody::Length(left) => SizeHint::with_exact(left),
            // The response to HEAD has no body, but its head declares a length.
            ExpectedBody::Absent | ExpectedBody::Open => SizeHint::default(),
        }
    }

    pub(in crate::upstream) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Some(Err(error)));
        }
        loop {
            let Some(stream) = self.stream.as_mut().filter(|_| self.part != BodyPart::End) else {
                return Poll::Ready(None);
            };
            if self.part == BodyPart::Trailers {
                return match stream.poll_trailers(cx) {
                    Poll::Ready(Ok(trailers)) => {
                        self.end();
                        Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
                    }
                    Poll::Ready(Err(error)) => self.broken(error, cx),
                    Poll::Pending => self.poll_idle(cx),
                };
            }
            match stream.poll_data(cx) {
                // Empty frames are skipped. The HTTP library counts and limits empty frames.
                Poll::Ready(Some(Ok(data))) if data.is_empty() => {}
                Poll::Ready(Some(Ok(data))) => {
                    // The client reads the data, so the window of the stream is restored. The next
                    // poll returns any error of the stream.
                    let _ = stream.flow_control().release_capacity(data.len());
                    if let ExpectedBody::Length(left) = &mut self.left {
                        *left = left.saturating_sub(data.len() as u64);
                    }
                    let is_last = stream.is_end_stream();
                    self.moved = None;
                    if let Some(upload) = &self.upload {
                        upload.has_response_moved.set(true);
                    }
                    if is_last {
                        self.end();
                    }
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Poll::Ready(Some(Err(error))) => return self.broken(error, cx),
                Poll::Ready(None) => self.part = BodyPart::Trailers,
                Poll::Pending => return self.poll_idle(cx),
            }
        }
    }

    /// Fails the body if neither direction has made progress for `idle`.
    fn poll_idle<T>(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        let moved = *self.moved.get_or_insert_with(Instant::now);
        let sent = self.upload.as_ref().and_then(UploadTask::last_accepted);
        let due = sent.map_or(moved, |sent| sent.max(moved)) + self.idle;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
        ready!(poll_due(timer.as_mut(), cx, |_| due));
        if let Some(slot) = &self.slot {
            slot.connection.doubt(moved);
        }
        self.fail(ResponseBodyError::Idle, cx)
    }

    fn broken<T>(&mut self, error: h2::Error, cx: &mut Context<'_>) -> Poll<T> {
        let cause = Cause::Http2(error);
        if let Some(slot) = &self.slot {
            slot.note_end(&cause);
        }
        self.fail(ResponseBodyError::Broken(cause), cx)
    }

    /// Ends the body with an error, but only at the next poll. So the client first receives
    /// everything that the server has sent, as it would on HTTP/1.1.
    fn fail<T>(&mut self, error: ResponseBodyError, cx: &mut Context<'_>) -> Poll<T> {
        self.end();
        self.failed = Some(error);
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Drops the stream, which resets it unless the server has ended it.
    fn end(&mut self) {
        self.part = BodyPart::End;
        self.upload = None;
        self.stream = None;
        self.slot = None;
    }
}

impl Drop for Http2Body {
    fn drop(&mut self) {
        let Some(stream) = self.stream.take().filter(|_| self.part != BodyPart::End && self.left.is_complete()) else {
            return;
        };
        self.upload = None;
        let mut ending = EndingStream { stream, part: self.part, _slot: self.slot.take() };
        let mut silent = Context::from_waker(Waker::noop());
        // Usually, the end of the stream has already arrived.
        if Pin::new(&mut ending).poll(&mut silent).is_pending()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(timeout(LAST_FRAME, ending));
        }
    }
}

impl Future for EndingStream {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        while this.part == BodyPart::Data {
            match ready!(this.stream.poll_data(cx)) {
                Some(Ok(data)) if data.is_empty() => {}
                // The server sent more data than it declared, which is an error.
                Some(_) => return Poll::Ready(()),
                None => this.part = BodyPart::Trailers,
            }
        }
        this.stream.poll_trailers(cx).map(drop)
    }
}
