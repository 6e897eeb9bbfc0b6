//! One exchange of a request for a response, as HTTP in and HTTP out both have it: the request's body, what is known of its
//! client, trailers, interim responses, tunnels, and transfers that stand still.
//!
//! `edge` and `upstream` stand beside each other on this room. It opens no connections. Begin with [`EdgeService`], what
//! answers a request, and with [`ClientRequest`], what is known of one.

mod client_request;
mod request_body;
mod write_batching;

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

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower::BoxError;

pub(crate) use self::client_request::{AccessFields, ClientRequest, Peer};
pub(crate) use self::frames::FrameBudget;
pub(crate) use self::idle_timeout::{IdleTimeout, StallObserver, Transfer, client_does_not_read, poll_due};
pub(crate) use self::interim::{InterimClient, InterimQueue, InterimResponses};
pub(crate) use self::request_body::{RequestBody, RequestBodyError, RequestStream};
pub(crate) use self::trailers::AnnouncedTrailers;
pub(crate) use self::tunnel::Tunnel;
pub(crate) use self::write_batching::yield_before_write;

/// What answers every request behind the edge. A request is boxed: futures that hold one are moved into each other.
pub(crate) trait EdgeService: Clone + Send + 'static {
    type Body: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static;

    fn answer(self, request: Box<Request<RequestBody>>) -> impl Future<Output = Response<Self::Body>> + Send;
}
