//! TLS for listeners: chooses a certificate for each client, performs the handshake, and returns
//! its results for the connection.
//!
//! TLS 1.2 and 1.3 are supported, with the cipher suites of rustls on ring. HTTP/2 is used if the
//! client offers it with ALPN. Certificates are replaced at run time; open connections keep the
//! certificate of their handshake.
//!
//! **TLS is handled before HTTP.** This module turns a TCP socket into a TLS stream. The other
//! parts of the edge use a `Socket`, which can be a TCP socket or a TLS stream. On a TLS
//! connection, the edge accepts only the protocol that ALPN has negotiated.

pub(crate) mod pair;

mod certificates;

mod acceptor;

#[cfg(test)]
mod tests;

pub(crate) use self::acceptor::{Secured, SettledProtocol, TlsAcceptor};
pub(crate) use self::certificates::{CertificateEvent, CertificateEventKind, LiveCertificates};
pub(crate) use self::pair::{CertificatePair, PairFile, PairPaths, objections};
