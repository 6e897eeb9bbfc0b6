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
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, Sleep, sleep_until};

use super::body::Coming;
use super::cause::Cause;
use super::gauge::Gauge;
use super::limits::UpstreamLimits;
use super::places::Place;
use super::plain::{self, Bare, Read};
use super::sending::Sending;
use super::socket::Socket;
use super::usage::Client;
use super::wire::Wire;
use crate::edge::RequestBody;

/// A connection that is used for one exchange at a time.
#[derive(Debug)]
pub(super) struct Link {
    speaker: Speaker,
    /// Runs out when an answer is overdue, or too early: it is set anew once in a while, and not for each request.
    timer: Pin<Box<Sleep>>,
    gauge: Arc<Gauge>,
    exchanges: u64,
    /// The last answer ended with its head by rule, whatever it said of a length: an upstream that sends a body all the
    /// same sends it now.
    is_doubtful: bool,
    /// When the last exchange ended.
    idle_since: Instant,
}

/// Who speaks on a link.
#[derive(Debug)]
enum Speaker {
    /// We do, as long as requests and answers are plain.
    Bare(Bare),
    /// hyper, once something was not.
    Hyper(SendRequest<Sending>, Box<Driven>),
    Nobody,
}

/// Why an exchange brought no response.
#[derive(Debug)]
pub(super) enum Failed {
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

impl Link {
    /// Speaks HTTP/1.1 on a new connection.
    pub(super) fn open(socket: Socket, place: Place, limits: &UpstreamLimits) -> Self {
        let gauge = Arc::new(Gauge::new(Arc::clone(place.usage())));
        let speaker = Speaker::Bare(Bare::new(Wire::new(socket, place, Arc::clone(&gauge))));
        let idle_since = Instant::now();
        let timer = Box::pin(sleep_until(idle_since + limits.response_header));
        Self { speaker, timer, gauge, exchanges: 0, is_doubtful: false, idle_since }
    }

