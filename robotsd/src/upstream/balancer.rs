//! From a request to a connection: which server's turn it is, and waiting until one can be tried.
//!
//! Servers take turns by request, not by connection. A [`ServerSearch`] begins with the one whose turn it is.
//!
//! All of this, the connections too, belongs to one worker.

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
use super::shares::Standing;
use super::usage::ClientKey;
use crate::metrics::Counter;

/// How often a waiting request looks for a connection without having been notified.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// The servers of a site as one worker uses them, with its connections to them.
#[derive(Debug)]
pub(super) struct UpstreamState {
    pub(super) shared: Arc<OriginsState>,
    /// Idle connections to each server.
    idle: usize,
    candidates: ArcSwap<Candidates>,
    demand: Arc<Demand>,
    turn: AtomicUsize,
    /// The requests that were answered.
    pub(super) answered: Arc<Counter>,
    pub(super) is_swept: AtomicBool,
}

/// The connection that a request gets, or why it gets none.
type Leased = Result<Lease, UpstreamFailure>;

impl UpstreamState {
    pub(super) fn new(shared: Arc<OriginsState>, workers: NonZeroUsize) -> Self {
        let (turn, is_swept, candidates) = Default::default();
        let demand = Arc::new(Demand::new(Arc::clone(&shared.connection_limit)));
        let idle = shared.limits.idle_connections.div_ceil(workers.get());
        let answered = shared.count_answered();
        let state = Self { shared, idle, candidates, demand, turn, answered, is_swept };
        state.follow();
        state
    }

    /// A turn, and an idle connection if the server whose turn it is has one and is well: the way of nearly every
    /// request. Else the place of that server.
    pub(super) fn ready(&self, requirement: Requirement) -> Result<Lease, usize> {
        if self.shared.has_names {
            self.shared.refresh();
            self.follow();
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

    /// A new connection for a request that `failed` did not answer; to another server, if there is one.
    pub(super) async fn another(&self, failed: &Arc<CandidateServer>, requirement: Requirement) -> Leased {
        let candidates = self.candidates.load_full();
        let at = candidates.list.iter().position(|candidate| Arc::ptr_eq(candidate, failed));
        self.find(at.map_or(0, |at| at + 1), Pooled::Excluded, requirement).await
    }

    /// Closes idle connections that are too old, dead, or of servers that are out.
    pub(super) fn sweep(&self) {
        self.follow();
        for candidate in &self.candidates.load_full().list {
            if candidate.server.health.is_in_service() { candidate.sweep() } else { candidate.clear() }
        }
    }

    /// Gives an idle connection of each server up.
    pub(super) fn give_up(&self) {
        for candidate in &self.candidates.load_full().list {
            candidate.give_up();
        }
    }

    /// Whether a request has to find out where it stands before it takes a connection, idle or not: others wait, here or on
    /// another worker, or a transfer has just been given up for some that did.
    fn is_scarce(&self) -> bool {
        self.demand.has_parked() || self.shared.connection_limit.are_owed() || self.shared.connection_limit.are_short()
    }

    /// A connection, new or as it is pooled, to the server at `first` or to the first after it that can be reached.
    pub(super) async fn find(&self, first: usize, pooled: Pooled, requirement: Requirement) -> Leased {
        let client = requirement.client;
        let deadline = Instant::now() + self.shared.limits.connect;
        let connection_limit = &self.shared.connection_limit;
        let servers = || self.candidates.load().list.len();
        // A later request does not overtake, unless those that wait have more than their share.
        let mut waiting = self.is_scarce().then(|| self.demand.wait(client, servers()));
        let mut is_looking = waiting
            .as_ref()
            .is_none_or(|waiting| waiting.standing == Standing::Within && !self.demand.has_parked_within());
        loop {
            let standing = waiting.as_ref().map_or(Standing::Within, |waiting| waiting.standing);
            // Registered before looking, so that a connection that comes free while looking is not missed.
            let mut freed = pin!(connection_limit.freed.of(standing).notified());
            let mut returned = pin!(self.demand.returned.of(standing).notified());
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
            if standing == Standing::Within {
                self.give_up_for(client);
            }
            let free = async {
                tokio::select! {
                    // In this order, so that on a machine that lags a deadline is no reason to leave what is there.
                    biased;
                    () = returned => true,
                    () = freed => true,
                    () = sleep_until(deadline.into()) => false,
                    () = sleep(LOOK_AGAIN) => true,
                }
            };
            if !parking.park(free).await {
                return Err(UpstreamFailure::new(FailureKind::Busy, "every connection that may be open is in use"));
            }
            parking.review(servers());
        }
    }

    /// Has a transfer given up whose client has stalled, if this client's request comes before it.
    fn give_up_for(&self, client: ClientKey) {
        let candidates = self.candidates.load();
        let servers = candidates.list.iter().map(|candidate| &candidate.server);
        let in_service: Vec<_> = servers.clone().filter(|server| server.health.is_in_service()).collect();
        // If none is, all are tried.
        let servers = if in_service.is_empty() { servers.collect() } else { in_service };
        if let Some((stalled, server)) = self.shared.connection_limit.give_up_for(client, &servers) {
            self.shared.reporter.gave_up(&*server, stalled);
        }
    }

    /// The servers there are, once there are any.
    async fn candidates(&self, deadline: Instant) -> Result<Arc<Candidates>, UpstreamFailure> {
        loop {
            let mut answered = pin!(self.shared.answered.notified());
            answered.as_mut().enable();
            let is_looking_up = self.shared.is_looking_up();
            self.follow();
            let candidates = self.candidates.load_full();
            if !candidates.list.is_empty() {
                return Ok(candidates);
            }
            let failure = |why| Err(UpstreamFailure::new(FailureKind::Unresolved, why));
            if !is_looking_up {
                return failure("the upstream has no address");
            }
            if timeout_at(deadline.into(), answered).await.is_err() {
                return failure("the resolver does not answer");
            }
        }
    }

    /// Takes up a new list of servers. A server that stays keeps its connections.
    fn follow(&self) {
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
