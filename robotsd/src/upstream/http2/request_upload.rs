//! Sends the body of a request on a stream, no faster than the server accepts it.
//!
//! The task that waits for the response also sends the body. If the response arrives first, a
//! separate task sends the rest of the body.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use h2::{Reason, SendStream};
use http_body::{Body, Frame};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::http_common::{Flag, RequestBody, RequestBodyError};
use crate::upstream::tracked_io::UploadProgress;

/// Maximum number of body bytes that are kept until the response arrives. With the kept bytes, the
/// request can be sent again if the server reports that it did not process the request.
const KEPT: usize = 64 * 1024;

/// Maximum number of pieces that are kept. A piece uses more memory than the bytes in it.
const KEPT_PIECES: usize = 256;

/// Pieces with fewer bytes are joined with the pieces that follow immediately. Some servers treat
/// many small frames as a flood, and end the connection with all its requests.
const SMALL: usize = 1024;

#[derive(Debug)]
pub(super) struct RequestUpload {
    body: RequestBody,
    stream: SendStream<Bytes>,
    /// Bytes that the server has not accepted yet.
    waiting: Bytes,
    /// The trailers, the error or the end that the body returned when it was polled in advance.
    /// Must be processed after the bytes in `waiting`.
    next: Option<Option<Result<Frame<Bytes>, RequestBodyError>>>,
    /// All pieces received from the client so far; `None` if the pieces exceed the limits.
    kept: Option<Vec<Bytes>>,
    kept_bytes: usize,
    pub(super) progress: Arc<UploadProgress>,
    /// Whether a part of the response has arrived since this flag was last checked.
    has_response_moved: Arc<Flag>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UploadEnd {
    Complete,
    /// The server does not need the rest of the body.
    Unwanted,
    Failed,
}

/// A separate task that sends the rest of a body. Dropping this value aborts the task.
#[derive(Debug)]
pub(super) struct UploadTask {
    task: AbortOnDropHandle<()>,
    progress: Arc<UploadProgress>,
    /// Must be set whenever a part of the response arrives.
    pub(super) has_response_moved: Arc<Flag>,
}

impl RequestUpload {
    pub(super) fn new(body: RequestBody, stream: SendStream<Bytes>) -> Self {
        let (progress, has_response_moved) = (Arc::new(UploadProgress::new()), Arc::default());
        let (waiting, next, kept, kept_bytes) = (Bytes::new(), None, Some(Vec::new()), 0);
        Self { body, stream, waiting, next, kept, kept_bytes, progress, has_response_moved }
    }

    /// Returns the whole body, to be sent on another connection; `None` if a part of it was not
    /// kept, or if the client did not send it completely.
    pub(super) fn into_body(self) -> Option<RequestBody> {
        let is_whole = self.progress.failure().is_none() && matches!(self.next, None | Some(None));
        let kept = self.kept.filter(|_| is_whole)?;
        Some(self.body.preceded_by(kept))
    }

    pub(super) fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<UploadEnd> {
        loop {
            if !self.waiting.is_empty() {
                match self.poll_send_waiting(cx) {
                    Poll::Ready(None) => continue,
                    Poll::Ready(Some(end)) => return Poll::Ready(end),
                    Poll::Pending => {
                        self.progress.awaits_client.set(false);
                        return Poll::Pending;
                    }
                }
            }
            if self.has_response_moved.take() {
                // A part of the response also counts as progress of the upload: the exchange has
                // stalled only if neither direction makes progress.
                self.body.note_progress();
            }
            let polled = match self.next.take() {
                Some(next) => Poll::Ready(next),
                None => Pin::new(&mut self.body).poll_frame(cx),
            };
            match polled {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => {
                        let data = self.joined(data, cx);
                        self.keep(&data);
                        self.waiting = data;
                    }
                    Err(frame) => {
                        // Trailers are not kept, so a body with trailers cannot be sent again.
                        self.kept = None;
                        let Ok(trailers) = frame.into_trailers() else { continue };
                        return self.end(|stream| stream.send_trailers(trailers));
                    }
                },
                Poll::Ready(Some(Err(error))) => {
                    self.progress.note_failure(&error);
                    self.stream.send_reset(Reason::CANCEL);
                    return Poll::Ready(UploadEnd::Failed);
                }
                Poll::Ready(None) => return self.end(|stream| stream.send_data(Bytes::new(), true)),
                Poll::Pending => {
                    self.progress.awaits_client.set(true);
                    return self.stream.poll_reset(cx).map(|_| UploadEnd::Unwanted);
                }
            }
        }
    }

    fn joined(&mut self, piece: Bytes, cx: &mut Context<'_>) -> Bytes {
        if piece.len() >= SMALL {
            return piece;
        }
        let mut joined = BytesMut::from(piece);
        while joined.len() < SMALL && !self.body.is_end_stream() {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) if frame.is_data() => {
                    joined.extend(frame.into_data());
                }
                Poll::Ready(next) => {
                    self.next = Some(next);
                    break;
                }
                Poll::Pending => break,
            }
        }
        joined.freeze()
    }

    /// Sends as many of the waiting bytes as the server accepts. Returns how the upload ended, or
    /// `None` if it continues.
    fn poll_send_waiting(&mut self, cx: &mut Context<'_>) -> Poll<Option<UploadEnd>> {
        self.stream.reserve_capacity(self.waiting.len());
        while self.stream.capacity() == 0 {
            match std::task::ready!(self.stream.poll_capacity(cx)) {
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Poll::Ready(Some(UploadEnd::Unwanted)),
            }
        }
        let piece = self.waiting.split_to(self.waiting.len().min(self.stream.capacity()));
        let is_end = self.next.as_ref().map_or_else(|| self.body.is_end_stream(), Option::is_none);
        let is_last = self.waiting.is_empty() && is_end;
        if self.stream.send_data(piece, is_last).is_err() {
            return Poll::Ready(Some(UploadEnd::Unwanted));
        }
        self.progress.note_accepted_at(Instant::now());
        Poll::Ready(is_last.then_some(UploadEnd::Complete))
    }

    fn end(&mut self, send: impl FnOnce(&mut SendStream<Bytes>) -> Result<(), h2::Error>) -> Poll<UploadEnd> {
        self.progress.note_accepted_at(Instant::now());
        self.progress.awaits_client.set(false);
        Poll::Ready(if send(&mut self.stream).is_ok() { UploadEnd::Complete } else { UploadEnd::Unwanted })
    }

    fn keep(&mut self, data: &Bytes) {
        self.kept_bytes += data.len();
        let Some(kept) = self.kept.as_mut().filter(|kept| self.kept_bytes <= KEPT && kept.len() < KEPT_PIECES) else {
            self.kept = None;
            return;
        };
        kept.push(data.clone());
    }

    /// Moves the upload to a separate task, because the response has arrived. Drops the bytes that
    /// were kept for another attempt.
    pub(super) fn spawn(mut self) -> UploadTask {
        self.kept = None;
        let (progress, has_response_moved) = (Arc::clone(&self.progress), Arc::clone(&self.has_response_moved));
        let sending = poll_fn(move |cx| self.poll_send(cx).map(drop));
        UploadTask { task: AbortOnDropHandle::new(tokio::spawn(sending)), progress, has_response_moved }
    }
}

impl UploadTask {
    /// Returns the time when the server last accepted bytes, or `None` if the upload has ended.
    pub(super) fn last_accepted(&self) -> Option<Instant> {
        (!self.task.is_finished()).then(|| self.progress.last_accepted())
    }
}
