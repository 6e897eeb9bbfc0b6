//! Performs the TLS handshake on an accepted socket, within a deadline.
//!
//! A connection first waits for the first record of its ClientHello. During this wait, the
//! connection uses memory only for the bytes that have arrived. A waiting connection may be closed
//! to make room for a new one, like any other idle connection. When the record is complete, the
//! handshake begins: the connection acquires a permit, and rustls reads the ClientHello, which may
//! consist of several records. If the first record is longer than [`USUAL_HELLO`] bytes, the
//! connection must have the permit before it receives the rest of the record. So the memory for all
//! incomplete first records together is limited.
//!
//! rustls is not used before the handshake begins, because rustls reserves 4 to 64 KiB for each
//! incomplete ClientHello. If rustls read the first byte, every connection would need a permit from
//! its first byte on. The available memory allows only a few permits, so a few clients could block
//! all other clients by sending one byte each.
//!
//! **Each certificate has its own rustls configuration**, and a handshake chooses a configuration.
//! So the certificate of a connection is known from the connection's configuration, without asking
//! the TLS session. All configurations share the ticket keys.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::num::NonZeroUsize;
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf, join};
use tokio::net::TcpStream;
use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::rustls::server::{Accepted, Acceptor};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{LazyConfigAcceptor, StartHandshake};

use super::certificates::{HTTP_2, LiveCertificates, ServedCertificate};
use super::pair::name_of;
use crate::edge::connection_error::{ConnectionErrorKind, ConnectionFailure};
use crate::edge::connection_state::{ConnectionState, Idleness};
use crate::socket::LingeringClose;

/// The TLS settings and certificates of a listener. Cloning is cheap; all workers of the listener
/// share the settings.
#[derive(Clone, Debug)]
pub(crate) struct TlsAcceptor {
    certificates: LiveCertificates,
    permits: Arc<Semaphore>,
    under_way: Arc<HandshakesUnderWay>,
    deadline: Duration,
}

impl TlsAcceptor {
    /// Creates an acceptor that allows this number of concurrent `handshakes`. A handshake counts
    /// once the first record of its ClientHello is complete, or [`USUAL_HELLO`] bytes of the record
    /// have arrived. The `deadline` also covers the time before the handshake counts, and the wait
    /// for a permit.
    pub(crate) fn new(certificates: LiveCertificates, handshakes: NonZeroUsize, deadline: Duration) -> Self {
        let permits = Arc::new(Semaphore::new(handshakes.get().min(Semaphore::MAX_PERMITS)));
        Self { certificates, permits, under_way: Arc::default(), deadline }
    }

    /// Performs the handshake. Returns `None` if the connection ended before its first byte, or if
    /// a new connection claimed its slot.
    ///
    /// If the client has sent nothing when `stop` completes, the connection is closed. `full` is
    /// called if the connection has to wait for a permit.
    pub(crate) async fn secure(
        &self,
        socket: TcpStream,
        stop: impl Future<Output = ()>,
        connection: &Arc<ConnectionState>,
        full: impl FnOnce(),
    ) -> Result<Option<(TlsStream<TcpStream>, Secured)>, ConnectionFailure> {
        let late = |_| Err((ConnectionErrorKind::Slow, "the TLS handshake was not complete in time".into()));
        let shaking = timeout(self.deadline, self.shake_hands(socket, stop, connection, full));
        connection.before_request(pin!(shaking.map(|shaken| shaken.unwrap_or_else(late)))).await
    }

    async fn shake_hands(
        &self,
        mut socket: TcpStream,
        stop: impl Future<Output = ()>,
        connection: &Arc<ConnectionState>,
        full: impl FnOnce(),
    ) -> Result<Option<(TlsStream<TcpStream>, Secured)>, ConnectionFailure> {
        let Some(begun) = begin_hello(&mut socket, stop).await? else { return Ok(None) };
        if begun.first().is_some_and(u8::is_ascii_uppercase) {
            refuse_plain_request(socket).await;
            return Err((ConnectionErrorKind::Handshake, "the client sent a request without TLS".into()));
        }
        let _permit = self.permit(full).await.map_err(|error| (ConnectionErrorKind::Handshake, error.into()))?;
        let _under_way = self.under_way.begin(connection);
        let failed = |error: io::Error| (ConnectionErrorKind::Handshake, error.into());
        let accepted = read_hello(&mut socket, &begun).await.map_err(failed)?;
        drop(begun);
        let start = StartHandshake::from_parts(accepted, socket);
        let Some((number, shown)) = self.certificates.chosen(&start.client_hello()) else {
            return Err((ConnectionErrorKind::Handshake, "no certificate of this listener is loaded".into()));
        };
        let stream = start.into_stream(shown.config.clone()).await.map_err(failed)?;
        let (_, session) = stream.get_ref();
        let is_http2 = session.alpn_protocol() == Some(HTTP_2);
        let secured = Secured {
            certificates: self.certificates.clone(),
            served: shown,
            place: number,
            name: session.server_name().map(Box::from),
            protocol: if is_http2 { SettledProtocol::Http2 } else { SettledProtocol::Http1 },
        };
        Ok(Some((stream, secured)))
    }

