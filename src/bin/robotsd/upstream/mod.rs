//! The side of the proxy that faces one upstream: HTTP/1.1 over a small pool of connections.
//!
//! An [`Upstream`] takes a request the edge has cleaned, sends it with the target's octets as they came, and answers
//! with what the upstream says or with a [`Failure`]; it never fails itself. It chooses no site and judges nothing.
//!
//! A request is sent a second time only where that cannot do harm: its method is idempotent, it has no body, it was
//! sent on a connection that had been idle, and not an octet has come back. A request that never left is sent again
//! whatever it is.

mod body;
mod failure;
mod gauge;
mod limits;
mod link;
mod pool;
mod sending;
mod wire;

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, request};
use http_body::Body;
use hyper::body::Incoming;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tower::Service;

pub(crate) use self::body::ResponseBody;
pub(crate) use self::failure::{Failure, FailureKind};
pub(crate) use self::limits::UpstreamLimits;

use self::gauge::BodyFailure;
use self::link::{Certainty, Failed, Link};
use self::pool::Pool;
use self::sending::Sending;
use crate::edge::{RequestBody, Tunnel, WebSocket};

/// One origin server, at one or several addresses.
#[derive(Clone, Debug)]
pub(crate) struct Upstream(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    addresses: Vec<SocketAddr>,
    /// Whose turn it is.
    turn: AtomicUsize,
    limits: UpstreamLimits,
    exchanges: Arc<Semaphore>,
    pool: Arc<Pool>,
    is_swept: AtomicBool,
}

impl Upstream {
    /// An upstream at these addresses, which take turns. Nothing is connected yet.
    pub(crate) fn new(addresses: impl IntoIterator<Item = SocketAddr>, limits: UpstreamLimits) -> Self {
        Self(Arc::new(Inner {
            addresses: addresses.into_iter().collect(),
            turn: AtomicUsize::new(0),
            exchanges: Arc::new(Semaphore::new(limits.exchanges)),
            pool: Arc::new(Pool::new(limits.idle_connections, limits.idle_timeout)),
            is_swept: AtomicBool::new(false),
            limits,
        }))
    }

    /// Forwards a request. The answer is always a response; a [`Failure`] is in its extensions where it is our own.
    pub(crate) async fn forward(&self, request: Request<RequestBody>) -> Response<ResponseBody> {
        self.0.forward(request).await.unwrap_or_else(Failure::into_response)
    }
}

impl Service<Request<RequestBody>> for Upstream {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let upstream = self.clone();
        Box::pin(async move { Ok(upstream.forward(request).await) })
    }
}

impl Inner {
    async fn forward(&self, request: Request<RequestBody>) -> Result<Response<ResponseBody>, Failure> {
        let permit = self.permit().await?;
        let (mut head, mut body) = request.into_parts();
        let wants_websocket = head.extensions.get::<WebSocket>().is_some();
        self.prepare(&mut head, &body, wants_websocket);
        let is_replayable = head.method.is_idempotent() && body.is_end_stream() && !wants_websocket;

        let certainty = if is_replayable { Certainty::EventLoop } else { Certainty::AskKernel };
        let mut link = match self.pool.take(certainty) {
            Some(link) => link,
            None => self.connect().await?,
        };
        link.permit = Some(permit);
        loop {
            let copy = (is_replayable && link.has_served()).then(|| head.clone());
            let request = Request::from_parts(head, Sending::new(body, Arc::clone(link.gauge())));
            let failed = match link.exchange(request, &self.limits).await {
                Ok(response) => return self.receive(response, link, wants_websocket).await,
                Err(failed) => failed,
            };
            (head, body) = match (failed, copy) {
                (Failed::Unsent(request, _), _) if link.is_reused() => {
                    let (head, sending) = request.into_parts();
                    (head, sending.into_body())
                }
                (Failed::Broken(_), Some(copy)) if link.gauge().nothing_received() => (copy, RequestBody::empty()),
                (Failed::Timeout, _) => return Err(Failure::new(FailureKind::ResponseTimeout, "no response in time")),
                (Failed::Unsent(_, error) | Failed::Broken(error), _) => return Err(failure(&link, &error)),
            };
            // On a connection of its own, so that there is no third time.
            let permit = link.permit.take();
            link = self.connect().await?;
            link.permit = permit;
        }
    }

