//! What the edge knows of a request besides its head and its body.

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::sync::Arc;

use http::{Extensions, HeaderValue};
use serde_json::Value;
use tower_robots::internals::Mutex;

use super::interim::InterimResponses;
use super::trailers::AnnouncedTrailers;

/// The one extension that a request has behind the edge.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientRequest {
    /// None where it is not known: a proxy that asks is not the client.
    pub(crate) peer: Option<Peer>,
    /// Every line of the client's `User-Agent`, at least one, where trusted proxies send it in another field.
    pub(crate) agent: Option<Arc<[HeaderValue]>>,
    /// What the log of requests is to say of it; none where there is no such log.
    pub(crate) access: Option<AccessFields>,
    /// The way of interim responses to the client, which HTTP/1.0 does not have.
    pub(crate) interim: Option<InterimResponses>,
    /// Whether it asks for a WebSocket. The fields that say so are hop-by-hop and removed. A service that can provide one answers
    /// 101 with a [`Tunnel`](super::Tunnel).
    pub(crate) wants_websocket: bool,
    /// Whether the client has said that it takes trailers (RFC 9110, section 10.1.4).
    pub(crate) accepts_trailers: bool,
    /// The trailers that the client has announced.
    pub(crate) announced: Option<AnnouncedTrailers>,
}

impl ClientRequest {
    pub(crate) fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get()
    }

    pub(crate) fn peer_of(extensions: &Extensions) -> Option<&Peer> {
        Self::of(extensions)?.peer.as_ref()
    }

    pub(crate) fn access_of(extensions: &Extensions) -> Option<&AccessFields> {
        Self::of(extensions)?.access.as_ref()
    }
}

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

/// What the services behind the edge add to the record.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccessFields(Arc<Mutex<Vec<(&'static str, Value)>>>);

impl AccessFields {
    /// Adds a field. Of several of one name, all are kept.
    pub(crate) fn add(&self, name: &'static str, value: impl Into<Value>) {
        self.0.lock().push((name, value.into()));
    }

    pub(crate) fn take(&self) -> Vec<(&'static str, Value)> {
        std::mem::take(&mut self.0.lock())
    }
}
