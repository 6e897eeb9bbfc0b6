//! HTTP/2 (RFC 9113) with `h2`: each request is a stream with its own task. The module limits
//! floods of frames, and adds deadlines for clients that do not read a stream or have silently
//! disconnected.

pub(crate) mod stream;
pub(crate) mod stream_timeout;

mod batched_socket;
pub(crate) mod frame_accounting;

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::server::{Builder, Connection, Handshake, SendResponse};
use h2::{Ping, PingPong, Reason, RecvStream};
use http::{Method, Request};
use http_body_util::Either;
use tokio::time::{Sleep, sleep, timeout};
use tower::BoxError;

use self::batched_socket::BatchedSocket;
use self::stream_timeout::StreamConsumer;
use super::connection::settings::{ConnectionSettings, EdgeLimits};
use super::connection::watched_socket::WatchedSocket;
use super::connection_state::{ConnectionState, Unsent};
use super::http1_fast::DateClock;
use super::request::service::{RequestService, ResponseWriter};
use crate::date;
use crate::http_common::{EdgeService, InterimResponses, RequestBody, RequestStream, frames};
use crate::socket::Socket;

/// Maximum number of streams that `h2` resets because of client errors. At the next client error,
/// `h2` ends the connection. A reset costs the server more than the client.
const RESETS: usize = 1024;

pub(crate) struct Http2ServerConnection<S> {
    part: Part,
    socket: BatchedSocket<Socket>,
    service: Arc<RequestService<S>>,
    settings: Arc<ConnectionSettings>,
    /// Clock for the `Date` of responses. `None` if the system time is certainly wrong.
    clock: Option<Arc<DateClock>>,
    is_leaving: bool,
    /// Number of requests that have arrived and are no longer in the queue of `h2`.
    taken: usize,
    /// Timer that limits the time for sending GOAWAY to a flooding client.
    patience: Option<Pin<Box<Sleep>>>,
}

/// Maximum time for sending GOAWAY to a client that floods the connection. Any client that still
/// reads receives the GOAWAY within this time.
const GOAWAY_TIMEOUT: Duration = Duration::from_secs(5);

enum Part {
    Handshake(Handshake<BatchedSocket<Socket>, Bytes>),
    Serving {
        connection: Connection<BatchedSocket<Socket>, Bytes>,
        ping_timeout: Pin<Box<dyn Future<Output = ()> + Send>>,
    },
}

impl<S> Http2ServerConnection<S> {
    pub(crate) fn new(
        socket: WatchedSocket<Socket>,
        service: Arc<RequestService<S>>,
        settings: Arc<ConnectionSettings>,
        clock: Arc<DateClock>,
    ) -> Self {
        let socket = BatchedSocket::new(socket);
        let part = Part::Handshake(builder(&settings.limits).handshake(socket.clone()));
        let clock = date::is_clock_set().then_some(clock);
        Self { part, socket, service, settings, clock, is_leaving: false, taken: 0, patience: None }
    }

    /// Sends a GOAWAY. Requests in progress are completed, and no new requests are accepted.
    pub(crate) fn begin_shutdown(&mut self) {
        self.is_leaving = true;
        if let Part::Serving { connection, .. } = &mut self.part {
            connection.graceful_shutdown();
        }
    }
}

/// Maximum window size (RFC 9113, section 6.9.1).
const MAX_WINDOW: u32 = i32::MAX as u32;

/// Maximum charge to `h2`'s budget for small frames, per byte of content that waits to be read. For
/// each frame, `h2` charges 256 minus the frame's length. For frames of at least 16 bytes, the
/// charge never exceeds this maximum.
const CHARGE_PER_OCTET: usize = 16;

/// Returns the builder of HTTP/2 connections. The connection's window has room for all of its
/// streams, so an upload that an upstream does not read cannot block other uploads. A small frame
/// uses more memory than the size of its content, so `h2` has an additional budget for small
/// frames. The budget for small frames is at least as large as the connection's window, and the
/// small frames of one stream always fit into the budget.
fn builder(limits: &EdgeLimits) -> Builder {
    let window = u32::try_from(limits.window_bytes).unwrap_or(MAX_WINDOW);
    let connection_window = limits.streams.saturating_mul(window).min(MAX_WINDOW);
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(limits.streams)
        .initial_window_size(window)
        .initial_connection_window_size(connection_window)
        .data_frame_budget((connection_window as usize).max(limits.window_bytes * CHARGE_PER_OCTET))
        .max_send_buffer_size(limits.window_bytes)
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        .max_local_error_reset_streams(Some(RESETS));
    builder
}

impl<S: EdgeService> Http2ServerConnection<S> {
    fn begin_stream(&self, request: Request<RecvStream>, respond: SendResponse<Bytes>) {
        let idle = self.settings.limits.body_idle;
        let is_head = *request.method() == Method::HEAD;
        let (head, coming) = request.into_parts();
        let consumer = StreamConsumer::default();
        let coming = RequestStream::new(coming, &head.headers, InterimResponses::to(consumer.clone()));
        let body = RequestBody::new(Either::Right(coming), idle);
        let writer = ResponseWriter::Stream(consumer.clone());
        // The future is boxed twice. Without the inner box, each enclosing future would move the
        // large future. Without the outer box, the future would be moved when its task begins and
        // when the task ends.
        let answering = Box::pin(self.service.answer(Request::from_parts(head, body), writer).1);
        let stream = stream::serve(answering, respond, consumer.clone(), is_head, self.clock.clone());
        tokio::spawn(Box::pin(stream_timeout::watch(stream, consumer, idle)));
    }

