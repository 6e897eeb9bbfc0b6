//! TLS before HTTP: which certificate a client is shown, the handshake, and what it settles for the connection.
//!
//! TLS 1.2 and 1.3 with the suites of rustls, on ring; HTTP/2 where the client offers it by ALPN. Certificates are
//! replaced while running: a connection keeps what it was opened with.

mod pair;
pub(crate) mod validity;

mod certificates;
mod live_certificates;
mod server_config;

mod acceptor;
mod client_hello;
mod handshakes;
mod secured;

#[cfg(test)]
mod tests;

pub(crate) use self::acceptor::TlsAcceptor;
pub(crate) use self::live_certificates::{CertificateEvent, CertificateEventKind, LiveCertificates};
pub(crate) use self::pair::{CertificatePair, PairFile, PairPaths};
pub(crate) use self::secured::{Secured, SettledProtocol};
