//! One connection, from its first byte to its end.

use std::convert::Infallible;
use std::error::Error;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tower::Service;

use crate::date;
use crate::edge::connection::client_socket::ClientSocket;
use crate::edge::connection::hyper_socket::ClientStream;
use crate::edge::connection_error::ConnectionErrorKind;
use crate::edge::connection_state::state::{ConnectionState, Unsent};
use crate::edge::http1_fast::{self, DateClock, FastPathEnd};
use crate::edge::http2::stream_timeout::StreamExecutor;
use crate::edge::limits::EdgeLimits;
use crate::edge::request::access_record::OnAccess;
use crate::edge::request::body::RequestBody;
use crate::edge::request::service::RequestService;

/// What holds for every connection of a listener.
pub(crate) struct ConnectionSettings {
    pub(crate) limits: EdgeLimits,
    protocol: Builder<StreamExecutor>,
    pub(crate) on_visit: Option<OnAccess>,
}

impl ConnectionSettings {
    pub(crate) fn new(limits: EdgeLimits, on_visit: Option<OnAccess>) -> Self {
        Self { protocol: protocol(&limits), limits, on_visit }
    }

    /// The same with other limits.
    pub(crate) fn with(&self, limits: EdgeLimits) -> Self {
        Self::new(limits, self.on_visit.clone())
    }
}

/// How many fields hyper lets a head have where it is told nothing.
const USUAL_FIELDS: usize = 100;

/// hyper's side of the limits; the rest is ours.
fn protocol(limits: &EdgeLimits) -> Builder<StreamExecutor> {
    let mut protocol = Builder::new(StreamExecutor { idle: limits.body_idle });
    protocol
        .http1()
        .timer(TokioTimer::new())
        // One deadline for heads, first bytes and idle connections alike: see `activity`.
        .header_read_timeout(None)
        .max_buf_size(limits.head_bytes);
    // Said only where it must be: a bound of one's own costs an allocation a request.
    if limits.fields > USUAL_FIELDS {
        protocol.http1().max_headers(limits.fields);
    }
    if !date::is_clock_set() {
        protocol.http1().auto_date_header(false);
        protocol.http2().auto_date_header(false);
    }
    protocol
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .initial_stream_window_size(limits.window_bytes)
        // Four streams' worth: one upload that its upstream does not take must not stop the others.
        .initial_connection_window_size(limits.window_bytes.saturating_mul(4))
        .max_send_buf_size(limits.window_bytes as usize)
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        // A peer that has gone without a word is noticed also while its streams wait for something.
        .keep_alive_interval(limits.keep_alive)
        .keep_alive_timeout(limits.header_read);
    protocol
}

/// How a connection ended, where that is worth a word.
pub(crate) type Ended = Result<(), (ConnectionErrorKind, Box<dyn Error + Send + Sync>)>;

/// Serves a connection until it ends, or until it has drained after `stop`.
pub(crate) async fn serve<S, B>(
    socket: ClientSocket,
    gate: RequestService<S>,
    terms: Arc<ConnectionSettings>,
    clock: Arc<DateClock>,
    stop: watch::Receiver<bool>,
) -> Ended
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let activity = Arc::clone(gate.activity());
    let (socket, early, gate) = match http1_fast::serve(socket, gate, &terms, clock, &stop).await {
        FastPathEnd::Handover(socket, early, gate) => (socket, early, gate),
        FastPathEnd::Ended(ended) => return ended,
    };
    let socket = ClientStream::new(socket, early, gate.agreed(), Arc::clone(&activity), terms.limits.body_idle);
    // Boxed, because most connections come to their end without it.
    Box::pin(converse(socket, gate, activity, terms, stop)).await
}

