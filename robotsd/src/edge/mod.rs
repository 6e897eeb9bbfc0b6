//! The side of the proxy that faces clients: HTTP/1.1 and HTTP/2, the latter by prior knowledge in the clear, by ALPN
//! with TLS.
//!
//! The service behind the edge gets requests that are checked and cleaned: a target in origin-form, one `Host`, end-to-end
//! fields only, and no forwarding field that a client could have made up. Every wait has a deadline, and everything that a
//! client can make grow has a bound. The edge knows nothing of robots.txt, sites or upstreams.
//!
//! A request carries its id in [`X_REQUEST_ID`], and what else is known of it as a
//! [`ClientRequest`](crate::exchange::ClientRequest) in its extensions. A response to a WebSocket may be 101 with a
//! [`Tunnel`](crate::exchange::Tunnel) in its extensions; any other interim response that is returned becomes 502.
//!
//! Begin with [`listener`], which accepts, and with [`connection`], which serves what was accepted. [`client_slots`] bounds
//! how many are open, [`connection_state`] is what one is doing. [`mod@http1_fast`] answers most requests on HTTP/1.1 and
//! hyper all others, [`mod@http2`] those on HTTP/2; all go through the same [`request`] chain. So do the questions that
//! HAProxy asks in [`mod@spop`].
//!
//! A client that closes its sending side has left: its requests are dropped, and with them the exchanges with upstreams.

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

#[cfg(test)]
pub(crate) mod test_edge;
#[cfg(any(test, fuzzing))]
pub(crate) mod test_octets;
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
