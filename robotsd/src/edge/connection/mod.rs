//! Serves one connection. If the fast path cannot serve a request, the connection is handed over to
//! hyper, to the HTTP/2 server or to the SPOP server.
//!
//! After the fast path, hyper drives HTTP/1.1 connections and `h2` drives HTTP/2 connections. This
//! module decides when to shut down these connections gracefully. It also adds what both libraries
//! lack: deadlines, and a way to close an idle connection when a new connection needs its slot.
//!
//! **The HTTP version of a connection is decided before hyper or `h2` sees it.** For this decision,
//! the first bytes of the connection are compared with the HTTP/2 preface, up to the first
//! difference.

pub(crate) mod settings;

pub(crate) mod watched_socket;

use std::error::Error;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tower::BoxError;

use self::settings::{ConnectionSettings, EdgeLimits, stopped};
use self::watched_socket::{PREFACE, WatchedSocket};
use super::connection_error::{ConnectionErrorKind, ConnectionFailure};
use super::connection_state::{ConnectionState, Unsent};
use super::http1_fast::{self, DateClock, Handover};
use super::http2::Http2ServerConnection;
use super::request::service::RequestService;
use super::spop::{self, SpopMessages};
use super::tls::SettledProtocol;
use crate::http_common::{EdgeService, poll_due};
use crate::socket::Socket;

/// Serves a connection until it ends. Drains the connection after the signal `stop`.
pub(crate) async fn serve<S: EdgeService>(
    socket: Socket,
    service: Arc<RequestService<S>>,
    settings: Arc<ConnectionSettings>,
    clock: Arc<DateClock>,
    stop: watch::Receiver<bool>,
    messages: Option<SpopMessages>,
) -> Result<(), ConnectionFailure> {
    let served = http1_fast::serve(socket, service, &settings, Arc::clone(&clock), &stop).await?;
    let Some(handover) = served else { return Ok(()) };
    // The future is boxed, because most connections end before they need it. Without the box, every
    // connection would reserve memory for this future.
    match messages.filter(|_| spop::is_spop(&handover)) {
        Some(messages) => Box::pin(spop::serve(handover, settings, clock, stop, messages)).await,
        None => Box::pin(serve_handover(handover, settings, clock, stop)).await,
    }
}

pub(super) async fn serve_handover<S: EdgeService>(
    handover: Handover<S>,
    settings: Arc<ConnectionSettings>,
    clock: Arc<DateClock>,
    stop: watch::Receiver<bool>,
) -> Result<(), ConnectionFailure> {
    let Handover { socket, bytes, protocol, service } = handover;
    let state = Arc::clone(&service.connection);
    let socket = WatchedSocket::new(socket, bytes, protocol, Arc::clone(&state), settings.limits.body_idle);
    let (protocol, socket) = match protocol {
        Some(SettledProtocol::Http1) => (SettledProtocol::Http1, socket),
        // If TLS has negotiated HTTP/2, the server must send nothing before it has received the
        // HTTP/2 preface.
        Some(SettledProtocol::Http2) | None => {
            // The detection is boxed, so that its memory is freed once the protocol is known.
            let detection = Box::new(ProtocolDetection::new(socket));
            let cancel = |detection: Pin<&mut Box<ProtocolDetection<_>>>| detection.get_mut().socket = None;
            let detected = drive(detection, cancel, &state, &settings, stop.clone()).await?;
            let Some(detected) = detected else { return Ok(()) };
            detected
        }
    };
    if protocol == SettledProtocol::Http2 {
        // The HTTP/2 connection is boxed, because most connections use HTTP/1.1, which needs less
        // memory.
        let connection = Box::new(Http2ServerConnection::new(socket, service, Arc::clone(&settings), clock));
        return drive(connection, |connection| connection.get_mut().begin_shutdown(), &state, &settings, stop)
            .await
            .map(|_| ());
    }
    // The HTTP/1.1 connection is boxed, because HTTP/2 connections would otherwise reserve memory
    // for it.
    let connection = Box::pin(settings.http1.serve_connection(TokioIo::new(socket), service).with_upgrades());
    drive(connection, |connection| connection.get_mut().as_mut().graceful_shutdown(), &state, &settings, stop).await?;
    let tunnel = state.tunnel.lock().take();
    if let Some(tunnel) = tunnel {
        let _busy = state.begin(false);
        let idle = settings.limits.tunnel_idle;
        return tunnel.run(idle).await.map_err(|error| (ConnectionErrorKind::Broken, error.into()));
    }
    Ok(())
}

