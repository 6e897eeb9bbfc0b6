//! The socket of a client, with or without TLS.

use std::io;
use std::io::ErrorKind::{BrokenPipe, ConnectionReset, NotConnected, UnexpectedEof};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;

/// How much of what was written to a client may wait in the kernel for its first transmission.
///
/// By default a third of the send buffer, which grows to megabytes, has to come free before a socket can be written to
/// again: a client that reads 50 KB a second would seem to stand still for many seconds. With this it is half of this.
/// More than a common large answer, which would otherwise take two writes and a tenth more CPU.
#[cfg(target_os = "linux")]
const UNSENT: u32 = 128 * 1024;

/// Makes the connections of a listener writable again soon after their client reads. The kernel copies the setting to each.
pub(crate) fn bound_unsent(listener: &TcpListener) {
    // A kernel without it notices the same later.
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(listener).set_tcp_notsent_lowat(UNSENT);
    #[cfg(not(target_os = "linux"))]
    let _ = listener;
}

#[derive(Debug)]
pub(crate) enum ClientSocket {
    Plain(TcpStream),
    /// Boxed: a session is a kilobyte, and connections without one should not carry it.
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for ClientSocket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_read(cx, buffer),
            // Many clients leave without a close_notify. Requests have a length of their own, so one that is cut off is
            // noticed either way, and this is an end like any other.
            Self::Tls(stream) => Poll::Ready(match ready!(Pin::new(stream).poll_read(cx, buffer)) {
                Err(error) if error.kind() == UnexpectedEof => Ok(()),
                read => read,
            }),
        }
    }
}

impl AsyncWrite for ClientSocket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write_vectored(cx, slices),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(socket) => socket.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            // Only close_notify is left to send, and a client that has gone does not miss it.
            Self::Tls(stream) => Poll::Ready(match ready!(Pin::new(stream).poll_shutdown(cx)) {
                Err(error) if matches!(error.kind(), BrokenPipe | ConnectionReset | NotConnected) => Ok(()),
                shut => shut,
            }),
        }
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::edge::raw::soon;

    #[tokio::test]
    async fn a_client_that_reads_a_little_is_seen_to_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        bound_unsent(&listener);
        let client = tokio::net::TcpSocket::new_v4().unwrap();
        client.set_recv_buffer_size(32 * 1024).unwrap();
        let connecting = client.connect(listener.local_addr().unwrap());
        let (client, accepted) = tokio::join!(connecting, listener.accept());
        let (mut client, (server, _)) = (client.unwrap(), accepted.unwrap());
        let fill = || while server.try_write(&[b'x'; 16 * 1024]).is_ok() {};
        soon(server.writable()).await.unwrap();
        fill();
        for _ in 0..4 {
            // Much less than a third of what the kernel buffers by default.
            soon(client.read_exact(&mut vec![0; 128 * 1024])).await.unwrap();
            soon(server.writable()).await.unwrap();
            fill();
        }
    }
}
