//! The socket of an HTTP/2 connection: it holds the permit of the connection, notes what has passed, and ends the connection to
//! a server that floods it with frames.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::super::connection_limit::Permit;
use crate::edge::{Frame, FrameBudget, Frames};
use crate::socket::Socket;

/// What has passed on a connection.
#[derive(Debug)]
pub(super) struct Passed {
    opened: Instant,
    /// When the server last sent something, in milliseconds since `opened`.
    received_at: AtomicU64,
    /// RST_STREAM frames to the server.
    resets: AtomicUsize,
    /// DATA and HEADERS frames from the server.
    content: AtomicUsize,
    /// DATA frames from the server without octets, other than the last of a stream.
    empty: AtomicUsize,
    /// Whether the server's SETTINGS are in force, or never will be because the connection has ended.
    is_settled: AtomicBool,
    settled: Notify,
}

impl Passed {
    pub(super) fn new(opened: Instant) -> Self {
        let (received_at, resets, content, empty, is_settled, settled) = Default::default();
        Self { opened, received_at, resets, content, empty, is_settled, settled }
    }

    /// When the server last sent something.
    pub(super) fn received_at(&self) -> Instant {
        self.opened + std::time::Duration::from_millis(self.received_at.load(Ordering::Relaxed))
    }

    /// How many streams were reset, or frames refused after the reset of their stream was sent.
    pub(super) fn resets(&self) -> usize {
        self.resets.load(Ordering::Relaxed)
    }

    /// How many DATA and HEADERS frames came.
    pub(super) fn content(&self) -> usize {
        self.content.load(Ordering::Relaxed)
    }

    /// How many DATA frames came without octets.
    pub(super) fn empty(&self) -> usize {
        self.empty.load(Ordering::Relaxed)
    }

    /// Whether it is known how many streams the server takes, or the connection has ended.
    pub(super) fn is_settled(&self) -> bool {
        self.is_settled.load(Ordering::SeqCst)
    }

    /// Waits until it is.
    pub(super) async fn settled(&self) {
        let mut settled = pin!(self.settled.notified());
        settled.as_mut().enable();
        if !self.is_settled() {
            settled.await;
        }
    }

    fn settle(&self) {
        if !self.is_settled.swap(true, Ordering::SeqCst) {
            self.settled.notify_waiters();
        }
    }

    fn note_received(&self, frame: Frame) {
        if frame.is_content() {
            self.content.fetch_add(1, Ordering::Relaxed);
        }
        if frame.is_empty_data() {
            self.empty.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn note_octets(&self) {
        self.received_at.store(self.opened.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    fn note_sent(&self, frame: Frame) {
        if frame.is_reset() {
            self.resets.fetch_add(1, Ordering::Relaxed);
        }
        // It is sent once they are applied.
        if frame.is_settings_ack() {
            self.settle();
        }
    }
}

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
    received: Frames,
    sent: Frames,
    /// Octets of the preface that have not been sent.
    preface: usize,
    budget: FrameBudget,
}

/// What a client says before its first frame (RFC 9113, section 3.4).
const PREFACE: usize = 24;

impl PassingFrames {
    /// Accounts for frames from the server. Returns false where there is one too many.
    fn received(&mut self, octets: &[u8], passed: &Passed) -> bool {
        let (mut is_within, budget) = (true, &mut self.budget);
        self.received.pass(octets, |frame| {
            passed.note_received(frame);
            is_within &= budget.received(frame, Instant::now);
        });
        is_within
    }

    fn sent(&mut self, octets: &[u8], passed: &Passed) {
        let preface = self.preface.min(octets.len());
        self.preface -= preface;
        let budget = &mut self.budget;
        self.sent.pass(&octets[preface..], |frame| {
            budget.sent(frame);
            passed.note_sent(frame);
        });
    }
}

impl ConnectionIo {
    pub(super) fn new(socket: Socket, permit: Permit, passed: Arc<Passed>) -> Self {
        let (receiving, sent) = Default::default();
        let budget = FrameBudget::new(Instant::now());
        let passing = PassingFrames { received: receiving, sent, preface: PREFACE, budget };
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
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.socket).poll_read(cx, buffer))?;
        this.passed.note_octets();
        if !this.passing.received(&buffer.filled()[before..], &this.passed) {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "it sends too many frames")));
        }
        Poll::Ready(Ok(()))
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
