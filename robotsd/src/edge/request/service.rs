//! The service of one connection. The service completes the responses, and performs these steps for
//! every request:
//!
//! 1. [Forwarded fields](super::trusted) are read if the peer is a trusted proxy. The fields must
//!    be read before step 5, which removes them.
//! 2. [Request id](super::request_id): an id from a trusted proxy is used, or a new one is
//!    generated. The exchange and its [access record](super::access_record) begin.
//! 3. [Admission](super::admission): method, size, target, transfer codings and expectation are
//!    checked.
//! 4. [Host](super::host): the host is determined, and checked against the TLS connection.
//! 5. [Fields](crate::http_common::fields): hop-by-hop and forged fields are removed, and
//!    [robotsd's own fields](super::trusted::ForwardedFields) are added.
//!
//! After these steps, the service behind the edge chooses the site.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use bytes::Bytes;
use http::header::{CONNECTION, TE, UPGRADE};
use http::{HeaderValue, Request, Response, StatusCode, Version};
use http_body::Body;
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use tower::BoxError;

use super::access_record::PendingRecord;
use super::admission::{self, RequestRefusal};
use super::host;
use super::request_id::RequestId;
use super::response_body::{Exchange, ResponseBody};
use super::trusted::{ForwardedFields, ForwardedInfo, X_REQUEST_ID};
use crate::edge::connection::settings::{Callers, ConnectionSettings};
use crate::edge::connection_state::ConnectionState;
use crate::edge::http2::stream_timeout::StreamConsumer;
use crate::edge::tls::{Secured, SettledProtocol};
use crate::http_common::tunnel::{PendingTunnel, Tunnel};
use crate::http_common::{ClientRequest, EdgeService, InterimClient, InterimResponses, RequestBody, Transfer, fields};
use crate::metrics::MethodLabel;

#[derive(Clone, Debug)]
pub(crate) struct ConnectionInfo {
    pub(crate) forwarded: ForwardedFields,
    /// Result of the TLS handshake; `None` on a listener without TLS.
    pub(crate) secured: Option<Secured>,
}

pub(crate) enum ResponseWriter {
    Fast,
    Hyper(OnUpgrade),
    Stream(StreamConsumer),
}

pub(crate) struct RequestService<S> {
    inner: S,
    settings: Arc<ConnectionSettings>,
    pub(crate) connection: Arc<ConnectionState>,
    info: ConnectionInfo,
    number: u64,
    requests: AtomicU64,
}

impl<S> RequestService<S> {
    pub(crate) fn new(
        inner: S,
        settings: Arc<ConnectionSettings>,
        connection: Arc<ConnectionState>,
        info: ConnectionInfo,
        number: u64,
    ) -> Self {
        Self { inner, settings, connection, info, number, requests: AtomicU64::new(0) }
    }

    /// Returns the protocol that TLS has negotiated. Returns `None` if there is no TLS; the first
    /// bytes of the connection then decide the protocol.
    pub(crate) fn settled_protocol(&self) -> Option<SettledProtocol> {
        self.info.secured.as_ref().map(|secured| secured.protocol)
    }

    /// Determines the request id (step 2). Also returns whether this is the first request on the
    /// connection.
    fn request_id(&self, given: Option<RequestId>) -> (RequestId, bool) {
        let request = self.requests.fetch_add(1, Ordering::Relaxed);
        (given.unwrap_or_else(|| RequestId::new(self.number, request)), request == 0)
    }

    /// Begins the exchange (step 2). Refused requests have an exchange and an access record, too.
    fn begin(&self, request: &Request<RequestBody>, id: RequestId, forwarded: Option<&ForwardedInfo>) -> Exchange {
        let mut exchange = Exchange::begin(&self.connection, request.version() == Version::HTTP_2);
        if let Some(on_access) = &self.settings.on_access {
            let line = (request.method(), request.uri(), request.version());
            let client = self.info.forwarded.client(forwarded);
            let record = PendingRecord::new(line, request.headers(), id, client, Arc::clone(on_access));
            exchange.record = Some(record.into());
        }
        exchange
    }

