//! The socket to an upstream, and what is known about the exchange on it.
//!
//! hyper does not say whether any octet of an answer has come, how much of an answer's head (interim responses have no
//! bound), or when the upstream last took something. The wire sees it all and notes it in a [`Gauge`].

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::edge::{RequestBody, RequestBodyError};

/// Notes about the current exchange on a connection, which a single task keeps and reads; atomic so that the task may
/// change threads.
#[derive(Debug)]
pub(super) struct Gauge {
    opened: Instant,
    /// Octets that came since the request began.
    received: AtomicUsize,
    /// How many may come before the head of the final response is complete; `usize::MAX` once it is.
    before_head: AtomicUsize,
    /// When the upstream last took something, in milliseconds since `opened`.
    taken: AtomicU64,
    /// Whether the upstream waits for the client to go on with its request body.
    awaits_client: AtomicBool,
    body_failure: AtomicU8,
    /// Whether the next read must ask the kernel, not the event loop, what has become of the connection.
    look: AtomicBool,
}

impl Gauge {
    pub(super) fn new() -> Self {
        Self {
            opened: Instant::now(),
            received: AtomicUsize::new(0),
            before_head: AtomicUsize::new(usize::MAX),
            taken: AtomicU64::new(0),
            awaits_client: AtomicBool::new(false),
            body_failure: AtomicU8::new(0),
            look: AtomicBool::new(false),
        }
    }

    /// A request begins.
    pub(super) fn begin(&self, before_head: usize) {
        self.received.store(0, Ordering::Relaxed);
        self.before_head.store(before_head, Ordering::Relaxed);
        self.awaits_client.store(false, Ordering::Relaxed);
        self.body_failure.store(0, Ordering::Relaxed);
        self.note_taken();
    }

    /// The head of the final response has come.
    pub(super) fn has_head(&self) {
        self.before_head.store(usize::MAX, Ordering::Relaxed);
    }

    pub(super) fn nothing_received(&self) -> bool {
        self.received.load(Ordering::Relaxed) == 0
    }

    pub(super) fn is_flooded(&self) -> bool {
        self.received.load(Ordering::Relaxed) >= self.before_head.load(Ordering::Relaxed)
    }

    pub(super) fn last_taken(&self) -> Instant {
        self.opened + Duration::from_millis(self.taken.load(Ordering::Relaxed))
    }

    pub(super) fn awaits_client(&self) -> bool {
        self.awaits_client.load(Ordering::Relaxed)
    }

    /// How the request body ended early, if it did.
    pub(super) fn body_failure(&self) -> Option<BodyFailure> {
        match self.body_failure.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(BodyFailure::Idle),
            _ => Some(BodyFailure::Broken),
        }
    }

    /// Makes the next read ask the kernel.
    pub(super) fn look(&self) {
        self.look.store(true, Ordering::Relaxed);
    }

    fn note_taken(&self) {
        self.taken.store(self.opened.elapsed().as_millis() as u64, Ordering::Relaxed);
    }
}

/// What a client did to its own request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyFailure {
    /// It stopped sending.
    Idle,
    /// It left, or broke the framing.
    Broken,
}

/// A socket that keeps a [`Gauge`].
#[derive(Debug)]
pub(super) struct Wire {
    socket: TcpStream,
    gauge: Arc<Gauge>,
}

impl Wire {
    pub(super) fn new(socket: TcpStream, gauge: Arc<Gauge>) -> Self {
        Self { socket, gauge }
    }

    /// Whether the connection is as silent as an idle one has to be.
    ///
    /// The event loop learns of a close only when it next turns; the kernel knows at once.
    fn peek(&self) -> Poll<io::Result<()>> {
        match socket2::SockRef::from(&self.socket).peek(&mut [MaybeUninit::uninit()]) {
            Ok(0) => Poll::Ready(Ok(())),
            Ok(_) => Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "an answer nobody asked for"))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.gauge.look.swap(false, Ordering::Relaxed)
            && let Poll::Ready(end) = this.peek()
        {
            return Poll::Ready(end);
        }
        if this.gauge.is_flooded() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "the response head is too large")));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.socket).poll_read(cx, buffer))?;
        this.gauge.received.fetch_add(buffer.filled().len() - before, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.socket).poll_write(cx, bytes));
        this.gauge.note_taken();
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.socket).poll_write_vectored(cx, slices));
        this.gauge.note_taken();
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

/// A request body on its way to an upstream.
#[derive(Debug)]
pub(super) struct Sending {
    body: RequestBody,
    gauge: Arc<Gauge>,
}

impl Sending {
    pub(super) fn new(body: RequestBody, gauge: Arc<Gauge>) -> Self {
        Self { body, gauge }
    }

    /// The body, for another connection. Only whole where nothing of it has been taken.
    pub(super) fn into_body(self) -> RequestBody {
        self.body
    }
}

impl Body for Sending {
    type Data = Bytes;
    type Error = RequestBodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, RequestBodyError>>> {
        let this = self.get_mut();
        let frame = Pin::new(&mut this.body).poll_frame(cx);
        this.gauge.awaits_client.store(frame.is_pending(), Ordering::Relaxed);
        if let Poll::Ready(Some(Err(error))) = &frame {
            let failure = if matches!(error, RequestBodyError::Idle) { 1 } else { 2 };
            this.gauge.body_failure.store(failure, Ordering::Relaxed);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
