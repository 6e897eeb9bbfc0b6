//! HTTP/1.1 connections to upstreams, and the pool of idle connections.
//!
//! No separate task drives a connection: the task that waits for a response polls the connection.
//! Without a separate task, a request needs one wake-up less, and a connection closes when its
//! response is dropped. An idle connection is not polled, so [`Http1Pool`] checks the state of a
//! connection before reusing it.

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
use crate::http_common::fields::ForwardedValues;
use crate::http_common::{InterimResponses, RequestBody, poll_due};
use crate::socket::Socket;

#[derive(Debug)]
pub(super) struct UpstreamConnection {
    driver: Driver,
    /// Timer for overdue responses. The timer is not reset for each request, so it may fire before
    /// a response is overdue.
    timer: Pin<Box<Sleep>>,
    pub(super) progress: Arc<ExchangeProgress>,
    exchanges: u64,
    /// Whether the last response was of a kind that has no body, such as a response to HEAD. If the
    /// upstream sent a body nevertheless, its bytes may arrive while the connection is idle.
    is_doubtful: bool,
    idle_since: Instant,
}

#[derive(Debug)]
enum Driver {
    /// The fast path is used until an exchange needs a feature that the fast path lacks.
    Fast(FastConnection),
    /// A connection that was handed over to hyper stays with hyper.
    Hyper(SendRequest<OutgoingBody>, Box<HyperDriver>),
    Closed,
}

#[derive(Debug)]
pub(super) enum ExchangeError {
    /// No byte of this request was sent, or an HTTP/2 server reported that the request was not
    /// processed.
    Unsent(Box<Request<RequestBody>>, Cause),
    /// The connection broke before a byte of a response to this request arrived.
    Unanswered(Box<Request<RequestBody>>, Cause),
    /// The connection broke, or the response was not HTTP.
    Broken(Cause),
    Timeout,
    /// The client did not continue its request, and other requests needed the connection.
    GivenUp,
}

impl UpstreamConnection {
    pub(super) fn open(socket: Socket, permit: Permit, limits: &UpstreamLimits) -> Self {
        let progress = Arc::new(ExchangeProgress::new(Arc::clone(&permit.usage)));
        let driver = Driver::Fast(FastConnection::new(TrackedIo::new(socket, permit, Arc::clone(&progress))));
        let idle_since = Instant::now();
        let timer = Box::pin(sleep_until(idle_since + limits.response_header));
        Self { driver, timer, progress, exchanges: 0, is_doubtful: false, idle_since }
    }

    pub(super) fn engine(&self, request: &Request<RequestBody>) -> HttpEngine {
        let is_plain = matches!(self.driver, Driver::Fast(_)) && http1_fast::is_plain(request);
        if is_plain { HttpEngine::Fast } else { HttpEngine::Hyper }
    }

    pub(super) fn has_served(&self) -> bool {
        self.exchanges > 0
    }

    pub(super) fn is_reused(&self) -> bool {
        self.exchanges > 1
    }

    pub(super) fn is_expired(&self, now: Instant, timeout: Duration) -> bool {
        now.duration_since(self.idle_since) >= timeout
    }

