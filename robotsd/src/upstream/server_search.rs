//! The servers that one worker chooses from, each with the worker's idle connections to it, and the search for one that can be
//! reached: each is tried once, in turn.
//!
//! The server whose turn it is gets the request if it is in service and can be reached, else the next; servers that are out
//! are tried last, when no other can be reached. So the last server is never out, and a site whose servers were all gone is
//! back with the first that answers.
//!
//! **A lease is a connection or a place on one.** Which of them is settled where a request gets it, so HTTP/1.1 keeps
//! its types, its pool and its way; balancer, health, permits and the second attempt are the same for both.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::connection_limit::{LimitReached, Permit};
use super::endpoint::HttpVersions;
use super::failure::UpstreamFailure;
use super::failure_kind::FailureKind;
use super::http1_connection::{Certainty, Http1Pool, UpstreamConnection};
use super::http2::{ConnectFailure, Http2Pool, Http2Slot};
use super::origins::OriginsState;
use super::server::{Server, Ticket};
use super::tls::Unreachable;
use super::usage::ClientKey;

/// The candidates for the servers a site has.
#[derive(Debug, Default)]
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

/// A connection for one request, which messages about failures name by its server.
#[derive(Debug, derive_more::Display)]
#[display("{}", self.candidate.server)]
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

/// The state of an exchange that got no response.
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

/// The requirements of a request for its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Requirement {
    /// How sure it has to be that an idle one is open.
    pub(super) certainty: Certainty,
    /// The versions of HTTP that the request can be made in.
    pub(super) versions: HttpVersions,
    /// The client that the connection is for.
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
        // If the server speaks nothing else, it speaks that.
        let is_possible = versions != HttpVersions::Http1 || self.server.versions == HttpVersions::Http2;
        self.http2.as_ref().filter(|_| is_possible)
    }

    /// The versions that are spoken on a connection that is made for a request.
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
                nothing_received: !slot.connection.has_answered.is_set(),
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

/// The least time for connecting to one server before the next is tried.
const LEAST_ATTEMPT: Duration = Duration::from_secs(1);

/// One search, for one request.
pub(super) struct ServerSearch<'a> {
    pub(super) shared: &'a OriginsState,
    pub(super) candidates: &'a Candidates,
    pub(super) pooled: Pooled,
    pub(super) requirement: Requirement,
    /// The end of the time for connecting, which the servers share.
    pub(super) deadline: Instant,
}

/// Whether a connection will do that was open before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pooled {
    Allowed,
    Excluded,
}

/// A server that can have the request. None where a server could be tried with a permit for a connection, which there is not; an error
/// where no server could be reached.
type Found = Result<Option<Lease>, UpstreamFailure>;

/// A new connection, or a place on one that others use too; none without a permit.
type Opened = Result<Option<LeasedConnection>, ConnectFailure>;

impl ConnectFailure {
    /// There was no time, which counts against no server.
    fn late(why: &str) -> Self {
        Self { kind: FailureKind::ConnectTimeout, why: why.to_owned(), is_of_server: false }
    }
}

