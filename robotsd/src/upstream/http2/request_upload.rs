//! The body of a request on its way to a stream, sent no faster than the server accepts it.
//!
//! The task that waits for the response polls it. It gets its own task only if the response arrives
//! before the body is complete.

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

/// Maximum number of body bytes kept until the response arrives, in case the server reports the
/// request as not processed.
const KEPT: usize = 64 * 1024;

/// Maximum number of pieces kept, because each costs more than its bytes.
const KEPT_PIECES: usize = 256;

/// Pieces smaller than this, in bytes, are joined with those that follow immediately. Some servers
/// treat many small frames as a flood and end the connection, which other clients share.
const SMALL: usize = 1024;

/// A body that is being sent.
#[derive(Debug)]
pub(super) struct RequestUpload {
    body: RequestBody,
    stream: SendStream<Bytes>,
    /// Bytes that wait until the server accepts them.
    waiting: Bytes,
    /// The frame after them, if it is not data and has already arrived.
    next: Option<Option<Result<Frame<Bytes>, RequestBodyError>>>,
    /// All pieces taken from the client so far; `None` if they exceed the limits.
    kept: Option<Vec<Bytes>>,
    kept_octets: usize,
    pub(super) progress: Arc<UploadProgress>,
    /// Whether something of the response has arrived since the flag was last read.
    has_response_moved: Arc<Flag>,
}

/// How an upload has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UploadEnd {
    Complete,
    /// The server does not want the rest.
    Unwanted,
    /// The client has not sent all of it.
    Failed,
}

/// An upload with its own task, which is aborted when this value is dropped.
#[derive(Debug)]
pub(super) struct UploadTask {
    task: AbortOnDropHandle<()>,
    progress: Arc<UploadProgress>,
    /// Set when something of the response has arrived.
    pub(super) has_response_moved: Arc<Flag>,
}

impl RequestUpload {
    pub(super) fn new(body: RequestBody, stream: SendStream<Bytes>) -> Self {
        let (progress, has_response_moved) = (Arc::new(UploadProgress::new()), Arc::default());
        let (waiting, next, kept, kept_octets) = (Bytes::new(), None, Some(Vec::new()), 0);
        Self { body, stream, waiting, next, kept, kept_octets, progress, has_response_moved }
    }

    /// Returns the whole body again, for another connection. `None` if more of it was taken than is
    /// kept, or if the client has failed.
    pub(super) fn into_body(self) -> Option<RequestBody> {
        let is_whole = self.progress.failure().is_none() && matches!(self.next, None | Some(None));
        let kept = self.kept.filter(|_| is_whole)?;
        Some(self.body.preceded_by(kept))
    }

    /// Sends the available bytes as far as the server accepts them.
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
                // Both directions form one conversation: it has stalled only if neither moves.
                self.body.has_moved();
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
                        // A trailer section ends the body, and is not kept.
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

    /// Joins a small piece of the body with the pieces after it that have already arrived.
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

    /// Sends as much as the server accepts at once. Returns the end if that was the last of the
    /// body.
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
        self.progress.note_taken_at(Instant::now());
        Poll::Ready(is_last.then_some(UploadEnd::Complete))
    }

    fn end(&mut self, send: impl FnOnce(&mut SendStream<Bytes>) -> Result<(), h2::Error>) -> Poll<UploadEnd> {
        self.progress.note_taken_at(Instant::now());
        self.progress.awaits_client.set(false);
        Poll::Ready(if send(&mut self.stream).is_ok() { UploadEnd::Complete } else { UploadEnd::Unwanted })
    }

    fn keep(&mut self, data: &Bytes) {
        self.kept_octets += data.len();
        let Some(kept) = self.kept.as_mut().filter(|kept| self.kept_octets <= KEPT && kept.len() < KEPT_PIECES) else {
            self.kept = None;
            return;
        };
        kept.push(data.clone());
    }

    /// Moves the upload to a separate task, because the response has arrived.
    pub(super) fn spawn(mut self) -> UploadTask {
        self.kept = None;
        let (progress, has_response_moved) = (Arc::clone(&self.progress), Arc::clone(&self.has_response_moved));
        let sending = poll_fn(move |cx| self.poll_send(cx).map(drop));
        UploadTask { task: AbortOnDropHandle::new(tokio::spawn(sending)), progress, has_response_moved }
    }
}

impl UploadTask {
    /// Returns when the server last accepted some of the body; `None` if the upload has ended.
    pub(super) fn last_taken(&self) -> Option<Instant> {
        (!self.task.is_finished()).then(|| self.progress.last_taken())
    }
}
