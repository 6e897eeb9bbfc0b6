//! The service of one connection: admits a request, hands it inward, and finishes the answer.

use std::convert::Infallible;
use std::future::Future;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderValue, Request, Response, StatusCode, Version};
use http_body::Body;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use pin_project_lite::pin_project;
use tower::Service;

use crate::edge::connection::hyper_driver::ConnectionSettings;
use crate::edge::connection_state::state::{ConnectionState, Exchange};
use crate::edge::http2::stream_timeout::StreamConsumer;
use crate::edge::limits::Callers;
use crate::edge::request::access_record::PendingRecord;
use crate::edge::request::admission::{RequestedProtocol, admit};
use crate::edge::request::body::{RequestBody, ResponseBody};
use crate::edge::request::fields;
use crate::edge::request::forwarded::{ClientInfo, ForwardedFields};
use crate::edge::request::ready_call::ReadyCall;
use crate::edge::request::refusal::RequestRefusal;
use crate::edge::request::request_id::RequestId;
use crate::edge::request::trusted::{ForwardedInfo, X_REQUEST_ID};
use crate::edge::tls::{AlpnProtocol, Secured};
use crate::edge::transfer::Transfer;
use crate::edge::tunnel::{PendingTunnel, Tunnel, WebSocket};

/// How a connection came in.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionInfo {
    pub(crate) origin: ForwardedFields,
    /// None on a listener without TLS.
    pub(crate) secured: Option<Secured>,
}

/// What hyper calls for every request of a connection.
pub(crate) struct RequestService<S> {
    inner: S,
    terms: Arc<ConnectionSettings>,
    activity: Arc<ConnectionState>,
    entry: ConnectionInfo,
    connection: u64,
    requests: AtomicU64,
}

impl<S> RequestService<S> {
    pub(crate) fn new(
        inner: S,
        terms: Arc<ConnectionSettings>,
        activity: Arc<ConnectionState>,
        entry: ConnectionInfo,
        connection: u64,
    ) -> Self {
        Self { inner, terms, activity, entry, connection, requests: AtomicU64::new(0) }
    }

    /// Whether the connection waits for another request, having answered at least one.
    pub(crate) fn has_served(&self) -> bool {
        self.activity.has_served()
    }

    pub(crate) fn activity(&self) -> &Arc<ConnectionState> {
        &self.activity
    }

    /// The protocol that the handshake has settled on; none in the clear, where the preface decides.
    pub(crate) fn agreed(&self) -> Option<AlpnProtocol> {
        self.entry.secured.as_ref().map(Secured::agreed)
    }

    /// Checks and cleans a request and says what is known about it.
    fn prepare(
        &self,
        request: Request<RequestBody>,
        id: RequestId,
        told: Option<ForwardedInfo>,
    ) -> Result<(Request<RequestBody>, RequestedProtocol), RequestRefusal> {
        let (mut head, body) = request.into_parts();
        let asks = admit(&mut head, &self.terms.limits, self.entry.origin.sender())?;
        if let Some(secured) = &self.entry.secured {
            secured.admit(&head)?;
        }
        let is_shared = told.is_some();
        let ClientInfo { mut peer, agent } = match self.terms.limits.callers {
            Callers::Clients => self.entry.origin.announce(&mut head.headers, told),
            Callers::AskingProxies => self.entry.origin.asker(told.as_ref()),
        };
        head.headers.insert(X_REQUEST_ID, id.to_value());
        peer.connection = NonZeroU64::new(self.connection + 1).filter(|_| !is_shared);
        head.extensions.insert(peer);
        if let Some(agent) = agent {
            head.extensions.insert(agent);
        }
        if asks == RequestedProtocol::WebSocket {
            head.extensions.insert(WebSocket);
        }
        Ok((Request::from_parts(head, body), asks))
    }
}

impl<S, B> hyper::service::Service<Request<Incoming>> for RequestService<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible> + Clone,
    B: Body<Data = Bytes>,
{
    type Response = Response<ResponseBody<B>>;
    type Error = Infallible;
    type Future = PendingResponse<S>;

    fn call(&self, mut request: Request<Incoming>) -> PendingResponse<S> {
        let upgrade = hyper::upgrade::on(&mut request);
        self.answer(request.map(|body| RequestBody::new(body, self.terms.limits.body_idle)), Some(upgrade))
    }
}

