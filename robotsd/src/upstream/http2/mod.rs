//! HTTP/2 to upstreams (RFC 9113): a few connections to each server, with one stream per request.
//!
//! This module uses `h2` directly. hyper is also built on `h2`, but does not give access to three
//! things that a proxy needs:
//! - how many streams a server allows, so that the next request uses another connection instead of
//!   waiting inside hyper;
//! - which requests a server has not processed, so that these requests may be sent again;
//! - interim responses.
//!
//! With hyper, each request would also need a task and two more wake-ups.
//!
//! Begin with [`send_request`], which sends one request on a stream and returns the head of its
//! response. [`client_connection`] drives a connection, and [`pool`] contains a worker's
//! connections to a server.
//!
//! **`h2` ends a connection at the first response that it cannot parse**, for example because of a
//! line feed in a field. All requests on the connection then fail. An attacker who can make an
//! application send an invalid field could repeatedly end the requests of all other clients. So
//! after such a response, GET and HEAD requests are sent a second time, and requests do not share
//! connections for a minute. See
//! [`ConnectionLimit::separate_requests`](super::connection_limit::ConnectionLimit::separate_requests).
//!
//! Many requests share a connection, so a separate task drives each connection. A request needs its
//! own task only if the response arrives before the body of the request is completely sent.

mod client_connection;
mod connection_activity;
mod pool;
mod request_upload;
mod response_stream;
mod send_request;

pub(super) use self::pool::{ConnectFailure, Http2Pool, Http2Slot};
pub(super) use self::response_stream::Http2Body;
