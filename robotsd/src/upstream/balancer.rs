//! Chooses a server for each request, and waits until a connection to it is available.
//!
//! Servers take turns for each request, not for each connection. A [`ServerSearch`] starts at the
//! server whose turn it is.
//!
//! Each worker has its own copy of the state in this module, including the connections.

use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tokio::time::{sleep, sleep_until, timeout_at};

use super::connection_limit::{Demand, QueuedRequest};
use super::failure::UpstreamFailure;
use super::failure_kind::FailureKind;
use super::http1_connection::Http1Pool;
use super::http2::Http2Pool;
use super::origins::OriginsState;
use super::server::Server;
use super::server_search::{CandidateServer, Candidates, Lease, Pooled, Requirement, ServerSearch};
use super::shares::ShareUse;
use super::usage::ClientKey;
use crate::metrics::Counter;

/// Maximum time until a waiting request searches for a free connection again.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(super) struct UpstreamState {
    pub(super) shared: Arc<OriginsState>,
    /// Maximum number of idle connections of this worker to each server.
    idle: usize,
    candidates: ArcSwap<Candidates>,
    demand: Arc<Demand>,
    turn: AtomicUsize,
    pub(super) answered: Arc<Counter>,
    pub(super) is_swept: AtomicBool,
}

type Leased = Result<Lease, UpstreamFailure>;

impl UpstreamState {
    pub(super) fn new(shared: Arc<OriginsState>, workers: NonZeroUsize) -> Self {
        let (turn, is_swept, candidates) = Default::default();
        let demand = Arc::new(Demand::new(Arc::clone(&shared.connection_limit)));
        let idle = shared.limits.idle_connections.div_ceil(workers.get());
        let answered = shared.count_answered();
        let state = Self { shared, idle, candidates, demand, turn, answered, is_swept };
        state.update_candidates();
        state
    }

    /// Returns an idle connection to the server whose turn it is. Nearly every request gets its
    /// connection here.
    ///
    /// # Errors
    ///
    /// Returns an error if the server has no usable idle connection or is out of service, or if
    /// other requests wait. The error is the index of the server, to be passed to
    /// [`find`](Self::find) as `first`.
    pub(super) fn take_idle(&self, requirement: Requirement) -> Result<Lease, usize> {
        if self.shared.has_names {
            self.shared.refresh();
            self.update_candidates();
        }
        let candidates = self.candidates.load();
        let first = match candidates.list.len() {
            0 | 1 => 0,
            count => self.turn.fetch_add(1, Ordering::Relaxed) % count,
        };
        let candidate = candidates.list.get(first).filter(|_| !self.is_scarce());
        let lease = candidate.and_then(|candidate| candidate.lease(requirement, candidate.server.health.admit()?));
        lease.ok_or(first)
    }

    /// Returns a new connection for the second attempt of a request, after the first attempt at the
    /// server `failed` got no answer. If the site has several servers, connects to another server.
    pub(super) async fn find_another(&self, failed: &Arc<CandidateServer>, requirement: Requirement) -> Leased {
        let candidates = self.candidates.load_full();
        let at = candidates.list.iter().position(|candidate| Arc::ptr_eq(candidate, failed));
        self.find(at.map_or(0, |at| at + 1), Pooled::Excluded, requirement).await
    }

    /// Closes idle connections that are too old or dead, and all idle connections to servers that
    /// are out of service.
    pub(super) fn sweep(&self) {
        self.update_candidates();
        for candidate in &self.candidates.load_full().list {
            if candidate.server.health.is_in_service() { candidate.sweep() } else { candidate.clear() }
        }
    }

    /// Closes one idle connection to each server.
    pub(super) fn close_idle(&self) {
        for candidate in &self.candidates.load_full().list {
            candidate.close_idle();
        }
    }

    /// Reports whether other requests wait (on this or another worker), or a transfer was recently
    /// aborted for waiting requests. If so, a new request must join the queue before it may use any
    /// connection, even an idle one.
    fn is_scarce(&self) -> bool {
        self.demand.has_parked()
            || self.shared.connection_limit.has_waiting_within()
            || self.shared.connection_limit.excludes_beyond()
    }