    /// Waits for a handshake permit. While waiting, ends handshakes that have waited for their
    /// clients for longer than [`GRACE`]. Otherwise a thousand clients that send only a ClientHello
    /// could block all other clients until the deadline.
    async fn permit(&self, full: impl FnOnce()) -> Result<SemaphorePermit<'_>, AcquireError> {
        if let Ok(permit) = self.permits.try_acquire() {
            return Ok(permit);
        }
        full();
        let mut acquiring = pin!(self.permits.acquire());
        loop {
            let next = self.under_way.end_oldest();
            tokio::select! {
                biased;
                permit = &mut acquiring => return permit,
                () = sleep(next) => {}
            }
        }
    }
}

impl LiveCertificates {
    /// Performs the handshake of a connection to the admin interface. No permit is needed, because
    /// the number of connections to the admin interface is limited. Also returns the name in the
    /// client's certificate; `None` if no certificate was requested.
    pub(crate) async fn secure(&self, socket: TcpStream) -> io::Result<(TlsStream<TcpStream>, Option<String>)> {
        let mut first = [0];
        if socket.peek(&mut first).await? == 1 && first[0].is_ascii_uppercase() {
            refuse_plain_request(socket).await;
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the client sent a request without TLS"));
        }
        let start = LazyConfigAcceptor::new(Acceptor::default(), socket).await?;
        let chosen = self.chosen(&start.client_hello());
        let (_, shown) = chosen.ok_or_else(|| io::Error::other("no certificate of this listener is loaded"))?;
        let stream = start.into_stream(Arc::clone(&shown.config)).await?;
        let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let name = certificate.map(name_of);
        Ok((stream, name))
    }
}

/// Reads the first record of a ClientHello, but at most [`USUAL_HELLO`] bytes. Returns `None` if
/// the connection ends before its first byte, or if `stop` completes before the first byte.
async fn begin_hello(
    socket: &mut TcpStream,
    stop: impl Future<Output = ()>,
) -> Result<Option<Vec<u8>>, ConnectionFailure> {
    let mut stop = pin!(stop);
    let mut begun = Vec::new();
    while !is_record_whole(&begun) && begun.len() < USUAL_HELLO {
        let read = tokio::select! {
            biased;
            read = poll_fn(|cx| poll_append(socket, &mut begun, cx)) => read,
            () = &mut stop, if begun.is_empty() => return Ok(None),
        };
        match read {
            // Some health checks connect and disconnect without sending anything.
            Ok(0) if begun.is_empty() => return Ok(None),
            Ok(0) => {
                return Err((
                    ConnectionErrorKind::Handshake,
                    "the client closed the connection while it sent its ClientHello".into(),
                ));
            }
            Err(error) => return Err((ConnectionErrorKind::Broken, error.into())),
            Ok(_) => {}
        }
    }
    Ok(Some(begun))
}

/// Reads the available bytes, up to [`USUAL_HELLO`] in total. Uses a buffer on the stack, so that a
/// waiting connection does not keep an empty buffer.
fn poll_append(socket: &mut TcpStream, begun: &mut Vec<u8>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
    let mut room = [0; USUAL_HELLO];
    let mut buffer = ReadBuf::new(&mut room[begun.len()..]);
    ready!(Pin::new(socket).poll_read(cx, &mut buffer))?;
    begun.reserve_exact(buffer.filled().len());
    begun.extend_from_slice(buffer.filled());
    Poll::Ready(Ok(buffer.filled().len()))
}

/// Reports whether the first record of a connection is complete. Also returns true if the bytes are
/// not a ClientHello, because rustls can then reject them.
fn is_record_whole(begun: &[u8]) -> bool {
    match *begun {
        [kind, ..] if kind != HANDSHAKE => true,
        [_, _, _, high, low, ref fragment @ ..] => {
            let length = usize::from(u16::from_be_bytes([high, low]));
            length > MAX_FRAGMENT || fragment.len() >= length
        }
        _ => false,
    }
}

/// Reads the ClientHello that begins with the bytes in `begun`. If the ClientHello is invalid,
/// sends an alert to the client.
async fn read_hello(socket: &mut TcpStream, begun: &[u8]) -> io::Result<Accepted> {
    let (reader, writer) = socket.split();
    let reader = begun.chain(reader).take(MAX_HELLO);
    let mut acceptor = LazyConfigAcceptor::new(Acceptor::default(), join(reader, writer));
    match (&mut acceptor).await {
        Ok(StartHandshake { accepted, io, .. }) if io.reader().get_ref().get_ref().0.is_empty() => Ok(accepted),
        // Passing the bytes after the ClientHello to the TLS session is not implemented.
        Ok(_) => Err(io::Error::other("the client sent more than a ClientHello before the server answered")),
        Err(_) if acceptor.take_io().is_some_and(|io| io.reader().limit() == 0) => {
            Err(io::Error::other(format!("the ClientHello is longer than {MAX_HELLO} bytes")))
        }
        Err(error) => Err(error),
    }
}