    /// How a request is made on this connection.
    pub(super) fn way(&self, request: &Request<RequestBody>) -> Way {
        let is_plain = matches!(self.speaker, Speaker::Bare(_)) && plain::is_plain(request);
        if is_plain { Way::Plainly } else { Way::ByHyper }
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

    /// Sends a request, the [way](Self::way) that is its, and waits for the head of the answer.
    pub(super) async fn exchange(
        &mut self,
        request: Box<Request<RequestBody>>,
        way: Way,
        client: Client,
        limits: &UpstreamLimits,
    ) -> Result<Response<Coming>, Failed> {
        self.exchanges += 1;
        self.gauge.usage().begin(client);
        let now = Instant::now();
        self.gauge.begin(limits.buffer_bytes, now);
        let is_head = *request.method() == Method::HEAD;
        let early = match way {
            Way::ByHyper => Bytes::new(),
            Way::Plainly => match self.exchange_plainly(&request, now + limits.response_header).await {
                None => return Err(Failed::Timeout),
                Some(Ok(Read::Answer(response))) => {
                    self.gauge.has_head();
                    return Ok(self.answered(is_head, response.map(Coming::Plain)));
                }
                Some(Ok(Read::Other(early))) => early,
                Some(Err(error)) => return Err(Failed::Unanswered(request, error.into())),
            },
        };
        // Boxed, because most requests need no room for it.
        let response = Box::pin(self.exchange_by_hyper(request, early, limits)).await?;
        Ok(self.answered(is_head, response.map(Coming::Hyper)))
    }

    fn answered(&mut self, is_head: bool, response: Response<Coming>) -> Response<Coming> {
        self.is_doubtful = is_head || matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        response
    }

    /// None where the answer is overdue.
    async fn exchange_plainly(&mut self, request: &Request<RequestBody>, due: Instant) -> Option<io::Result<Read>> {
        let Speaker::Bare(bare) = &mut self.speaker else { return Some(Err(io::ErrorKind::NotConnected.into())) };
        let timer = &mut self.timer;
        bare.begin(request);
        poll_fn(|cx| {
            if let Poll::Ready(read) = bare.poll_answer(cx, request.method()) {
                return Poll::Ready(Some(read));
            }
            while timer.as_mut().poll(cx).is_ready() {
                if due <= Instant::now() {
                    return Poll::Ready(None);
                }
                timer.as_mut().reset(due);
            }
            Poll::Pending
        })
        .await
    }

    /// Leaves the connection to hyper, with what has been read of an answer to the request.
    async fn exchange_by_hyper(
        &mut self,
        request: Box<Request<RequestBody>>,
        early: Bytes,
        limits: &UpstreamLimits,
    ) -> Result<Response<Incoming>, Failed> {
        self.speaker = match std::mem::replace(&mut self.speaker, Speaker::Nobody) {
            Speaker::Bare(bare) => {
                let mut wire = bare.into_wire();
                if !early.is_empty() {
                    wire.replay(early);
                }
                let mut hyper = http1::Builder::new();
                match hyper.max_buf_size(limits.buffer_bytes).handshake(TokioIo::new(wire)).await {
                    Ok((sender, connection)) => Speaker::Hyper(sender, Box::new(Driven::Running(connection))),
                    Err(error) => return Err(Failed::Broken(error.into())),
                }
            }
            speaker => speaker,
        };
        let Speaker::Hyper(sender, connection) = &mut self.speaker else {
            return Err(Failed::Broken(io::Error::from(io::ErrorKind::NotConnected).into()));
        };
        let request = request.map(|body| Sending::new(body, Arc::clone(&self.gauge)));
        let mut answer = pin!(sender.try_send_request(request));
        let mut timer = pin!(sleep_until(Instant::now() + limits.response_header));
        let gauge = &self.gauge;
        let answer = poll_fn(|cx| {
            let has_ended = connection.poll(cx).is_ready();
            // The answer comes out of the connection just polled, so its own wake-up would only be a second one.
            let mut silent = Context::from_waker(Waker::noop());
            if let Poll::Ready(answer) = answer.as_mut().poll(&mut silent) {
                return Poll::Ready(Some(answer.map_err(Some)));
            }
            if has_ended {
                // A request it never looked at comes back once it is gone.
                **connection = Driven::Gone;
                return answer.as_mut().poll(&mut silent).map(|answer| Some(answer.map_err(Some)));
            }
            if gauge.awaits_client() && gauge.usage().poll_given_up(cx).is_ready() {
                return Poll::Ready(Some(Err(None)));
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
            Some(Err(Some(error))) => Err(Failed::from(error)),
            Some(Err(None)) => Err(Failed::GivenUp),
        }
    }

    /// Moves octets of the body in both directions. Ready once the connection has ended.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.speaker {
            Speaker::Hyper(_, connection) => connection.poll(cx),
            Speaker::Bare(_) | Speaker::Nobody => Poll::Ready(()),
        }
    }

    /// Reads on in a plain body of which so many octets are left.
    pub(super) fn poll_body(&mut self, cx: &mut Context<'_>, left: u64, most: usize) -> Poll<io::Result<Bytes>> {
        match &mut self.speaker {
            Speaker::Bare(bare) => bare.poll_body(cx, left, most),
            Speaker::Hyper(..) | Speaker::Nobody => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    /// Whether the connection can take another request: both messages complete, and not an octet too much.
    pub(super) fn is_reusable(&mut self) -> bool {
        // Whoever waited on this connection no longer does, so nobody is to be woken.
        let mut silent = Context::from_waker(Waker::noop());
        match &mut self.speaker {
            Speaker::Bare(bare) => bare.is_clean(),
            Speaker::Hyper(sender, connection) => connection.poll(&mut silent).is_pending() && sender.is_ready(),
            Speaker::Nobody => false,
        }
    }

    /// Whether an idle connection can still be used, as far as anyone can know.
    pub(super) fn is_alive(&mut self, certainty: Certainty) -> bool {
        if certainty == Certainty::AskKernel || self.is_doubtful {
            self.gauge.look();
        }
        match &mut self.speaker {
            Speaker::Bare(bare) => bare.is_silent(&mut Context::from_waker(Waker::noop())),
            _ => self.is_reusable(),
        }
    }

    pub(super) fn rest(&mut self) {
        self.idle_since = Instant::now();
        self.gauge.usage().rest();
    }

    /// What the connection becomes after a 101: the socket and what has been read from it beyond the head.
    pub(super) async fn into_socket(mut self: Box<Self>) -> Option<(Wire, Bytes)> {
        poll_fn(|cx| self.poll(cx)).await;
        let Speaker::Hyper(_, driven) = self.speaker else { return None };
        let Driven::Ended(connection) = *driven else { return None };
        let parts = connection.into_parts();
        let mut wire = parts.io.into_inner();
        wire.tunnel();
        Some((wire, parts.read_buf))
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

/// How a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By us. Should it not be answered, it is left to be sent again.
    Plainly,
    ByHyper,
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
            Some(request) => Self::Unsent(Box::new(request.map(Sending::into_body)), error.into_error().into()),
            None => Self::Broken(error.into_error().into()),
        }
    }
}
