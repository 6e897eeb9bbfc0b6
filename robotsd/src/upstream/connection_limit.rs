//! Limits the number of open connections to each server, and to all servers of a site together,
//! over all workers.
//!
//! A [`Permit`] is acquired before a connection is opened, and released after its socket is closed,
//! because each open socket uses resources of the server. So idle connections and tunnels hold
//! permits, too, and the counters do not change with each request.
//!
//! A request that gets no permit waits. Two kinds of connections must not keep requests waiting:
//! - Idle connections of other workers. Workers with idle connections are notified of waiting
//!   requests, and close idle connections.
//! - Connections whose clients do not read. The transfer of such a client is aborted if the waiting
//!   request's client [is within its share](super::shares).
//!
//! Requests wait in two queues. The queue for clients within their share is served first. With a
//! single queue, a client with a hundred waiting requests would get every connection that becomes
//! free.

use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::server::Server;
use super::shares::{STALLED, ShareUse, Shares};
use super::usage::{ClientKey, Usage, millis};

#[derive(Debug)]
pub(super) struct ConnectionLimit {
    pub(super) open: AtomicUsize,
    capacity: usize,
    per_server: usize,
    /// Number of requests that wait for a permit, on all workers.
    pub(super) waiting: ByShareUse<AtomicUsize>,
    /// Notified when a permit becomes free. One notification wakes one waiting request.
    pub(super) freed: ByShareUse<Notify>,
    /// Notified when a request begins to wait, and periodically while it waits, so that other
    /// workers close idle connections.
    pub(super) wanted: Notify,
    pub(super) shares: Mutex<Shares>,
    pub(super) start: Instant,
    /// Clients beyond their share get no new connections before this time (in milliseconds since
    /// `start`), because a transfer was aborted. Zero if they may get connections now.
    short_until: AtomicU64,
    /// Earliest time of the next search for stalled transfers after a search that found none, in
    /// milliseconds since `start`.
    fruitless_until: AtomicU64,
    /// Earliest time when requests may share HTTP/2 connections again, in milliseconds since
    /// `start`. Zero if requests have always been allowed to share connections.
    pub(super) separate_until: AtomicU64,
}

/// Permission to open a connection, held until the connection is closed.
#[derive(Debug)]
pub(super) struct Permit {
    limit: Arc<ConnectionLimit>,
    server: Arc<Server>,
    pub(super) usage: Arc<Usage>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitReached {
    Server,
    Site,
}

/// Pause after a search that found no stalled transfer, in milliseconds.
const FRUITLESS: u64 = 20;

/// Time without shared HTTP/2 connections after an invalid response has ended a connection, in
/// milliseconds.
pub(super) const SEPARATE: u64 = 60_000;

/// Maximum number of stalled transfers that one search tries to abort; an attempt fails if the
/// transfer has just resumed.
const CHOICES: usize = 8;

impl ConnectionLimit {
    pub(super) fn new(capacity: NonZeroUsize, per_server: NonZeroUsize) -> Self {
        let (open, waiting, freed, wanted, shares) = Default::default();
        let (short_until, fruitless_until, separate_until) = Default::default();
        let (start, capacity, per_server) = (Instant::now(), capacity.get(), per_server.get());
        Self {
            open,
            capacity,
            per_server,
            waiting,
            freed,
            wanted,
            shares,
            start,
            short_until,
            fruitless_until,
            separate_until,
        }
    }

    /// Limits each HTTP/2 connection to one request at a time for [`SEPARATE`] milliseconds, after
    /// an invalid response has ended a connection with all its requests. The next invalid response
    /// then ends only one request. The limit applies to all servers and all workers, because a
    /// failed request may be sent again to another server, which may send the same response.
    pub(super) fn separate_requests(&self) {
        self.separate_until.store(millis(self.start) + SEPARATE, Ordering::Relaxed);
    }

    pub(super) fn are_requests_separate(&self) -> bool {
        let until = self.separate_until.load(Ordering::Relaxed);
        until != 0 && millis(self.start) <= until
    }

