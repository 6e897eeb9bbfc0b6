//! A connection that has switched to WebSocket.
//!
//! The service stores the upstream's end of the connection in the extensions of its response. The
//! driver of the client's connection then joins the two ends. So a tunnel belongs to the client's
//! connection, and ends with this connection at shutdown.

use std::fmt::Debug;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::idle_timeout::Transfer;

/// The upstream's end of a tunnel, stored in the extensions of a response. Extensions must be
/// `Clone`, so clones share this end. The end can be taken only once.
#[derive(Clone, Debug)]
pub(crate) struct Tunnel(Arc<Mutex<Option<TunnelEnd>>>);

#[derive(Debug)]
struct TunnelEnd {
    io: Box<dyn TunnelIo>,
    early: Bytes,
    transfer: Option<Transfer>,
}

pub(crate) trait TunnelIo: AsyncRead + AsyncWrite + Debug + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Debug + Send + Unpin> TunnelIo for T {}

impl Tunnel {
    /// Creates a tunnel from the upstream connection and the bytes that were already read from it.
    /// Through `transfer`, other requests can claim the upstream connection.
    pub(crate) fn new(io: impl TunnelIo + 'static, early: Bytes, transfer: Option<Transfer>) -> Self {
        Self(Arc::new(Mutex::new(Some(TunnelEnd { io: Box::new(io), early, transfer }))))
    }
}

#[derive(Debug)]
pub(crate) struct PendingTunnel {
    pub(crate) client: OnUpgrade,
    pub(crate) upstream: Tunnel,
}

impl PendingTunnel {
    /// Passes bytes in both directions. Completes when the upstream has closed its end and the
    /// client has received everything. A client may close its sending side and still receive. Fails
    /// if no bytes have passed for `idle`, or if other requests need the upstream connection.
    pub(crate) async fn run(self, idle: Duration) -> io::Result<()> {
        let Some(TunnelEnd { io: upstream, early, transfer }) = self.upstream.0.lock().take() else { return Ok(()) };
        let passing = async {
            let client = self.client.await.map_err(io::Error::other)?;
            pass(TokioIo::new(client), upstream, &early, idle).await
        };
        tokio::select! {
            // Bytes that have already arrived are passed first, because they show that the tunnel
            // is in use.
            biased;
            passed = passing => passed,
            // If the client does not read, nothing is read from the upstream either. So this branch
            // covers a stall of either side.
            () = poll_fn(|cx| transfer.as_ref().map_or(Poll::Pending, |transfer| transfer.poll_stalled(cx))) => {
                let why = "the tunnel carried no data for a long time, and other requests needed its connection to the upstream";
                Err(io::Error::new(io::ErrorKind::TimedOut, why))
            }
        }
    }
}

async fn pass(
    client: impl AsyncRead + AsyncWrite,
    upstream: impl AsyncRead + AsyncWrite,
    early: &[u8],
    idle: Duration,
) -> io::Result<()> {
    let (client_read, mut client_write) = tokio::io::split(client);
    let (upstream_read, upstream_write) = tokio::io::split(upstream);
    timeout(idle, write(&mut client_write, early)).await??;
    // Often only one side sends, so bytes in one direction restart the time limit of both
    // directions.
    let moved = AtomicUsize::new(0);
    let mut to_client = pin!(pump(upstream_read, client_write, idle, &moved));
    tokio::select! {
        biased;
        passed = pump(client_read, upstream_write, idle, &moved) => passed?,
        // The upstream has closed its end. If the tunnel waited for the client to close its end,
        // too, a client that has vanished would keep its connection open.
        passed = &mut to_client => return passed,
    }
    to_client.await
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    idle: Duration,
    moved: &AtomicUsize,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let before = moved.load(Ordering::Relaxed);
        match timeout(idle, from.read(&mut buffer)).await {
            Err(_) if moved.load(Ordering::Relaxed) != before => continue,
            Err(expired) => return Err(expired.into()),
            // If the client does not read, TLS cannot send its last bytes, so the time for closing
            // is limited.
            Ok(Ok(0)) => return timeout(idle, to.shutdown()).await?,
            Ok(length) => timeout(idle, write(&mut to, &buffer[..length?])).await??,
        }
        moved.fetch_add(1, Ordering::Relaxed);
    }
}

/// Writes and flushes. Without a flush, TLS could buffer the bytes until the next write, which may
/// come much later.
async fn write(to: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes).await?;
    to.flush().await
}

#[cfg(test)]
mod tests {
    use tokio::io::{BufWriter, duplex};

    use super::*;
    use crate::http_common::test_peer::soon;

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn a_tunnel_forwards_bytes_without_waiting_for_more() {
        let (mut one, from) = duplex(1024);
        let (to, mut other) = duplex(1024);
        let moved = AtomicUsize::new(0);
        let pumping = pump(from, BufWriter::new(to), Duration::from_secs(60), &moved);
        let talking = async {
            for sent in [b"ping", b"pong"] {
                one.write_all(sent).await.unwrap();
                let mut received = [0; 4];
                soon(other.read_exact(&mut received)).await.unwrap();
                assert_eq!(&received, sent);
            }
            drop(one);
        };
        let (pumped, ()) = tokio::join!(pumping, talking);
        pumped.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_upstream_ends_the_tunnel() {
        let (client, _silent) = duplex(1024);
        let (upstream, far) = duplex(1024);
        drop(far);
        soon(pass(client, upstream, b"", HOUR)).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_buffered_bytes_of_a_tunnel_must_be_sent_before_a_deadline() {
        let (one, from) = duplex(1024);
        drop(one);
        let (to, _silent) = duplex(1);
        let mut to = BufWriter::new(to);
        // The bytes stay in the buffer until the end, and the other side reads none of them.
        to.write_all(b"ab").await.unwrap();
        let pumped = soon(pump(from, to, Duration::from_secs(1), &AtomicUsize::new(0))).await;
        assert_eq!(pumped.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
