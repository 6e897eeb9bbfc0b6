//! The servers that one worker chooses from, each with the worker's idle connections to it.
//!
//! **A lease is a connection or a place on one.** Which of them is settled where a request gets it, so HTTP/1.1 keeps
//! its types, its pool and its way; balancer, health, permits and the second attempt are the same for both.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::endpoint::HttpVersions;
use super::failure_kind::FailureKind;
use super::health::Ticket;
use super::http1_connection::{Certainty, UpstreamConnection};
use super::http1_pool::Http1Pool;
use super::http2::{Http2Pool, Http2Slot};
use super::server::Server;
use super::usage::ClientKey;

/// The candidates for the servers a site has.
#[derive(Debug)]
pub(super) struct Candidates {
    /// The list the seats were made for.
    pub(super) servers: Arc<Vec<Arc<Server>>>,
    pub(super) list: Vec<Arc<CandidateServer>>,
}

/// A server, and the worker's idle connections to it.
#[derive(Debug)]
pub(super) struct CandidateServer {
    pub(super) server: Arc<Server>,
    pub(super) pool: Arc<Http1Pool>,
    /// None where the server is spoken to in HTTP/1.1 only.
    pub(super) http2: Option<Arc<Http2Pool>>,
    /// How often the server had been out when the connections in the pool were still good.
    ejections: AtomicU32,
}

/// A connection for one request.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) connection: LeasedConnection,
    pub(super) candidate: Arc<CandidateServer>,
    pub(super) ticket: Ticket,
}

/// A connection, or a place on one.
#[derive(Debug)]
pub(super) enum LeasedConnection {
    Http1(Box<UpstreamConnection>),
    Http2(Box<Http2Slot>),
}

/// What is known of an exchange that got no response.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExchangeState {
    /// Whether an exchange came before it on the connection.
    pub(super) is_reused: bool,
    pub(super) nothing_received: bool,
    /// How the client broke off its own request, if it did.
    pub(super) body_failure: Option<FailureKind>,
    /// Whether more came than a head may have.
    pub(super) is_flooded: bool,
}

/// What a request needs of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Requirement {
    /// How sure it has to be that an idle one is open.
    pub(super) certainty: Certainty,
    /// What the request can be made in.
    pub(super) versions: HttpVersions,
    /// Whom the connection is for.
    pub(super) client: ClientKey,
}

impl CandidateServer {
    pub(super) fn new(server: Arc<Server>, pool: Http1Pool, http2: impl FnOnce() -> Http2Pool) -> Self {
        let ejections = AtomicU32::new(server.health.ejections());
        let http2 = (server.versions != HttpVersions::Http1).then(|| Arc::new(http2()));
        Self { server, pool: Arc::new(pool), http2, ejections }
    }

    /// The connections that a request may share with others.
    pub(super) fn shared(&self, versions: HttpVersions) -> Option<&Arc<Http2Pool>> {
        // Where the server speaks nothing else, it speaks that.
        let is_possible = versions != HttpVersions::Http1 || self.server.versions == HttpVersions::Http2;
        self.http2.as_ref().filter(|_| is_possible)
    }

    /// What is spoken on a connection that is made for a request.
    pub(super) fn versions(&self, wanted: HttpVersions) -> HttpVersions {
        match (self.server.versions, wanted) {
            (HttpVersions::Negotiated, HttpVersions::Http1) => HttpVersions::Http1,
            (versions, _) => versions,
        }
    }

    /// An idle connection, made since the server was last out.
    pub(super) fn take(&self, requirement: Requirement) -> Option<LeasedConnection> {
        let ejections = self.server.health.ejections();
        if self.ejections.swap(ejections, Ordering::Relaxed) != ejections {
            self.clear();
        }
        let slot = self.shared(requirement.versions).and_then(|http2| http2.slot_since(None));
        match slot {
            Some(slot) => Some(LeasedConnection::Http2(Box::new(slot))),
            None => self.pool.take(requirement.certainty).map(LeasedConnection::Http1),
        }
    }

    pub(super) fn lease(self: &Arc<Self>, requirement: Requirement, ticket: Ticket) -> Option<Lease> {
        Some(Lease { connection: self.take(requirement)?, candidate: Arc::clone(self), ticket })
    }

    /// Closes idle connections that are too old.
    pub(super) fn sweep(&self) {
        self.pool.sweep();
        if let Some(http2) = &self.http2 {
            http2.sweep();
        }
    }

    /// Closes an idle connection, if there is one.
    pub(super) fn give_up(&self) -> Option<()> {
        self.pool.give_up().or_else(|| self.http2.as_ref()?.give_up())
    }

    /// Uses none of the connections there are again.
    pub(super) fn clear(&self) {
        self.pool.clear();
        if let Some(http2) = &self.http2 {
            http2.clear();
        }
    }
}

impl LeasedConnection {
    /// How the current exchange went.
    pub(super) fn exchange_state(&self) -> ExchangeState {
        match self {
            Self::Http1(connection) => ExchangeState {
                is_reused: connection.is_reused(),
                nothing_received: connection.progress.nothing_received(),
                body_failure: connection.progress.upload.failure(),
                is_flooded: connection.progress.is_flooded(),
            },
            Self::Http2(slot) => ExchangeState {
                is_reused: slot.is_reused,
                // Others may have been answered on it.
                nothing_received: !slot.connection.has_answered(),
                body_failure: slot.body_failure,
                is_flooded: false,
            },
        }
    }

    /// Whether no other request has blamed the server for the same connection, which is one failure however many were on it.
    pub(super) fn is_first_to_blame(&self) -> bool {
        match self {
            Self::Http1(_) => true,
            Self::Http2(slot) => slot.connection.blame(),
        }
    }
}

impl Lease {
    /// The connection, and the pool it goes back to, where no other request uses it.
    pub(super) fn into_http1(self) -> Option<(Box<UpstreamConnection>, Arc<Http1Pool>)> {
        match self.connection {
            LeasedConnection::Http1(connection) => Some((connection, Arc::clone(&self.candidate.pool))),
            LeasedConnection::Http2(_) => None,
        }
    }

    /// The place on a connection that others use too.
    pub(super) fn into_slot(self) -> Option<Box<Http2Slot>> {
        match self.connection {
            LeasedConnection::Http1(_) => None,
            LeasedConnection::Http2(slot) => Some(slot),
        }
    }
}

impl fmt::Display for Lease {
    /// The server, as messages about failures name it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.candidate.server.fmt(f)
    }
}
