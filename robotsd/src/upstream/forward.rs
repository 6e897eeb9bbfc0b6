//! Forwards a request to its upstream and returns the upstream's response.
//!
//! **A request is boxed on its way to an upstream**, separately from the future that waits for the
//! response. If the request were not boxed, the future would contain space for several copies of
//! the request. The future's size would be 3,040 bytes, and allocations of that size are slow.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::header::UPGRADE;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::Body;
use hyper::ext::ReasonPhrase;

use super::balancer::UpstreamState;
use super::endpoint::HttpVersions;
use super::failure::UpstreamFailure;
use super::failure_kind::{Cause, FailureKind};
use super::http1_connection::{Certainty, ExchangeError, HttpEngine};
use super::http1_fast::{UnreadBody, unify_framing};
use super::outgoing_request::{InterimRelay, prepare, without_body};
use super::response_body::ResponseBody;
use super::server_search::{ExchangeState, Lease, LeasedConnection, Pooled, Requirement};
use super::usage::ClientKey;
use crate::http_common::{ClientRequest, RequestBody, Transfer, Tunnel, yield_before_write};

type Forwarded = Result<Response<ResponseBody>, UpstreamFailure>;

impl UpstreamState {
    pub(super) async fn forward(self: &Arc<Self>, mut request: Box<Request<RequestBody>>) -> Forwarded {
        let ClientRequest { peer, interim, wants_websocket, accepts_trailers, mut forwarded, .. } =
            request.extensions_mut().remove::<ClientRequest>().unwrap_or_default();
        let client = peer.as_ref().map(ClientKey::new).unwrap_or_default();
        let is_stream = request.version() == Version::HTTP_2;
        prepare(&mut request, wants_websocket, forwarded.as_mut(), &self.shared.authority);
        let is_replayable = request.method().is_idempotent() && request.body().is_end_stream() && !wants_websocket;

        // The yield lets other tasks read before this task writes. The task yields before a
        // connection is chosen, because the chosen connection could close unnoticed during a later
        // yield. A request on an HTTP/2 stream needs no yield, because it has a new task, which
        // runs only after the other ready tasks.
        if !is_stream {
            yield_before_write().await;
        }
        let certainty = if is_replayable { Certainty::EventLoop } else { Certainty::AskKernel };
        // A WebSocket occupies a whole connection, so HTTP/2 is not used.
        let versions = if wants_websocket { HttpVersions::Http1 } else { HttpVersions::Negotiated };
        let requirement = Requirement { certainty, versions, client };
        let mut lease = match self.take_idle(requirement) {
            Ok(lease) => lease,
            Err(first) => {
                self.start_sweeping();
                // The future is boxed, because only a few requests have to connect. Without the
                // box, every request would reserve memory for the future.
                Box::pin(self.find(first, Pooled::Allowed, requirement)).await?
            }
        };
        let mut is_second = false;
        loop {
            let insert_forwarded = |request: &mut Request<_>| {
                forwarded.iter().for_each(|forwarded| forwarded.insert(request.headers_mut()));
            };
            let (failed, copy) = match &mut lease.connection {
                LeasedConnection::Http1(connection) => {
                    let engine = connection.engine(&request);
                    if engine == HttpEngine::Hyper {
                        insert_forwarded(&mut request);
                    }
                    let copy = (is_replayable && connection.has_served() && engine == HttpEngine::Hyper)
                        .then(|| without_body(&request));
                    let engine = (engine, forwarded.as_ref());
                    match connection.exchange(request, engine, client, interim.as_ref(), &self.shared.limits).await {
                        Ok(response) => {
                            self.shared.succeeded(&lease.candidate.server, lease.ticket);
                            return self.receive(response, lease, wants_websocket).await;
                        }
                        Err(failed) => (failed, copy),
                    }
                }
                LeasedConnection::Http2(slot) => {
                    insert_forwarded(&mut request);
                    let scheme = lease.candidate.server.scheme();
                    // The future is boxed, because it is larger than the future of an HTTP/1.1
                    // exchange.
                    let relay = InterimRelay::new(interim.as_ref());
                    match Box::pin(slot.exchange(request, scheme, accepts_trailers, relay, &self.shared.limits)).await {
                        Ok(response) => {
                            self.shared.succeeded(&lease.candidate.server, lease.ticket);
                            return Ok(response.map(|body| ResponseBody::http2(body, lease.into_slot())));
                        }
                        Err(failed) => (failed, None),
                    }
                }
            };
            let state = lease.connection.exchange_state();
            self.note_failure(&lease, state, &failed);
            request = FailedExchange { failed, copy, state, is_second, is_replayable }.request_to_repeat(&lease)?;
            // The forwarded fields are inserted here even if the first attempt has already inserted
            // them. So the second attempt need not insert these fields, and cannot insert them
            // twice.
            forwarded.take().iter().for_each(|forwarded| forwarded.insert(request.headers_mut()));
            // The second attempt must not use a connection that was open when the first attempt
            // began. There is no third attempt.
            is_second = true;
            let failed = lease.candidate;
            drop(lease.connection);
            lease = Box::pin(self.find_another(&failed, requirement)).await?;
        }
    }

    fn note_failure(&self, lease: &Lease, state: ExchangeState, failed: &ExchangeError) {
        use ExchangeError::{Broken, Unanswered, Unsent};
        let (Unsent(_, error) | Unanswered(_, error) | Broken(error)) = failed else { return };
        if error.ends_connection() {
            // Sharing of connections is suspended now, because the second attempt may get the same
            // invalid response.
            self.shared.connection_limit.separate_requests();
        }
        let is_new_and_broke = !state.is_reused && state.nothing_received && state.body_failure.is_none();
        if is_new_and_broke && error.is_connection_failure() && lease.connection.is_first_to_blame() {
            self.shared.failed(&lease.candidate.server, lease.ticket, FailureKind::Broken, error);
        }
    }

