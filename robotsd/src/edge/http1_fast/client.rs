//! The client's end of a connection, without a protocol.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;

use crate::edge::connection::client_socket::ClientSocket;
use crate::edge::http1_fast::date_clock::DateClock;
use crate::edge::idle_timeout::IdleTimeout;
use crate::edge::transfer::Transfer;

/// Octets read at once, through the stack; a request head that is longer is hyper's.
pub(crate) const READ: usize = 8 * 1024;

#[derive(Debug)]
pub(crate) struct FastClient {
    transport: ClientSocket,
    /// Read while something else was awaited.
    early: Bytes,
    /// What is to be written, and how much of it has been.
    out: Vec<u8>,
    sent: usize,
    stalled: IdleTimeout,
    /// What the answer being written holds behind the edge.
    transfer: Option<Transfer>,
    write_idle: Duration,
    pub(crate) clock: Arc<DateClock>,
    /// Changes when the listener stops.
    pub(crate) stop: watch::Receiver<bool>,
}

impl FastClient {
    pub(crate) fn new(
        transport: ClientSocket,
        write_idle: Duration,
        clock: Arc<DateClock>,
        stop: watch::Receiver<bool>,
    ) -> Self {
        let stalled = IdleTimeout::new(write_idle);
        let (early, out) = (Bytes::new(), Vec::new());
        Self { transport, early, out, sent: 0, stalled, transfer: None, write_idle, clock, stop }
    }

    pub(crate) fn into_transport(self) -> ClientSocket {
        self.transport
    }

    /// Where the head of a response is written to.
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// The answer that is written from now on holds this behind the edge.
    pub(crate) fn carry(&mut self, transfer: Option<Transfer>) {
        self.transfer = transfer;
    }

    /// Octets from the client; none once it has closed its side.
    pub(crate) fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        if !self.early.is_empty() {
            return Poll::Ready(Ok(Some(std::mem::take(&mut self.early))));
        }
        self.poll_read(cx)
    }

    /// Ready when the client has left. What it sends meanwhile, up to a [`READ`], is kept for later.
    pub(crate) fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.early.is_empty() {
            match ready!(self.poll_read(cx)) {
                Ok(Some(octets)) => self.early = octets,
                Ok(None) | Err(_) => return Poll::Ready(()),
            }
        }
        Poll::Pending
    }

    /// Writes everything in [`out`](Self::out), and `data` after it.
    pub(crate) async fn send(&mut self, mut data: Bytes) -> io::Result<()> {
        poll_fn(|cx| self.poll_send(cx, &mut data)).await
    }

    pub(crate) fn poll_send(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<io::Result<()>> {
        loop {
            let out = &self.out[self.sent..];
            let transport = Pin::new(&mut self.transport);
            let written = match (out.is_empty(), data.is_empty()) {
                (true, true) => break,
                (false, true) => transport.poll_write(cx, out),
                (true, false) => transport.poll_write(cx, data),
                (false, false) => transport.poll_write_vectored(cx, &[IoSlice::new(out), IoSlice::new(data)]),
            };
            let Poll::Ready(written) = written else { return self.poll_stuck(cx) };
            self.moved();
            match written? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => {
                    let of_out = written.min(self.out.len() - self.sent);
                    self.sent += of_out;
                    bytes::Buf::advance(data, written - of_out);
                }
            }
        }
        self.out.clear();
        self.sent = 0;
        if let ClientSocket::Tls(stream) = &mut self.transport {
            match Pin::new(stream).poll_flush(cx) {
                Poll::Ready(flushed) => flushed?,
                Poll::Pending => return self.poll_stuck(cx),
            }
            self.moved();
        }
        Poll::Ready(Ok(()))
    }

    /// Says that nothing more will come, to a client that listens.
    pub(crate) async fn close(&mut self) {
        let closing = poll_fn(|cx| Pin::new(&mut self.transport).poll_shutdown(cx));
        // One that does not is not waited for.
        let _ = tokio::time::timeout(self.write_idle, closing).await;
    }

    /// The same without waiting.
    pub(crate) fn close_now(&mut self) {
        let _ = Pin::new(&mut self.transport).poll_shutdown(&mut Context::from_waker(Waker::noop()));
    }

    /// Gives up everything but the socket.
    pub(crate) fn park(&mut self) {
        self.out = Vec::new();
        self.stalled = IdleTimeout::new(self.write_idle);
    }

    /// The client has taken something.
    fn moved(&mut self) {
        if self.stalled.is_waiting()
            && let Some(transfer) = &self.transfer
        {
            transfer.moved();
        }
        self.stalled.moved();
    }

    fn poll_stuck(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let given_up = self.transfer.as_ref().is_some_and(|transfer| transfer.poll_stalled(cx).is_ready());
        if !given_up {
            ready!(self.stalled.poll_expired(cx));
        }
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read from its connection")))
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        let mut room = [MaybeUninit::uninit(); READ];
        let mut buffer = ReadBuf::uninit(&mut room);
        ready!(Pin::new(&mut self.transport).poll_read(cx, &mut buffer))?;
        let octets = buffer.filled();
        Poll::Ready(Ok(if octets.is_empty() { None } else { Some(Bytes::copy_from_slice(octets)) }))
    }
}
