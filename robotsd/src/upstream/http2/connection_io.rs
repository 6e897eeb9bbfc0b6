//! The socket of an HTTP/2 connection: it holds the permit of the connection, notes what has passed, and ends the connection to
//! a server that floods it with frames.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::super::connection_limit::Permit;
use super::passed::Passed;
use super::stream_guard::StreamGuard;
use crate::edge::FrameBudget;
use crate::edge::frames::Frames;
use crate::socket::Socket;

/// The socket of a connection.
#[derive(Debug)]
pub(super) struct ConnectionIo {
    socket: Socket,
    passed: Arc<Passed>,
    passing: PassingFrames,
    // After the socket, so that it is free only once that is closed.
    _permit: Permit,
}

/// The heads of the frames that pass. h2 bounds some kinds of them; the rest have the budget that clients have.
#[derive(Debug)]
struct PassingFrames {
    received: StreamGuard,
    sent: Frames,
    /// Octets of the preface that have not been sent.
    preface: usize,
    budget: FrameBudget,
}

/// What a client says before its first frame (RFC 9113, section 3.4).
const PREFACE: usize = 24;

impl PassingFrames {
    /// Accounts for frames from the server. Returns how many of the octets pass as they are; none where there is a frame too many.
    fn received(&mut self, octets: &[u8], passed: &Passed) -> Option<usize> {
        let (mut is_within, budget) = (true, &mut self.budget);
        let length = self.received.received(octets, passed, &mut |frame| {
            passed.note_received(frame);
            is_within &= budget.received(frame, Instant::now);
        });
        (is_within && !self.received.is_flooded()).then_some(length)
    }

    fn sent(&mut self, octets: &[u8], passed: &Passed) {
        let preface = self.preface.min(octets.len());
        self.preface -= preface;
        let (budget, received) = (&mut self.budget, &mut self.received);
        self.sent.pass(&octets[preface..], |frame| {
            budget.sent(frame);
            received.sent(frame);
            passed.note_sent(frame);
        });
    }
}

impl ConnectionIo {
    /// Told the server that a head may have `head_bytes`.
    pub(super) fn new(socket: Socket, permit: Permit, passed: Arc<Passed>, head_bytes: usize) -> Self {
        let (received, budget) = (StreamGuard::new(head_bytes), FrameBudget::new(Instant::now()));
        let passing = PassingFrames { received, sent: Frames::default(), preface: PREFACE, budget };
        Self { socket, passed, passing, _permit: permit }
    }
}

impl Drop for ConnectionIo {
    fn drop(&mut self) {
        self.passed.settle();
    }
}

impl AsyncRead for ConnectionIo {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            let ready = this.passing.received.ready();
            if !ready.is_empty() {
                buffer.put_slice(&ready.split_to(ready.len().min(buffer.remaining())));
                return Poll::Ready(Ok(()));
            }
            let before = buffer.filled().len();
            ready!(Pin::new(&mut this.socket).poll_read(cx, buffer))?;
            this.passed.note_octets();
            let octets = &buffer.filled()[before..];
            let is_end = octets.is_empty();
            let Some(length) = this.passing.received(octets, &this.passed) else {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "it sends too many frames")));
            };
            buffer.set_filled(before + length);
            if length > 0 || is_end {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for ConnectionIo {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.socket).poll_write(cx, bytes))?;
        this.passing.sent(&bytes[..written], &this.passed);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.socket).poll_write_vectored(cx, slices))?;
        let mut left = written;
        for slice in slices {
            let octets = &slice[..left.min(slice.len())];
            this.passing.sent(octets, &this.passed);
            left -= octets.len();
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
