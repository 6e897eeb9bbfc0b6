//! The socket to an upstream: it keeps a [`Gauge`], stops reading a head without end, and can tell whether an idle
//! connection is still open.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::gauge::Gauge;
use super::places::Place;
use super::socket::Socket;

/// A socket that keeps a [`Gauge`], and the place it takes as long as it is open.
#[derive(Debug)]
pub(super) struct Wire {
    socket: Socket,
    gauge: Arc<Gauge>,
    // After the socket, so that it is free only once that is closed.
    _place: Place,
}

impl Wire {
    pub(super) fn new(socket: Socket, place: Place, gauge: Arc<Gauge>) -> Self {
        Self { socket, gauge, _place: place }
    }

    /// Whether the connection is as silent as an idle one has to be.
    ///
    /// The event loop learns of a close only when it next turns; the kernel knows at once.
    fn peek(&self) -> Poll<io::Result<()>> {
        match self.socket.peek() {
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
        if this.gauge.has_to_look()
            && let Poll::Ready(end) = this.peek()
        {
            return Poll::Ready(end);
        }
        if this.gauge.is_flooded() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "the response head is too large")));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.socket).poll_read(cx, buffer))?;
        this.gauge.note_received(buffer.filled().len() - before);
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
