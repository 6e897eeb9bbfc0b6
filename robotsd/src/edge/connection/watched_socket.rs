//! The client's socket, which the HTTP libraries read and write. This type reports when bytes
//! arrive and how fast the client reads, and fails writes that make no progress.
//!
//! The HTTP libraries have no deadline for writes. Without a deadline, a client that requests a
//! large file and never reads would occupy its connection and the upstream's connection forever.
//! The deadlines for reads are in [`connection`](super) for heads, and in
//! [`RequestBody`](crate::http_common::RequestBody) for bodies.
//!
//! On HTTP/2 the socket also counts frames in both directions (see [`FrameAccounting`]) and stops
//! reading from a client that floods the connection. The socket also sends GOAWAY in two cases that
//! `h2` does not handle: if TLS has negotiated HTTP/2 but the client sends something else, and if
//! an idle connection is closed to free its slot.
//!
//! **An HTTP library may accept a whole body long before the client has received it.** When the
//! library has accepted the body, no request is in progress any more, but the connection must not
//! be closed yet. Two signs show that the client has not received everything: a write or flush
//! waits, or the end of an HTTP/2 stream has not been sent. Unfinished streams keep a connection
//! open for `body_idle` after its last request has ended. Requests that arrive during this time do
//! not restart `body_idle`.
//!
//! **An incomplete HTTP/2 frame is treated like an incomplete head.** Both have the same deadline,
//! and in both cases the connection can lose its slot after the same time. A stream counts as a
//! request when its field section is complete.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;

use crate::edge::connection_state::{ConnectionState, Unsent};
use crate::edge::http2::frame_accounting::FrameAccounting;
use crate::edge::tls::SettledProtocol;
use crate::http_common::{IdleTimeout, InterimClient, client_does_not_read, frames};
use crate::socket::{LingeringClose, poll_write_slices};

#[derive(Debug)]
pub(crate) struct WatchedSocket<T> {
    socket: T,
    /// Bytes that were read before this socket was created.
    early: Bytes,
    /// Bytes that were read to detect the protocol; the next reads return them.
    pub(crate) unread: Bytes,
    state: Arc<ConnectionState>,
    /// Timeouts, indexed by [`Operation`].
    timeouts: [IdleTimeout; 2],
    protocol: Protocol,
    interim: Bytes,
    /// The unsent data, as last reported to the [`ConnectionState`].
    unsent: Unsent,
    /// Result of `FrameAccounting::partial`, as last reported to the [`ConnectionState`].
    partial: Option<u32>,
    /// `Some` after the sending side was closed.
    lingering: Option<LingeringClose>,
}

#[derive(Debug)]
enum Protocol {
    Http1,
    /// All bytes so far match the beginning of the HTTP/2 preface.
    Preface {
        bytes: usize,
        /// Whether TLS has negotiated HTTP/2, so that no other protocol is allowed.
        is_required: bool,
    },
    Http2(FrameAccounting),
}

pub(super) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

impl<T> WatchedSocket<T> {
    /// Creates the socket. If `settled` is `None`, the client's first bytes decide the protocol.
    pub(crate) fn new(
        socket: T,
        early: Bytes,
        settled: Option<SettledProtocol>,
        state: Arc<ConnectionState>,
        write_idle: Duration,
    ) -> Self {
        let protocol = match settled {
            Some(SettledProtocol::Http1) => Protocol::Http1,
            settled => Protocol::Preface { bytes: 0, is_required: settled.is_some() },
        };
        let (unread, interim, partial, lingering) = Default::default();
        let timeouts = [IdleTimeout::new(write_idle), IdleTimeout::new(write_idle)];
        let unsent = Unsent::Nothing;
        Self { socket, early, unread, state, timeouts, protocol, interim, unsent, partial, lingering }
    }

    /// Returns the protocol of the connection, or `None` if it is not decided yet.
    pub(crate) fn protocol(&self) -> Option<SettledProtocol> {
        match &self.protocol {
            Protocol::Http1 => Some(SettledProtocol::Http1),
            Protocol::Preface { .. } => None,
            Protocol::Http2(_) => Some(SettledProtocol::Http2),
        }
    }

