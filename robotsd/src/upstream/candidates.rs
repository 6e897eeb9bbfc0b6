//! The servers that one worker chooses from, each with the worker's idle connections to it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::connection::{Certainty, UpstreamConnection};
use super::health::Ticket;
use super::pool::Pool;
use super::server::Server;

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
    pub(super) pool: Arc<Pool>,
    /// How often the server had been out when the connections in the pool were still good.
    ejections: AtomicU32,
}

/// A connection for one request.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) connection: Box<UpstreamConnection>,
    pub(super) candidate: Arc<CandidateServer>,
    pub(super) ticket: Ticket,
}

impl CandidateServer {
    pub(super) fn new(server: Arc<Server>, pool: Pool) -> Self {
        let ejections = AtomicU32::new(server.health().ejections());
        Self { server, pool: Arc::new(pool), ejections }
    }

    /// An idle connection, made since the server was last out.
    pub(super) fn take(&self, certainty: Certainty) -> Option<Box<UpstreamConnection>> {
        let ejections = self.server.health().ejections();
        if self.ejections.swap(ejections, Ordering::Relaxed) != ejections {
            self.pool.clear();
        }
        self.pool.take(certainty)
    }

    pub(super) fn lease(self: &Arc<Self>, certainty: Certainty, ticket: Ticket) -> Option<Lease> {
        Some(Lease { connection: self.take(certainty)?, candidate: Arc::clone(self), ticket })
    }
}

impl Lease {
    /// The connection, and the pool it goes back to.
    pub(super) fn into_parts(self) -> (Box<UpstreamConnection>, Arc<Pool>) {
        (self.connection, Arc::clone(&self.candidate.pool))
    }

    /// Closes the connection, and returns its candidate.
    pub(super) fn close(self) -> Arc<CandidateServer> {
        self.candidate
    }
}

impl fmt::Display for Lease {
    /// The server, as messages about failures name it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.candidate.server.fmt(f)
    }
}
