//! What is known of a connection because it is secured, and which requests it may carry.

use std::sync::Arc;

use http::header::HOST;
use http::request::Parts;
use http::{StatusCode, Version};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::live::{HTTP_2, LiveCertificates, ServedCertificate};
use crate::edge::request::host;
use crate::edge::request::refusal::RequestRefusal;

/// A connection's side of the handshake.
#[derive(Clone, Debug)]
pub(crate) struct Secured {
    certificates: LiveCertificates,
    shown: Arc<ServedCertificate>,
    place: usize,
    /// What the client asked for, in lower case.
    name: Option<Box<str>>,
    agreed: AlpnProtocol,
}

/// The protocol that client and listener have settled on; HTTP/1.1 where the client names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AlpnProtocol {
    Http1,
    Http2,
}

impl Secured {
    pub(super) fn new(
        certificates: LiveCertificates,
        shown: Arc<ServedCertificate>,
        place: usize,
        stream: &TlsStream<TcpStream>,
    ) -> Self {
        let (_, session) = stream.get_ref();
        Self {
            certificates,
            shown,
            place,
            name: session.server_name().map(Box::from),
            agreed: if session.alpn_protocol() == Some(HTTP_2) { AlpnProtocol::Http2 } else { AlpnProtocol::Http1 },
        }
    }

    pub(crate) fn agreed(&self) -> AlpnProtocol {
        self.agreed
    }

    /// Whether a request belongs on this connection. Its host has been settled.
    ///
    /// The protocol is the one agreed on (RFC 9113, section 3.2). And the host is one that the certificate of this
    /// connection vouches for, or could be shown for: a client that named one site and asks for another, whose
    /// certificate it has not seen, has to make a connection for it (RFC 9110, section 15.5.20). Where it named none,
    /// `Host` is all there is to go by.
    pub(crate) fn admit(&self, head: &Parts) -> Result<(), RequestRefusal> {
        if (head.version == Version::HTTP_2) != (self.agreed == AlpnProtocol::Http2) {
            return Err(RequestRefusal::bad_request("not the protocol that was agreed on"));
        }
        let host = head.headers.get(HOST).and_then(|host| host.to_str().ok());
        let (Some(name), Some(host)) = (&self.name, host) else { return Ok(()) };
        let host = host::without_port(host);
        if host.eq_ignore_ascii_case(name)
            || self.certificates.current().may_choose(self.place, host)
            || self.shown.pair.covers(host)
        {
            return Ok(());
        }
        Err(RequestRefusal::new(StatusCode::MISDIRECTED_REQUEST, "this connection was made for another host"))
    }
}
