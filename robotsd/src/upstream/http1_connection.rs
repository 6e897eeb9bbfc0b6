//! A connection of HTTP/1.1 to an upstream, one exchange on it, and the pool of those that are idle.
//!
//! The task that waits for the response polls the connection: no task and no wake-up of its own for
//! each request, and a dropped response closes the connection. An idle one is therefore not polled and has to be
//! checked before it is used again, which [`Http1Pool`] has done.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, Connection as Http1Connection, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep_until};

use super::connection_limit::{Demand, Permit};
use super::endpoint::UpstreamLimits;
use super::failure_kind::Cause;
use super::http1_fast::{self, FastAnswer, FastConnection, UnreadBody};
use super::outgoing_request::{InterimRelay, OutgoingBody};
use super::tracked_io::{ExchangeProgress, TrackedIo};
use super::usage::ClientKey;
use crate::exchange::fields::ForwardedValues;
use crate::exchange::{InterimResponses, RequestBody, poll_due};
use crate::socket::Socket;

/// A connection that is used for one exchange at a time.
#[derive(Debug)]
pub(super) struct UpstreamConnection {
    driver: Driver,
    /// Runs out when an answer is overdue, or too early: it is set anew once in a while, and not for each request.
    timer: Pin<Box<Sleep>>,
    pub(super) progress: Arc<ExchangeProgress>,
    exchanges: u64,
    /// The last answer ended with its head by rule, whatever it said of a length: an upstream that sends a body all the
    /// same sends it now.
    is_doubtful: bool,
    /// When the last exchange ended.
    idle_since: Instant,
}

/// The driver that sends requests and reads responses on a connection.
#[derive(Debug)]
enum Driver {
    /// The fast path, as long as it can take requests and responses.
    Fast(FastConnection),
    /// hyper, once it could not.
    Hyper(SendRequest<OutgoingBody>, Box<HyperDriver>),
    Closed,
}

/// Why an exchange brought no response.
#[derive(Debug)]
pub(super) enum ExchangeError {
    /// Nothing of the request has been sent; here it is.
    Unsent(Box<Request<RequestBody>>, Cause),
    /// The connection broke without an octet of an answer; here is the request.
    Unanswered(Box<Request<RequestBody>>, Cause),
    /// The connection broke, or the answer was not HTTP.
    Broken(Cause),
    /// No answer in time.
    Timeout,
    /// The client did not go on with its request, and the connection was needed for others.
    GivenUp,
}

impl UpstreamConnection {
    /// Speaks HTTP/1.1 on a new connection.
    pub(super) fn open(socket: Socket, permit: Permit, limits: &UpstreamLimits) -> Self {
        let progress = Arc::new(ExchangeProgress::new(Arc::clone(&permit.usage)));
        let driver = Driver::Fast(FastConnection::new(TrackedIo::new(socket, permit, Arc::clone(&progress))));
        let idle_since = Instant::now();
        let timer = Box::pin(sleep_until(idle_since + limits.response_header));
        Self { driver, timer, progress, exchanges: 0, is_doubtful: false, idle_since }
    }

