//! One exchange of a request for a response, as HTTP in and HTTP out both have it: the request's body, the facts about its
//! client, trailers, interim responses, tunnels, and transfers that stand still.
//!
//! `edge` and `upstream` stand beside each other on this room. It opens no connections. Begin with [`EdgeService`],
//! which answers a request, and with [`ClientRequest`], the facts about one.

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

/// The service that answers every request behind the edge. A request is boxed: futures that hold one are moved into each other.
pub(crate) trait EdgeService: Clone + Send + 'static {
    type Body: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static;

    fn answer(self, request: Box<Request<RequestBody>>) -> impl Future<Output = Response<Self::Body>> + Send;
}

/// The one extension that a request has behind the edge.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientRequest {
    /// None where it is not known: a proxy that asks is not the client.
    pub(crate) peer: Option<Peer>,
    /// Every line of the client's `User-Agent`, at least one, where trusted proxies send it in another field.
    pub(crate) agent: Option<Arc<[HeaderValue]>>,
    /// The fields for the log of requests; none if there is no such log.
    pub(crate) access: Option<AccessFields>,
    /// The way of interim responses to the client, which HTTP/1.0 does not have.
    pub(crate) interim: Option<InterimResponses>,
    /// Whether it asks for a WebSocket. The fields that say so are hop-by-hop and removed. A service that can provide one answers
    /// 101 with a [`Tunnel`].
    pub(crate) wants_websocket: bool,
    /// Whether a client of HTTP/2 has said that it takes trailers (RFC 9110, section 10.1.4).
    pub(crate) accepts_trailers: bool,
    /// None for a question of a proxy, which goes no further.
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

/// The address a request came from.
///
/// That of the connection, or the one that trusted proxies report. In the latter case the port is 0 unless they report it
/// too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    /// The number of the client's connection, from 1; none where a trusted proxy sends requests of several clients over it.
    pub(crate) connection: Option<NonZeroU64>,
    /// The address of the listener that the request came in at, where it is known.
    pub(crate) listener: Option<SocketAddr>,
}

impl Peer {
    /// A client of which only the address is known.
    pub(crate) const fn at(address: SocketAddr, listener: Option<SocketAddr>) -> Self {
        Self { address, connection: None, listener }
    }
}

/// The fields that the services behind the edge add to the record.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccessFields(Arc<Mutex<AddedFields>>);

/// What the record of a request has of the services behind the edge.
#[derive(Debug, Default)]
pub(crate) struct AddedFields {
    pub(crate) notes: Vec<(&'static str, Value)>,
    /// The request that a proxy asks about: the record is about it, and not about the question.
    pub(crate) asked: Option<Box<AskedAbout>>,
}

/// A request that a proxy asks about, as far as the question says.
#[derive(Debug)]
pub(crate) struct AskedAbout {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) host: Option<HeaderValue>,
    pub(crate) referer: Option<HeaderValue>,
    pub(crate) user_agent: Option<HeaderValue>,
    pub(crate) address: Option<SocketAddr>,
}

impl AccessFields {
    /// Adds a field. Of several of one name, all are kept.
    pub(crate) fn add(&self, name: &'static str, value: impl Into<Value>) {
        self.0.lock().notes.push((name, value.into()));
    }

    /// Notes the request that the question is about.
    pub(crate) fn asks_about(&self, asked: Box<AskedAbout>) {
        self.0.lock().asked = Some(asked);
    }

    pub(crate) fn take(&self) -> AddedFields {
        std::mem::take(&mut self.0.lock())
    }
}

/// A short answer of the program itself, which no cache keeps.
pub(crate) fn plain_answer(status: StatusCode, text: impl Into<Bytes>) -> Response<Bytes> {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Lets every other task that is ready on this worker run, once, before the caller writes.
///
/// A write wakes the reader at the other end if it sleeps, and that costs the writer more than anything else in it. When
/// all ready tasks read and decide first and write after that, one reader of many connections is woken once.
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
    async fn all_ready_tasks_read_before_one_writes() {
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
