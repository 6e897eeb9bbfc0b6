//! The socket of an HTTP/1.1 connection to an upstream. The socket records progress, stops reading
//! an endless response head, and can check whether an idle connection is still open.
//!
//! hyper does not report three facts that are needed here: whether any byte of a response has
//! arrived, how many bytes were received before the final response, and when the upstream last
//! accepted data. The [`TrackedIo`] and the request body record these facts in an
//! [`ExchangeProgress`].

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::connection_limit::Permit;
use super::failure_kind::FailureKind;
use super::usage::Usage;
use crate::http_common::{Flag, RequestBodyError};
use crate::socket::{Socket, poll_write_slices};

/// A socket that records its progress in an [`ExchangeProgress`], and holds a permit until it is
/// closed.
#[derive(Debug)]
pub(super) struct TrackedIo {
    socket: Socket,
    pub(super) progress: Arc<ExchangeProgress>,
    /// Bytes of a response that were read before hyper took over the connection. hyper gets these
    /// bytes only when it has written its request (`has_asked`).
    early: Bytes,
    has_asked: bool,
    /// Whether the connection is a tunnel. Each read and write of a tunnel is recorded as progress.
    is_tunnel: bool,
    // Must be after the socket: the socket is closed before the permit is released.
    _permit: Permit,
}

impl TrackedIo {
    pub(super) fn new(socket: Socket, permit: Permit, progress: Arc<ExchangeProgress>) -> Self {
        Self { socket, progress, early: Bytes::new(), has_asked: false, is_tunnel: false, _permit: permit }
    }

    pub(super) fn tunnel(&mut self) {
        self.is_tunnel = true;
        self.progress.usage.tunnel();
    }

    fn note_passed(&self) {
        if self.is_tunnel {
            self.progress.usage.passed();
        }
    }

    /// Discards the next request that is written to the socket, because it has already been sent.
    /// Then returns `early` as the response.
    pub(super) fn replay(&mut self, early: Bytes) {
        self.progress.replays.set(true);
        self.early = early;
        self.has_asked = false;
    }

    /// Checks an idle connection. Returns `Pending` if nothing has arrived; the connection can then
    /// be used. Returns `Ok` at the end of the stream, and an error if bytes have arrived.
    ///
    /// The event loop does not notice a closed connection until the loop next polls the system, so
    /// this function asks the kernel.
    fn peek(&self) -> Poll<io::Result<()>> {
        match self.socket.peek() {
            Ok(0) => Poll::Ready(Ok(())),
            Ok(_) => {
                Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "the server sent bytes without a request")))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl AsyncRead for TrackedIo {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.early.is_empty() {
            // hyper would reject a response that arrives before it has written its request.
            if !this.has_asked {
                return Poll::Pending;
            }
            let length = this.early.len().min(buffer.remaining());
            buffer.put_slice(&this.early.split_to(length));
            return Poll::Ready(Ok(()));
        }
        if this.progress.look.take()
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
        if this.progress.replays.is_set() {
            this.has_asked = true;
            // The response has already been read, so no event of the socket would wake the task.
            cx.waker().wake_by_ref();
            return Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()));
        }
        let written = ready!(poll_write_slices(&mut this.socket, cx, slices));
        this.progress.upload.note_accepted_at(Instant::now());
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

/// Progress of the current exchange. The fields are atomic, because the futures of the exchange
/// must be `Send`.
#[derive(Debug)]
pub(super) struct ExchangeProgress {
    pub(super) usage: Arc<Usage>,
    pub(super) upload: UploadProgress,
    /// Number of bytes received since the request began.
    received: AtomicUsize,
    /// Maximum number of bytes until the head of the final response is complete; `usize::MAX` once
    /// it is complete.
    before_head: AtomicUsize,
    /// Whether the next read must ask the kernel, and not only the event loop, for the state of the
    /// connection.
    pub(super) look: Flag,
    /// Whether the bytes that hyper writes are discarded, because the fast path has already sent
    /// the request.
    replays: Flag,
}

impl ExchangeProgress {
    pub(super) fn new(usage: Arc<Usage>) -> Self {
        Self {
            usage,
            upload: UploadProgress::new(),
            received: AtomicUsize::new(0),
            before_head: AtomicUsize::new(usize::MAX),
            look: Flag::default(),
            replays: Flag::default(),
        }
    }

    pub(super) fn begin(&self, before_head: usize, now: Instant) {
        self.received.store(0, Ordering::Relaxed);
        self.before_head.store(before_head, Ordering::Relaxed);
        self.replays.set(false);
        self.upload.awaits_client.set(false);
        self.upload.failure.store(NO_FAILURE, Ordering::Relaxed);
        self.upload.note_accepted_at(now);
    }

    /// Reports whether the head of the final response has not yet arrived.
    pub(super) fn awaits_head(&self) -> bool {
        self.before_head.load(Ordering::Relaxed) != usize::MAX
    }

    /// Records that the head of the final response has arrived.
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
}

/// Progress of a request body, shared by the task that sends the body and the task that waits for
/// the response.
#[derive(Debug)]
pub(super) struct UploadProgress {
    opened: Instant,
    /// Time when the upstream last accepted data, in milliseconds since `opened`.
    taken: AtomicU64,
    /// Whether the upstream waits for the client to continue its request body.
    pub(super) awaits_client: Flag,
    /// Index in [`FailureKind::ALL`] of the reason why the body ended early. If the body did not
    /// end early, the index is out of range.
    failure: AtomicU8,
}

const NO_FAILURE: u8 = u8::MAX;

impl UploadProgress {
    pub(super) fn new() -> Self {
        let (taken, awaits_client) = Default::default();
        Self { opened: Instant::now(), taken, awaits_client, failure: AtomicU8::new(NO_FAILURE) }
    }

    pub(super) fn last_accepted(&self) -> Instant {
        self.opened + Duration::from_millis(self.taken.load(Ordering::Relaxed))
    }

    pub(super) fn failure(&self) -> Option<FailureKind> {
        FailureKind::ALL.get(usize::from(self.failure.load(Ordering::Relaxed))).copied()
    }

    pub(super) fn note_failure(&self, error: &RequestBodyError) {
        let kind = match error {
            RequestBodyError::Idle => FailureKind::RequestTimeout,
            RequestBodyError::Broken(_) => FailureKind::RequestBody,
        };
        self.failure.store(kind as u8, Ordering::Relaxed);
    }

    pub(super) fn note_accepted_at(&self, now: Instant) {
        self.taken.store(now.duration_since(self.opened).as_millis() as u64, Ordering::Relaxed);
    }
}