    /// Sends a request and waits for the head of the response. For [`HttpEngine::Hyper`], the
    /// request already contains the forwarded fields.
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
        // The future of an exchange with hyper is boxed, because most requests do not need it.
        let response = Box::pin(self.exchange_by_hyper(request, early, InterimRelay::new(interim), limits)).await?;
        Ok(self.answered(is_head, response.map(UnreadBody::Hyper)))
    }

    fn answered(&mut self, is_head: bool, response: Response<UnreadBody>) -> Response<UnreadBody> {
        self.is_doubtful = is_head || matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        response
    }

    /// Performs an exchange on the fast path. Returns `None` if the response is overdue.
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

    /// Performs an exchange with hyper. Hands the connection over to hyper if necessary. `early`
    /// contains the bytes of the response that the fast path has read.
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
                // The number of interim responses needs no check, because the number of bytes
                // before a final response is limited.
                relay.received(response.status(), response.headers());
            });
        }
        let mut answer = pin!(sender.try_send_request(request));
        let progress = &self.progress;
        // The time limit starts when the request has been sent, so the time that the fast path has
        // already waited counts as well.
        let mut timer = pin!(sleep_until(progress.upload.last_accepted() + limits.response_header));
        let answer = poll_fn(|cx| {
            let has_ended = connection.poll(cx).is_ready();
            // The response can arrive only when `connection` is polled, as it was above, so no
            // wake-up is needed.
            let mut silent = Context::from_waker(Waker::noop());
            if let Poll::Ready(answer) = answer.as_mut().poll(&mut silent) {
                return Poll::Ready(Some(answer.map_err(Some)));
            }
            if has_ended {
                // If hyper has not begun to send the request, `answer` returns it once the
                // connection is dropped.
                **connection = HyperDriver::Gone;
                return answer.as_mut().poll(&mut silent).map(|answer| Some(answer.map_err(Some)));
            }
            if progress.upload.awaits_client.is_set() && progress.usage.poll_aborted(cx).is_ready() {
                return Poll::Ready(Some(Err(None)));
            }
            // The time limit restarts whenever the upstream accepts a part of the request. While
            // the upload waits for the client, the deadline of the request body applies instead.
            let upload = &progress.upload;
            let last_accepted = |now| if upload.awaits_client.is_set() { now } else { upload.last_accepted() };
            poll_due(timer.as_mut(), cx, |now| last_accepted(now) + limits.response_header).map(|()| None)
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

    /// Moves bytes of the body in both directions, and completes when the connection has ended.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.driver {
            Driver::Hyper(_, connection) => connection.poll(cx),
            Driver::Fast(_) | Driver::Closed => Poll::Ready(()),
        }
    }

    pub(super) fn poll_body(&mut self, cx: &mut Context<'_>, left: u64, most: usize) -> Poll<io::Result<Bytes>> {
        match &mut self.driver {
            Driver::Fast(fast) => fast.poll_body(cx, left, most),
            Driver::Hyper(..) | Driver::Closed => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    /// Reports whether request and response are complete, and no more bytes have arrived.
    pub(super) fn is_reusable(&mut self) -> bool {
        // No task waits for this connection any more, so no waker is needed.
        let mut silent = Context::from_waker(Waker::noop());
        match &mut self.driver {
            // `is_alive` detects bytes that arrive later.
            Driver::Fast(fast) => !fast.is_spoiled,
            Driver::Hyper(sender, connection) => connection.poll(&mut silent).is_pending() && sender.is_ready(),
            Driver::Closed => false,
        }
    }

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

    /// Returns the socket of a connection after a 101 response, and the bytes that were read after
    /// the head.
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

/// hyper's driver of a connection. The driver must not be polled again after it has ended.
#[derive(Debug)]
enum HyperDriver {
    Running(Http1Connection<TokioIo<TrackedIo>, OutgoingBody>),
    /// The connection has been closed, or has switched to another protocol. After a switch, the
    /// driver still contains the socket.
    Ended(Http1Connection<TokioIo<TrackedIo>, OutgoingBody>),
    Gone,
}

impl HyperDriver {
    /// Polls the connection, and completes when it has ended. An error needs no handling here,
    /// because the response or the body has already reported it.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self::Running(connection) = self else { return Poll::Ready(()) };
        ready!(Pin::new(connection).poll(cx)).ok();
        if let Self::Running(connection) = std::mem::replace(self, Self::Gone) {
            *self = Self::Ended(connection);
        }
        Poll::Ready(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HttpEngine {
    /// The fast path does not consume the request, so a request that gets no response can be sent
    /// again.
    Fast,
    Hyper,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Certainty {
    /// Checks the state that the event loop has recorded. This check is enough for a request that
    /// may be sent again.
    EventLoop,
    /// Asks the kernel, which costs one more system call.
    AskKernel,
}

/// The idle HTTP/1.1 connections of one worker to one server. The most recently used connection is
/// last.
///
/// The last connection is used first, because it is the most likely to be open. So connections that
/// are not needed stay idle and expire.
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

    /// Takes an idle connection from the pool. Returns `None` if no pooled connection seems to be
    /// open.
    pub(super) fn take(&self, certainty: Certainty) -> Option<Box<UpstreamConnection>> {
        loop {
            let mut connection = self.idle.lock().pop_back()?;
            if !connection.is_expired(Instant::now(), self.timeout) && connection.is_alive(certainty) {
                return Some(connection);
            }
        }
    }

    /// Puts a connection back into the pool after its exchange. If the connection cannot be reused,
    /// or if another worker needs its permit, closes it instead.
    pub(super) fn put(&self, mut connection: Box<UpstreamConnection>) {
        if self.capacity == 0 || !connection.is_reusable() || self.demand.should_yield_permit() {
            return;
        }
        connection.rest();
        let mut idle = self.idle.lock();
        let surplus = (idle.len() == self.capacity).then(|| idle.pop_front());
        idle.push_back(connection);
        drop(idle);
        drop(surplus);
        self.demand.notify_waiting_request();
    }

    pub(super) fn sweep(&self) {
        let now = Instant::now();
        let mut kept = std::mem::take(&mut *self.idle.lock());
        kept.retain_mut(|connection| {
            !connection.is_expired(now, self.timeout) && connection.is_alive(Certainty::AskKernel)
        });
        let mut idle = self.idle.lock();
        // Connections that were returned to the pool during the check were used more recently, so
        // they come last.
        kept.append(&mut idle);
        *idle = kept;
    }

    /// Closes the connection that has been idle for longest, or returns `None` if no connection is
    /// idle.
    pub(super) fn close_idle(&self) -> Option<()> {
        // The lock is released before the connection is closed.
        let oldest = self.idle.lock().pop_front();
        oldest.map(drop)
    }

    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *self.idle.lock());
        drop(all);
    }
}
