//! What a request goes through before its site is chosen, and its response on the way back.
//!
//! [`service`] is the chain, from top to bottom: forwarded fields, request id, admission, host; each step is a file.

pub(crate) mod service;

pub(crate) mod forwarded_hops;
pub(crate) mod trusted;

pub(crate) mod request_id;

pub(crate) mod admission;

pub(crate) mod host;

pub(crate) mod fields;
pub(crate) mod trailers;

pub(crate) mod access_record;
pub(crate) mod client_request;
pub(crate) mod request_body;
pub(crate) mod response_body;

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::sync::Arc;

use http::HeaderValue;

/// The address a request came from.
///
/// That of the connection, or the one that trusted proxies report. In the latter case the port is 0 unless they report it
/// too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    /// The number of the client's connection, from 1; none where a trusted proxy sends requests of several clients over it.
    pub(crate) connection: Option<NonZeroU64>,
    /// The address of the listener that the request came in at, where it is known.
    pub(crate) listener: Option<SocketAddr>,
}

impl Peer {
    /// A client of which only the address is known.
    pub(crate) const fn at(address: SocketAddr, listener: Option<SocketAddr>) -> Self {
        Self { address, connection: None, listener }
    }
}

/// The client's `User-Agent`, where trusted proxies send it in another field.
#[derive(Clone, Debug)]
pub(crate) struct OriginalAgent(Arc<[HeaderValue]>);

impl OriginalAgent {
    pub(crate) fn new<'a>(lines: impl IntoIterator<Item = &'a HeaderValue>) -> Option<Self> {
        let lines: Arc<[HeaderValue]> = lines.into_iter().cloned().collect();
        if lines.is_empty() { None } else { Some(Self(lines)) }
    }

    /// Every line of it; at least one.
    pub(crate) fn lines(&self) -> &[HeaderValue] {
        &self.0
    }
}

/// Address and `User-Agent` of the client, once the forwarded fields have been read.
#[derive(Debug)]
pub(crate) struct ClientInfo {
    pub(crate) peer: Peer,
    pub(crate) agent: Option<OriginalAgent>,
}
