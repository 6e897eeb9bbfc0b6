//! Drives a connection that is past the fast path, with hyper on HTTP/1.1 and `h2` on HTTP/2: its deadlines, shutdown, and the claim
//! of its slot.

use std::convert::Infallible;
use std::error::Error;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper_util::rt::TokioIo;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tower::Service;

use crate::edge::connection::protocol_detection::ProtocolDetection;
use crate::edge::connection::settings::ConnectionSettings;
use crate::edge::connection::watched_socket::WatchedSocket;
use crate::edge::connection_error::{ConnectionErrorKind, ConnectionFailure};
use crate::edge::connection_state::delivery::Unsent;
use crate::edge::connection_state::state::ConnectionState;
use crate::edge::http1_fast::{DateClock, Handover};
use crate::edge::http2::connection::Http2Connection;
use crate::edge::request::request_body::RequestBody;
use crate::edge::tls::SettledProtocol;

/// Serves the rest of a connection.
pub(crate) async fn serve<S, B>(
    handover: Handover<S>,
    settings: Arc<ConnectionSettings>,
    clock: Arc<DateClock>,
    stop: watch::Receiver<bool>,
) -> Result<(), ConnectionFailure>
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let Handover { socket, octets, protocol, service } = handover;
    let state = Arc::clone(service.connection());
    let socket = WatchedSocket::new(socket, octets, protocol, Arc::clone(&state), settings.limits.body_idle);
    let (protocol, socket) = match protocol {
        Some(SettledProtocol::Http1) => (SettledProtocol::Http1, socket),
        // Nothing is sent to a client that has agreed on HTTP/2 before it has begun to speak it.
        Some(SettledProtocol::Http2) | None => {
            let detection = ProtocolDetection::new(socket);
            let detected =
                drive(detection, |detection| detection.get_mut().cancel(), &state, &settings, stop.clone()).await?;
            let Some(detected) = detected else { return Ok(()) };
            detected
        }
    };
    if protocol == SettledProtocol::Http2 {
        // Boxed, because it has more room than most connections need.
        let connection = Box::new(Http2Connection::new(socket, service, Arc::clone(&settings), clock));
        return drive(connection, |connection| connection.get_mut().begin_shutdown(), &state, &settings, stop)
            .await
            .map(|_| ());
    }
    let connection = settings.http1.serve_connection(TokioIo::new(socket), service).with_upgrades();
    drive(connection, |connection| connection.graceful_shutdown(), &state, &settings, stop).await?;
    if let Some(tunnel) = state.take_tunnel() {
        let _busy = state.begin(false);
        let idle = settings.limits.tunnel_idle;
        return tunnel.run(idle).await.map_err(|error| (ConnectionErrorKind::Broken, error.into()));
    }
    Ok(())
}

