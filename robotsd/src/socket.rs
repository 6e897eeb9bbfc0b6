//! A connected socket of a client or an upstream: TCP, a Unix socket, or TLS over TCP. This module
//! also closes sockets while the peer may still be sending.

use std::io::ErrorKind::{BrokenPipe, ConnectionReset, NotConnected, UnexpectedEof};
use std::io::{self, Write as _};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::UnixStream;
use tokio::time::{Instant, Sleep, sleep};
use tokio_rustls::{TlsStream, server};

#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// The stream is boxed, because a TLS session needs a kilobyte of memory, which sockets without
    /// TLS should not occupy.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Socket {
    /// Returns the protocol that TLS negotiated; `None` if it negotiated none, or if the socket
    /// does not use TLS.
    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        match self {
            Self::Tls(stream) => stream.get_ref().1.alpn_protocol(),
            _ => None,
        }
    }

    /// Returns 1 if received bytes are waiting, and 0 if the peer has ended the connection. Returns
    /// the error `WouldBlock` if nothing has arrived. The bytes stay in the kernel's buffer.
    ///
    /// With TLS, encrypted bytes count, even the bytes of a record without content.
    pub(crate) fn peek(&self) -> io::Result<usize> {
        let mut byte = [MaybeUninit::uninit()];
        match self {
            Self::Tcp(socket) => socket2::SockRef::from(socket).peek(&mut byte),
            Self::Unix(socket) => socket2::SockRef::from(socket).peek(&mut byte),
            Self::Tls(stream) => socket2::SockRef::from(stream.get_ref().0).peek(&mut byte),
        }
    }
}

/// Sends the end of a response, then discards received bytes until the peer closes the socket or a
/// limit is reached.
///
/// If a socket is closed while bytes are unread or still arriving, the connection is reset (RFC
/// 9112, section 9.6), and the peer may lose the response. The unread bytes are often frames or
/// further requests from an HTTP/2 client, or the rest of an upload that was answered before it was
/// complete.
#[derive(Debug)]
pub(crate) struct LingeringClose {
    quiet: Pin<Box<Sleep>>,
    end: Instant,
    bytes: usize,
}

/// Maximum time without bytes from the peer.
const MAX_SILENCE: Duration = Duration::from_secs(5);
const MAX_TIME: Duration = Duration::from_secs(10);

/// Maximum number of discarded bytes, so that an endless upload cannot keep the socket open.
const DISCARDED: usize = 64 << 20;
const ROOM: usize = 4 * 1024;
/// Number of reads before the task yields.
const READS: usize = 16;

impl LingeringClose {
    pub(crate) fn new() -> Self {
        Self { quiet: Box::pin(sleep(MAX_SILENCE)), end: Instant::now() + MAX_TIME, bytes: DISCARDED }
    }

    /// Returns `Ready` if the socket can be closed.
    pub(crate) fn poll<T: AsyncRead + Unpin>(&mut self, socket: &mut T, cx: &mut Context<'_>) -> Poll<()> {
        let mut room = [MaybeUninit::uninit(); ROOM];
        let mut reads = 0;
        while reads < READS {
            let mut buffer = ReadBuf::uninit(&mut room);
            let Poll::Ready(read) = Pin::new(&mut *socket).poll_read(cx, &mut buffer) else { break };
            self.bytes = self.bytes.saturating_sub(buffer.filled().len());
            if read.is_err() || buffer.filled().is_empty() || self.bytes == 0 {
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

/// Writes slices of bytes. A single slice is written with a plain write, which is faster than a
/// vectored write.
pub(crate) fn poll_write_slices<W: AsyncWrite + Unpin>(
    socket: &mut W,
    cx: &mut Context<'_>,
    slices: &[io::IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    match slices {
        [bytes] => Pin::new(socket).poll_write(cx, bytes),
        slices => Pin::new(socket).poll_write_vectored(cx, slices),
    }
}

/// Encrypts bytes for a client. The TLS session sends them when its buffer is full, or at the next
/// flush, so callers must flush after the last slice.
fn poll_encrypt(
    stream: &mut server::TlsStream<TcpStream>,
    cx: &mut Context<'_>,
    slices: &[io::IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    loop {
        let written = stream.get_mut().1.writer().write_vectored(slices)?;
        if written > 0 || !stream.get_ref().1.wants_write() {
            return Poll::Ready(Ok(written));
        }
        ready!(Pin::new(&mut *stream).poll_flush(cx))?;
    }
}

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
                    // Many clients close a connection without a close_notify. On a connection from
                    // a client, this is harmless, because the length of a request shows whether the
                    // request is complete. On a connection to an upstream, a missing close_notify
                    // is an error, because the end of the connection may mark the end of a
                    // response.
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
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_write_vectored(cx, slices),
            Self::Unix(socket) => Pin::new(socket).poll_write_vectored(cx, slices),
            Self::Tls(stream) => match &mut **stream {
                TlsStream::Server(stream) => poll_encrypt(stream, cx, slices),
                TlsStream::Client(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            },
        }
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
            // Everything except the close_notify has been sent. A peer that has already closed the
            // connection does not need the close_notify.
            Self::Tls(stream) => Poll::Ready(match ready!(Pin::new(stream).poll_shutdown(cx)) {
                Err(error) if matches!(error.kind(), BrokenPipe | ConnectionReset | NotConnected) => Ok(()),
                shut => shut,
            }),
        }
    }
}