    /// Checks and completes the request (steps 3 to 5).
    fn prepare(
        &self,
        request: Request<RequestBody>,
        id: RequestId,
        forwarded: Option<ForwardedInfo>,
        mut known: ClientRequest,
    ) -> Result<(Box<Request<RequestBody>>, bool), RequestRefusal> {
        let limits = &self.settings.limits;
        let (mut head, body) = request.into_parts();

        // The cookies are joined before the fields are counted, because clients may send each
        // cookie in a field of its own.
        if head.version == Version::HTTP_2 {
            fields::join_cookies(&mut head.headers);
        }
        known.wants_websocket = admission::admit(&mut head, limits)?;

        match limits.callers {
            Callers::Clients => {
                host::determine_host(&mut head)?;
                if let Some(secured) = &self.info.secured {
                    host::check_connection(&head, secured)?;
                }
                fields::clean_request(&mut head.headers, self.info.forwarded.sender());
            }
            Callers::AskingProxies => {
                host::to_origin_form(&mut head)?;
                fields::clean_question(&mut head.headers);
            }
        }
        let is_shared = forwarded.is_some();
        let mut client = self.info.forwarded.client(forwarded.as_ref());
        if limits.callers == Callers::Clients {
            known.is_plain_http = self.info.forwarded.is_plain_http(forwarded.as_ref());
            known.forwarded = Some(self.info.forwarded.values(&mut head.headers, forwarded, &client));
        }
        head.headers.insert(X_REQUEST_ID, id.to_value());
        client.peer.connection = NonZeroU64::new(self.number + 1).filter(|_| !is_shared);
        let wants_websocket = known.wants_websocket;
        head.extensions.insert(ClientRequest { peer: Some(client.peer), agent: client.agent, ..known });
        Ok((Request::from_parts(head, body).into(), wants_websocket))
    }
}

impl<S: EdgeService> hyper::service::Service<Request<Incoming>> for RequestService<S> {
    type Response = Response<ResponseBody<S::Body>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let upgrade = hyper::upgrade::on(&mut request);
        let idle = self.settings.limits.body_idle;
        let answering =
            self.answer(request.map(|body| RequestBody::new(Either::Left(body), idle)), ResponseWriter::Hyper(upgrade));
        Box::pin(async { Ok(answering.1.await) })
    }
}

impl<S: EdgeService> RequestService<S> {
    /// Answers a request. Also returns the request's id. Only the fast path needs this id, to add
    /// it to the response.
    pub(crate) fn answer(
        &self,
        request: Request<RequestBody>,
        writer: ResponseWriter,
    ) -> (RequestId, impl Future<Output = Response<ResponseBody<S::Body>>> + Send + use<S>) {
        let version = request.version();
        let (is_fast, upgrade, stream) = match writer {
            ResponseWriter::Fast => (true, None, None),
            ResponseWriter::Hyper(upgrade) => (false, Some(upgrade), None),
            ResponseWriter::Stream(stream) => (false, None, Some(stream)),
        };
        let interim = match &stream {
            Some(stream) => Some(InterimResponses::to(Arc::clone(stream))),
            None => (version == Version::HTTP_11).then(|| InterimResponses::to(Arc::clone(&self.connection))),
        };
        // The value of `TE` need not be checked, because HTTP/2 allows only `trailers` (RFC 9113,
        // section 8.2.2).
        let accepts_trailers = stream.is_some() && request.headers().contains_key(TE);
        let (forwarded, given) = match self.settings.limits.callers {
            Callers::Clients => {
                let forwarded = self.info.forwarded.read(request.headers());
                let given = forwarded.as_ref().and_then(|forwarded| forwarded.id);
                (forwarded, given)
            }
            // For a decision request, the preset determines which fields contain the client's
            // address and `User-Agent`. These fields are read later.
            Callers::AskingProxies => (None, self.info.forwarded.request_id(request.headers())),
        };
        let (id, is_first) = self.request_id(given);
        let mut exchange = self.begin(&request, id, forwarded.as_ref());
        let access = exchange.record.as_ref().map(|record| record.fields.clone());
        let known = ClientRequest { access, interim, accepts_trailers, ..ClientRequest::default() };
        let method = MethodLabel::from(request.method());
        let prepared = self.prepare(request, id, forwarded, known);
        let service = self.inner.clone();
        let answering = async move {
            let response = match prepared {
                Ok((request, wants_websocket)) => {
                    let upgrade = upgrade.filter(|_| wants_websocket);
                    let response = service.answer(request).await;
                    // The fast path writes interim responses itself.
                    if !is_fast {
                        wait_for_interim(&mut exchange, response.extensions().get::<Transfer>().cloned()).await;
                    }
                    prepare_response(response, upgrade, exchange.connection(), stream.as_ref())
                }
                Err(refusal) => {
                    exchange.connection().counts.count_siteless(method, refusal.status);
                    refusal.into_response(version)
                }
            };
            let mut value = (!is_fast).then(|| id.to_value());
            if let Some(value) = &mut value {
                // Only the first response of a connection adds the name of the id field to HPACK's
                // table. Later responses refer to that table entry.
                value.set_sensitive(!is_first);
            }
            complete_response(response, version, value, exchange, is_fast, stream)
        };
        (id, answering)
    }
}