    /// How a request is made on this connection.
    pub(super) fn engine(&self, request: &Request<RequestBody>) -> HttpEngine {
        let is_plain = matches!(self.driver, Driver::Fast(_)) && http1_fast::is_plain(request);
        if is_plain { HttpEngine::Fast } else { HttpEngine::Hyper }
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

    /// Sends a request, in its way, and waits for the head of the answer. hyper finds the forwarded fields in the request.
    pub(super) async fn exchange(
        &mut self,
        request: Box<Request<RequestBody>>,
        (engine, forwarded): (HttpEngine, Option<&ForwardedValues>),
        client: ClientKey,
        interim: Option<&InterimResponses>,
        limits: &UpstreamLimits,
    ) -> Result<Response<UnreadBody>, ExchangeError> {
        self.exchanges += 1;
        self.progress.usage.begin(client);
        let now = Instant::now();
        self.progress.begin(limits.buffer_bytes, now);
        let is_head = *request.method() == Method::HEAD;
        let early = match engine {
            HttpEngine::Hyper => Bytes::new(),
            HttpEngine::Fast => match self.exchange_plainly(&request, forwarded, now + limits.response_header).await {
                None => return Err(ExchangeError::Timeout),
                Some(Ok(FastAnswer::Answer(response))) => {
                    self.progress.has_head();
                    return Ok(self.answered(is_head, response.map(UnreadBody::Fast)));
                }
                Some(Ok(FastAnswer::Other(early))) => early,
                Some(Err(error)) => return Err(ExchangeError::Unanswered(request, Cause::Socket(error))),
            },
        };
        // Boxed, because most requests need no room for it.
        let response = Box::pin(self.exchange_by_hyper(request, early, InterimRelay::new(interim), limits)).await?;
        Ok(self.answered(is_head, response.map(UnreadBody::Hyper)))
    }

    fn answered(&mut self, is_head: bool, response: Response<UnreadBody>) -> Response<UnreadBody> {
        self.is_doubtful = is_head || matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        response
    }

    /// None where the answer is overdue.
    async fn exchange_plainly(
        &mut self,
        request: &Request<RequestBody>,
        forwarded: Option<&ForwardedValues>,
        due: Instant,
    ) -> Option<io::Result<FastAnswer>> {
        let Driver::Fast(fast) = &mut self.driver else { return Some(Err(io::ErrorKind::NotConnected.into())) };
        let timer = &mut self.timer;
        fast.begin(request, forwarded);
        poll_fn(|cx| {
            if let Poll::Ready(read) = fast.poll_answer(cx, request.method()) {
                return Poll::Ready(Some(read));
            }
            poll_due(timer.as_mut(), cx, |_| due).map(|()| None)
        })
        .await
    }

    /// Leaves the connection to hyper, with what has been read of an answer to the request.
    async fn exchange_by_hyper(
        &mut self,
        request: Box<Request<RequestBody>>,
        early: Bytes,
        relay: InterimRelay,
        limits: &UpstreamLimits,
    ) -> Result<Response<Incoming>, ExchangeError> {
        self.driver = match std::mem::replace(&mut self.driver, Driver::Closed) {
            Driver::Fast(fast) => {
                let mut stream = fast.stream;
                if !early.is_empty() {
                    stream.replay(early);
                }
                let mut hyper = http1::Builder::new();
                match hyper.max_buf_size(limits.buffer_bytes).handshake(TokioIo::new(stream)).await {
                    Ok((sender, connection)) => Driver::Hyper(sender, Box::new(HyperDriver::Running(connection))),
                    Err(error) => return Err(ExchangeError::Broken(Cause::Protocol(error))),
                }
            }
            driver => driver,
        };
        let Driver::Hyper(sender, connection) = &mut self.driver else {
            return Err(ExchangeError::Broken(Cause::Socket(io::ErrorKind::NotConnected.into())));
        };
        let mut request = request.map(|body| OutgoingBody { body, progress: Arc::clone(&self.progress) });
        if relay.client.is_some() {
            hyper::ext::on_informational(&mut request, move |response| {
                // Too many are no failure: the octets before a final response are bounded.
                relay.received(response.status(), response.headers());
            });
        }
        let mut answer = pin!(sender.try_send_request(request));
        let progress = &self.progress;
        // Since the request was sent, also where the fast path has waited before.
        let mut timer = pin!(sleep_until(progress.upload.last_taken() + limits.response_header));
        let answer = poll_fn(|cx| {
            let has_ended = connection.poll(cx).is_ready();
            // The answer comes out of the connection just polled, so its own wake-up would only be a second one.
            let mut silent = Context::from_waker(Waker::noop());
            if let Poll::Ready(answer) = answer.as_mut().poll(&mut silent) {
                return Poll::Ready(Some(answer.map_err(Some)));
            }
            if has_ended {
                // A request it never looked at comes back once it is gone.
                **connection = HyperDriver::Gone;
                return answer.as_mut().poll(&mut silent).map(|answer| Some(answer.map_err(Some)));
            }
            if progress.upload.awaits_client.is_set() && progress.usage.poll_given_up(cx).is_ready() {
                return Poll::Ready(Some(Err(None)));
            }
            // An upload may take long: while the client is to blame its own deadline counts, and while the upstream takes
            // octets it is alive.
            let upload = &progress.upload;
            let last_taken = |now| if upload.awaits_client.is_set() { now } else { upload.last_taken() };
            poll_due(timer.as_mut(), cx, |now| last_taken(now) + limits.response_header).map(|()| None)
        })
        .await;
        match answer {
            None => Err(ExchangeError::Timeout),
            Some(Ok(response)) => {
                self.progress.has_head();
                Ok(response)
            }
            Some(Err(Some(mut error))) => Err(match error.take_message() {
                Some(request) => {
                    let request = Box::new(request.map(|outgoing| outgoing.body));
                    ExchangeError::Unsent(request, Cause::Protocol(error.into_error()))
                }
                None => ExchangeError::Broken(Cause::Protocol(error.into_error())),
            }),
            Some(Err(None)) => Err(ExchangeError::GivenUp),
        }
    }

    /// Moves octets of the body in both directions. Ready once the connection has ended.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.driver {
            Driver::Hyper(_, connection) => connection.poll(cx),
            Driver::Fast(_) | Driver::Closed => Poll::Ready(()),
        }
    }

    /// Reads on in a plain body of which so many octets are left.
    pub(super) fn poll_body(&mut self, cx: &mut Context<'_>, left: u64, most: usize) -> Poll<io::Result<Bytes>> {
        match &mut self.driver {
            Driver::Fast(fast) => fast.poll_body(cx, left, most),
            Driver::Hyper(..) | Driver::Closed => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    /// Whether the connection can take another request: both messages complete, and not an octet too much.
    pub(super) fn is_reusable(&mut self) -> bool {
        // No task waits on this connection any more, so there is none to wake.
        let mut silent = Context::from_waker(Waker::noop());
        match &mut self.driver {
            // Octets that have arrived since the response are found out before the next exchange.
            Driver::Fast(fast) => !fast.is_spoiled,
            Driver::Hyper(sender, connection) => connection.poll(&mut silent).is_pending() && sender.is_ready(),
            Driver::Closed => false,
        }
    }

    /// Whether an idle connection can still be used, as far as anyone can know.
    pub(super) fn is_alive(&mut self, certainty: Certainty) -> bool {
        if certainty == Certainty::AskKernel || self.is_doubtful {
            self.progress.look.set(true);
        }
        match &mut self.driver {
            Driver::Fast(fast) => fast.is_silent(&mut Context::from_waker(Waker::noop())),
            _ => self.is_reusable(),
        }
    }

    pub(super) fn rest(&mut self) {
        self.idle_since = Instant::now();
        self.progress.usage.rest();
    }

    /// The connection after a 101: the socket and the octets that have been read from it beyond the head.
    pub(super) async fn into_socket(mut self: Box<Self>) -> Option<(TrackedIo, Bytes)> {
        poll_fn(|cx| self.poll(cx)).await;
        let Driver::Hyper(_, hyper) = self.driver else { return None };
        let HyperDriver::Ended(connection) = *hyper else { return None };
        let parts = connection.into_parts();
        let mut stream = parts.io.into_inner();
        stream.tunnel();
        Some((stream, parts.read_buf))
    }
}

/// hyper's side of a connection, which must not be polled again after its end.
#[derive(Debug)]
enum HyperDriver {
    Running(Http1Connection<TokioIo<TrackedIo>, OutgoingBody>),
    /// Closed, or switched to another protocol: then the socket is still in it.
    Ended(Http1Connection<TokioIo<TrackedIo>, OutgoingBody>),
    Gone,
}

impl HyperDriver {
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

/// How a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HttpEngine {
    /// By the fast path. A request that gets no response is kept, to be sent again.
    Fast,
    Hyper,
}

/// How thoroughly an idle connection is checked before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Certainty {
    /// By the event loop's state; enough for a request that may be sent twice.
    EventLoop,
    /// By the kernel's state, for one system call more.
    AskKernel,
}

