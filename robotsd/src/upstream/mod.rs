//! The side of the proxy that faces a site's servers: HTTP/1.1 over a small pool of connections to each.
//!
//! [`Origins`] are the servers behind a site, as the whole process knows them; an [`Upstream`] is one worker's way to
//! them, with connections of its own. It takes a request the edge has cleaned, sends it with the target's octets as they
//! came, and answers with what a server says or with a [`UpstreamFailure`]; it never fails itself. It chooses no site and judges
//! nothing.
//!
//! Most exchanges are made by [`mod@http1_fast`], all others by hyper.
//!
//! A request is sent a second time only where that cannot do harm: its method is idempotent, it has no body, it was
//! sent on a connection that had been idle, and not an octet has come back. A request that never left is sent again
//! whatever it is. The second time it goes to another server, if there is one.

mod endpoint;
mod failure;
mod limits;
mod report;

mod connection_limit;
mod health;
mod origins;
mod resolver;
mod server;
mod shares;
mod usage;

mod balancer;
mod pool;

mod cause;
mod connection;
mod exchange_progress;
mod http1_fast;
mod incoming_body;
mod read_ahead;
mod request_body;
mod response_body;
mod socket;
mod tls;
mod tracked_io;

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::Body;
use hyper::ext::ReasonPhrase;
use tower::Service;

pub(crate) use self::endpoint::Endpoint;
pub(crate) use self::failure::{FailureKind, UpstreamFailure};
pub(crate) use self::health::HealthPolicy;
pub(crate) use self::limits::UpstreamLimits;
pub(crate) use self::origins::{Origins, OriginsSettings, SharedResources};
pub(crate) use self::report::UpstreamEvent;
pub(crate) use self::response_body::ResponseBody;
pub(crate) use self::tls::{TlsSettings, Trust, check_server_name};

use self::balancer::{Balancer, Lease};
use self::cause::Cause;
use self::connection::{Certainty, ExchangeError, HttpEngine, UpstreamConnection};
use self::exchange_progress::BodyFailure;
use self::incoming_body::IncomingBody;
use self::origins::OriginsState;
use self::usage::ClientKey;
use crate::edge::{Peer, RequestBody, Transfer, Tunnel, WebSocket, yield_before_write};

/// One worker's way to the servers of a site.
#[derive(Clone, Debug)]
pub(crate) struct Upstream(Arc<UpstreamState>);

#[derive(Debug)]
struct UpstreamState {
    shared: Arc<OriginsState>,
    balancer: Balancer,
    is_swept: AtomicBool,
}

impl Upstream {
    /// The way of one of so many workers. Nothing is connected yet.
    pub(crate) fn new(origins: &Origins, workers: NonZeroUsize) -> Self {
        let shared = Arc::clone(&origins.0);
        Self(Arc::new(UpstreamState {
            balancer: Balancer::new(Arc::clone(&shared), workers),
            shared,
            is_swept: AtomicBool::new(false),
        }))
    }

    /// Whether it leads to these servers.
    pub(crate) fn leads_to(&self, origins: &Origins) -> bool {
        Arc::ptr_eq(&self.0.shared, &origins.0)
    }

    /// Forwards a request. The answer is always a response; a [`UpstreamFailure`] is in its extensions where it is our own.
    async fn forward(&self, request: Box<Request<RequestBody>>) -> Response<ResponseBody> {
        match self.0.forward(request).await {
            Ok(response) => response,
            Err(failure) => {
                self.0.shared.unanswered(&failure);
                failure.into_response()
            }
        }
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
        // Boxed apart from the future, through which it would be moved again and again.
        let request = Box::new(request);
        Box::pin(async move { Ok(upstream.forward(request).await) })
    }
}

