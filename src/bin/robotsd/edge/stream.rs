//! The client's socket as the protocol sees it: it tells when bytes arrive, and a write that stands still ends it.
//!
//! hyper has no deadline for writing. A client that asks for a large file and never reads would otherwise hold its
//! connection, and the upstream's, for ever. Reading has its deadlines elsewhere: heads in the driver, bodies in
//! [`RequestBody`](super::RequestBody).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::activity::Activity;
use super::idle::Idle;

#[derive(Debug)]
pub(super) struct ClientStream<T> {
    socket: T,
    /// What has been read before.
    early: Bytes,
    activity: Arc<Activity>,
    stalled: Idle,
    flushing: Idle,
}

impl<T> ClientStream<T> {
    pub(super) fn new(socket: T, early: Bytes, activity: Arc<Activity>, write_idle: Duration) -> Self {
        Self { socket, early, activity, stalled: Idle::new(write_idle), flushing: Idle::new(write_idle) }
    }

    /// Passes on what a write came to, unless it has stood still for too long.
    fn watch<R>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        if written.is_ready() {
            self.stalled.moved();
            return written;
        }
        ready!(self.stalled.poll_expired(cx));
        Poll::Ready(Err(stuck()))
    }
}

fn stuck() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the client does not read")
}

impl<T: AsyncRead + Unpin> AsyncRead for ClientStream<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.early.is_empty() {
            let length = this.early.len().min(buffer.remaining());
            buffer.put_slice(&this.early.split_to(length));
            this.activity.bytes_read();
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.socket).poll_read(cx, buffer))?;
        if buffer.filled().len() > before {
            this.activity.bytes_read();
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for ClientStream<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.socket).poll_write(cx, bytes);
        this.watch(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.socket).poll_write_vectored(cx, slices);
        this.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.socket).poll_flush(cx);
        if flushed.is_ready() {
            this.flushing.moved();
            return flushed;
        }
        // With TLS, what has been written may still be here.
        ready!(this.flushing.poll_expired(cx));
        Poll::Ready(Err(stuck()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}