    pub(crate) fn requests(&self) -> usize {
        match &self.protocol {
            Protocol::Http2(accounting) => accounting.requests,
            _ => 0,
        }
    }

    /// Stores in the [`ConnectionState`] whether data remains to be sent (in the socket or in
    /// streams), and whether a frame is incomplete.
    fn record_progress(&mut self) {
        let is_blocked = self.timeouts.iter().any(|timeout| timeout.is_waiting);
        let (streams, partial) = match &self.protocol {
            Protocol::Http2(accounting) => (accounting.unsent(), accounting.partial()),
            _ => (None, None),
        };
        let unsent = if is_blocked { Unsent::Socket } else { streams.map_or(Unsent::Nothing, Unsent::Streams) };
        if self.unsent != unsent {
            self.unsent = unsent;
            self.state.delivery.set_unsent(unsent);
        }
        if self.partial != partial {
            self.partial = partial;
            self.state.set_partial(partial.is_some());
        }
    }

    /// Inspects bytes from the client before the HTTP library receives them. If `bytes` is empty,
    /// the client has closed its sending side.
    fn received(&mut self, mut bytes: &[u8]) -> Result<(), ProtocolViolation> {
        if let Protocol::Preface { bytes: matched, is_required } = &mut self.protocol {
            let is_end = bytes.is_empty();
            let expected = &PREFACE[*matched..];
            let common = expected.iter().zip(bytes).take_while(|(expected, byte)| expected == byte).count();
            *matched += common;
            bytes = &bytes[common..];
            if *matched == PREFACE.len() {
                self.state.is_http2.set(true);
                self.protocol = Protocol::Http2(FrameAccounting::new());
            } else if *is_required && (is_end || !bytes.is_empty()) {
                return Err(ProtocolViolation::Preface);
            } else if !bytes.is_empty() {
                self.protocol = Protocol::Http1;
            }
        }
        match &mut self.protocol {
            Protocol::Http2(accounting) => accounting.received(bytes).map_err(ProtocolViolation::Flood),
            _ => Ok(()),
        }
    }

    fn sent(&mut self, slices: &[io::IoSlice<'_>], mut bytes: usize) {
        let Protocol::Http2(accounting) = &mut self.protocol else { return };
        for slice in slices {
            let length = slice.len().min(bytes);
            accounting.sent(&slice[..length]);
            bytes -= length;
        }
    }
}

impl<T: AsyncWrite + Unpin> WatchedSocket<T> {
    /// Ends the connection of a client that did not send the HTTP/2 preface although TLS has
    /// negotiated HTTP/2. Nothing has been sent to the client yet, so an empty SETTINGS frame
    /// precedes the GOAWAY.
    fn refuse_protocol(&mut self, cx: &mut Context<'_>) -> io::Error {
        let goaway = frames::goaway(0, frames::PROTOCOL_ERROR);
        self.send_last(cx, &[&frames::NO_SETTINGS[..], &goaway].concat());
        io::Error::new(
            io::ErrorKind::InvalidData,
            "TLS negotiated HTTP/2, but the client did not send the HTTP/2 preface",
        )
    }

    /// Closes an idle connection to free its slot. Returns false if the connection is not idle.
    fn close_idle(&mut self, cx: &mut Context<'_>) -> bool {
        if self.unsent != Unsent::Nothing {
            return false;
        }
        // If the first bytes of a frame have arrived, the frame may be the beginning of a request,
        // so the connection is not idle.
        if self.partial.is_some() && !self.state.is_reclaimed_as_slow() {
            return false;
        }
        if let Protocol::Http2(accounting) = &self.protocol
            && let Some(goaway) = accounting.goaway(frames::NO_ERROR)
        {
            self.send_last(cx, &goaway);
        }
        true
    }

    /// Sends the last bytes of a connection if the socket accepts them immediately, and drops them
    /// if it does not.
    fn send_last(&mut self, cx: &mut Context<'_>, bytes: &[u8]) {
        if matches!(Pin::new(&mut self.socket).poll_write(cx, bytes), Poll::Ready(Ok(_))) {
            let _ = Pin::new(&mut self.socket).poll_flush(cx);
            let _ = Pin::new(&mut self.socket).poll_shutdown(cx);
        }
    }

