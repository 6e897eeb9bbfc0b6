//! The search for a reachable server: tries each server of a site once, in turn.
//!
//! If a server is out of service or cannot be reached, the next server gets the request. Servers
//! that are out of service are tried last, so if all are out of service, the site works again as
//! soon as one server answers.
//!
//! **The result is a [`Lease`]: an HTTP/1.1 connection or a slot on an HTTP/2 connection.** Each of
//! the two kinds of lease has its own types and its own pool. The balancer, health, permits and the
//! second attempt are the same for both kinds.

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

/// The servers that one worker can choose from.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// The shared list of servers that `list` was built from.
    pub(super) servers: Arc<Vec<Arc<Server>>>,
    pub(super) list: Vec<Arc<CandidateServer>>,
}

/// A server, with this worker's idle connections to it.
#[derive(Debug)]
pub(super) struct CandidateServer {
    pub(super) server: Arc<Server>,
    pub(super) pool: Arc<Http1Pool>,
    /// The HTTP/2 connections; `None` if only HTTP/1.1 is used with the server.
    pub(super) http2: Option<Arc<Http2Pool>>,
    /// Value of `Health::ejections` when a connection was last taken. If the number has changed
    /// since, the server was out of service in the meantime, and the pooled connections are closed.
    ejections: AtomicU32,
}

/// A connection that was chosen for one request. The `Display` form of a lease is the name of its
/// server, for messages about failures.
#[derive(Debug, derive_more::Display)]
#[display("{}", self.candidate.server)]
pub(super) struct Lease {
    pub(super) connection: LeasedConnection,
    pub(super) candidate: Arc<CandidateServer>,
    pub(super) ticket: Ticket,
}

#[derive(Debug)]
pub(super) enum LeasedConnection {
    Http1(Box<UpstreamConnection>),
    Http2(Box<Http2Slot>),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ExchangeState {
    pub(super) is_reused: bool,
    pub(super) nothing_received: bool,
    /// The reason why the request body is incomplete; `None` if it is complete.
    pub(super) body_failure: Option<FailureKind>,
    /// Whether the server reached the limit of bytes before the head of the final response was
    /// complete.
    pub(super) is_flooded: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Requirement {
    pub(super) certainty: Certainty,
    pub(super) versions: HttpVersions,
    pub(super) client: ClientKey,
}

impl CandidateServer {
    pub(super) fn new(server: Arc<Server>, pool: Http1Pool, http2: impl FnOnce() -> Http2Pool) -> Self {
        let ejections = AtomicU32::new(server.health.ejections());
        let http2 = (server.versions != HttpVersions::Http1).then(|| Arc::new(http2()));
        Self { server, pool: Arc::new(pool), http2, ejections }
    }

    /// Returns the pool of HTTP/2 connections. Returns `None` if the server or the request cannot
    /// use HTTP/2.
    pub(super) fn shared(&self, versions: HttpVersions) -> Option<&Arc<Http2Pool>> {
        // If a server is configured for HTTP/2 only, every request to it uses HTTP/2.
        let is_possible = versions != HttpVersions::Http1 || self.server.versions == HttpVersions::Http2;
        self.http2.as_ref().filter(|_| is_possible)
    }

    /// Returns the HTTP versions to offer on a new connection. `wanted` contains the versions that
    /// the request can use.
    pub(super) fn versions(&self, wanted: HttpVersions) -> HttpVersions {
        match (self.server.versions, wanted) {
            (HttpVersions::Negotiated, HttpVersions::Http1) => HttpVersions::Http1,
            (versions, _) => versions,
        }
    }

    /// Takes an idle connection from the pool. Connections from before the server's last outage are
    /// closed and not returned.
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

    pub(super) fn sweep(&self) {
        self.pool.sweep();
        if let Some(http2) = &self.http2 {
            http2.sweep();
        }
    }

    /// Closes one idle connection. Returns `None` if no connection is idle.
    pub(super) fn close_idle(&self) -> Option<()> {
        self.pool.close_idle().or_else(|| self.http2.as_ref()?.close_idle())
    }

    /// Removes all connections from the pools, so that new requests use new connections.
    pub(super) fn clear(&self) {
        self.pool.clear();
        if let Some(http2) = &self.http2 {
            http2.clear();
        }
    }
}

impl LeasedConnection {
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
                // On a shared connection, other requests may have received responses.
                nothing_received: !slot.connection.has_answered.is_set(),
                body_failure: slot.body_failure,
                is_flooded: false,
            },
        }
    }

    /// Reports whether the failure of this connection should be counted against the server. Returns
    /// true only once per HTTP/2 connection, even if many requests share the connection.
    pub(super) fn is_first_to_blame(&self) -> bool {
        match self {
            Self::Http1(_) => true,
            Self::Http2(slot) => slot.connection.blame(),
        }
    }
}