/// Polls `connection` until it completes. `connection` serves a whole connection, or only detects
/// its protocol. Returns `None` if the connection was closed because of a deadline, a shutdown, or
/// a claim of its slot.
async fn drive<C, O, E>(
    connection: C,
    begin_shutdown: impl Fn(Pin<&mut C>),
    state: &ConnectionState,
    settings: &ConnectionSettings,
    stop: watch::Receiver<bool>,
) -> Result<Option<O>, ConnectionFailure>
where
    C: Future<Output = Result<O, E>>,
    E: Into<BoxError>,
{
    let limits = &settings.limits;
    let mut connection = pin!(connection);
    let mut idle_drain = pin!(idle_drain(state, settings, stop));
    let mut timer = pin!(sleep_until(Instant::now() + limits.first_byte));
    let mut deadline = ConnectionDeadline { state, limits, patience: Instant::now(), untaken: None };
    let mut is_leaving = false;

    let served = loop {
        // The connection is polled first, so that bytes that have already arrived are served before
        // a deadline or a shutdown ends the connection.
        let event = poll_fn(|cx| {
            if let Poll::Ready(served) = connection.as_mut().poll(cx) {
                return Poll::Ready(Event::Served(served));
            }
            if !is_leaving && idle_drain.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Event::Leave);
            }
            if state.is_reclaimed()
                && let Poll::Ready(event) = poll_close_idle(connection.as_mut(), state, cx)
            {
                return Poll::Ready(event);
            }
            deadline.poll_passed(timer.as_mut(), cx).map(|()| Event::Overdue)
        })
        .await;
        match event {
            Event::Served(served) => break served,
            Event::Reclaimed => return Ok(None),
            // On HTTP/2, a client that has missed its deadline first gets a GOAWAY. HTTP/1.1 has no
            // message like GOAWAY, so the connection ends immediately.
            Event::Overdue if is_leaving || !state.is_http2.is_set() => {
                let slow = (ConnectionErrorKind::Slow, "the client did not send a complete request in time".into());
                return if state.has_served() { Ok(None) } else { Err(slow) };
            }
            Event::Leave | Event::Overdue => {
                is_leaving = true;
                begin_shutdown(connection.as_mut());
                deadline.patience = Instant::now() + limits.header_read;
            }
        }
    };
    match served.map_err(Into::into) {
        Ok(served) => Ok(Some(served)),
        // An idle connection that breaks during a shutdown is not an error.
        Err(_) if is_leaving && state.is_idle() => Ok(None),
        Err(error) if state.flood.get().is_some() => Err((ConnectionErrorKind::Flood, error)),
        Err(error) => Err((kind_of(&*error), error)),
    }
}

enum Event<O, E> {
    Served(Result<O, E>),
    Leave,
    Overdue,
    /// The connection was idle, and a new connection has claimed its slot.
    Reclaimed,
}

/// Completes when the connection should be closed because its listener has stopped.
async fn idle_drain(state: &ConnectionState, settings: &ConnectionSettings, stop: watch::Receiver<bool>) {
    stopped(stop).await;
    if settings.successor.is_set() && !state.is_http2.is_set() {
        // HTTP/1.1 can announce the end of a connection only in a response, so the next response
        // must contain the announcement.
        state.is_leaving.set(true);
    }
    // The timer is boxed, so that connections do not reserve memory for it before a shutdown.
    let mut patience = Box::pin(sleep(settings.idle_drain_time(false)));
    let waits = || state.is_silent() || state.is_leaving.is_set() && !state.is_http2.is_set();
    poll_fn(|cx| if waits() { patience.as_mut().poll(cx) } else { Poll::Ready(()) }).await;
}

/// Closes a connection whose slot a new connection has claimed. If the connection is not idle, the
/// claim is withdrawn, and the connection stays open.
fn poll_close_idle<C, O, E>(connection: Pin<&mut C>, state: &ConnectionState, cx: &mut Context<'_>) -> Poll<Event<O, E>>
where
    C: Future<Output = Result<O, E>>,
{
    // All bytes that have arrived so far have been read, so bytes from the next read belong to a
    // new request.
    state.close_if_idle.set(true);
    let served = connection.poll(cx);
    if state.is_closed_as_idle.is_set() {
        return Poll::Ready(Event::Reclaimed);
    }
    state.close_if_idle.set(false);
    if served.is_pending() {
        state.decline();
    }
    served.map(Event::Served)
}

struct ConnectionDeadline<'c> {
    state: &'c ConnectionState,
    limits: &'c EdgeLimits,
    /// No deadline closes the connection before this time. After a GOAWAY, `patience` is in the
    /// future, so that the client can finish its requests.
    patience: Instant,
    /// Progress of the streams whose responses `h2` has not sent completely ([`Unsent::Streams`]),
    /// and the time when this progress was first seen. If there is no progress for `body_idle` and
    /// no request is in progress, the connection is closed.
    /// [`stream_timeout`](crate::edge::http2::stream_timeout) cannot reset such a stream, because
    /// the stream's task has passed the whole response to `h2` and ended.
    untaken: Option<(u32, Instant)>,
}

