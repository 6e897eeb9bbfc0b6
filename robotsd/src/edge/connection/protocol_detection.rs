//! Which version of HTTP a connection speaks: the client's first octets say it (RFC 9113, sections 3.3 and 3.4).

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::edge::connection::watched_socket::{PREFACE, WatchedSocket};
use crate::edge::tls::SettledProtocol;

/// Reads as much as decides: the preface of HTTP/2, or an octet that is none of it. The connection then reads that once more.
#[derive(Debug)]
pub(crate) struct ProtocolDetection<T> {
    /// None once it is decided.
    socket: Option<WatchedSocket<T>>,
    octets: [u8; PREFACE.len()],
    filled: usize,
    is_cancelled: bool,
}

impl<T> ProtocolDetection<T> {
    pub(crate) fn new(socket: WatchedSocket<T>) -> Self {
        Self { socket: Some(socket), octets: [0; PREFACE.len()], filled: 0, is_cancelled: false }
    }

    /// Ends without a decision.
    pub(crate) fn cancel(&mut self) {
        self.is_cancelled = true;
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> Future for ProtocolDetection<T> {
    type Output = io::Result<(SettledProtocol, WatchedSocket<T>)>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { socket, octets, filled, is_cancelled } = self.get_mut();
        let Some(reading) = socket.as_mut().filter(|_| !*is_cancelled) else {
            return Poll::Ready(Err(io::ErrorKind::Interrupted.into()));
        };
        let mut protocol = SettledProtocol::Http2;
        while *filled < PREFACE.len() {
            let mut buffer = ReadBuf::new(&mut octets[*filled..]);
            ready!(Pin::new(&mut *reading).poll_read(cx, &mut buffer))?;
            let read = buffer.filled().len();
            let is_preface = octets[*filled..*filled + read] == PREFACE[*filled..*filled + read];
            *filled += read;
            if read == 0 || !is_preface {
                protocol = SettledProtocol::Http1;
                break;
            }
        }
        reading.unread(Bytes::copy_from_slice(&octets[..*filled]));
        Poll::Ready(socket.take().map(|socket| (protocol, socket)).ok_or_else(|| io::ErrorKind::Interrupted.into()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::edge::connection_state::state::ConnectionState;
    use crate::edge::limits::EdgeLimits;
    use crate::edge::test_peer::soon;

    /// The version, and what the connection reads then.
    async fn detected(pieces: &[&[u8]]) -> (SettledProtocol, Vec<u8>) {
        let (near, mut far) = tokio::io::duplex(64);
        let state = Arc::new(ConnectionState::new(&EdgeLimits::default()));
        let socket = WatchedSocket::new(near, Bytes::new(), None, state, Duration::from_secs(600));
        let detection = tokio::spawn(ProtocolDetection::new(socket));
        for piece in pieces {
            far.write_all(piece).await.unwrap();
            tokio::task::yield_now().await;
        }
        drop(far);
        let (protocol, mut socket) = soon(detection).await.unwrap().unwrap();
        let mut read = Vec::new();
        soon(socket.read_to_end(&mut read)).await.unwrap();
        (protocol, read)
    }

    #[tokio::test]
    async fn the_preface_decides_wherever_it_is_cut() {
        let whole = [&PREFACE[..], b"\0\0\0\x04\0\0\0\0\0"].concat();
        for cut in 0..=whole.len() {
            let found = detected(&[&whole[..cut], &whole[cut..]]).await;
            assert_eq!(found, (SettledProtocol::Http2, whole.clone()), "{cut}");
        }
        for other in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"PRI * HTTP/1.1\r\n\r\n", b"P", b"", &PREFACE[..23]] {
            let octets: Vec<&[u8]> = other.chunks(1).collect();
            assert_eq!(detected(&octets).await, (SettledProtocol::Http1, other.to_vec()), "{other:?}");
        }
    }
}
