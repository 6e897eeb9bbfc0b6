//! What the edge knows of a request besides its head and its body.

use http::Extensions;

use super::access_record::AccessFields;
use super::trailers::AnnouncedTrailers;
use super::{OriginalAgent, Peer};
use crate::edge::interim::InterimResponses;
use crate::edge::tunnel::WebSocket;

/// The one extension that a request has behind the edge.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientRequest {
    /// None where it is not known: a proxy that asks is not the client.
    pub(crate) peer: Option<Peer>,
    pub(crate) agent: Option<OriginalAgent>,
    /// What the log of requests is to say of it; none where there is no such log.
    pub(crate) access: Option<AccessFields>,
    /// The way of interim responses to the client, which HTTP/1.0 does not have.
    pub(crate) interim: Option<InterimResponses>,
    pub(crate) websocket: Option<WebSocket>,
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
