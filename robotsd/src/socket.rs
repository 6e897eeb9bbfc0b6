//! A connected socket, of a client or to an upstream: TCP, a Unix socket, or TLS over TCP. Also
//! closes sockets whose peer may still send.

use std::io;
use std::io::ErrorKind::{BrokenPipe, ConnectionReset, NotConnected, UnexpectedEof};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::UnixStream;
use tokio::time::{Instant, Sleep, sleep};
use tokio_rustls::TlsStream;

/// A connected socket.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// Boxed: a session takes a kilobyte, which connections without TLS should not carry.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Socket {
    /// Returns the protocol that the TLS handshake has agreed on; `None` if the socket is not TLS.
    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        match self {
            Self::Tls(stream) => stream.get_ref().1.alpn_protocol(),
            _ => None,
        }
    }

    /// Looks for a byte in the kernel's buffer and leaves it there.
    ///
    /// With TLS this byte may belong to a record without content; the caller still treats it as
    /// data.
    pub(crate) fn peek(&self) -> io::Result<usize> {
        let mut byte = [MaybeUninit::uninit()];
        match self {
            Self::Tcp(socket) => socket2::SockRef::from(socket).peek(&mut byte),
            Self::Unix(socket) => socket2::SockRef::from(socket).peek(&mut byte),
            Self::Tls(stream) => socket2::SockRef::from(stream.get_ref().0).peek(&mut byte),
        }
    }
}

/// Reads and discards what a peer sends after the last byte to it, until it closes or a limit is
/// reached.
///
/// Closing a socket while bytes are unread or still arriving resets the connection (RFC 9112,
/// section 9.6), and the peer loses what it has not read. Frames and requests often cross the end
/// on HTTP/2, as do uploads that are answered early on HTTP/1.1.
#[derive(Debug)]
pub(crate) struct LingeringClose {
    quiet: Pin<Box<Sleep>>,
    end: Instant,
    octets: usize,
}

/// Maximum time without bytes from the peer, and maximum time in total.
const MAX_SILENCE: Duration = Duration::from_secs(5);
const MAX_TIME: Duration = Duration::from_secs(10);

/// Maximum number of discarded bytes, which cuts off endless uploads; size of the read buffer, in
/// bytes; and maximum number of reads before other tasks have their turn.
const DISCARDED: usize = 64 << 20;
const ROOM: usize = 4 * 1024;
const READS: usize = 16;

impl LingeringClose {
    pub(crate) fn new() -> Self {
        Self { quiet: Box::pin(sleep(MAX_SILENCE)), end: Instant::now() + MAX_TIME, octets: DISCARDED }
    }

    /// Ready when the socket can be closed.
    pub(crate) fn poll<T: AsyncRead + Unpin>(&mut self, socket: &mut T, cx: &mut Context<'_>) -> Poll<()> {
        let mut room = [MaybeUninit::uninit(); ROOM];
        let mut reads = 0;
        while reads < READS {
            let mut buffer = ReadBuf::uninit(&mut room);
            let Poll::Ready(read) = Pin::new(&mut *socket).poll_read(cx, &mut buffer) else { break };
            self.octets = self.octets.saturating_sub(buffer.filled().len());
            if read.is_err() || buffer.filled().is_empty() || self.octets == 0 {
                return Poll::Ready(());
            }
            reads += 1;
        }
        if reads > 0 {
            self.quiet.as_mut().reset((Instant::now() + MAX_SILENCE).min(self.end));
        }
        if reads == READS {
            cx.waker().wake_by_ref();
        }
        self.quiet.as_mut().poll(cx)
    }
}

/// Writes slices of bytes. A single slice needs no vectored write, which costs the system more.
pub(crate) fn poll_write_slices<W: AsyncWrite + Unpin>(
    socket: &mut W,
    cx: &mut Context<'_>,
    slices: &[io::IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    match slices {
        [octets] => Pin::new(socket).poll_write(cx, octets),
        slices => Pin::new(socket).poll_write_vectored(cx, slices),
    }
}

/// Evaluates an expression for the stream of any variant.
macro_rules! of_any {
    ($kind:expr, $socket:ident => $answer:expr) => {
        match $kind {
            Self::Tcp($socket) => $answer,
            Self::Unix($socket) => $answer,
            Self::Tls($socket) => $answer,
        }
    };
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_read(cx, buffer),
            Self::Unix(socket) => Pin::new(socket).poll_read(cx, buffer),
            Self::Tls(stream) => {
                let is_client = matches!(**stream, TlsStream::Server(_));
                Poll::Ready(match ready!(Pin::new(stream).poll_read(cx, buffer)) {
                    // Many clients leave without a close_notify. Requests have their own length, so
                    // a truncated one is noticed anyway, and this counts as a normal end. A
                    // response may end with its connection, so for upstreams this is an error.
                    Err(error) if is_client && error.kind() == UnexpectedEof => Ok(()),
                    read => read,
                })
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        of_any!(self.get_mut(), socket => Pin::new(socket).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        of_any!(self.get_mut(), socket => Pin::new(socket).poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        of_any!(self, socket => socket.is_write_vectored())
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_any!(self.get_mut(), socket => Pin::new(socket).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Unix(socket) => Pin::new(socket).poll_shutdown(cx),
            // Only the close_notify is left to send, and a peer that has left does not need it.
            Self::Tls(stream) => Poll::Ready(match ready!(Pin::new(stream).poll_shutdown(cx)) {
                Err(error) if matches!(error.kind(), BrokenPipe | ConnectionReset | NotConnected) => Ok(()),
                shut => shut,
            }),
        }
    }
}
