//! The socket to an upstream: it keeps an [`ExchangeProgress`], stops reading a head without end, and can tell whether an idle
//! connection is still open.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection_limit::Permit;
use super::exchange_progress::ExchangeProgress;
use super::usage::Usage;
use crate::socket::Socket;

/// A socket that keeps an [`ExchangeProgress`], and its permit for as long as it is open.
#[derive(Debug)]
pub(super) struct TrackedIo {
    socket: Socket,
    progress: Arc<ExchangeProgress>,
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
        self.progress.usage().tunnel();
    }

    /// How the connection is used.
    pub(super) fn usage(&self) -> &Arc<Usage> {
        self.progress.usage()
    }

    /// Something has been read or written.
    fn note_passed(&self) {
        if self.is_tunnel {
            self.progress.usage().passed();
        }
    }

    /// Replays the octets that were read to the next sender of the request, whose writes are swallowed.
    pub(super) fn replay(&mut self, early: Bytes) {
        self.progress.replay();
        self.early = early;
        self.has_asked = false;
    }

    /// Takes what has been sent already.
    fn swallow(&mut self, cx: &mut Context<'_>, octets: usize) -> Poll<io::Result<usize>> {
        self.has_asked = true;
        // The response is there, but no event of the socket will say so.
        cx.waker().wake_by_ref();
        Poll::Ready(Ok(octets))
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
        if this.progress.has_to_look()
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
        this.progress.note_received(buffer.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TrackedIo {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.progress.replays() {
            return this.swallow(cx, bytes.len());
        }
        let written = ready!(Pin::new(&mut this.socket).poll_write(cx, bytes));
        this.progress.note_taken();
        this.note_passed();
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.progress.replays() {
            return this.swallow(cx, slices.iter().map(|slice| slice.len()).sum());
        }
        let written = ready!(Pin::new(&mut this.socket).poll_write_vectored(cx, slices));
        this.progress.note_taken();
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
