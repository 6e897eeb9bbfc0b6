//! HTTP/2 to upstreams: a few connections to each server, with a stream for every request (RFC
//! 9113).
//!
//! Implemented with `h2`, which hyper also uses. hyper would hide three things that a proxy needs:
//! - how many streams a server allows, so that the next request goes to another connection instead
//!   of waiting invisibly;
//! - which requests a server has not processed, so that they may be sent again;
//! - interim responses.
//!
//! It would also add a task and two wake-ups to each request.
//!
//! Begin with [`send_request`]: one request on a stream, until the head of its response.
//! [`client_connection`] drives a connection, and [`pool`] holds a worker's connections to a
//! server.
//!
//! **`h2` ends a connection at the first response that it cannot read**, such as one with a line
//! feed in a field. This ends all requests on the connection. An attacker who can make an
//! application send such a field could repeatedly end the requests of all other clients. So GET and
//! HEAD requests are sent once more, and for a minute requests do not share connections: see
//! [`ConnectionLimit::separate_requests`](super::connection_limit::ConnectionLimit::separate_requests).
//!
//! A separate task drives each connection, because it belongs to many requests. A request has no
//! task of its own if it has no body, or if its body is sent before the response arrives.

mod client_connection;
mod connection_activity;
mod pool;
mod request_upload;
mod response_stream;
mod send_request;

pub(super) use self::pool::{ConnectFailure, Http2Pool, Http2Slot};
pub(super) use self::response_stream::Http2Body;