/// Leaves the rest of a connection to hyper.
async fn converse<S, B>(
    socket: ClientStream<ClientSocket>,
    gate: RequestService<S>,
    activity: Arc<ConnectionState>,
    terms: Arc<ConnectionSettings>,
    mut stop: watch::Receiver<bool>,
) -> Ended
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let limits = &terms.limits;
    let mut connection = pin!(terms.protocol.serve_connection_with_upgrades(TokioIo::new(socket), gate));
    let mut timer = pin!(sleep_until(Instant::now() + limits.first_byte));
    let mut stop = pin!(async {
        // The sender outlives the connection; if it were gone, leaving would be right too.
        let _ = stop.wait_for(|stop| *stop).await;
        if activity.is_silent() {
            // Boxed, so that connections that never see a shutdown have no room for it.
            let mut greeting = Box::pin(sleep(limits.greeting));
            poll_fn(|cx| if activity.is_silent() { greeting.as_mut().poll(cx) } else { Poll::Ready(()) }).await;
        }
    });
    let mut leaving = false;
    // What is given to a client that has been told goodbye.
    let mut patience = Instant::now();
    let mut untaken = Untaken(None);

    let served = loop {
        // The connection comes first: what has arrived by now is served, whatever else is due.
        let event = poll_fn(|cx| {
            if let Poll::Ready(served) = connection.as_mut().poll(cx) {
                return Poll::Ready(Event::Served(served));
            }
            if !leaving && stop.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Event::Leave);
            }
            if activity.is_reclaimed() {
                // hyper has taken up every request that was there, so what it reads now is new, or nothing.
                activity.goodbye().ask();
                let served = connection.as_mut().poll(cx);
                activity.goodbye().withdraw();
                if activity.goodbye().is_said() {
                    return Poll::Ready(Event::Reclaimed);
                }
                if let Poll::Ready(served) = served {
                    return Poll::Ready(Event::Served(served));
                }
                activity.decline();
            }
            loop {
                let now = Instant::now();
                let deadline =
                    activity.deadline().into_iter().chain(untaken.deadline(&activity, limits.body_idle, now));
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
            Event::Reclaimed => return Ok(()),
            // HTTP/2 can say goodbye first; HTTP/1.1 has no words for it.
            Event::Overdue if leaving || !activity.is_http2() => {
                let slow = (ConnectionErrorKind::Slow, "no request in time".into());
                return if activity.has_served() { Ok(()) } else { Err(slow) };
            }
            Event::Leave | Event::Overdue => {
                leaving = true;
                connection.as_mut().graceful_shutdown();
                patience = Instant::now() + limits.header_read;
            }
        }
    };
    match served {
        Ok(()) => {}
        // A goodbye may cut off a connection on which nothing was going on.
        Err(_) if leaving && activity.is_idle() => return Ok(()),
        Err(error) if activity.is_flooded() => return Err((ConnectionErrorKind::Flood, cause(error))),
        Err(error) => return Err((kind_of(&*error), error)),
    }
    if let Some(tunnel) = activity.take_tunnel() {
        let _busy = activity.begin(false);
        return tunnel.run(limits.tunnel_idle).await.map_err(|error| (ConnectionErrorKind::Broken, error.into()));
    }
    Ok(())
}

/// Since when the first HTTP/2 stream with something to send has not moved although hyper has all of its answer. No task
/// is left then that could be ended as in [`stall`](crate::edge::http2::stream_timeout), so the connection is. A request that comes meanwhile
/// postpones that while it is in progress, and no further.
struct Untaken(Option<(u32, Instant)>);

impl Untaken {
    fn deadline(&mut self, activity: &ConnectionState, body_idle: Duration, now: Instant) -> Option<Instant> {
        let Unsent::Streams(turn) = activity.unsent() else {
            self.0 = None;
            return None;
        };
        self.0 = self.0.filter(|(seen, _)| *seen == turn);
        if !activity.is_idle() {
            return None;
        }
        let (_, since) = self.0.get_or_insert((turn, now));
        Some(*since + body_idle)
    }
}

enum Event {
    Served(Result<(), Box<dyn Error + Send + Sync>>),
    Leave,
    Overdue,
    /// The connection was idle, and a new one has its place.
    Reclaimed,
}

/// What an error goes back to.
fn cause(error: Box<dyn Error + Send + Sync>) -> Box<dyn Error + Send + Sync> {
    let mut cause: &(dyn Error + 'static) = &*error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string().into()
}

fn kind_of(error: &(dyn Error + 'static)) -> ConnectionErrorKind {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let is_parse = |error: &hyper::Error| error.is_parse() || error.is_parse_too_large();
        let is_invalid = |error: &io::Error| error.kind() == io::ErrorKind::InvalidData;
        if error.downcast_ref().is_some_and(is_parse) || error.downcast_ref().is_some_and(is_invalid) {
            return ConnectionErrorKind::Protocol;
        }
        cause = error.source();
    }
    ConnectionErrorKind::Broken
}
