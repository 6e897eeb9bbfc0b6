//! A search for a server that can be reached: each is tried once, in turn.
//!
//! The server whose turn it is gets the request if it is in service and can be reached, else the next; servers that are out
//! are tried last, when no other can be reached. So the last server is never out, and a site whose servers were all gone is
//! back with the first that answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::candidates::{CandidateServer, Candidates, Lease};
use super::connection::{Certainty, UpstreamConnection};
use super::connection_limit::{LimitReached, Permit};
use super::failure::UpstreamFailure;
use super::failure_kind::FailureKind;
use super::health::Ticket;
use super::origins::OriginsState;
use super::server::Unreachable;
use super::usage::ClientKey;

/// The least time for connecting to one server before the next is tried.
const LEAST_ATTEMPT: Duration = Duration::from_secs(1);

/// One search, for one request.
pub(super) struct ServerSearch<'a> {
    pub(super) shared: &'a OriginsState,
    pub(super) candidates: &'a Candidates,
    /// Whether an idle connection will do, and how sure of it the request has to be.
    pub(super) pooled: Option<Certainty>,
    /// The end of the time for connecting, which the servers share.
    pub(super) deadline: Instant,
    pub(super) client: ClientKey,
}

/// The result of trying every server.
pub(super) enum SearchOutcome {
    Lease(Lease),
    /// No server could be reached.
    Failed(UpstreamFailure),
    /// A server could be tried, with a permit for a connection.
    Busy,
}

impl ServerSearch<'_> {
    /// Tries every server once, beginning with the one at `first`.
    pub(super) async fn from(&self, first: usize) -> SearchOutcome {
        let candidates = self.candidates;
        let mut is_full = false;
        let mut failure = None;
        let mut left = candidates.list.len();
        let mut out = Vec::new();
        let in_turn = (0..left).map(|at| &candidates.list[(first + at) % candidates.list.len()]);
        for candidate in in_turn {
            let health = candidate.server.health();
            let Some(ticket) = health.admit().or_else(|| health.admit_trial(Instant::now())) else {
                // What is idle there is of no use, and may be in the way.
                candidate.pool.clear();
                out.push(candidate);
                continue;
            };
            if let Some(lease) = self.pooled.and_then(|certainty| candidate.lease(certainty, ticket)) {
                return SearchOutcome::Lease(lease);
            }
            match self.open(candidate, ticket, left).await {
                Ok(Some(lease)) => return SearchOutcome::Lease(lease),
                Ok(None) => is_full = true,
                Err(error) => failure = Some(error),
            }
            left -= 1;
        }
        // A server that is in service and busy is waited for; one that is out is tried only when there is no other.
        if is_full {
            return SearchOutcome::Busy;
        }
        for candidate in out {
            let ticket = candidate.server.health().admit_anyway();
            match self.open(candidate, ticket, left).await {
                Ok(Some(lease)) => return SearchOutcome::Lease(lease),
                Ok(None) => is_full = true,
                Err(error) => failure = Some(error),
            }
            left -= 1;
        }
        match failure {
            Some(failure) if !is_full => SearchOutcome::Failed(failure),
            _ => SearchOutcome::Busy,
        }
    }

    /// A new connection, within a fair part of the time that is left for `left` servers; none without a permit.
    async fn open(
        &self,
        candidate: &Arc<CandidateServer>,
        ticket: Ticket,
        left: usize,
    ) -> Result<Option<Lease>, UpstreamFailure> {
        let server = &candidate.server;
        let permit = match self.pooled {
            // Rather the idle connection of another server than a new one in its place.
            Some(_) => Permit::take(self.shared.connection_limit(), server, self.client).ok(),
            None => self.room(candidate),
        };
        let Some(permit) = permit else { return Ok(None) };
        let time = self.deadline.saturating_duration_since(Instant::now());
        if time.is_zero() {
            // Nothing is known of this server, so nothing is held against it.
            return Err(UpstreamFailure::new(
                FailureKind::ConnectTimeout,
                format_args!("{server}: no time left to connect"),
            ));
        }
        let share = (time / u32::try_from(left).unwrap_or(u32::MAX).max(1)).max(LEAST_ATTEMPT).min(time);
        let opening = async {
            let socket = server.connect().await?;
            Ok(UpstreamConnection::open(socket, permit, &self.shared.limits))
        };
        let (kind, why) = match timeout(share, opening).await {
            Ok(Ok(connection)) => {
                return Ok(Some(Lease { connection: Box::new(connection), candidate: Arc::clone(candidate), ticket }));
            }
            Ok(Err(Unreachable::Connect(error))) => (FailureKind::Connect, error.to_string()),
            Ok(Err(Unreachable::Tls(error))) => (FailureKind::Tls, error.to_string()),
            Err(_) => (FailureKind::ConnectTimeout, "no connection in time".to_owned()),
        };
        self.shared.failed(server, ticket, kind, &why);
        Err(UpstreamFailure::new(kind, format_args!("{server}: {why}")))
    }

    /// A permit for a connection; where none is left, an idle connection is closed for it.
    fn room(&self, candidate: &CandidateServer) -> Option<Permit> {
        let take = || Permit::take(self.shared.connection_limit(), &candidate.server, self.client);
        match take() {
            Ok(permit) => Some(permit),
            Err(LimitReached::Server) => candidate.pool.give_up().and_then(|()| take().ok()),
            Err(LimitReached::Site) => {
                self.candidates.list.iter().find_map(|candidate| candidate.pool.give_up()).and_then(|()| take().ok())
            }
        }
    }
}