async fn wait_for_interim(exchange: &mut Exchange, transfer: Option<Transfer>) {
    let is_held = poll_fn(|cx| Poll::Ready(exchange.connection().interim().poll_written(cx).is_pending())).await;
    if is_held {
        // The client does not read. The transfer from the upstream is registered, so that the
        // transfer can be aborted if other requests need the upstream connection.
        if let Some(transfer) = transfer {
            exchange.set_transfer(transfer);
        }
        poll_fn(|cx| exchange.connection().interim().poll_written(cx)).await;
    }
}

/// Completes the head of a response, and adds the exchange to the body, so that the exchange ends
/// with the body.
fn complete_response<B: Body<Data = Bytes, Error: Into<BoxError>>>(
    mut response: Response<ResponseBody<B>>,
    requested: Version,
    id: Option<HeaderValue>,
    mut exchange: Exchange,
    is_fast: bool,
    stream: Option<StreamConsumer>,
) -> Response<ResponseBody<B>> {
    if let Some(id) = id {
        response.headers_mut().insert(X_REQUEST_ID, id);
    }
    exchange.stream.clone_from(&stream);
    let is_last = exchange.connection().is_leaving.is_set() && !exchange.connection().is_http2.is_set();
    if is_last && !response.status().is_informational() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if requested == Version::HTTP_10 && response.headers().contains_key(CONNECTION) {
        // The response already contains a `Connection` field. If the response's version were
        // HTTP/1.1, hyper would add `keep-alive`, because the client has requested it.
        *response.version_mut() = Version::HTTP_10;
    }
    if let Some(transfer) = response.extensions().get::<Transfer>() {
        match stream {
            Some(consumer) => consumer.set_transfer(transfer.clone(), Arc::clone(exchange.connection())),
            // The fast path gets the transfer from the response's extensions.
            None if is_fast => {}
            None => exchange.set_transfer(transfer.clone()),
        }
    }
    exchange.count_response(response.status());
    if let Some(record) = &mut exchange.record {
        record.set_status(response.status());
        record.length = fields::content_length(response.headers());
        if response.body().is_end_stream() {
            record.set_complete();
        }
    }
    response.map(|body| body.with_exchange(Some(exchange)))
}

/// Removes hop-by-hop fields from a response. If client and upstream both switch to a WebSocket,
/// prepares the tunnel.
fn prepare_response<B>(
    mut response: Response<B>,
    upgrade: Option<OnUpgrade>,
    connection: &ConnectionState,
    stream: Option<&StreamConsumer>,
) -> Response<ResponseBody<B>> {
    fields::remove_hop_by_hop(response.headers_mut());
    *response.version_mut() = Version::HTTP_11;
    if !response.status().is_informational() {
        return response.map(|body| ResponseBody::inner(body, stream.cloned()));
    }
    let upstream = response.extensions_mut().remove::<Tunnel>();
    match (upgrade, upstream) {
        (Some(client), Some(upstream)) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
            *connection.tunnel.lock() = Some(PendingTunnel { client, upstream });
            let fields = response.headers_mut();
            fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            fields.insert(UPGRADE, HeaderValue::from_static("websocket"));
            response.map(|_| ResponseBody::generated(Bytes::new()))
        }
        // A 1xx response cannot be the final response. If robotsd forwarded a 1xx response as the
        // final response, the client could interpret the upstream's next bytes as another response.
        _ => {
            RequestRefusal::new(StatusCode::BAD_GATEWAY, "unexpected interim response").into_response(Version::HTTP_11)
        }
    }
}
