//! From an accepted socket to a secured stream, within a deadline.
//!
//! Until its ClientHello is whole a connection takes only the memory for the octets that have come, and its slot among the
//! open connections, which it gives up to a new one like any other idle connection. So that this memory is bounded for all
//! connections together, a hello of more than [`client_hello::USUAL`] octets is a handshake under way before it is whole.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};
use tokio::time::{sleep, timeout};
use tokio_rustls::StartHandshake;
use tokio_rustls::rustls::server::{Accepted, Acceptor};
use tokio_rustls::server::TlsStream;

use super::client_hello::{self, HelloProgress};
use super::handshakes::HandshakesUnderWay;
use super::live_certificates::LiveCertificates;
use super::secured::Secured;
use crate::edge::connection_error::{ConnectionErrorKind, ConnectionFailure};
use crate::edge::connection_state::state::ConnectionState;

/// What a listener needs to speak TLS. Cheap to clone, and shared by every thread that accepts for the listener.
#[derive(Clone, Debug)]
pub(crate) struct TlsAcceptor {
    certificates: LiveCertificates,
    /// Handshakes that may be under way at once.
    permits: Arc<Semaphore>,
    under_way: Arc<HandshakesUnderWay>,
    deadline: Duration,
}

impl TlsAcceptor {
    /// At most so many `handshakes` are under way at once, from a whole ClientHello on; each has the `deadline`, the
    /// client's silence and its wait for a permit included.
    pub(crate) fn new(certificates: LiveCertificates, handshakes: usize, deadline: Duration) -> Self {
        let permits = Arc::new(Semaphore::new(handshakes.min(Semaphore::MAX_PERMITS)));
        Self { certificates, permits, under_way: Arc::default(), deadline }
    }

    /// Secures a connection; none where it ended before its first octet, or gave its slot to another.
    ///
    /// A connection that has sent nothing when `stop` completes is closed. `full` is called when all handshakes that may be under way are; the connection then waits for one to end.
    pub(crate) async fn secure(
        &self,
        socket: TcpStream,
        stop: impl Future<Output = ()>,
        connection: &Arc<ConnectionState>,
        full: impl FnOnce(),
    ) -> Result<Option<(TlsStream<TcpStream>, Secured)>, ConnectionFailure> {
        let shaking = async {
            tokio::select! {
                biased;
                shaken = self.shake_hands(socket, stop, connection, full) => shaken,
                () = connection.reclaimed() => Ok(None),
            }
        };
        let shaken = timeout(self.deadline, shaking)
            .await
            .unwrap_or_else(|_| Err((ConnectionErrorKind::Slow, "no TLS handshake in time".into())));
        connection.begin_wait();
        shaken
    }

    async fn shake_hands(
        &self,
        mut socket: TcpStream,
        stop: impl Future<Output = ()>,
        connection: &Arc<ConnectionState>,
        full: impl FnOnce(),
    ) -> Result<Option<(TlsStream<TcpStream>, Secured)>, ConnectionFailure> {
        let mut stop = pin!(stop);
        let mut hello = Vec::new();
        let mut begin = Some(async || {
            let place = self.place(full).await.map_err(|error| (ConnectionErrorKind::Handshake, error.into()))?;
            Ok::<_, ConnectionFailure>((place, self.under_way.begin(connection)))
        });
        let mut begun = None;
        loop {
            let most = if begun.is_none() { client_hello::USUAL } else { client_hello::MOST };
            let room = most.saturating_sub(hello.len());
            // A connection that says nothing leaves at once when all do.
            let read = tokio::select! {
                biased;
                read = poll_fn(|cx| poll_append(&mut socket, &mut hello, room, cx)) => read,
                () = &mut stop, if hello.is_empty() => return Ok(None),
            };
            match read {
                // Health checks connect and leave.
                Ok(0) if hello.is_empty() => return Ok(None),
                Ok(0) => return Err((ConnectionErrorKind::Handshake, "the client left within its ClientHello".into())),
                Err(error) => return Err((ConnectionErrorKind::Broken, error.into())),
                Ok(_) => {}
            }
            if hello.first().is_some_and(u8::is_ascii_uppercase) {
                explain(socket).await;
                return Err((ConnectionErrorKind::Handshake, "a request without TLS".into()));
            }
            match client_hello::progress(&hello) {
                HelloProgress::Whole => break,
                HelloProgress::Partial if hello.len() < most => {}
                HelloProgress::Partial if begun.is_none() => {
                    if let Some(begin) = begin.take() {
                        begun = Some(begin().await?);
                    }
                }
                HelloProgress::Partial => {
                    let message = format!("a ClientHello of more than {} octets", client_hello::MOST);
                    return Err((ConnectionErrorKind::Handshake, message.into()));
                }
            }
        }
        if let Some(begin) = begin.take() {
            begun = Some(begin().await?);
        }
        let failed = |error: io::Error| (ConnectionErrorKind::Handshake, error.into());
        let accepted = accept(&mut socket, hello).await.map_err(failed)?;
        let start = StartHandshake::from_parts(accepted, socket);
        let certificates = self.certificates.current();
        let hello = start.client_hello();
        let schemes = hello.signature_schemes();
        let chosen =
            certificates.choose(hello.server_name(), |shown| shown.pair.key.key.choose_scheme(schemes).is_some());
        let Some((number, shown)) = chosen else {
            return Err((ConnectionErrorKind::Handshake, "there is no certificate".into()));
        };
        let stream = start.into_stream(shown.config.clone()).await.map_err(failed)?;
        drop(begun);
        let secured = Secured::new(self.certificates.clone(), shown.clone(), number, &stream);
        Ok(Some((stream, secured)))
    }