impl UpstreamState {
    async fn forward(
        self: &Arc<Self>,
        mut request: Box<Request<RequestBody>>,
    ) -> Result<Response<ResponseBody>, UpstreamFailure> {
        let wants_websocket = request.extensions().get::<WebSocket>().is_some();
        let client = request.extensions().get::<Peer>().map(ClientKey::new).unwrap_or_default();
        self.prepare(&mut request, wants_websocket);
        let is_replayable = request.method().is_idempotent() && request.body().is_end_stream() && !wants_websocket;

        // Before a connection is taken, so that what has been found out about it is still true when it is written to.
        yield_before_write().await;
        let certainty = if is_replayable { Certainty::EventLoop } else { Certainty::AskKernel };
        let mut lease = match self.balancer.ready(certainty) {
            Ok(lease) => lease,
            Err(first) => {
                self.start_sweeping();
                // Boxed, because few requests connect and the rest need not carry the room for it.
                Box::pin(self.balancer.connection(first, certainty, client)).await?
            }
        };
        let mut is_second = false;
        loop {
            let connection = &mut lease.connection;
            let engine = connection.engine(&request);
            let copy =
                (is_replayable && connection.has_served() && engine == HttpEngine::Hyper).then(|| copy(&request));
            let failed = match connection.exchange(request, engine, client, &self.shared.limits).await {
                Ok(response) => {
                    self.balancer.succeeded(&lease);
                    return self.receive(response, lease, wants_websocket).await;
                }
                Err(failed) => failed,
            };
            if !connection.is_reused()
                && connection.progress().nothing_received()
                && connection.progress().body_failure().is_none()
                && let ExchangeError::Unsent(_, error)
                | ExchangeError::Unanswered(_, error)
                | ExchangeError::Broken(error) = &failed
            {
                self.balancer.failed(&lease, error);
            }
            request = match (failed, copy) {
                (ExchangeError::Unsent(request, _), _) if !is_second => request,
                (ExchangeError::Unanswered(request, _), _) if is_replayable && lease.connection.is_reused() => request,
                (ExchangeError::Broken(_), Some(copy)) if lease.connection.progress().nothing_received() => copy,
                (ExchangeError::Timeout, _) => {
                    let detail = format_args!("{lease}: no response in time");
                    return Err(UpstreamFailure::new(FailureKind::ResponseTimeout, detail));
                }
                (ExchangeError::GivenUp, _) => {
                    let detail = "the client did not go on with its request, and the connection was needed for others";
                    return Err(UpstreamFailure::new(FailureKind::RequestTimeout, format_args!("{lease}: {detail}")));
                }
                (
                    ExchangeError::Unsent(_, error)
                    | ExchangeError::Unanswered(_, error)
                    | ExchangeError::Broken(error),
                    _,
                ) => {
                    return Err(failure(&lease, &error));
                }
            };
            // On a connection of its own, so that there is no third time.
            is_second = true;
            let failed = lease.close();
            lease = Box::pin(self.balancer.another(&failed, client)).await?;
        }
    }

    /// Puts a request into the form HTTP/1.1 has for it.
    fn prepare(&self, request: &mut Request<RequestBody>, wants_websocket: bool) {
        *request.version_mut() = Version::HTTP_11;
        // Extensions are for those before us; hyper would take some of them for its own.
        request.extensions_mut().clear();
        let is_empty = request.body().is_end_stream();
        let wants_length = matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH);
        let fields = request.headers_mut();
        if !fields.contains_key(HOST) {
            // HTTP/1.0 may leave it out, HTTP/1.1 may not.
            fields.insert(HOST, self.shared.authority.clone());
        }
        if wants_websocket {
            fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            fields.insert(UPGRADE, HeaderValue::from_static("websocket"));
        }
        if fields.contains_key(CONTENT_LENGTH) {
            return;
        }
        if !is_empty {
            // hyper would drop the body of a GET whose length it does not know.
            fields.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        } else if wants_length {
            // HTTP/2 says it with a flag; some HTTP/1.1 servers insist on the number.
            fields.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
    }