    /// Returns a connection to the first reachable server. The search starts at index `first`. Uses
    /// an idle connection if there is one and `pooled` allows it; otherwise, opens a connection.
    pub(super) async fn find(&self, first: usize, pooled: Pooled, requirement: Requirement) -> Leased {
        let client = requirement.client;
        let deadline = Instant::now() + self.shared.limits.connect;
        let connection_limit = &self.shared.connection_limit;
        let servers = || self.candidates.load().list.len();
        // If other requests wait, this request joins the end of the queue. A request within its
        // client's share overtakes all requests that are beyond their clients' shares.
        let mut waiting = self.is_scarce().then(|| self.demand.wait(client, servers()));
        let mut is_looking = waiting
            .as_ref()
            .is_none_or(|waiting| waiting.share_use == ShareUse::Within && !self.demand.has_parked_within());
        loop {
            let share_use = waiting.as_ref().map_or(ShareUse::Within, |waiting| waiting.share_use);
            // Registering for notifications before the search ensures that a connection freed
            // during the search is not missed.
            let mut freed = pin!(connection_limit.freed.of(share_use).notified());
            let mut returned = pin!(self.demand.returned.of(share_use).notified());
            if waiting.is_some() {
                freed.as_mut().enable();
                returned.as_mut().enable();
            }
            if is_looking && waiting.as_ref().is_none_or(QueuedRequest::may_take) {
                let candidates = self.candidates(deadline).await?;
                let (shared, candidates) = (&*self.shared, &*candidates);
                let search = ServerSearch { shared, candidates, pooled, requirement, deadline };
                if let Some(lease) = search.from(first).await? {
                    return Ok(lease);
                }
            }
            is_looking = true;
            let Some(parking) = &mut waiting else {
                waiting = Some(self.demand.wait(client, servers()));
                continue;
            };
            if share_use == ShareUse::Within {
                self.abort_stalled_for(client);
            }
            let free = async {
                tokio::select! {
                    // On a slow machine, a connection may become free at the same time as the
                    // deadline passes. In this case, the request uses the connection.
                    biased;
                    () = returned => true,
                    () = freed => true,
                    () = sleep_until(deadline.into()) => false,
                    () = sleep(LOOK_AGAIN) => true,
                }
            };
            if !parking.wait_for_connection(free).await {
                return Err(UpstreamFailure::new(
                    FailureKind::Busy,
                    "all connections that robotsd may open to this server are in use",
                ));
            }
            parking.update_share_use(servers());
        }
    }

    /// Aborts a stalled transfer if requests of `client` take precedence over it.
    fn abort_stalled_for(&self, client: ClientKey) {
        let candidates = self.candidates.load();
        let servers = candidates.list.iter().map(|candidate| &candidate.server);
        let in_service: Vec<_> = servers.clone().filter(|server| server.health.is_in_service()).collect();
        // If no server is in service, all servers are tried, so a transfer from any server may be
        // aborted.
        let servers = if in_service.is_empty() { servers.collect() } else { in_service };
        if let Some((stalled, server)) = self.shared.connection_limit.abort_stalled_for(client, &servers) {
            self.shared.reporter.transfer_aborted(&*server, stalled);
        }
    }

    /// Returns the servers to choose from. If no server is known yet, waits for the resolver until
    /// `deadline`.
    async fn candidates(&self, deadline: Instant) -> Result<Arc<Candidates>, UpstreamFailure> {
        loop {
            let mut answered = pin!(self.shared.answered.notified());
            answered.as_mut().enable();
            let is_looking_up = self.shared.is_looking_up();
            self.update_candidates();
            let candidates = self.candidates.load_full();
            if !candidates.list.is_empty() {
                return Ok(candidates);
            }
            let failure = |why| Err(UpstreamFailure::new(FailureKind::Unresolved, why));
            if !is_looking_up {
                return failure("the name of the upstream has no address");
            }
            if timeout_at(deadline.into(), answered).await.is_err() {
                return failure("the resolver did not answer in time");
            }
        }
    }

    /// Uses the shared list of servers if it has changed. The connections to servers that remain in
    /// the list are kept.
    fn update_candidates(&self) {
        if Arc::ptr_eq(&self.candidates.load().servers, &*self.shared.servers.load()) {
            return;
        }
        self.candidates.rcu(|before| {
            let servers = self.shared.servers.load_full();
            let candidate = |server: &Arc<Server>| {
                let same = before.list.iter().find(|candidate| Arc::ptr_eq(&candidate.server, server));
                same.cloned().unwrap_or_else(|| {
                    let (demand, timeout) = (Arc::clone(&self.demand), self.shared.limits.idle_timeout);
                    let http2 = || Http2Pool::new(self.idle, timeout, Arc::clone(&demand));
                    let pool = Http1Pool::new(self.idle, timeout, Arc::clone(&demand));
                    Arc::new(CandidateServer::new(Arc::clone(server), pool, http2))
                })
            };
            let list = servers.iter().map(candidate).collect();
            Candidates { servers, list }
        });
    }
}