impl ConnectionDeadline<'_> {
    fn poll_passed(&mut self, mut timer: Pin<&mut Sleep>, cx: &mut Context<'_>) -> Poll<()> {
        let look = self.next(Instant::now());
        if look < timer.deadline() {
            timer.as_mut().reset(look);
        }
        poll_due(timer, cx, |now| self.next(now))
    }

    /// Returns the deadline. If there is no deadline now, returns the time of the next check, which
    /// is `header_read` after `now`. No deadline can pass before this check, because a head that
    /// begins to arrive after `now` has at least `header_read` until its deadline.
    fn next(&mut self, now: Instant) -> Instant {
        let deadline = self.state.deadline().into_iter().chain(self.unsent_streams_deadline(now)).min();
        deadline.map_or(now + self.limits.header_read, |deadline| deadline.max(self.patience))
    }

    fn unsent_streams_deadline(&mut self, now: Instant) -> Option<Instant> {
        let Unsent::Streams(turn) = self.state.delivery.unsent() else {
            self.untaken = None;
            return None;
        };
        self.untaken = self.untaken.filter(|(seen, _)| *seen == turn);
        if !self.state.is_idle() {
            return None;
        }
        let (_, since) = self.untaken.get_or_insert((turn, now));
        Some(*since + self.limits.body_idle)
    }
}

fn kind_of(error: &(dyn Error + 'static)) -> ConnectionErrorKind {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let is_parse = |error: &hyper::Error| error.is_parse() || error.is_parse_too_large();
        // `h2` has detected a violation of the protocol, and has already reported it to the client.
        let is_broken_rule = |error: &h2::Error| error.is_library();
        let is_invalid = |error: &io::Error| error.kind() == io::ErrorKind::InvalidData;
        if error.downcast_ref().is_some_and(is_parse)
            || error.downcast_ref().is_some_and(is_broken_rule)
            || error.downcast_ref().is_some_and(is_invalid)
        {
            return ConnectionErrorKind::Protocol;
        }
        cause = error.source();
    }
    ConnectionErrorKind::Broken
}

/// Decides which version of HTTP a connection uses (RFC 9113, sections 3.3 and 3.4). Reads to the
/// end of the HTTP/2 preface, or to the first byte that differs from the preface. hyper or `h2`
/// then reads these bytes again.
#[derive(Debug)]
pub(crate) struct ProtocolDetection<T> {
    /// `None` after the version is known, or if detection was cancelled.
    socket: Option<WatchedSocket<T>>,
    bytes: [u8; PREFACE.len()],
    filled: usize,
}

impl<T> ProtocolDetection<T> {
    pub(crate) fn new(socket: WatchedSocket<T>) -> Self {
        Self { socket: Some(socket), bytes: [0; PREFACE.len()], filled: 0 }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> Future for ProtocolDetection<T> {
    type Output = io::Result<(SettledProtocol, WatchedSocket<T>)>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { socket, bytes, filled } = self.get_mut();
        let Some(reading) = socket.as_mut() else { return Poll::Ready(Err(io::ErrorKind::Interrupted.into())) };
        while reading.protocol().is_none() {
            let mut buffer = ReadBuf::new(&mut bytes[*filled..]);
            ready!(Pin::new(&mut *reading).poll_read(cx, &mut buffer))?;
            if buffer.filled().is_empty() {
                break;
            }
            *filled += buffer.filled().len();
        }
        reading.unread = Bytes::copy_from_slice(&bytes[..*filled]);
        let protocol = reading.protocol().unwrap_or(SettledProtocol::Http1);
        Poll::Ready(socket.take().map(|socket| (protocol, socket)).ok_or_else(|| io::ErrorKind::Interrupted.into()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::http_common::test_peer::soon;

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
    async fn the_preface_selects_http_2_even_if_it_arrives_in_pieces() {
        let whole = [&PREFACE[..], b"\0\0\0\x04\0\0\0\0\0"].concat();
        for cut in 0..=whole.len() {
            let found = detected(&[&whole[..cut], &whole[cut..]]).await;
            assert_eq!(found, (SettledProtocol::Http2, whole.clone()), "{cut}");
        }
        for other in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"PRI * HTTP/1.1\r\n\r\n", b"P", b"", &PREFACE[..23]] {
            let bytes: Vec<&[u8]> = other.chunks(1).collect();
            assert_eq!(detected(&bytes).await, (SettledProtocol::Http1, other.to_vec()), "{other:?}");
        }
    }
}