    /// Waits for a place among the handshakes. One that has waited for its client for more than [`GRACE`] is given up for
    /// it: else a thousand clients that say hello and nothing more would keep all others out until the deadline.
    async fn place(&self, full: impl FnOnce()) -> Result<SemaphorePermit<'_>, AcquireError> {
        if let Ok(place) = self.permits.try_acquire() {
            return Ok(place);
        }
        full();
        let mut acquiring = pin!(self.permits.acquire());
        loop {
            let next = self.under_way.give_up();
            tokio::select! {
                biased;
                place = &mut acquiring => return place,
                () = sleep(next) => {}
            }
        }
    }
}

/// Reads what there is, up to so many octets, through the stack: a connection that waits keeps no room for what it may
/// read.
fn poll_append(
    socket: &mut TcpStream,
    octets: &mut Vec<u8>,
    most: usize,
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let mut room = [0; 4096];
    let most = most.min(room.len());
    let mut buffer = ReadBuf::new(&mut room[..most]);
    ready!(Pin::new(socket).poll_read(cx, &mut buffer))?;
    // Once is most often enough; where it is not, no more than is due.
    octets.reserve_exact(if octets.is_empty() { buffer.filled().len() } else { most });
    octets.extend_from_slice(buffer.filled());
    Poll::Ready(Ok(buffer.filled().len()))
}

/// Has a ClientHello read; on failure the client is sent the alert for it.
async fn accept(socket: &mut TcpStream, hello: Vec<u8>) -> io::Result<Accepted> {
    let mut acceptor = Acceptor::default();
    let mut unread = hello;
    loop {
        let mut rest = &unread[..];
        while !rest.is_empty() {
            acceptor.read_tls(&mut rest)?;
            match acceptor.accept() {
                // What follows the hello has to follow it into the session.
                Ok(Some(_)) if !rest.is_empty() => return Err(io::Error::other("more than a ClientHello at once")),
                Ok(Some(accepted)) => return Ok(accepted),
                Ok(None) => {}
                Err((error, mut alert)) => {
                    let mut octets = Vec::new();
                    alert.write_all(&mut octets)?;
                    // It is of use only to a client that is still there.
                    let _ = socket.write_all(&octets).await;
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            }
        }
        // Whole by its records, but not by the messages in them.
        unread.clear();
        if poll_fn(|cx| poll_append(socket, &mut unread, client_hello::MOST, cx)).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// The response to a request in the clear: the same for every request, before any of it is read.
const WITHOUT_TLS: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 39\r\ncache-control: no-store\r\nconnection: close\r\n\r\n400 this port speaks TLS: use https://\n";

/// Says why nothing comes of it, and waits for the client to have read that: closing on unread octets would reset the
/// connection and take the answer with it.
async fn explain(mut socket: TcpStream) {
    if socket.write_all(WITHOUT_TLS).await.is_err() || socket.shutdown().await.is_err() {
        return;
    }
    let mut unread = [0; 4096];
    for _ in 0..32 {
        if !matches!(socket.read(&mut unread).await, Ok(1..)) {
            return;
        }
    }
}