    /// Reports whether clients beyond their share get no connections now, because a transfer was
    /// aborted recently.
    pub(super) fn excludes_beyond(&self) -> bool {
        let until = self.short_until.load(Ordering::Relaxed);
        if until == 0 {
            return false;
        }
        let is_over = millis(self.start) > until;
        if is_over {
            // If another transfer was aborted in the meantime, `short_until` has a new value, which
            // must not be reset.
            let _ = self.short_until.compare_exchange(until, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
        !is_over
    }

    /// Reports whether a client within its share has a waiting request, on any worker.
    pub(super) fn has_waiting_within(&self) -> bool {
        self.waiting.within.load(Ordering::SeqCst) > 0
    }

    /// Aborts a stalled transfer, to free its permit for a request of `client`. Returns the length
    /// of the stall and the server of the transfer; `None` if no transfer may be aborted for this
    /// client. The permit becomes free only when the task of the transfer runs.
    pub(super) fn abort_stalled_for(
        &self,
        client: ClientKey,
        servers: &[&Arc<Server>],
    ) -> Option<(Duration, Arc<Server>)> {
        let now = millis(self.start);
        if now < self.fruitless_until.load(Ordering::Relaxed) {
            return None;
        }
        let is_full = self.open.load(Ordering::SeqCst) >= self.capacity;
        let helps = |server: &Arc<Server>| {
            (is_full || server.open.load(Ordering::SeqCst) >= self.per_server)
                && servers.iter().any(|wanted| Arc::ptr_eq(wanted, server))
        };
        let mut shares = self.shares.lock();
        let mut take = || {
            let (usage, stall) = shares.victim(client, self.capacity_of(servers.len()), now, helps)?;
            // The lock prevents two requests from choosing the same transfer. `abort_transfer`
            // fails if the transfer's client has just resumed.
            Some(usage.abort_transfer(stall).then_some((usage, stall)))
        };
        let taken = (0..CHOICES).map_while(|_| take()).flatten().next();
        drop(shares);
        let Some((usage, stall)) = taken else {
            self.fruitless_until.store(now + FRUITLESS, Ordering::Relaxed);
            return None;
        };
        usage.wake();
        self.short_until.store(now + STALLED.as_millis() as u64, Ordering::Relaxed);
        Some((stall.duration(now), Arc::clone(&usage.server)))
    }

    /// Returns the maximum total number of connections to `servers` servers together.
    pub(super) fn capacity_of(&self, servers: usize) -> usize {
        self.per_server.saturating_mul(servers.max(1)).min(self.capacity)
    }
}

impl Permit {
    pub(super) fn take(
        limit: &Arc<ConnectionLimit>,
        server: &Arc<Server>,
        client: ClientKey,
    ) -> Result<Self, LimitReached> {
        if !take_one(&server.open, limit.per_server) {
            return Err(LimitReached::Server);
        }
        if !take_one(&limit.open, limit.capacity) {
            server.open.fetch_sub(1, Ordering::SeqCst);
            return Err(LimitReached::Site);
        }
        let usage = Arc::new(Usage::new(Arc::clone(server), limit.start, client));
        limit.shares.lock().add(Arc::clone(&usage));
        Ok(Self { limit: Arc::clone(limit), server: Arc::clone(server), usage })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.limit.shares.lock().remove(&self.usage);
        self.server.open.fetch_sub(1, Ordering::SeqCst);
        self.limit.open.fetch_sub(1, Ordering::SeqCst);
        // No wake-up is lost, because a request is counted as waiting before it looks for a permit:
        // either the request finds this free permit, or this function finds the request.
        if let Some(first) = self.limit.waiting.first() {
            self.limit.freed.of(first).notify_one();
        }
    }
}

fn take_one(count: &AtomicUsize, capacity: usize) -> bool {
    count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |open| (open < capacity).then_some(open + 1)).is_ok()
}

#[derive(Debug, Default)]
pub(super) struct ByShareUse<T> {
    pub(super) within: T,
    pub(super) beyond: T,
}

impl<T> ByShareUse<T> {
    pub(super) fn of(&self, share_use: ShareUse) -> &T {
        match share_use {
            ShareUse::Within => &self.within,
            ShareUse::Beyond => &self.beyond,
        }
    }
}

impl ByShareUse<AtomicUsize> {
    pub(super) fn first(&self) -> Option<ShareUse> {
        [ShareUse::Within, ShareUse::Beyond]
            .into_iter()
            .find(|share_use| self.of(*share_use).load(Ordering::SeqCst) > 0)
    }
}

#[derive(Debug)]
pub(super) struct Demand {
    pub(super) limit: Arc<ConnectionLimit>,
    waiting: ByShareUse<AtomicUsize>,
    /// Number of requests in `waiting` that wait for a notification. All other requests in
    /// `waiting` are connecting.
    parked: ByShareUse<AtomicUsize>,
    /// Notified when a connection of this worker becomes free.
    pub(super) returned: ByShareUse<Notify>,
    /// Number of connections that became free while requests waited both on this worker and on
    /// other workers.
    turn: AtomicUsize,
}

/// A waiting request. Dropping this value removes the request from the queue.
#[derive(Debug)]
pub(super) struct QueuedRequest<'d> {
    demand: &'d Demand,
    client: ClientKey,
    pub(super) share_use: ShareUse,
}

/// If requests wait on this worker and on other workers, every eighth connection that becomes free
/// is closed, so that its permit goes to another worker.
const FOR_OTHERS: usize = 8;

impl Demand {
    pub(super) fn new(limit: Arc<ConnectionLimit>) -> Self {
        let (waiting, parked, returned) = Default::default();
        Self { limit, waiting, parked, returned, turn: AtomicUsize::new(0) }
    }