impl ServerSearch<'_> {
    /// Tries every server once, beginning with the one at `first`.
    pub(super) async fn from(&self, first: usize) -> Found {
        let candidates = self.candidates;
        let mut is_full = false;
        let mut failure = None;
        let mut left = candidates.list.len();
        let mut out = Vec::new();
        let in_turn = (0..left).map(|at| &candidates.list[(first + at) % candidates.list.len()]);
        for candidate in in_turn {
            let health = &candidate.server.health;
            let Some(ticket) = health.admit().or_else(|| health.admit_trial(Instant::now())) else {
                // An idle connection there is of no use, and may be in the way.
                candidate.clear();
                out.push(candidate);
                continue;
            };
            if self.pooled == Pooled::Allowed
                && let Some(lease) = candidate.lease(self.requirement, ticket)
            {
                return Ok(Some(lease));
            }
            match self.open(candidate, ticket, left).await {
                Ok(Some(lease)) => return Ok(Some(lease)),
                Ok(None) => is_full = true,
                Err(error) => failure = Some(error),
            }
            left -= 1;
        }
        // A server that is in service and busy is waited for; one that is out is tried only when there is no other.
        if is_full {
            return Ok(None);
        }
        for candidate in out {
            let ticket = candidate.server.health.admit_anyway();
            match self.open(candidate, ticket, left).await {
                Ok(Some(lease)) => return Ok(Some(lease)),
                Ok(None) => is_full = true,
                Err(error) => failure = Some(error),
            }
            left -= 1;
        }
        failure.filter(|_| !is_full).map_or(Ok(None), Err)
    }

    /// A new connection, or a place on one; none without a permit.
    async fn open(&self, candidate: &Arc<CandidateServer>, ticket: Ticket, left: usize) -> Found {
        let opened = match candidate.shared(self.requirement.versions) {
            None => self.connect(candidate, left).await,
            Some(http2) => self.join(candidate, http2, left).await,
        };
        let lease = |connection| Lease { connection, candidate: Arc::clone(candidate), ticket };
        opened.map(|connection| connection.map(lease)).map_err(|failed| {
            let server = &candidate.server;
            if failed.is_of_server {
                self.shared.failed(server, ticket, failed.kind, &failed.why);
            }
            UpstreamFailure::new(failed.kind, format_args!("{server}: {}", failed.why))
        })
    }

    /// A new connection, within a fair part of the time that is left for `left` servers.
    async fn connect(&self, candidate: &CandidateServer, left: usize) -> Opened {
        let permit = match self.pooled {
            // Rather the idle connection of another server than a new one in its place.
            Pooled::Allowed => {
                Permit::take(&self.shared.connection_limit, &candidate.server, self.requirement.client).ok()
            }
            Pooled::Excluded => self.room(candidate),
        };
        let Some(permit) = permit else { return Ok(None) };
        let share = self.share(left)?;
        let versions = candidate.versions(self.requirement.versions);
        let opening = async {
            let socket = candidate.server.connect(versions).await?;
            let limits = &self.shared.limits;
            let http2 = candidate.shared(versions).filter(|http2| http2.agrees(&socket, versions));
            Ok(match http2 {
                None => LeasedConnection::Http1(Box::new(UpstreamConnection::open(socket, permit, limits))),
                Some(http2) => {
                    let opened = http2.open(socket, permit, limits).await;
                    let slot = opened.map_err(|error| Unreachable::Connect(io::Error::other(error)))?;
                    LeasedConnection::Http2(Box::new(slot))
                }
            })
        };
        let (kind, why, is_of_server) = match timeout(share, opening).await {
            Ok(Ok(connection)) => return Ok(Some(connection)),
            Ok(Err(Unreachable::Connect(error))) => (FailureKind::Connect, error.to_string(), true),
            Ok(Err(Unreachable::Tls(error))) => (FailureKind::Tls, error.to_string(), true),
            // A request that can be made in fewer versions than others says nothing about the server for those.
            Ok(Err(Unreachable::Versions(error))) => {
                (FailureKind::Tls, error.to_string(), versions == candidate.server.versions)
            }
            Err(_) => (FailureKind::ConnectTimeout, "no connection in time".to_owned(), true),
        };
        Err(ConnectFailure { kind, why, is_of_server })
    }

    /// A place on a connection that others use too; a new one where none has room. Requests that come while it is made wait for
    /// it, so that a burst makes one connection and no more.
    async fn join(&self, candidate: &CandidateServer, http2: &Arc<Http2Pool>, left: usize) -> Opened {
        let is_shared = || !http2.has_refused.is_set() && !self.shared.connection_limit.are_requests_separate();
        if !is_shared() {
            return self.connect(candidate, left).await;
        }
        let arrived = tokio::time::Instant::now();
        let Ok(mut turn) = timeout(self.share(left)?, http2.connecting.lock()).await else {
            // That it connects so slowly is held against the server once, by the request that connects.
            return Err(ConnectFailure::late("no connection in time"));
        };
        if !is_shared() {
            // Found out meanwhile: then no connection can be shared, and those that waited connect side by side.
            drop(turn);
            return self.connect(candidate, left).await;
        }
        let since = (self.pooled == Pooled::Excluded).then_some(arrived);
        match timeout(self.share(left)?, http2.settled_slot_since(since)).await {
            Ok(Some(slot)) => return Ok(Some(LeasedConnection::Http2(Box::new(slot)))),
            Ok(None) => {}
            Err(_) => return Err(ConnectFailure::late("no SETTINGS in time")),
        }
        if let Some((_, failed)) = turn.as_ref().filter(|(at, _)| *at >= arrived) {
            return Err(ConnectFailure { is_of_server: false, ..failed.clone() });
        }
        let opened = self.connect(candidate, left).await;
        let of_server = opened.as_ref().err().filter(|failed| failed.is_of_server);
        *turn = of_server.map(|failed| (tokio::time::Instant::now(), failed.clone()));
        opened
    }

    /// A fair part of the time that is left for so many servers.
    fn share(&self, left: usize) -> Result<Duration, ConnectFailure> {
        let time = self.deadline.saturating_duration_since(Instant::now());
        if time.is_zero() {
            // Nothing is known of this server, so nothing is held against it.
            return Err(ConnectFailure::late("no time left to connect"));
        }
        Ok((time / u32::try_from(left).unwrap_or(u32::MAX).max(1)).max(LEAST_ATTEMPT).min(time))
    }

    /// A permit for a connection; where none is left, an idle connection is closed for it.
    fn room(&self, candidate: &CandidateServer) -> Option<Permit> {
        let take = || Permit::take(&self.shared.connection_limit, &candidate.server, self.requirement.client);
        match take() {
            Ok(permit) => Some(permit),
            Err(LimitReached::Server) => candidate.give_up().and_then(|()| take().ok()),
            Err(LimitReached::Site) => {
                self.candidates.list.iter().find_map(|candidate| candidate.give_up()).and_then(|()| take().ok())
            }
        }
    }
}
