//! The fields that report the client and its way to an upstream.
//!
//! Always ours: the incoming fields of these names have been removed. From a [trusted](super::trusted) peer they have been
//! read before, and ours carry their content. There is no `Forwarded` among them: two ways to say one thing are two
//! readers that can disagree, and more applications read these.

use std::sync::Arc;

use http::HeaderValue;
use http::header::{HOST, HeaderMap};

use crate::edge::request::client_info::{ClientInfo, Peer};
use crate::edge::request::fields::{self, Sender};
use crate::edge::request::incoming_forwarded::X_FORWARDED_FOR;
use crate::edge::request::request_id::RequestId;
use crate::edge::request::trusted::{ForwardedInfo, Trusted, X_FORWARDED_HOST, X_FORWARDED_PROTO};

/// The forwarded fields of every request of a connection, in the form in which they are written.
#[derive(Clone, Debug)]
pub(crate) struct ForwardedFields {
    peer: Peer,
    address: HeaderValue,
    scheme: Scheme,
    trusted: Arc<Trusted>,
    is_trusted: bool,
}

/// The scheme of a connection to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl ForwardedFields {
    pub(crate) fn new(peer: Peer, scheme: Scheme, trusted: Arc<Trusted>) -> Self {
        // An IPv4 client on a dual-stack socket is known by its IPv4 address everywhere else.
        let address = peer.address.ip().to_canonical().to_string();
        let address = HeaderValue::from_str(&address).unwrap_or_else(|_| HeaderValue::from_static("unknown"));
        let is_trusted = trusted.trusts(peer.address.ip());
        Self { peer, address, scheme, trusted, is_trusted }
    }

    /// The same for a connection that the peer relays for someone it cannot name: the fields may be that client's.
    pub(crate) fn of_unnamed_client(self) -> Self {
        Self { is_trusted: false, ..self }
    }

    /// The sender of the connection's requests.
    pub(crate) const fn sender(&self) -> Sender {
        if self.is_trusted { Sender::TrustedProxy } else { Sender::Anyone }
    }

    /// Reads the fields of a request, if the peer is trusted. To be called before they are removed.
    pub(crate) fn read(&self, fields: &HeaderMap) -> Option<ForwardedInfo> {
        self.is_trusted.then(|| self.trusted.read(fields, self.peer.address))
    }

    /// The id that a trusted peer gave a request, without anything else that it forwards.
    pub(crate) fn request_id(&self, fields: &HeaderMap) -> Option<RequestId> {
        self.is_trusted.then(|| Trusted::request_id(fields)).flatten()
    }

    /// The client of a request, as far as it is known.
    pub(crate) fn client(&self, forwarded: Option<&ForwardedInfo>) -> ClientInfo {
        match forwarded {
            None => ClientInfo { peer: self.peer, agent: None },
            Some(forwarded) => {
                ClientInfo { peer: Peer::at(forwarded.client, self.peer.listener), agent: forwarded.agent.clone() }
            }
        }
    }

    /// Adds the fields to a request whose own have been removed.
    pub(crate) fn write(&self, fields: &mut HeaderMap, forwarded: Option<ForwardedInfo>, client: &ClientInfo) {
        if let Some(name) = &self.trusted.agent_header {
            fields::remove_spellings(fields, name);
            for line in client.agent.iter().flat_map(|agent| agent.lines()) {
                fields.append(name, line.clone());
            }
        }
        let own_scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        let (way, scheme, host) =
            forwarded.map_or((None, None, None), |ForwardedInfo { way, scheme, host, .. }| (way, scheme, host));
        fields.insert(X_FORWARDED_FOR, way.unwrap_or_else(|| self.address.clone()));
        fields.insert(X_FORWARDED_PROTO, HeaderValue::from_static(scheme.unwrap_or(own_scheme)));
        if let Some(host) = host.or_else(|| fields.get(HOST).cloned()) {
            fields.insert(X_FORWARDED_HOST, host);
        }
    }
}
