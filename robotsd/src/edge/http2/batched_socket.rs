//! The socket that `h2` uses for a connection. This socket gathers the small writes that `h2` makes
//! in one turn (one poll of the connection), and sends them together at the end of the turn.
//!
//! `h2` writes each piece of content separately, and flushes the socket after each piece. Without
//! this gathering, ten responses in a turn would need ten TLS records and ten system calls. The
//! [underlying socket](WatchedSocket) gets the bytes only at the end of the turn. So the underlying
//! socket's deadlines and frame accounting ignore bytes that wait for the end of the turn.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::edge::connection::watched_socket::WatchedSocket;
use crate::socket::poll_write_slices;

/// Maximum number of gathered bytes: the size of a TLS record.
const BATCH: usize = 16 * 1024;

/// Maximum size of a write that is gathered, in bytes. Larger writes are not copied, because
/// sending them separately is cheaper.
const SMALL: usize = 4 * 1024;

/// A socket with two owners: `h2` reads and writes, and the connection sends the gathered bytes.
/// All clones refer to the same socket.
#[derive(Debug)]
pub(crate) struct BatchedSocket<T>(Arc<Mutex<Batch<T>>>);

#[derive(Debug)]
struct Batch<T> {
    socket: WatchedSocket<T>,
    /// The gathered bytes. No memory is allocated until bytes are gathered, because most
    /// connections are idle.
    gathered: BytesMut,
    /// Whether a read in this turn has found no more bytes. Bytes that arrive later wake the
    /// connection's task.
    is_drained: bool,
}

impl<T> BatchedSocket<T> {
    pub(crate) fn new(socket: WatchedSocket<T>) -> Self {
        Self(Arc::new(Mutex::new(Batch { socket, gathered: BytesMut::new(), is_drained: false })))
    }
}

impl<T> Clone for BatchedSocket<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> BatchedSocket<T> {
    pub(crate) fn requests(&self) -> usize {
        self.0.lock().socket.requests()
    }

    /// Sends the gathered bytes. Must be called at the end of a turn.
    pub(crate) fn poll_send(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let batch = &mut *self.0.lock();
        batch.is_drained = false;
        ready!(batch.poll_write_gathered(cx))?;
        Pin::new(&mut batch.socket).poll_flush(cx)
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> Batch<T> {
    fn poll_write_gathered(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.gathered.has_remaining() {
            match ready!(Pin::new(&mut self.socket).poll_write(cx, &self.gathered))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.gathered.advance(written),
            }
        }
        self.gathered = BytesMut::new();
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncRead for BatchedSocket<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let batch = &mut *self.0.lock();
        if batch.is_drained {
            return Poll::Pending;
        }
        let read = Pin::new(&mut batch.socket).poll_read(cx, buffer);
        batch.is_drained = read.is_pending();
        read
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for BatchedSocket<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let batch = &mut *self.0.lock();
        let bytes = slices.iter().map(|slice| slice.len()).sum::<usize>();
        if bytes > SMALL || batch.gathered.len() + bytes > BATCH {
            ready!(batch.poll_write_gathered(cx))?;
        }
        if bytes > SMALL {
            return poll_write_slices(&mut batch.socket, cx, slices);
        }
        if batch.gathered.capacity() == 0 {
            batch.gathered.reserve(BATCH);
        }
        slices.iter().for_each(|slice| batch.gathered.extend_from_slice(slice));
        Poll::Ready(Ok(bytes))
    }

    fn is_write_vectored(&self) -> bool {
        self.0.lock().socket.is_write_vectored()
    }

    /// Does nothing, because the gathered bytes are sent at the end of the turn.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.0.lock().socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Future, poll_fn};
    use std::time::Duration;

    use bytes::Bytes;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::edge::connection::settings::EdgeLimits;
    use crate::edge::connection_state::ConnectionState;
    use crate::edge::tls::SettledProtocol;
    use crate::http_common::test_peer::soon;

    // The clock is paused, so the final wait for the client takes no real time.
    #[tokio::test(start_paused = true)]
    async fn small_writes_are_batched_and_sent_before_a_later_large_write() {
        let (near, mut far) = tokio::io::duplex(1024 * 1024);
        let state = Arc::new(ConnectionState::new(&EdgeLimits::default()));
        let protocol = Some(SettledProtocol::Http1);
        let socket = WatchedSocket::new(near, Bytes::new(), protocol, state, Duration::from_secs(600));
        let mut socket = BatchedSocket::new(socket);
        let mut arrived = vec![0; 64 * 1024];
        for large in [0, SMALL + 1, 3 * BATCH] {
            socket.write_all(b"one,").await.unwrap();
            socket.flush().await.unwrap();
            socket.write_all(b"two,").await.unwrap();
            let mut reading = std::pin::pin!(far.read(&mut arrived));
            assert!(poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx).is_pending())).await);
            socket.write_all(&vec![b'x'; large]).await.unwrap();
            socket.write_all(b"three").await.unwrap();
            soon(poll_fn(|cx| socket.poll_send(cx))).await.unwrap();
            let expected = [b"one,two,", &*vec![b'x'; large], b"three"].concat();
            soon(far.read_exact(&mut arrived[..expected.len()])).await.unwrap();
            assert_eq!(arrived[..expected.len()], expected);
        }
        // The test makes more small writes than fit into one batch, and the client receives few
        // bytes at a time.
        let (near, mut far) = tokio::io::duplex(16);
        let state = Arc::new(ConnectionState::new(&EdgeLimits::default()));
        let socket = WatchedSocket::new(near, Bytes::new(), protocol, state, Duration::from_secs(600));
        let mut socket = BatchedSocket::new(socket);
        let writing = async {
            for _ in 0..3 * BATCH / 8 {
                socket.write_all(b"01234567").await.unwrap();
            }
            socket.shutdown().await.unwrap();
        };
        let mut bytes = Vec::new();
        let (_, read) = soon(async { tokio::join!(writing, far.read_to_end(&mut bytes)) }).await;
        read.unwrap();
        assert_eq!(bytes, b"01234567".repeat(3 * BATCH / 8));
    }
}
