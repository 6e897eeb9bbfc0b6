//! The socket to an upstream: it keeps an [`ExchangeProgress`], stops reading a head without end, and can tell whether an idle
//! connection is still open.
//!
//! hyper does not say whether any octet of an answer has come, how much of an answer's head (interim responses have no
//! bound), or when the upstream last took something. The [`TrackedIo`] and the request body on it see it
//! all and note it here.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::connection_limit::Permit;
use super::failure_kind::FailureKind;
use super::usage::Usage;
use crate::exchange::RequestBodyError;
use crate::socket::{Socket, poll_write_slices};

/// A socket that keeps an [`ExchangeProgress`], and its permit for as long as it is open.
#[derive(Debug)]
pub(super) struct TrackedIo {
    socket: Socket,
    pub(super) progress: Arc<ExchangeProgress>,
    /// An answer that was read before hyper read it, and whether hyper has since.
    early: Bytes,
    has_asked: bool,
    /// The connection passes octets both ways, and each is noted.
    is_tunnel: bool,
    // After the socket, so that it is free only once that is closed.
    _permit: Permit,
}

impl TrackedIo {
    pub(super) fn new(socket: Socket, permit: Permit, progress: Arc<ExchangeProgress>) -> Self {
        Self { socket, progress, early: Bytes::new(), has_asked: false, is_tunnel: false, _permit: permit }
    }

    /// Becomes a tunnel.
    pub(super) fn tunnel(&mut self) {
        self.is_tunnel = true;
        self.progress.usage.tunnel();
    }

    /// Something has been read or written.
    fn note_passed(&self) {
        if self.is_tunnel {
            self.progress.usage.passed();
        }
    }

    /// Replays the octets that were read to the next sender of the request, whose writes are swallowed.
    pub(super) fn replay(&mut self, early: Bytes) {
        self.progress.replays.store(true, Ordering::Relaxed);
        self.early = early;
        self.has_asked = false;
    }

    /// Whether the connection is as silent as an idle one has to be.
    ///
    /// The event loop learns of a close only when it next turns; the kernel knows at once.
    fn peek(&self) -> Poll<io::Result<()>> {
        match self.socket.peek() {
            Ok(0) => Poll::Ready(Ok(())),
            Ok(_) => Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "octets that answer no request"))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl AsyncRead for TrackedIo {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.early.is_empty() {
            // hyper refuses a response that comes before its request.
            if !this.has_asked {
                return Poll::Pending;
            }
            let length = this.early.len().min(buffer.remaining());
            buffer.put_slice(&this.early.split_to(length));
            return Poll::Ready(Ok(()));
        }
        if this.progress.look.swap(false, Ordering::Relaxed)
            && let Poll::Ready(end) = this.peek()
        {
            return Poll::Ready(end);
        }
        if this.progress.is_flooded() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "the response head is too large")));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.socket).poll_read(cx, buffer);
        ready!(read)?;
        this.note_passed();
        this.progress.received.fetch_add(buffer.filled().len() - before, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TrackedIo {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.progress.replays.load(Ordering::Relaxed) {
            this.has_asked = true;
            // The response is there, but no event of the socket will say so.
            cx.waker().wake_by_ref();
            return Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()));
        }
        let written = ready!(poll_write_slices(&mut this.socket, cx, slices));
        this.progress.upload.note_taken_at(Instant::now());
        this.note_passed();
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}

/// Notes about the current exchange on a connection, which a single task keeps and reads; atomic so that the task may
/// change threads.
#[derive(Debug)]
pub(super) struct ExchangeProgress {
    /// How the connection is used.
    pub(super) usage: Arc<Usage>,
    pub(super) upload: UploadProgress,
    /// Octets that came since the request began.
    received: AtomicUsize,
    /// How many may come before the head of the final response is complete; `usize::MAX` once it is.
    before_head: AtomicUsize,
    /// Whether the next read must ask the kernel, not the event loop, for the state of the connection.
    look: AtomicBool,
    /// Whether the request has been sent before, and is only written once more for hyper's sake.
    replays: AtomicBool,
}

impl ExchangeProgress {
    pub(super) fn new(usage: Arc<Usage>) -> Self {
        let (received, look, replays) = Default::default();
        let (upload, before_head) = (UploadProgress::new(), AtomicUsize::new(usize::MAX));
        Self { usage, upload, received, before_head, look, replays }
    }

    /// A request begins.
    pub(super) fn begin(&self, before_head: usize, now: Instant) {
        self.received.store(0, Ordering::Relaxed);
        self.before_head.store(before_head, Ordering::Relaxed);
        self.replays.store(false, Ordering::Relaxed);
        self.upload.note_awaits_client(false);
        self.upload.failure.store(NO_FAILURE, Ordering::Relaxed);
        self.upload.note_taken_at(now);
    }

    /// Whether the head of the final response is still to come.
    pub(super) fn awaits_head(&self) -> bool {
        self.before_head.load(Ordering::Relaxed) != usize::MAX
    }

    /// The head of the final response has come.
    pub(super) fn has_head(&self) {
        self.usage.moved();
        self.before_head.store(usize::MAX, Ordering::Relaxed);
    }

    pub(super) fn nothing_received(&self) -> bool {
        self.received.load(Ordering::Relaxed) == 0
    }

    pub(super) fn is_flooded(&self) -> bool {
        self.received.load(Ordering::Relaxed) >= self.before_head.load(Ordering::Relaxed)
    }

    /// Makes the next read ask the kernel.
    pub(super) fn look(&self) {
        self.look.store(true, Ordering::Relaxed);
    }
}

/// How far the body of a request has come, between the task that sends it and the one that waits for the response; atomic likewise.
#[derive(Debug)]
pub(super) struct UploadProgress {
    opened: Instant,
    /// When the upstream last took something, in milliseconds since `opened`.
    taken: AtomicU64,
    /// Whether the upstream waits for the client to go on.
    awaits_client: AtomicBool,
    /// The place in [`FailureKind::ALL`] of how the body ended early; past its end where it did not.
    failure: AtomicU8,
}

const NO_FAILURE: u8 = u8::MAX;

impl UploadProgress {
    pub(super) fn new() -> Self {
        let (taken, awaits_client) = Default::default();
        Self { opened: Instant::now(), taken, awaits_client, failure: AtomicU8::new(NO_FAILURE) }
    }

    pub(super) fn last_taken(&self) -> Instant {
        self.opened + Duration::from_millis(self.taken.load(Ordering::Relaxed))
    }

    pub(super) fn awaits_client(&self) -> bool {
        self.awaits_client.load(Ordering::Relaxed)
    }

    /// How the client broke its own body off, if it did.
    pub(super) fn failure(&self) -> Option<FailureKind> {
        FailureKind::ALL.get(usize::from(self.failure.load(Ordering::Relaxed))).copied()
    }

    pub(super) fn note_awaits_client(&self, awaits: bool) {
        self.awaits_client.store(awaits, Ordering::Relaxed);
    }

    pub(super) fn note_failure(&self, error: &RequestBodyError) {
        let kind = match error {
            RequestBodyError::Idle => FailureKind::RequestTimeout,
            RequestBodyError::Broken(_) => FailureKind::RequestBody,
        };
        self.failure.store(kind as u8, Ordering::Relaxed);
    }

    pub(super) fn note_taken_at(&self, now: Instant) {
        self.taken.store(now.duration_since(self.opened).as_millis() as u64, Ordering::Relaxed);
    }
}
