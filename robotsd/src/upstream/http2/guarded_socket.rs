//! The socket of an HTTP/2 connection: it holds the permit of the connection, notes what has activity, and ends the
//! connection to a server that floods it with frames.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::super::connection_limit::Permit;
use super::connection_activity::ConnectionActivity;
use super::stream_guard::StreamGuard;
use crate::exchange::frames::Frames;
use crate::socket::{Socket, poll_write_slices};

/// The socket of a connection.
#[derive(Debug)]
pub(super) struct GuardedSocket {
    socket: Socket,
    activity: Arc<ConnectionActivity>,
    received: StreamGuard,
    sent: Frames,
    /// Octets of the preface that have not been sent.
    preface: usize,
    // After the socket, so that it is free only once that is closed.
    _permit: Permit,
}

/// What a client says before its first frame (RFC 9113, section 3.4).
const PREFACE: usize = 24;

impl GuardedSocket {
    /// Announces to the server that a head may have `head_bytes`.
    pub(super) fn new(socket: Socket, permit: Permit, activity: Arc<ConnectionActivity>, head_bytes: usize) -> Self {
        let received = StreamGuard::new(head_bytes, Arc::clone(&activity));
        Self { socket, activity, received, sent: Frames::default(), preface: PREFACE, _permit: permit }
    }
}

impl Drop for GuardedSocket {
    fn drop(&mut self) {
        self.activity.settle();
    }
}

impl AsyncRead for GuardedSocket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            let ready = this.received.ready();
            if !ready.is_empty() {
                buffer.put_slice(&ready.split_to(ready.len().min(buffer.remaining())));
                return Poll::Ready(Ok(()));
            }
            let before = buffer.filled().len();
            ready!(Pin::new(&mut this.socket).poll_read(cx, buffer))?;
            this.activity.note_octets();
            let octets = &buffer.filled()[before..];
            let is_end = octets.is_empty();
            let length = this.received.received(octets);
            if this.received.is_flooded() {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "it sends too many frames")));
            }
            buffer.set_filled(before + length);
            if length > 0 || is_end {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for GuardedSocket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(poll_write_slices(&mut this.socket, cx, slices))?;
        let mut left = written;
        for slice in slices {
            let octets = &slice[..left.min(slice.len())];
            left -= octets.len();
            let preface = this.preface.min(octets.len());
            this.preface -= preface;
            this.sent.pass(&octets[preface..], |frame| this.received.sent(frame));
        }
        Poll::Ready(Ok(written))
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
