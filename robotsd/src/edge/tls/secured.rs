//! What the handshake of a connection settled: its protocol, its certificate, and the hosts that it is for.

use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::edge::tls::live_certificates::LiveCertificates;
use crate::edge::tls::server_config::{HTTP_2, ServedCertificate};

/// A connection's side of the handshake.
#[derive(Clone, Debug)]
pub(crate) struct Secured {
    certificates: LiveCertificates,
    served: Arc<ServedCertificate>,
    place: usize,
    /// The host that the client named, in lower case.
    name: Option<Box<str>>,
    protocol: SettledProtocol,
}

/// The protocol that a connection speaks for certain: by ALPN, where HTTP/1.1 is the default, or because it has served
/// requests of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettledProtocol {
    Http1,
    Http2,
}

impl Secured {
    pub(super) fn new(
        certificates: LiveCertificates,
        served: Arc<ServedCertificate>,
        place: usize,
        stream: &TlsStream<TcpStream>,
    ) -> Self {
        let (_, session) = stream.get_ref();
        Self {
            certificates,
            served,
            place,
            name: session.server_name().map(Box::from),
            protocol: if session.alpn_protocol() == Some(HTTP_2) {
                SettledProtocol::Http2
            } else {
                SettledProtocol::Http1
            },
        }
    }

    pub(crate) fn protocol(&self) -> SettledProtocol {
        self.protocol
    }

    /// Whether the connection may carry requests for a host: its certificate covers it, or could be chosen for it, or the
    /// client has named none.
    pub(crate) fn is_for(&self, host: &str) -> bool {
        self.name.as_deref().is_none_or(|name| {
            host.eq_ignore_ascii_case(name)
                || self.certificates.current().may_choose(self.place, host)
                || self.served.pair.covers(host)
        })
    }
}
