//! Types that both the client-facing side and the upstream side of the proxy use: request bodies,
//! data about clients, trailers, interim responses, tunnels, and stalled transfers.
//!
//! `edge` and `upstream` are both built on these types. The most important types are
//! [`EdgeService`], which answers requests, and [`ClientRequest`], which contains what the edge
//! knows about a request.

mod flag;
mod request_body;

pub(crate) mod fields;
pub(crate) mod frames;
pub(crate) mod idle_timeout;
pub(crate) mod interim;
pub(crate) mod trailers;
pub(crate) mod tunnel;

#[cfg(test)]
pub(crate) mod test_authority;
#[cfg(test)]
pub(crate) mod test_peer;

use std::future::poll_fn;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{Extensions, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use parking_lot::Mutex;
use serde_json::Value;
use tower::BoxError;

use self::fields::ForwardedValues;
pub(crate) use self::flag::Flag;
pub(crate) use self::frames::FrameBudget;
pub(crate) use self::idle_timeout::{IdleTimeout, StallObserver, Transfer, client_does_not_read, poll_due};
pub(crate) use self::interim::{InterimClient, InterimQueue, InterimResponses};
pub(crate) use self::request_body::{RequestBody, RequestBodyError, RequestStream};
pub(crate) use self::tunnel::Tunnel;

/// The service that answers all requests that the edge has accepted. Requests are boxed, because
/// otherwise each future that contains a request would move the whole request.
pub(crate) trait EdgeService: Clone + Send + Sync + 'static {
    type Body: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static;

    fn answer(self, request: Box<Request<RequestBody>>) -> impl Future<Output = Response<Self::Body>> + Send;
}

/// Data that the edge has gathered about a request. Behind the edge, the request's extensions
/// contain only this value.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientRequest {
    /// Address of the client; `None` if unknown. If another proxy asks for a decision, this is the
    /// client of the original request, not the proxy.
    pub(crate) peer: Option<Peer>,
    /// All lines of the client's `User-Agent` (at least one) if trusted proxies send it in another
    /// field; otherwise `None`.
    pub(crate) agent: Option<Arc<[HeaderValue]>>,
    /// Collects fields for the access log; `None` if there is no access log.
    pub(crate) access: Option<AccessFields>,
    /// Sends interim responses to the client; `None` for HTTP/1.0 clients.
    pub(crate) interim: Option<InterimResponses>,
    /// Whether the client requests a WebSocket. The hop-by-hop fields of this request have been
    /// removed. To accept the WebSocket, the service responds with 101 and a [`Tunnel`].
    pub(crate) wants_websocket: bool,
    /// Whether the client is known to have sent the request without TLS.
    pub(crate) is_plain_http: bool,
    /// Whether an HTTP/2 client accepts trailers (RFC 9110, section 10.1.4).
    pub(crate) accepts_trailers: bool,
    /// Forwarded fields for an upstream. `None` for decision requests, which are not forwarded.
    pub(crate) forwarded: Option<ForwardedValues>,
}

impl ClientRequest {
    pub(crate) fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get()
    }

    pub(crate) fn peer_of(extensions: &Extensions) -> Option<&Peer> {
        Self::of(extensions)?.peer.as_ref()
    }

    pub(crate) fn access_of(extensions: &Extensions) -> Option<&AccessFields> {
        Self::of(extensions)?.access.as_ref()
    }
}

/// The client of a request: its address and its connection.
///
/// The address is the remote address of the connection, or the address that trusted proxies report.
/// If the proxies report no port, the port is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    /// Number of the client's connection, from 1. `None` for the connection of a trusted proxy,
    /// which may send requests of several clients.
    pub(crate) connection: Option<NonZeroU64>,
    /// Address of the listener that received the request, if known.
    pub(crate) listener: Option<SocketAddr>,
}

impl Peer {
    /// Creates a peer whose connection number is unknown.
    pub(crate) const fn at(address: SocketAddr, listener: Option<SocketAddr>) -> Self {
        Self { address, connection: None, listener }
    }
}

/// The data that services behind the edge add to the access record of a request. Clones share the
/// data.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccessFields(Arc<Mutex<AddedFields>>);

#[derive(Debug, Default)]
pub(crate) struct AddedFields {
    pub(crate) notes: Vec<(&'static str, Value)>,
    /// The original request, if another proxy asks for a decision about it. The access record then
    /// describes the original request.
    pub(crate) asked: Option<Box<AskedAbout>>,
}

/// The original request that a decision request asks about, for the access log.
#[derive(Debug)]
pub(crate) struct AskedAbout {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) host: Option<HeaderValue>,
    pub(crate) referer: Option<HeaderValue>,
    pub(crate) user_agent: Option<HeaderValue>,
    pub(crate) address: Option<SocketAddr>,
}

impl AccessFields {
    /// Adds a field. If there is already a field with this name, both fields are kept.
    pub(crate) fn add(&self, name: &'static str, value: impl Into<Value>) {
        self.0.lock().notes.push((name, value.into()));
    }

    pub(crate) fn set_asked_about(&self, asked: Box<AskedAbout>) {
        self.0.lock().asked = Some(asked);
    }

    pub(crate) fn take(&self) -> AddedFields {
        std::mem::take(&mut self.0.lock())
    }
}

/// Returns a short plain-text response of robotsd itself, which must not be cached.
pub(crate) fn plain_answer(status: StatusCode, text: impl Into<Bytes>) -> Response<Bytes> {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Lets all other ready tasks on this worker run once before the caller writes.
///
/// A write to a sleeping peer wakes the peer, which costs more than the rest of the write. With
/// this function, all ready tasks read and decide before any of them writes, so a peer with many
/// connections is woken only once.
pub(crate) async fn yield_before_write() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_ready_tasks_read_before_any_of_them_writes() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let each = [["a reads", "a writes"], ["b reads", "b writes"]].map(|[reads, writes]| {
            let said = Arc::clone(&said);
            tokio::spawn(async move {
                said.lock().push(reads);
                yield_before_write().await;
                said.lock().push(writes);
            })
        });
        for task in each {
            task.await.unwrap();
        }
        assert_eq!(*said.lock(), ["a reads", "b reads", "a writes", "b writes"]);
    }
}