impl Lease {
    pub(super) fn into_http1(self) -> Option<(Box<UpstreamConnection>, Arc<Http1Pool>)> {
        match self.connection {
            LeasedConnection::Http1(connection) => Some((connection, Arc::clone(&self.candidate.pool))),
            LeasedConnection::Http2(_) => None,
        }
    }

    pub(super) fn into_slot(self) -> Option<Box<Http2Slot>> {
        match self.connection {
            LeasedConnection::Http1(_) => None,
            LeasedConnection::Http2(slot) => Some(slot),
        }
    }
}

/// Minimum time for one connection attempt before the next server is tried.
const MIN_ATTEMPT: Duration = Duration::from_secs(1);

pub(super) struct ServerSearch<'a> {
    pub(super) shared: &'a OriginsState,
    pub(super) candidates: &'a Candidates,
    pub(super) pooled: Pooled,
    pub(super) requirement: Requirement,
    /// Deadline for connecting, shared by all servers that are tried.
    pub(super) deadline: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pooled {
    Allowed,
    Excluded,
}

/// The connection that a search has found. `None` if a server could be tried, but the limits allow
/// no new connection; an error if no server could be reached.
type Found = Result<Option<Lease>, UpstreamFailure>;

/// The result of one attempt: a new connection, or a slot on a shared connection. `None` if the
/// limits allow no new connection.
type Opened = Result<Option<LeasedConnection>, ConnectFailure>;

impl ConnectFailure {
    /// Creates the failure for a request that has used up its time for connecting. The failure does
    /// not count against the server.
    fn late(why: &str) -> Self {
        Self { kind: FailureKind::ConnectTimeout, why: why.to_owned(), is_of_server: false }
    }
}

