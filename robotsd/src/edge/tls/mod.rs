//! TLS before HTTP: choosing the certificate for a client, the handshake, and the facts that it
//! settles for the connection.
//!
//! TLS 1.2 and 1.3 are supported with rustls' cipher suites, on ring, and HTTP/2 if the client
//! offers it by ALPN. Certificates are replaced at run time; open connections keep theirs.
//!
//! **TLS ends before HTTP begins.** This module turns a socket into a stream; the rest of the edge
//! sees a `Socket`, which is either. Only the protocol that ALPN settled on is passed on, so that
//! no other is spoken.

pub(crate) mod pair;

mod certificates;

mod acceptor;

#[cfg(test)]
mod tests;

pub(crate) use self::acceptor::{Secured, SettledProtocol, TlsAcceptor};
pub(crate) use self::certificates::{CertificateEvent, CertificateEventKind, LiveCertificates};
pub(crate) use self::pair::{CertificatePair, PairFile, PairPaths, objections};