/// Maximum size of a ClientHello, in bytes, including the headers of its records. With post-quantum
/// key shares, browsers send up to 2 KiB.
const MAX_HELLO: u64 = 16 * 1024;

/// Maximum number of bytes of a ClientHello that are kept before the connection has a permit.
const USUAL_HELLO: usize = 4 * 1024;

/// The content type of records with handshake messages (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;

/// Maximum size of the fragment in a record, in bytes (RFC 8446, section 5.1).
const MAX_FRAGMENT: usize = 1 << 14;

/// The response to a request without TLS. The response is sent without reading the request.
const WITHOUT_TLS: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 39\r\ncache-control: no-store\r\nconnection: close\r\n\r\n400 this port speaks TLS: use https://\n";

async fn refuse_plain_request(mut socket: TcpStream) {
    if socket.write_all(WITHOUT_TLS).await.is_ok() && socket.shutdown().await.is_ok() {
        let mut lingering = LingeringClose::new();
        poll_fn(|cx| lingering.poll(&mut socket, cx)).await;
    }
}

/// Minimum duration of a handshake that may be ended to free its permit. This duration is longer
/// than a round trip to any client.
const GRACE: Duration = Duration::from_secs(1);

/// The handshakes that have a permit, ordered by the time when they acquired it.
#[derive(Debug, Default)]
pub(crate) struct HandshakesUnderWay(Mutex<VecDeque<(Instant, Weak<Handshake>)>>);

#[derive(Debug)]
pub(crate) struct Handshake(Arc<ConnectionState>);

impl HandshakesUnderWay {
    pub(crate) fn begin(&self, connection: &Arc<ConnectionState>) -> Arc<Handshake> {
        let handshake = Arc::new(Handshake(Arc::clone(connection)));
        let mut all = self.0.lock();
        // There are never more entries than permits, and usually only a few. So removing a
        // handshake that has ended is cheap.
        all.retain(|(_, handshake)| handshake.strong_count() > 0);
        all.push_back((Instant::now(), Arc::downgrade(&handshake)));
        handshake
    }

    /// Ends the handshake that has held its permit for longest, if this time is longer than
    /// [`GRACE`]. Returns the time until the next check.
    pub(crate) fn end_oldest(&self) -> Duration {
        let mut all = self.0.lock();
        while let Some((since, first)) = all.front() {
            let waited = since.elapsed();
            let under_way = first.upgrade();
            if under_way.is_some() && waited < GRACE {
                return GRACE - waited;
            }
            all.pop_front();
            if under_way.is_some_and(|handshake| handshake.0.reclaim(Idleness::Idle)) {
                break;
            }
        }
        LOOK_AGAIN
    }
}

/// Time until the next check if [`HandshakesUnderWay::end_oldest`] has just ended a handshake. By
/// then, this handshake has released its permit.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

#[derive(Clone, Debug)]
pub(crate) struct Secured {
    certificates: LiveCertificates,
    served: Arc<ServedCertificate>,
    place: usize,
    /// The host that the client named, in lower case; `None` if the client named no host.
    name: Option<Box<str>>,
    pub(crate) protocol: SettledProtocol,
}

/// The protocol that a connection must use. With TLS, ALPN determines the protocol (HTTP/1.1 if the
/// client does not use ALPN). Without TLS, the first request determines the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettledProtocol {
    Http1,
    Http2,
}

impl Secured {
    /// Reports whether a client may send requests for this host on the connection. The certificate
    /// must cover the host, or be a certificate that can be chosen for the host. If the client
    /// named no host in the handshake, every host is allowed.
    pub(crate) fn is_for(&self, host: &str) -> bool {
        self.name.as_deref().is_none_or(|name| {
            host.eq_ignore_ascii_case(name)
                || self.certificates.current().may_choose(self.place, host)
                || self.served.pair.covers(host)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_record_is_complete_once_its_last_byte_has_arrived() {
        for length in [0, 1, 200, 2000] {
            let [high, low] = u16::try_from(length).unwrap().to_be_bytes();
            let record = [&[HANDSHAKE, 3, 1, high, low], &vec![1; length][..]].concat();
            for end in 0..record.len() {
                assert!(!is_record_whole(&record[..end]), "{length} {end}");
            }
            assert!(is_record_whole(&record), "{length}");
            assert!(is_record_whole(&[&record[..], b"more"].concat()), "{length}");
        }
    }

    #[test]
    fn the_acceptor_does_not_wait_for_more_bytes_of_an_invalid_hello() {
        for bytes in [&b"\x15\x03\x01"[..], b"\x80\x2e\x01\x00\x02", b"\x16\x03\x01\xff\xff", b"\x16\x03\x01\x00\x00"] {
            assert!(is_record_whole(bytes), "{bytes:?}");
        }
    }
}