    /// Writes the waiting interim responses, because hyper cannot send them. hyper calls this
    /// function when it flushes the socket, which it does whenever it has polled the service. When
    /// hyper flushes, no message from hyper is partly written.
    fn poll_flush_interim(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_write_interim(cx))?;
            if !self.state.interim().is_waiting() {
                return Poll::Ready(Ok(()));
            }
            let mut bytes = Vec::new();
            self.state.interim().take_bytes(&mut bytes);
            if bytes.is_empty() {
                self.state.interim().note_written();
            }
            self.interim = bytes.into();
        }
    }

    /// Writes the rest of an interim response that is partly written. hyper must not write anything
    /// before the interim response is complete.
    fn poll_write_interim(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.interim.is_empty() {
            match ready!(Pin::new(&mut self.socket).poll_write(cx, &self.interim))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.interim.advance(written),
            }
            self.timeouts[Operation::Flush as usize].progressed(|| None);
        }
        Poll::Ready(Ok(()))
    }

    /// Returns the result of a write or a flush, or an error if the operation has been pending
    /// without progress for too long.
    fn watch<R>(
        &mut self,
        operation: Operation,
        result: Poll<io::Result<R>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<R>> {
        let (delivery, timeout) = (&self.state.delivery, &mut self.timeouts[operation as usize]);
        let result = match result {
            Poll::Ready(result) => {
                if timeout.progressed(|| delivery.transfer()) {
                    delivery.note_taken();
                }
                Poll::Ready(result)
            }
            Poll::Pending => {
                timeout.poll_stalled(delivery.transfer().as_ref(), cx).map(|()| Err(client_does_not_read()))
            }
        };
        self.record_progress();
        result
    }
}

#[derive(Clone, Copy)]
enum Operation {
    Write,
    /// A flush, which also sends bytes that are still in the buffer of the TLS stream.
    Flush,
}

