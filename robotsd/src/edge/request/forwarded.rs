//! The fields that tell an upstream who asked, and how.
//!
//! Always ours: what came in under these names has been removed. From a [trusted](crate::edge::request::trusted) peer they have been
//! read before, and what it said is in ours. There is no `Forwarded` among them: two ways to say one thing are two
//! readers that can disagree, and more applications read these.

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::sync::Arc;

use http::HeaderValue;
use http::header::{HOST, HeaderMap};

use crate::edge::request::fields::{self, Sender};
use crate::edge::request::hops::X_FORWARDED_FOR;
use crate::edge::request::trusted::{ForwardedInfo, Trusted, X_FORWARDED_HOST, X_FORWARDED_PROTO};

/// The address a request came from; a request extension.
///
/// That of the connection, or what trusted proxies say. In the latter case the port is 0 unless they say that too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    /// The number of the client's connection, from 1; none where a trusted proxy sends requests of several clients over it.
    pub(crate) connection: Option<NonZeroU64>,
}

impl Peer {
    /// A client of which only the address is known.
    pub(crate) fn at(address: SocketAddr) -> Self {
        Self { address, connection: None }
    }
}

/// The client's `User-Agent`, where trusted proxies tell it in another field; a request extension.
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

/// What is told about every request of a connection, in the form it is told.
#[derive(Clone, Debug)]
pub(crate) struct ForwardedFields {
    peer: Peer,
    address: HeaderValue,
    scheme: Scheme,
    trusted: Arc<Trusted>,
    is_trusted: bool,
}

/// How a connection reached us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

/// Who asks, once that is settled.
#[derive(Debug)]
pub(crate) struct ClientInfo {
    pub(crate) peer: Peer,
    pub(crate) agent: Option<OriginalAgent>,
}

impl ForwardedFields {
    pub(crate) fn new(peer: SocketAddr, scheme: Scheme, trusted: Arc<Trusted>) -> Self {
        // An IPv4 client on a dual-stack socket is known by its IPv4 address everywhere else.
        let address = peer.ip().to_canonical().to_string();
        let address = HeaderValue::from_str(&address).unwrap_or_else(|_| HeaderValue::from_static("unknown"));
        let is_trusted = trusted.trusts(peer.ip());
        Self { peer: Peer::at(peer), address, scheme, trusted, is_trusted }
    }

    /// Who sends the requests of the connection.
    pub(crate) const fn sender(&self) -> Sender {
        if self.is_trusted { Sender::TrustedProxy } else { Sender::Anyone }
    }

    /// What the peer says about a request, if its word counts. To be asked before the fields are removed.
    pub(crate) fn listen(&self, fields: &HeaderMap) -> Option<ForwardedInfo> {
        self.is_trusted.then(|| self.trusted.read(fields, self.peer.address))
    }

    /// Who asks, as far as that is known.
    pub(crate) fn asker(&self, told: Option<&ForwardedInfo>) -> ClientInfo {
        match told {
            None => ClientInfo { peer: self.peer, agent: None },
            Some(told) => ClientInfo { peer: Peer::at(told.client), agent: told.agent.clone() },
        }
    }

    /// Adds the fields to a request whose own have been removed, and says who asks.
    pub(crate) fn announce(&self, fields: &mut HeaderMap, told: Option<ForwardedInfo>) -> ClientInfo {
        if let Some(name) = &self.trusted.agent_header {
            fields::remove_spellings(fields, name);
        }
        let own_scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        let asker = self.asker(told.as_ref());
        if let (Some(name), Some(agent)) = (&self.trusted.agent_header, &asker.agent) {
            for line in agent.lines() {
                fields.append(name, line.clone());
            }
        }
        let (way, scheme, host) =
            told.map_or((None, None, None), |ForwardedInfo { way, scheme, host, .. }| (way, scheme, host));
        fields.insert(X_FORWARDED_FOR, way.unwrap_or_else(|| self.address.clone()));
        fields.insert(X_FORWARDED_PROTO, HeaderValue::from_static(scheme.unwrap_or(own_scheme)));
        if let Some(host) = host.or_else(|| fields.get(HOST).cloned()) {
            fields.insert(X_FORWARDED_HOST, host);
        }
        asker
    }
}
