//! The fields that tell an upstream who asked, and how.
//!
//! Always ours: what came in under these names has been removed. This is the one place that changes when listeners know
//! trusted proxies: the fields a trusted peer sent are then read, right to left, before [`clean_request`] drops them,
//! and [`Peer`] becomes the first address that is not trusted.
//!
//! [`clean_request`]: super::fields::clean_request

use std::net::SocketAddr;

use http::HeaderValue;
use http::header::{HOST, HeaderMap, HeaderName};

/// The address a request came from; a request extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// What is told about every request of a connection, in the form it is told.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    address: HeaderValue,
    scheme: HeaderValue,
}

impl Origin {
    pub(super) fn new(peer: Peer) -> Self {
        // An IPv4 client on a dual-stack socket is known by its IPv4 address everywhere else.
        let address = peer.0.ip().to_canonical().to_string();
        let address = HeaderValue::from_str(&address).unwrap_or_else(|_| HeaderValue::from_static("unknown"));
        Self { address, scheme: HeaderValue::from_static("http") }
    }

    /// Adds the fields to a request whose own have been removed.
    pub(super) fn announce(&self, fields: &mut HeaderMap) {
        fields.insert(HeaderName::from_static("x-forwarded-for"), self.address.clone());
        fields.insert(HeaderName::from_static("x-forwarded-proto"), self.scheme.clone());
        if let Some(host) = fields.get(HOST).cloned() {
            fields.insert(HeaderName::from_static("x-forwarded-host"), host);
        }
    }
}