/// Polls a connection, or a part of it, until it ends. None where it has been closed before.
async fn drive<C, O, E>(
    connection: C,
    begin_shutdown: impl Fn(Pin<&mut C>),
    state: &Arc<ConnectionState>,
    settings: &ConnectionSettings,
    mut stop: watch::Receiver<bool>,
) -> Result<Option<O>, ConnectionFailure>
where
    C: Future<Output = Result<O, E>>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    let limits = &settings.limits;
    let mut connection = pin!(connection);
    let mut timer = pin!(sleep_until(Instant::now() + limits.first_byte));
    let mut stop = pin!(async {
        // The sender outlives the connection; if it were gone, leaving would be right too.
        let _ = stop.wait_for(|stop| *stop).await;
        if settings.has_successor() && !state.is_http2() {
            // HTTP/1.1 has no message that takes no more requests but an answer.
            state.leave();
        }
        // Boxed, so that connections that never see a shutdown have no room for it.
        let mut farewell = Box::pin(sleep(settings.farewell(false)));
        let waits = || state.is_silent() || state.is_leaving() && !state.is_http2();
        poll_fn(|cx| if waits() { farewell.as_mut().poll(cx) } else { Poll::Ready(()) }).await;
    });
    let mut is_leaving = false;
    // How long a client has that has been sent a GOAWAY.
    let mut patience = Instant::now();
    let mut untaken = UntakenStreams(None);

    let served = loop {
        // The connection comes first: what has arrived by now is served, whatever else is due.
        let event = poll_fn(|cx| {
            if let Poll::Ready(served) = connection.as_mut().poll(cx) {
                return Poll::Ready(Event::Served(served));
            }
            if !is_leaving && stop.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Event::Leave);
            }
            if state.is_reclaimed() {
                // Every request that was there has been taken up, so the next read finds a new one, or nothing.
                state.idle_close().request();
                let served = connection.as_mut().poll(cx);
                state.idle_close().cancel();
                if state.idle_close().is_done() {
                    return Poll::Ready(Event::Reclaimed);
                }
                if let Poll::Ready(served) = served {
                    return Poll::Ready(Event::Served(served));
                }
                state.decline();
            }
            loop {
                let now = Instant::now();
                let deadline = state.deadline().into_iter().chain(untaken.deadline(state, limits.body_idle, now));
                let deadline = deadline.min().map(|deadline| deadline.max(patience));
                // Looking again after `header_read` is soon enough to catch a head that has not begun yet.
                let look = deadline.unwrap_or(now + limits.header_read);
                if look < timer.deadline() {
                    timer.as_mut().reset(look);
                }
                if timer.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                if deadline.is_some_and(|deadline| deadline <= now) {
                    return Poll::Ready(Event::Overdue);
                }
                timer.as_mut().reset(look);
            }
        })
        .await;
        match event {
            Event::Served(served) => break served,
            Event::Reclaimed => return Ok(None),
            // HTTP/2 can say goodbye first; HTTP/1.1 has no message for it.
            Event::Overdue if is_leaving || !state.is_http2() => {
                let slow = (ConnectionErrorKind::Slow, "no request in time".into());
                return if state.has_served() { Ok(None) } else { Err(slow) };
            }
            Event::Leave | Event::Overdue => {
                is_leaving = true;
                begin_shutdown(connection.as_mut());
                patience = Instant::now() + limits.header_read;
            }
        }
    };
    match served.map_err(Into::into) {
        Ok(served) => Ok(Some(served)),
        // A shutdown may cut off a connection on which no request was in progress.
        Err(_) if is_leaving && state.is_idle() => Ok(None),
        Err(error) if state.flood().is_some() => Err((ConnectionErrorKind::Flood, error)),
        Err(error) => Err((kind_of(&*error), error)),
    }
}

/// Since when the first HTTP/2 stream with something to send has not moved although the HTTP library has all of its response. No task
/// is left then that [`stream_timeout`](crate::edge::http2::stream_timeout) could end, so the connection ends. A request
/// that comes meanwhile postpones that while it is in progress, and no further.
struct UntakenStreams(Option<(u32, Instant)>);

impl UntakenStreams {
    fn deadline(&mut self, state: &ConnectionState, body_idle: Duration, now: Instant) -> Option<Instant> {
        let Unsent::Streams(turn) = state.delivery().unsent() else {
            self.0 = None;
            return None;
        };
        self.0 = self.0.filter(|(seen, _)| *seen == turn);
        if !state.is_idle() {
            return None;
        }
        let (_, since) = self.0.get_or_insert((turn, now));
        Some(*since + body_idle)
    }
}

enum Event<O, E> {
    Served(Result<O, E>),
    Leave,
    Overdue,
    /// The connection was idle, and a new one has its slot.
    Reclaimed,
}

fn kind_of(error: &(dyn Error + 'static)) -> ConnectionErrorKind {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let is_parse = |error: &hyper::Error| error.is_parse() || error.is_parse_too_large();
        // A mistake of the client's, which it has been told.
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
