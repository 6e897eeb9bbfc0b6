//! One exchange of a request for a response, as HTTP in and HTTP out both have it: the request's body, what is known of its
//! client, trailers, interim responses, tunnels, and transfers that stand still.
//!
//! `edge` and `upstream` stand beside each other on this room. It opens no connections.

mod client_request;
mod request_body;
mod request_stream;
mod service;
mod write_turn;

pub(crate) mod fields;
pub(crate) mod frames;
pub(crate) mod interim;
pub(crate) mod trailers;
pub(crate) mod tunnel;
pub(crate) mod write_timeout;

#[cfg(test)]
pub(crate) mod test_peer;

pub(crate) use self::client_request::{AccessFields, AccessValue, ClientRequest, OriginalAgent, Peer};
pub(crate) use self::frames::FrameBudget;
pub(crate) use self::interim::InterimResponses;
pub(crate) use self::request_body::{RequestBody, RequestBodyError};
pub(crate) use self::request_stream::RequestStream;
pub(crate) use self::service::EdgeService;
pub(crate) use self::trailers::AnnouncedTrailers;
pub(crate) use self::tunnel::Tunnel;
pub(crate) use self::write_timeout::{IdleTimeout, StallObserver, Transfer};
pub(crate) use self::write_turn::yield_before_write;
