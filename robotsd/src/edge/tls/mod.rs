//! TLS before HTTP: choosing the certificate for a client, performing the handshake, and recording
//! its results for the connection.
//!
//! TLS 1.2 and 1.3 are supported, with the cipher suites of rustls on ring. HTTP/2 is used if the
//! client offers it by ALPN. Certificates are replaced at run time; open connections keep the
//! certificate of their handshake.
//!
//! **TLS is handled before HTTP.** This module turns a TCP socket into a TLS stream. The rest of
//! the edge uses a `Socket`, which is either of the two. It also learns which protocol ALPN has
//! negotiated, so that the connection uses no other.

pub(crate) mod pair;

mod certificates;

mod acceptor;

#[cfg(test)]
mod tests;

pub(crate) use self::acceptor::{Secured, SettledProtocol, TlsAcceptor};
pub(crate) use self::certificates::{CertificateEvent, CertificateEventKind, LiveCertificates};
pub(crate) use self::pair::{CertificatePair, PairFile, PairPaths, objections};