/// The idle connections of HTTP/1.1 that one worker keeps to one server, the one that was used last at the end.
///
/// The last one into a pool is the first one out: it is the likeliest to be alive, and the rest may age and go.
#[derive(Debug)]
pub(super) struct Http1Pool {
    idle: Mutex<VecDeque<Box<UpstreamConnection>>>,
    capacity: usize,
    timeout: Duration,
    demand: Arc<Demand>,
}

impl Http1Pool {
    pub(super) fn new(capacity: usize, timeout: Duration, demand: Arc<Demand>) -> Self {
        Self { idle: Mutex::new(VecDeque::new()), capacity, timeout, demand }
    }

    /// A connection that seems alive.
    pub(super) fn take(&self, certainty: Certainty) -> Option<Box<UpstreamConnection>> {
        loop {
            // Checked outside the lock: others need not wait for it.
            let mut connection = self.idle.lock().pop_back()?;
            if !connection.is_expired(Instant::now(), self.timeout) && connection.is_alive(certainty) {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection whose exchange is over, unless it cannot be used again or another worker needs its place.
    pub(super) fn put(&self, mut connection: Box<UpstreamConnection>) {
        if self.capacity == 0 || !connection.is_reusable() || self.demand.are_others_first() {
            return;
        }
        connection.rest();
        let mut idle = self.idle.lock();
        let surplus = (idle.len() == self.capacity).then(|| idle.pop_front());
        idle.push_back(connection);
        drop(idle);
        drop(surplus);
        self.demand.has_returned();
    }

    /// Closes connections that have been idle for too long, or that the upstream has closed.
    pub(super) fn sweep(&self) {
        let now = Instant::now();
        let mut kept = std::mem::take(&mut *self.idle.lock());
        kept.retain_mut(|connection| {
            !connection.is_expired(now, self.timeout) && connection.is_alive(Certainty::AskKernel)
        });
        let mut idle = self.idle.lock();
        // Connections that came meanwhile are younger.
        kept.append(&mut idle);
        *idle = kept;
    }

    /// Closes the connection that has been idle for longest, if there is one.
    pub(super) fn give_up(&self) -> Option<()> {
        // Closed outside the lock.
        let oldest = self.idle.lock().pop_front();
        oldest.map(drop)
    }

    /// Closes every idle connection.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *self.idle.lock());
        drop(all);
    }
}