    async fn receive(&self, mut response: Response<UnreadBody>, lease: Lease, wants_websocket: bool) -> Forwarded {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Box::pin(switch(response, lease, wants_websocket)).await;
        }
        if matches!(response.body(), UnreadBody::Hyper(_)) {
            unify_framing(response.headers_mut())
                .map_err(|detail| UpstreamFailure::new(FailureKind::Invalid, format_args!("{lease}: {detail}")))?;
            // The upstream's reason phrase is replaced with robotsd's own reason phrase.
            response.extensions_mut().remove::<ReasonPhrase>();
        }
        let (mut head, coming) = response.into_parts();
        let Some((connection, pool)) = lease.into_http1() else {
            return Ok(Response::from_parts(head, ResponseBody::empty()));
        };
        let body = ResponseBody::new(coming, connection, pool, &self.shared.limits, &self.shared.buffers);
        if let Some(transfer) = body.transfer() {
            head.extensions.insert(transfer);
        }
        Ok(Response::from_parts(head, body))
    }

    /// Starts a task that closes idle connections. The task ends after the upstream has been
    /// dropped.
    fn start_sweeping(self: &Arc<Self>) {
        if self.is_swept.swap(true, Ordering::Relaxed) {
            return;
        }
        let this = Arc::downgrade(self);
        let connection_limit = Arc::clone(&self.shared.connection_limit);
        let pause = self.shared.limits.idle_timeout.max(Duration::from_millis(100)) / 2;
        tokio::spawn(async move {
            loop {
                let is_wanted = tokio::select! {
                    () = tokio::time::sleep(pause) => false,
                    () = connection_limit.wanted.notified() => true,
                };
                let Some(this) = this.upgrade() else { return };
                if is_wanted { this.close_idle() } else { this.sweep() }
            }
        });
    }
}

struct FailedExchange {
    failed: ExchangeError,
    /// Copy of the request, if a copy had to be made before the request was sent.
    copy: Option<Box<Request<RequestBody>>>,
    state: ExchangeState,
    is_second: bool,
    is_replayable: bool,
}

impl FailedExchange {
    /// Returns the request if it may be sent again on another connection. If not, returns the
    /// failure to report to the client.
    fn request_to_repeat(self, lease: &Lease) -> Result<Box<Request<RequestBody>>, UpstreamFailure> {
        use ExchangeError::{Broken, GivenUp, Timeout, Unanswered, Unsent};
        let Self { failed, copy, state, is_second, is_replayable } = self;
        match (failed, copy) {
            (Unsent(request, _), _) if !is_second => Ok(request),
            (Unanswered(request, error), _) if is_replayable && !is_second && may_repeat(&request, state, &error) => {
                Ok(request)
            }
            (Broken(_), Some(copy)) if state.nothing_received => Ok(copy),
            (Timeout, _) => {
                let detail = format_args!("{lease}: the server did not respond in time");
                Err(UpstreamFailure::new(FailureKind::ResponseTimeout, detail))
            }
            (GivenUp, _) => {
                let detail = "the client stopped sending its request, and other requests needed the connection";
                Err(UpstreamFailure::new(FailureKind::RequestTimeout, format_args!("{lease}: {detail}")))
            }
            (Unsent(_, error) | Unanswered(_, error) | Broken(error), _) => Err(failure(lease, state, &error)),
        }
    }
}

/// Turns a 101 response into a tunnel. Fails if the request did not ask for a tunnel.
async fn switch(response: Response<UnreadBody>, lease: Lease, wants_websocket: bool) -> Forwarded {
    let is_websocket = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"websocket");
    if !wants_websocket || !response.headers().get(UPGRADE).is_some_and(is_websocket) {
        return Err(UpstreamFailure::new(
            FailureKind::Invalid,
            format_args!("{lease}: the server switched protocols although the request did not ask for it"),
        ));
    }
    let (head, _) = response.into_parts();
    let broken = UpstreamFailure::new(
        FailureKind::Broken,
        format_args!("{lease}: the connection ended while it switched protocols"),
    );
    let Some((connection, _)) = lease.into_http1() else { return Err(broken) };
    let Some((socket, early)) = connection.into_socket().await else { return Err(broken) };
    let mut response = Response::from_parts(head, ResponseBody::empty());
    let transfer = Transfer::new(&socket.progress.usage);
    response.extensions_mut().insert(Tunnel::new(socket, early, Some(transfer)));
    Ok(response)
}

/// Reports whether an idempotent request that got no response may be sent again. Sending it again
/// is allowed if the connection had served other requests before, because the server may have
/// closed the idle connection. But if an invalid response has ended the connection, the server has
/// probably processed all requests on the connection, so only GET and HEAD requests are sent again.
fn may_repeat(request: &Request<RequestBody>, state: ExchangeState, error: &Cause) -> bool {
    if error.ends_connection() { matches!(*request.method(), Method::GET | Method::HEAD) } else { state.is_reused }
}

/// Returns the failure of an exchange. The kind of the failure depends on whether the client or the
/// upstream caused it.
fn failure(lease: &Lease, state: ExchangeState, error: &Cause) -> UpstreamFailure {
    let is_invalid = error.is_parse() || state.is_flooded;
    let of_upstream = if is_invalid { FailureKind::Invalid } else { FailureKind::Broken };
    UpstreamFailure::new(state.body_failure.unwrap_or(of_upstream), format_args!("{lease}: {error}"))
}