enum ProtocolViolation {
    Preface,
    /// The client sent too many frames. Contains the type of the first excess frame.
    Flood(u8),
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncRead for WatchedSocket<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.state.flood.get().is_some() {
            return Poll::Pending;
        }
        if !this.unread.is_empty() {
            let length = this.unread.len().min(buffer.remaining());
            buffer.put_slice(&this.unread.split_to(length));
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        if this.early.is_empty() {
            match Pin::new(&mut this.socket).poll_read(cx, buffer) {
                Poll::Ready(read) => read?,
                Poll::Pending if this.state.close_if_idle.is_set() && this.close_idle(cx) => {
                    this.state.is_closed_as_idle.set(true);
                    return Poll::Ready(Ok(()));
                }
                Poll::Pending => return Poll::Pending,
            }
        } else {
            let length = this.early.len().min(buffer.remaining());
            buffer.put_slice(&this.early.split_to(length));
        }
        let bytes = &buffer.filled()[before..];
        if !bytes.is_empty() {
            this.state.bytes_read();
            this.state.close_if_idle.set(false);
        }
        match this.received(bytes) {
            Ok(()) => {}
            Err(ProtocolViolation::Preface) => return Poll::Ready(Err(this.refuse_protocol(cx))),
            Err(ProtocolViolation::Flood(kind)) => {
                // The received bytes are discarded, and no more bytes are read. The GOAWAY with the
                // reason is still sent.
                buffer.set_filled(before);
                let _ = this.state.flood.set(kind);
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        this.record_progress();
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for WatchedSocket<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = match this.poll_write_interim(cx) {
            Poll::Ready(Ok(())) => poll_write_slices(&mut this.socket, cx, slices),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        };
        if let Poll::Ready(Ok(bytes)) = written {
            this.sent(slices, bytes);
        }
        this.watch(Operation::Write, written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = match this.poll_flush_interim(cx) {
            Poll::Ready(Ok(())) => Pin::new(&mut this.socket).poll_flush(cx),
            other => other,
        };
        this.watch(Operation::Flush, flushed, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.lingering.is_none() {
            ready!(Pin::new(&mut this.socket).poll_shutdown(cx))?;
        }
        let lingering = this.lingering.get_or_insert_with(LingeringClose::new);
        // If a new connection has claimed the slot of this connection, and the client has received
        // everything, the connection is closed without waiting for the client.
        if this.state.is_reclaimed() { Poll::Ready(Ok(())) } else { lingering.poll(&mut this.socket, cx).map(Ok) }
    }
}

/// Maximum amount of data in the kernel's send buffer that has not been sent yet, in bytes. Data
/// that was sent but not acknowledged does not count.
///
/// By default a socket becomes writable again when a third of the send buffer is free, and the send
/// buffer can grow to megabytes. With such a large buffer, a client that reads 50 KB a second would
/// seem stalled for many seconds. With this limit, the socket becomes writable again when the
/// unsent data is less than half of the limit. Most large responses are smaller than this limit, so
/// they need only one write. A lower limit would split a large response into two writes, and cost
/// 10 % more CPU.
#[cfg(target_os = "linux")]
const UNSENT: u32 = 128 * 1024;

/// Limits how much unsent data the kernel buffers for each connection of a listener. With this
/// limit, a connection becomes writable soon after the client has read data. The option is set on
/// the listener, and accepted connections inherit it.
pub(crate) fn limit_unsent_data(listener: &TcpListener) {
    // If the kernel does not support this option, robotsd notices the progress of clients later.
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(listener).set_tcp_notsent_lowat(UNSENT);
    #[cfg(not(target_os = "linux"))]
    let _ = listener;
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use http::{HeaderMap, StatusCode};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::edge::connection::settings::EdgeLimits;
    use crate::http_common::interim::InterimResponses;
    use crate::http_common::test_peer::soon;

    /// hyper sends a 100 response while an interim response is only partly written.
    #[tokio::test(start_paused = true)]
    async fn a_100_response_of_hyper_is_written_after_a_partly_written_interim_response() {
        let (near, mut far) = tokio::io::duplex(8);
        let state = Arc::new(ConnectionState::new(&EdgeLimits::default()));
        let protocol = Some(SettledProtocol::Http1);
        let limit = Duration::from_secs(600);
        let mut socket = WatchedSocket::new(near, Bytes::new(), protocol, Arc::clone(&state), limit);
        InterimResponses::to(Arc::clone(&state)).send(StatusCode::EARLY_HINTS, &HeaderMap::new());
        let is_pending = poll_fn(|cx| Poll::Ready(Pin::new(&mut socket).poll_flush(cx).is_pending())).await;
        assert!(is_pending);
        let is_written = poll_fn(|cx| Poll::Ready(state.interim().poll_written(cx).is_ready())).await;
        assert!(!is_written, "written in part");
        let (written, read) = soon(async {
            tokio::join!(
                async {
                    socket.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
                    socket.flush().await?;
                    socket.shutdown().await
                },
                async {
                    let mut bytes = String::new();
                    far.read_to_string(&mut bytes).await.map(|_| bytes)
                }
            )
        })
        .await;
        written.unwrap();
        assert_eq!(read.unwrap(), "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
        assert!(!state.interim().is_waiting());
    }

    #[tokio::test]
    async fn a_socket_is_writable_again_after_its_client_reads_a_little() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        limit_unsent_data(&listener);
        let client = tokio::net::TcpSocket::new_v4().unwrap();
        client.set_recv_buffer_size(32 * 1024).unwrap();
        let connecting = client.connect(listener.local_addr().unwrap());
        let (client, accepted) = tokio::join!(connecting, listener.accept());
        let (mut client, (server, _)) = (client.unwrap(), accepted.unwrap());
        let fill = || while server.try_write(&[b'x'; 16 * 1024]).is_ok() {};
        soon(server.writable()).await.unwrap();
        fill();
        for _ in 0..4 {
            // 128 KiB is much less than a third of the kernel's default send buffer.
            soon(client.read_exact(&mut vec![0; 128 * 1024])).await.unwrap();
            soon(server.writable()).await.unwrap();
            fill();
        }
    }
}
