//! TLS before HTTP: the certificate for a client, the handshake, and the facts it settles for the connection.
//!
//! TLS 1.2 and 1.3 with the suites of rustls, on ring; HTTP/2 where the client offers it by ALPN. Certificates are
//! replaced while running: a connection keeps what it was opened with.
//!
//! **TLS ends before HTTP begins.** This room makes a stream of a socket; the rest of the edge sees a `Socket` that is
//! one or the other. Only the protocol that ALPN settled on is passed on, so that no other is spoken.

pub(crate) mod pair;

mod certificates;

mod acceptor;

#[cfg(test)]
mod tests;

pub(crate) use self::acceptor::{Secured, SettledProtocol, TlsAcceptor};
pub(crate) use self::certificates::{CertificateEvent, CertificateEventKind, LiveCertificates};
pub(crate) use self::pair::{CertificatePair, PairFile, PairPaths, objections};
