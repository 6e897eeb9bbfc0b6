//! A connection to an upstream, and one exchange on it.
//!
//! The connection is polled by whoever waits for its answer, inside the same task: no task and no wake-up of its own for
//! each request, and a dropped answer closes the connection. An idle one is therefore polled by nobody and has to be
//! checked before it is used again.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, sleep_until};

use super::gauge::Gauge;
use super::limits::UpstreamLimits;
use super::places::Place;
use super::sending::Sending;
use super::socket::Socket;
use super::wire::Wire;

/// A connection that is used for one exchange at a time.
#[derive(Debug)]
pub(super) struct Link {
    sender: SendRequest<Sending>,
    connection: Driven,
    gauge: Arc<Gauge>,
    exchanges: u64,
    /// When the last exchange ended.
    idle_since: Instant,
}

/// Why an exchange brought no response.
#[derive(Debug)]
pub(super) enum Failed {
    /// Nothing of the request has been sent; here it is.
    Unsent(Box<Request<Sending>>, hyper::Error),
    /// The connection broke, or the answer was not HTTP.
    Broken(hyper::Error),
    /// No answer in time.
    Timeout,
}

impl Link {
    /// Speaks HTTP/1.1 on a new connection.
    pub(super) async fn open(socket: Socket, place: Place, limits: &UpstreamLimits) -> io::Result<Self> {
        let gauge = Arc::new(Gauge::new());
        let wire = TokioIo::new(Wire::new(socket, place, Arc::clone(&gauge)));
        let (sender, connection) =
            http1::Builder::new().max_buf_size(limits.buffer_bytes).handshake(wire).await.map_err(io::Error::other)?;
        let idle_since = Instant::now();
        Ok(Self { sender, connection: Driven::Running(connection), gauge, exchanges: 0, idle_since })
    }

    pub(super) fn gauge(&self) -> &Arc<Gauge> {
        &self.gauge
    }

    /// Whether an exchange came before the next one.
    pub(super) fn has_served(&self) -> bool {
        self.exchanges > 0
    }

    /// Whether an exchange came before the current one.
    pub(super) fn is_reused(&self) -> bool {
        self.exchanges > 1
    }

    pub(super) fn is_expired(&self, now: Instant, timeout: Duration) -> bool {
        now.duration_since(self.idle_since) >= timeout
    }

    /// Sends a request and waits for the head of the answer.
    pub(super) async fn exchange(
        &mut self,
        request: Request<Sending>,
        limits: &UpstreamLimits,
    ) -> Result<Response<Incoming>, Failed> {
        self.exchanges += 1;
        self.gauge.begin(limits.buffer_bytes);
        let mut answer = pin!(self.sender.try_send_request(request));
        let mut timer = pin!(sleep_until(Instant::now() + limits.response_header));
        let connection = &mut self.connection;
        let gauge = &self.gauge;
        let answer = poll_fn(|cx| {
            let has_ended = connection.poll(cx).is_ready();
            // The answer comes out of the connection just polled, so its own wake-up would only be a second one.
            let mut silent = Context::from_waker(Waker::noop());
            if let Poll::Ready(answer) = answer.as_mut().poll(&mut silent) {
                return Poll::Ready(Some(answer));
            }
            if has_ended {
                // A request it never looked at comes back once it is gone.
                *connection = Driven::Gone;
                return answer.as_mut().poll(&mut silent).map(Some);
            }
            while timer.as_mut().poll(cx).is_ready() {
                let now = Instant::now();
                // An upload may take long: while the client is to blame its own deadline counts, and while the upstream
                // takes octets it is alive.
                let due = if gauge.awaits_client() { now } else { gauge.last_taken() } + limits.response_header;
                if due <= now {
                    return Poll::Ready(None);
                }
                timer.as_mut().reset(due);
            }
            Poll::Pending
        })
        .await;
        match answer {
            None => Err(Failed::Timeout),
            Some(Ok(response)) => {
                self.gauge.has_head();
                Ok(response)
            }
            Some(Err(error)) => Err(Failed::from(error)),
        }
    }

    /// Moves octets of the body in both directions. Ready once the connection has ended.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.connection.poll(cx)
    }

    /// Whether the connection can take another request: both messages complete, and not an octet too much.
    pub(super) fn is_reusable(&mut self) -> bool {
        // Whoever waited on this connection no longer does, so nobody is to be woken.
        self.poll(&mut Context::from_waker(Waker::noop())).is_pending() && self.sender.is_ready()
    }

    /// Whether an idle connection can still be used, as far as anyone can know.
    pub(super) fn is_alive(&mut self, certainty: Certainty) -> bool {
        if certainty == Certainty::AskKernel {
            self.gauge.look();
        }
        self.is_reusable()
    }

    pub(super) fn rest(&mut self) {
        self.idle_since = Instant::now();
    }

    /// What the connection becomes after a 101: the socket and what has been read from it beyond the head.
    pub(super) async fn into_socket(mut self: Box<Self>) -> Option<(Wire, Bytes)> {
        poll_fn(|cx| self.connection.poll(cx)).await;
        let Driven::Ended(connection) = self.connection else { return None };
        let parts = connection.into_parts();
        Some((parts.io.into_inner(), parts.read_buf))
    }
}

/// hyper's half of a link, which must not be polled again after its end.
#[derive(Debug)]
enum Driven {
    Running(Connection<TokioIo<Wire>, Sending>),
    /// Closed, or switched to another protocol: then the socket is still in it.
    Ended(Connection<TokioIo<Wire>, Sending>),
    Gone,
}

impl Driven {
    /// Moves the connection; ready once it has ended. Its error, if any, has then gone to the answer or to the body.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self::Running(connection) = self else { return Poll::Ready(()) };
        ready!(Pin::new(connection).poll(cx)).ok();
        if let Self::Running(connection) = std::mem::replace(self, Self::Gone) {
            *self = Self::Ended(connection);
        }
        Poll::Ready(())
    }
}

/// How sure one wants to be that an idle connection is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Certainty {
    /// As the event loop has it; enough for a request that may be sent twice.
    EventLoop,
    /// As the kernel has it, for one system call more.
    AskKernel,
}

impl From<TrySendError<Request<Sending>>> for Failed {
    fn from(mut error: TrySendError<Request<Sending>>) -> Self {
        match error.take_message() {
            Some(request) => Self::Unsent(Box::new(request), error.into_error()),
            None => Self::Broken(error.into_error()),
        }
    }
}