    /// Completes if the client has silently disconnected.
    fn poll_ping_timeout(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        let Part::Serving { ping_timeout, .. } = &mut self.part else { return Poll::Pending };
        ready!(ping_timeout.as_mut().poll(cx));
        Poll::Ready(Err("the client did not answer a PING in time".into()))
    }

    /// Reads and answers all requests that have arrived. Bytes of the responses may remain in the
    /// socket's buffer.
    fn poll_requests(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        loop {
            match &mut self.part {
                Part::Handshake(handshake) => {
                    let mut connection = ready!(Pin::new(handshake).poll(cx)).map_err(cause)?;
                    if self.is_leaving {
                        connection.graceful_shutdown();
                    }
                    let pings = connection.ping_pong();
                    let limits = &self.settings.limits;
                    let state = Arc::clone(&self.service.connection);
                    let ping_timeout = Box::pin(ping_timeout(pings, state, limits.keep_alive, limits.header_read));
                    self.part = Part::Serving { connection, ping_timeout };
                }
                Part::Serving { connection, .. } => {
                    if let Some(&kind) = self.service.connection.flood.get() {
                        let patience = self.patience.get_or_insert_with(|| {
                            connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
                            Box::pin(sleep(GOAWAY_TIMEOUT))
                        });
                        if connection.poll_closed(cx).is_pending() {
                            ready!(patience.as_mut().poll(cx));
                        }
                        let kind = frames::name(kind);
                        return Poll::Ready(Err(
                            format!("the client sent more {kind} frames than its requests need").into()
                        ));
                    }
                    match connection.poll_accept(cx) {
                        Poll::Ready(Some(Ok((request, respond)))) => {
                            self.begin_stream(request, respond);
                            self.taken += 1;
                            // `h2` polls the connection before it returns a request. So if `h2`
                            // has returned all requests that have arrived, another poll would find
                            // nothing.
                            if self.taken == self.socket.requests() {
                                return self.poll_ping_timeout(cx);
                            }
                        }
                        Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(cause(error))),
                        Poll::Ready(None) => return Poll::Ready(Ok(())),
                        Poll::Pending => {
                            // Requests that have arrived, but that `h2` has not returned, were
                            // invalid.
                            self.taken = self.socket.requests();
                            return self.poll_ping_timeout(cx);
                        }
                    }
                }
            }
        }
    }
}

// No field is structurally pinned.
impl<S> Unpin for Http2ServerConnection<S> {}

impl<S: EdgeService> Future for Http2ServerConnection<S> {
    type Output = Result<(), BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let ended = this.poll_requests(cx);
        match this.socket.poll_send(cx) {
            Poll::Ready(Err(error)) if ended.is_pending() => Poll::Ready(Err(error.into())),
            _ => ended,
        }
    }
}

/// Returns the I/O error that caused an HTTP/2 error. If no I/O error caused it, returns the HTTP/2
/// error itself.
fn cause(error: h2::Error) -> BoxError {
    if error.is_io() {
        return error.into_io().map_or_else(|| "the connection broke".into(), Into::into);
    }
    error.into()
}

/// Detects clients that have silently disconnected, even while requests are in progress. If no
/// bytes arrive for [`EdgeLimits::keep_alive`], sends a PING and waits [`EdgeLimits::header_read`]
/// for the answer. Completes if no answer arrives.
///
/// A PING is queued behind all bytes that were written earlier, so on a slow connection, its answer
/// may take long. Therefore, a client whose socket accepts bytes counts as connected. If the
/// client's socket accepts nothing, the deadline of the
/// [socket](crate::edge::connection::watched_socket) applies, and not the deadline of the PING.
async fn ping_timeout(
    pings: Option<PingPong>,
    connection: Arc<ConnectionState>,
    interval: Duration,
    patience: Duration,
) {
    let Some(mut pings) = pings else { return std::future::pending().await };
    let is_stuck = || connection.delivery.unsent() == Unsent::Socket;
    loop {
        sleep(interval).await;
        while is_stuck() {
            sleep(patience).await;
        }
        if connection.has_received_bytes.take() {
            continue;
        }
        // Discards the answer to the previous PING if this answer arrived after other bytes from
        // the client. If no answer has arrived, the previous PING is still pending, and `send_ping`
        // does nothing.
        poll_fn(|cx| Poll::Ready(pings.poll_pong(cx).is_ready())).await;
        let _ = pings.send_ping(Ping::opaque());
        let taken = connection.delivery.taken();
        // Any bytes from the client count as an answer. A write that the client's socket accepts
        // after a wait counts as an answer, too.
        let answer = |cx: &mut Context<'_>| {
            let is_there = pings.poll_pong(cx).is_ready()
                || connection.has_received_bytes.take()
                || connection.delivery.taken() != taken;
            if is_there { Poll::Ready(()) } else { Poll::Pending }
        };
        let mut answer = pin!(poll_fn(answer));
        while timeout(patience, answer.as_mut()).await.is_err() {
            if !is_stuck() {
                return;
            }
        }
    }
}