    /// The right to have a request in progress.
    async fn permit(&self) -> Result<OwnedSemaphorePermit, Failure> {
        if let Ok(permit) = Arc::clone(&self.exchanges).try_acquire_owned() {
            return Ok(permit);
        }
        match timeout(self.limits.connect, Arc::clone(&self.exchanges).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Failure::new(FailureKind::Busy, "too many requests in progress")),
        }
    }

    /// Puts a head into the form HTTP/1.1 has for it.
    fn prepare(&self, head: &mut request::Parts, body: &RequestBody, wants_websocket: bool) {
        head.version = Version::HTTP_11;
        // Extensions are for those before us; hyper would take some of them for its own.
        head.extensions.clear();
        if !head.headers.contains_key(HOST) {
            // HTTP/1.0 may leave it out, HTTP/1.1 may not.
            let host = self.addresses.first().and_then(|address| HeaderValue::from_str(&address.to_string()).ok());
            head.headers.insert(HOST, host.unwrap_or(HeaderValue::from_static("localhost")));
        }
        if wants_websocket {
            head.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            head.headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        }
        if head.headers.contains_key(CONTENT_LENGTH) {
            return;
        }
        if !body.is_end_stream() {
            // hyper would drop the body of a GET whose length it does not know.
            head.headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        } else if matches!(head.method, Method::POST | Method::PUT | Method::PATCH) {
            // HTTP/2 says it with a flag; some HTTP/1.1 servers insist on the number.
            head.headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
    }

    /// A new connection to the address whose turn it is, or to the first after it that can be reached.
    async fn connect(&self) -> Result<Box<Link>, Failure> {
        let connecting = async {
            let mut last = io::Error::new(io::ErrorKind::NotFound, "the upstream has no address");
            let first = self.turn.fetch_add(1, Ordering::Relaxed);
            for at in 0..self.addresses.len() {
                let address = self.addresses[first.wrapping_add(at) % self.addresses.len()];
                let link = match TcpStream::connect(address).await {
                    Ok(socket) => Link::open(socket, &self.limits).await,
                    Err(error) => Err(error),
                };
                match link {
                    Ok(link) => return Ok(Box::new(link)),
                    Err(error) => last = io::Error::new(error.kind(), format!("{address}: {error}")),
                }
            }
            Err(last)
        };
        match timeout(self.limits.connect, connecting).await {
            Ok(Ok(link)) => {
                self.start_sweeping();
                Ok(link)
            }
            Ok(Err(error)) => Err(Failure::new(FailureKind::Connect, error)),
            Err(_) => Err(Failure::new(FailureKind::ConnectTimeout, "no connection in time")),
        }
    }

    async fn receive(
        &self,
        mut response: Response<Incoming>,
        link: Box<Link>,
        wants_websocket: bool,
    ) -> Result<Response<ResponseBody>, Failure> {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return switch(response, link, wants_websocket).await;
        }
        unify_framing(response.headers_mut())?;
        let (head, incoming) = response.into_parts();
        let body = ResponseBody::new(incoming, link, Arc::clone(&self.pool), self.limits.body_idle);
        Ok(Response::from_parts(head, body))
    }

    /// Looks after idle connections while nobody uses them, for as long as the upstream exists.
    fn start_sweeping(&self) {
        if self.is_swept.swap(true, Ordering::Relaxed) {
            return;
        }
        let pool = Arc::downgrade(&self.pool);
        let pause = self.limits.idle_timeout.max(std::time::Duration::from_millis(100)) / 2;
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                let Some(pool) = pool.upgrade() else { return };
                pool.sweep();
            }
        });
    }
}

/// Leaves a response one framing, the one hyper has read it by.
fn unify_framing(headers: &mut HeaderMap) -> Result<(), Failure> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let Some(coding) = codings.next() else { return Ok(()) };
    // hyper undoes `chunked` only; the rest would reach the client as if it were the content.
    if codings.next().is_some() || !coding.as_bytes().eq_ignore_ascii_case(b"chunked") {
        return Err(Failure::new(FailureKind::Invalid, "unsupported transfer coding"));
    }
    headers.remove(CONTENT_LENGTH);
    Ok(())
}

/// Makes a tunnel of a 101, if it was asked for.
async fn switch(
    response: Response<Incoming>,
    link: Box<Link>,
    wants_websocket: bool,
) -> Result<Response<ResponseBody>, Failure> {
    let is_websocket = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"websocket");
    if !wants_websocket || !response.headers().get(UPGRADE).is_some_and(is_websocket) {
        return Err(Failure::new(FailureKind::Invalid, "switched protocols unasked"));
    }
    let (head, _) = response.into_parts();
    let Some((socket, early)) = link.into_socket().await else {
        return Err(Failure::new(FailureKind::Broken, "the connection ended while it switched protocols"));
    };
    let mut response = Response::from_parts(head, ResponseBody::empty());
    response.extensions_mut().insert(Tunnel::new(socket, early));
    Ok(response)
}

/// Whose fault a broken exchange is.
fn failure(link: &Link, error: &hyper::Error) -> Failure {
    let kind = match link.gauge().body_failure() {
        Some(BodyFailure::Idle) => FailureKind::RequestTimeout,
        Some(BodyFailure::Broken) => FailureKind::RequestBody,
        None if error.is_parse() || link.gauge().is_flooded() => FailureKind::Invalid,
        None => FailureKind::Broken,
    };
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    Failure::new(kind, format_args!("{error}{cause}"))
}
