//! HTTP/2 to upstreams: a few connections to each server, with a stream for every request (RFC 9113).
//!
//! Spoken on `h2`, which hyper speaks HTTP/2 with too. hyper would hide three things that a proxy needs: how many streams a
//! server takes, so that the next request goes to another connection and does not wait unseen; which requests a server has
//! not looked at, so that they may be sent again; and interim responses. It also has a task and two wake-ups more for each request.
//!
//! Begin with [`send_request`]: one request on a stream, until the head of its response. [`client_connection`] drives a
//! connection, and [`pool`] has those of a worker to a server.
//!
//! **`h2` ends a connection at the first response that it cannot read**, such as a field with a line feed, and with it every
//! request on the connection. Whoever can make an application send such a field could end the requests of all other clients
//! again and again. So GET and HEAD are sent once more, and for a minute no request shares a connection: see
//! [`ConnectionLimit::separate_requests`](super::connection_limit::ConnectionLimit::separate_requests).
//!
//! A connection is driven by a task of its own, because it belongs to many requests. A request without a body, or with one
//! that is sent before the response comes, has no task of its own.

mod client_connection;
mod connection_activity;
mod pool;
mod request_upload;
mod response_stream;
mod send_request;

pub(super) use self::pool::{ConnectFailure, Http2Pool, Http2Slot};
pub(super) use self::response_stream::Http2Body;