impl<S, B> RequestService<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible> + Clone,
    B: Body<Data = Bytes>,
{
    /// Answers a request. Without `upgrade` it cannot become anything but an answer, and it is written without hyper.
    pub(crate) fn answer(&self, mut request: Request<RequestBody>, upgrade: Option<OnUpgrade>) -> PendingResponse<S> {
        let version = request.version();
        let is_plain = upgrade.is_none();
        // Before the fields that say it are removed.
        let told = self.entry.origin.listen(request.headers());
        let given = told.as_ref().and_then(|told| told.id);
        let id =
            given.unwrap_or_else(|| RequestId::new(self.connection, self.requests.fetch_add(1, Ordering::Relaxed)));
        let mut exchange = self.activity.begin(version == Version::HTTP_2);
        if let Some(on_visit) = &self.terms.on_visit {
            let line = (request.method(), request.uri(), version);
            let asker = self.entry.origin.asker(told.as_ref());
            let visit = PendingRecord::new(line, request.headers(), id, asker, Arc::clone(on_visit));
            request.extensions_mut().insert(visit.notes());
            exchange.visit = Some(visit.into());
        }
        let (state, upgrade) = match self.prepare(request, id, told) {
            Ok((request, asks)) => (
                State::Called { answer: ReadyCall::new(self.inner.clone(), request) },
                upgrade
                    .filter(|_| asks == RequestedProtocol::WebSocket)
                    .map(|upgrade| (upgrade, Arc::clone(&self.activity))),
            ),
            Err(refusal) => (State::Refused { refusal, version }, None),
        };
        PendingResponse { state, id, exchange: Some(exchange), is_plain, upgrade }
    }
}

pin_project! {
    /// The answer to one request.
    pub(crate) struct PendingResponse<S>
    where
        S: Service<Request<RequestBody>>,
    {
        #[pin]
        state: State<S>,
        id: RequestId,
        exchange: Option<Exchange>,
        is_plain: bool,
        upgrade: Option<(OnUpgrade, Arc<ConnectionState>)>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<S>
    where
        S: Service<Request<RequestBody>>,
    {
        Called { #[pin] answer: ReadyCall<S, Request<RequestBody>> },
        Refused { refusal: RequestRefusal, version: Version },
    }
}

impl<S, B> Future for PendingResponse<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>,
    B: Body<Data = Bytes>,
{
    type Output = Result<Response<ResponseBody<B>>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = match this.state.project() {
            StateProjection::Called { answer } => {
                let Ok(response) = ready!(answer.poll(cx));
                finish(response, this.upgrade.take())
            }
            StateProjection::Refused { refusal, version } => refusal.into_response(*version),
        };
        response.headers_mut().insert(X_REQUEST_ID, this.id.to_value());
        let mut exchange = this.exchange.take();
        if let (Some(transfer), Some(exchange)) = (response.extensions().get::<Transfer>(), &mut exchange) {
            match StreamConsumer::current() {
                Some(consumer) => consumer.carries(transfer.clone(), Arc::clone(exchange.activity())),
                // What is written without hyper takes it from the response.
                None if *this.is_plain => {}
                None => exchange.carries(transfer.clone()),
            }
        }
        if let Some(visit) = exchange.as_mut().and_then(|exchange| exchange.visit.as_mut()) {
            visit.answered(response.status());
            if response.body().is_end_stream() {
                visit.whole();
            }
        }
        Poll::Ready(Ok(response.map(|body| body.ending(exchange))))
    }
}

/// Takes from a response what is not the client's, and lets a connection switch that both sides asked to.
fn finish<B>(
    mut response: Response<B>,
    upgrade: Option<(OnUpgrade, Arc<ConnectionState>)>,
) -> Response<ResponseBody<B>> {
    fields::remove_hop_by_hop(response.headers_mut());
    *response.version_mut() = Version::HTTP_11;
    if !response.status().is_informational() {
        return response.map(ResponseBody::inner);
    }
    let upstream = response.extensions_mut().remove::<Tunnel>();
    match (upgrade, upstream) {
        (Some((client, activity)), Some(upstream)) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
            activity.leave_tunnel(PendingTunnel { client, upstream });
            let fields = response.headers_mut();
            fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            fields.insert(UPGRADE, HeaderValue::from_static("websocket"));
            response.map(|_| ResponseBody::own(Bytes::new()))
        }
        // Nobody asked for this: passed on, it would let the upstream's next octets pose as another response.
        _ => {
            RequestRefusal::new(StatusCode::BAD_GATEWAY, "unexpected interim response").into_response(Version::HTTP_11)
        }
    }
}