impl ServerSearch<'_> {
    /// Tries every server once, beginning with the server at index `first`.
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
                // Idle connections to a server that is out of service would occupy permits and
                // never be used.
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
        // If a server in service has no free connection, the request waits for one, and servers
        // that are out of service are not tried.
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

    /// Opens a connection, or reserves a slot on a shared connection. Returns `None` if the limits
    /// allow no new connection.
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

    /// Opens a connection within the time that [`attempt_timeout`](Self::attempt_timeout) returns.
    async fn connect(&self, candidate: &CandidateServer, left: usize) -> Opened {
        let permit = match self.pooled {
            // No idle connection is closed to free a permit, because this request can use an idle
            // connection to another server.
            Pooled::Allowed => {
                Permit::take(&self.shared.connection_limit, &candidate.server, self.requirement.client).ok()
            }
            Pooled::Excluded => self.acquire_permit(candidate),
        };
        let Some(permit) = permit else { return Ok(None) };
        let attempt_timeout = self.attempt_timeout(left)?;
        let versions = candidate.versions(self.requirement.versions);
        let opening = async {
            let socket = candidate.server.connect(versions).await?;
            let limits = &self.shared.limits;
            let http2 = candidate.shared(versions).filter(|http2| http2.uses_http2(&socket, versions));
            Ok(match http2 {
                None => LeasedConnection::Http1(Box::new(UpstreamConnection::open(socket, permit, limits))),
                Some(http2) => {
                    let opened = http2.open(socket, permit, limits).await;
                    let slot = opened.map_err(|error| Unreachable::Connect(io::Error::other(error)))?;
                    LeasedConnection::Http2(Box::new(slot))
                }
            })
        };
        let (kind, why, is_of_server) = match timeout(attempt_timeout, opening).await {
            Ok(Ok(connection)) => return Ok(Some(connection)),
            Ok(Err(Unreachable::Connect(error))) => (FailureKind::Connect, error.to_string(), true),
            Ok(Err(Unreachable::Tls(error))) => (FailureKind::Tls, error.to_string(), true),
            // If only some of the configured versions were offered, the server may support the
            // other versions, so the failure does not count against the server.
            Ok(Err(Unreachable::Versions(error))) => {
                (FailureKind::Tls, error.to_string(), versions == candidate.server.versions)
            }
            Err(_) => (FailureKind::ConnectTimeout, "no connection could be opened in time".to_owned(), true),
        };
        Err(ConnectFailure { kind, why, is_of_server })
    }

    /// Reserves a slot on a shared connection, or opens a connection. Requests that arrive while a
    /// connection is being opened wait for this connection, so that a burst of requests opens only
    /// one connection.
    async fn join(&self, candidate: &CandidateServer, http2: &Arc<Http2Pool>, left: usize) -> Opened {
        let is_shared = || !http2.has_refused.is_set() && !self.shared.connection_limit.are_requests_separate();
        if !is_shared() {
            return self.connect(candidate, left).await;
        }
        let arrived = tokio::time::Instant::now();
        let Ok(mut turn) = timeout(self.attempt_timeout(left)?, http2.connecting.lock()).await else {
            // Another request is connecting too slowly. That request counts the failure against the
            // server, so this request does not.
            return Err(ConnectFailure::late("no connection could be opened in time"));
        };
        if !is_shared() {
            // Another request has just found that the server does not support HTTP/2, so the
            // waiting requests connect in parallel.
            drop(turn);
            return self.connect(candidate, left).await;
        }
        let since = (self.pooled == Pooled::Excluded).then_some(arrived);
        match timeout(self.attempt_timeout(left)?, http2.wait_for_slot_since(since)).await {
            Ok(Some(slot)) => return Ok(Some(LeasedConnection::Http2(Box::new(slot)))),
            Ok(None) => {}
            Err(_) => return Err(ConnectFailure::late("the server did not send SETTINGS in time")),
        }
        if let Some((_, failed)) = turn.as_ref().filter(|(at, _)| *at >= arrived) {
            return Err(ConnectFailure { is_of_server: false, ..failed.clone() });
        }
        let opened = self.connect(candidate, left).await;
        let of_server = opened.as_ref().err().filter(|failed| failed.is_of_server);
        *turn = of_server.map(|failed| (tokio::time::Instant::now(), failed.clone()));
        opened
    }

    /// Returns the time for one attempt: an equal part of the remaining time, which `left` servers
    /// share.
    fn attempt_timeout(&self, left: usize) -> Result<Duration, ConnectFailure> {
        let time = self.deadline.saturating_duration_since(Instant::now());
        if time.is_zero() {
            // The failure does not count against the server, which has not been tried.
            return Err(ConnectFailure::late("the time for connecting was used up before this server was tried"));
        }
        Ok((time / u32::try_from(left).unwrap_or(u32::MAX).max(1)).max(MIN_ATTEMPT).min(time))
    }

    /// Returns a permit for a new connection. If no permit is left, closes an idle connection to
    /// free a permit.
    fn acquire_permit(&self, candidate: &CandidateServer) -> Option<Permit> {
        let take = || Permit::take(&self.shared.connection_limit, &candidate.server, self.requirement.client);
        match take() {
            Ok(permit) => Some(permit),
            Err(LimitReached::Server) => candidate.close_idle().and_then(|()| take().ok()),
            Err(LimitReached::Site) => {
                self.candidates.list.iter().find_map(|candidate| candidate.close_idle()).and_then(|()| take().ok())
            }
        }
    }
}
