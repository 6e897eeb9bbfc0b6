//! Which versions of HTTP the servers of a site are spoken to in.

/// The versions that a site's servers may be spoken to in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HttpVersions {
    /// HTTP/1.1 and no other.
    #[default]
    Http1,
    /// HTTP/2 and no other: with TLS the server has to agree to it, in the clear the first octets say so.
    Http2,
    /// With TLS what the server prefers; in the clear HTTP/1.1, because nothing can be agreed on there.
    Negotiated,
}

impl HttpVersions {
    /// What the handshake of TLS offers (RFC 7301).
    pub(super) fn offered(self) -> Vec<Vec<u8>> {
        match self {
            Self::Http1 => vec![b"http/1.1".to_vec()],
            Self::Http2 => vec![b"h2".to_vec()],
            Self::Negotiated => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        }
    }
}
