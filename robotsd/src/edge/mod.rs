//! The client-facing side of the proxy: HTTP/1.1 and HTTP/2. HTTP/2 is negotiated with ALPN on TLS,
//! or used with prior knowledge without TLS.
//!
//! The edge passes only checked requests to its service. A checked request has a target in
//! origin-form, one `Host`, only end-to-end fields, and no forwarding fields that a client could
//! have forged. Every wait has a deadline, and all memory that a client can cause to be allocated
//! is limited. The edge does not depend on robots.txt, sites or upstreams.
//!
//! A request carries its id in [`X_REQUEST_ID`]. The extensions of the request contain a
//! [`ClientRequest`](crate::http_common::ClientRequest) with everything else that the edge knows
//! about the request. To accept a WebSocket, the service answers with 101 and a
//! [`Tunnel`](crate::http_common::Tunnel) in the extensions of the response. Any other 1xx response
//! of the service is replaced with 502.
//!
//! Begin with [`listener`], which accepts connections, and [`connection`], which serves them. On
//! HTTP/1.1, [`mod@http1_fast`] answers most requests and hyper answers the other requests;
//! [`mod@http2`] answers requests on HTTP/2. All requests go through the steps in [`request`],
//! including those that [`mod@spop`] builds from messages of HAProxy.
//!
//! A client that closes its sending side is treated as disconnected: its requests in progress and
//! their upstream exchanges are dropped.

mod client_slots;
mod connection;
mod connection_error;
mod connection_state;
mod http1_fast;
mod http2;
mod listener;
mod listener_counts;
mod proxy_protocol;
mod request;
mod spop;
mod tls;

#[cfg(any(test, fuzzing))]
pub(crate) mod test_any_input;
#[cfg(test)]
pub(crate) mod test_edge;
#[cfg(any(test, fuzzing))]
pub(crate) mod test_sequences;
#[cfg(test)]
mod tests;

pub(crate) use self::connection::settings::{Callers, EdgeLimits};
pub(crate) use self::connection_error::{ConnectionError, ConnectionErrorKind};
pub(crate) use self::listener::{Edge, EdgeTraffic, ListenerSettings};
pub(crate) use self::listener_counts::{ListenerTraffic, ResponseCounts};
pub(crate) use self::request::access_record::{AccessRecord, OnAccess};
#[cfg(test)]
pub(crate) use self::request::request_id::RequestId;
pub(crate) use self::request::request_id::trace_id;
pub(crate) use self::request::trusted::{Trusted, X_REQUEST_ID};
#[cfg(test)]
pub(crate) use self::spop::push_string;
pub(crate) use self::spop::{Arguments, SpopMessages, SpopValue, VariableList, split_string};
pub(crate) use self::tls::{
    CertificateEvent, CertificateEventKind, CertificatePair, LiveCertificates, PairFile, PairPaths, TlsAcceptor,
    objections,
};