    async fn receive(
        &self,
        mut response: Response<IncomingBody>,
        lease: Lease,
        wants_websocket: bool,
    ) -> Result<Response<ResponseBody>, UpstreamFailure> {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Box::pin(switch(response, lease, wants_websocket)).await;
        }
        if matches!(response.body(), IncomingBody::Hyper(_)) {
            unify_framing(response.headers_mut(), &lease)?;
            // Ours for all, not the upstream's for those that hyper has read.
            response.extensions_mut().remove::<ReasonPhrase>();
        }
        let (mut head, coming) = response.into_parts();
        let (connection, pool) = lease.into_parts();
        let body = ResponseBody::new(coming, connection, pool, &self.shared.limits, &self.shared.buffers);
        if let Some(transfer) = body.transfer() {
            head.extensions.insert(transfer);
        }
        Ok(Response::from_parts(head, body))
    }

    /// Looks after idle connections while nobody uses them, for as long as the upstream exists.
    fn start_sweeping(self: &Arc<Self>) {
        if self.is_swept.swap(true, Ordering::Relaxed) {
            return;
        }
        let this = Arc::downgrade(self);
        let connection_limit = Arc::clone(self.shared.connection_limit());
        let pause = self.shared.limits.idle_timeout.max(Duration::from_millis(100)) / 2;
        tokio::spawn(async move {
            loop {
                let is_wanted = tokio::select! {
                    () = tokio::time::sleep(pause) => false,
                    () = connection_limit.wanted() => true,
                };
                let Some(this) = this.upgrade() else { return };
                if is_wanted { this.balancer.give_up() } else { this.balancer.sweep() }
            }
        });
    }
}

/// The same once more, of a request without a body.
fn copy(request: &Request<RequestBody>) -> Box<Request<RequestBody>> {
    let mut copy = Box::new(Request::new(RequestBody::empty()));
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    copy
}

/// Leaves a response one framing, the one hyper has read it by.
fn unify_framing(headers: &mut HeaderMap, lease: &Lease) -> Result<(), UpstreamFailure> {
    let invalid = |detail: &str| Err(UpstreamFailure::new(FailureKind::Invalid, format_args!("{lease}: {detail}")));
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    if let Some(coding) = codings.next() {
        // hyper undoes `chunked` only; the rest would reach the client as if it were the content.
        if codings.next().is_some() || !coding.as_bytes().eq_ignore_ascii_case(b"chunked") {
            return invalid("unsupported transfer coding");
        }
        headers.remove(CONTENT_LENGTH);
        return Ok(());
    }
    // RFC 9112, section 6.3: the same number several times is that number once. hyper sees to it where there is a body,
    // and leaves all of them where there is none.
    let lines = headers.get_all(CONTENT_LENGTH).iter().map(HeaderValue::as_bytes);
    let mut said = lines.flat_map(|line| line.split(|octet| *octet == b',')).map(<[u8]>::trim_ascii);
    let Some(first) = said.next() else { return Ok(()) };
    match http1_fast::number(first) {
        Some(length) if said.all(|other| other == first) => {
            headers.insert(CONTENT_LENGTH, length.into());
            Ok(())
        }
        _ => invalid("invalid Content-Length"),
    }
}

/// Makes a tunnel of a 101, if it was asked for.
async fn switch(
    response: Response<IncomingBody>,
    lease: Lease,
    wants_websocket: bool,
) -> Result<Response<ResponseBody>, UpstreamFailure> {
    let is_websocket = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"websocket");
    if !wants_websocket || !response.headers().get(UPGRADE).is_some_and(is_websocket) {
        return Err(UpstreamFailure::new(FailureKind::Invalid, format_args!("{lease}: switched protocols unasked")));
    }
    let (head, _) = response.into_parts();
    let broken = UpstreamFailure::new(
        FailureKind::Broken,
        format_args!("{lease}: the connection ended while it switched protocols"),
    );
    let Some((socket, early)) = lease.into_parts().0.into_socket().await else {
        return Err(broken);
    };
    let mut response = Response::from_parts(head, ResponseBody::empty());
    let transfer = Transfer::new(socket.usage());
    response.extensions_mut().insert(Tunnel::holding(socket, early, transfer));
    Ok(response)
}

/// Whose fault a broken exchange is.
fn failure(lease: &Lease, error: &Cause) -> UpstreamFailure {
    let connection: &UpstreamConnection = &lease.connection;
    let kind = match connection.progress().body_failure() {
        Some(BodyFailure::Idle) => FailureKind::RequestTimeout,
        Some(BodyFailure::Broken) => FailureKind::RequestBody,
        None if error.is_parse() || connection.progress().is_flooded() => FailureKind::Invalid,
        None => FailureKind::Broken,
    };
    UpstreamFailure::new(kind, format_args!("{lease}: {error}"))
}