    /// Reports whether another request waits on this worker. A new request is served after the
    /// waiting request, unless only the new request is within its client's share.
    pub(super) fn has_parked(&self) -> bool {
        self.has_parked_within() || self.parked.beyond.load(Ordering::Relaxed) > 0
    }

    pub(super) fn has_parked_within(&self) -> bool {
        self.parked.within.load(Ordering::Relaxed) > 0
    }

    pub(super) fn wait(&self, client: ClientKey, servers: usize) -> QueuedRequest<'_> {
        let mut shares = self.limit.shares.lock();
        let share_use = shares.share_use(client, self.limit.capacity_of(servers), millis(self.limit.start));
        let waiting = QueuedRequest { demand: self, client, share_use };
        waiting.enter(&mut shares);
        waiting
    }

    /// Reports whether a free connection of this worker should be closed, so that another worker
    /// gets a permit.
    pub(super) fn should_yield_permit(&self) -> bool {
        let Some(first) = self.limit.waiting.first() else { return false };
        let everywhere = self.limit.waiting.of(first).load(Ordering::SeqCst);
        let here = self.waiting.of(first).load(Ordering::SeqCst);
        everywhere > here && (here == 0 || self.turn.fetch_add(1, Ordering::Relaxed) % FOR_OTHERS == FOR_OTHERS - 1)
    }

    /// Notifies a waiting request that the pool has a free connection.
    pub(super) fn notify_waiting_request(&self) {
        if let Some(first) = self.waiting.first() {
            self.returned.of(first).notify_one();
        }
    }
}

impl QueuedRequest<'_> {
    /// Determines again whether the request's client is within its share. `servers` is the number
    /// of servers that the request can choose from.
    pub(super) fn update_share_use(&mut self, servers: usize) {
        let limit = &self.demand.limit;
        let mut shares = limit.shares.lock();
        self.leave(&mut shares);
        self.share_use = shares.share_use(self.client, limit.capacity_of(servers), millis(limit.start));
        self.enter(&mut shares);
    }

    pub(super) fn may_take(&self) -> bool {
        let limit = &self.demand.limit;
        self.share_use == ShareUse::Within || !(limit.has_waiting_within() || limit.excludes_beyond())
    }

    pub(super) async fn wait_for_connection<T>(&self, free: impl Future<Output = T>) -> T {
        let parked = self.demand.parked.of(self.share_use);
        parked.fetch_add(1, Ordering::Relaxed);
        let _parked = scopeguard::guard(parked, |parked| {
            parked.fetch_sub(1, Ordering::Relaxed);
        });
        // The notification makes other workers close idle connections, which only helps if the
        // waiting request may open a connection now.
        if self.may_take() {
            self.demand.limit.wanted.notify_waiters();
        }
        free.await
    }

    fn enter(&self, shares: &mut Shares) {
        self.demand.waiting.of(self.share_use).fetch_add(1, Ordering::SeqCst);
        self.demand.limit.waiting.of(self.share_use).fetch_add(1, Ordering::SeqCst);
        if self.share_use == ShareUse::Within {
            shares.wait(self.client);
        }
    }

    fn leave(&self, shares: &mut Shares) {
        self.demand.waiting.of(self.share_use).fetch_sub(1, Ordering::SeqCst);
        self.demand.limit.waiting.of(self.share_use).fetch_sub(1, Ordering::SeqCst);
        if self.share_use == ShareUse::Within {
            shares.stop_waiting(self.client);
        }
    }
}

impl Drop for QueuedRequest<'_> {
    fn drop(&mut self) {
        self.leave(&mut self.demand.limit.shares.lock());
    }
}
