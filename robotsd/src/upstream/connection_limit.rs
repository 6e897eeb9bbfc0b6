//! Limits open connections, per server and for all servers of a site together, across all workers.
//! Also tracks the requests of a worker that wait for a connection.
//!
//! A connection holds a [`Permit`] from before it is opened until its socket is closed, even if it
//! is idle or a tunnel: each open socket costs the server. The counters therefore change only when
//! a connection opens or closes, not with each request.
//!
//! A request without a permit waits. Two things must not keep it waiting:
//! - Idle connections of other workers: workers are notified of waiting requests and close idle
//!   connections.
//! - Clients that do not read: if the waiting request's client [is within its
//!   share](super::shares), a stalled transfer is given up for it.
//!
//! Requests wait in two queues: one for clients within their share, one for clients beyond it. The
//! first queue is served first. With a single queue, a client with a hundred requests would get
//! every connection that is freed for others.

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

/// The connections that a site may have open.
#[derive(Debug)]
pub(super) struct ConnectionLimit {
    pub(super) open: AtomicUsize,
    capacity: usize,
    per_server: usize,
    /// Requests that wait for a permit, on all workers.
    pub(super) waiting: ByShareUse<AtomicUsize>,
    /// Notified when a permit is free, one waiting request at a time.
    pub(super) freed: ByShareUse<Notify>,
    /// Notified when a request begins to wait, and periodically while it waits.
    pub(super) wanted: Notify,
    pub(super) shares: Mutex<Shares>,
    pub(super) start: Instant,
    /// Until this time, clients beyond their share get no connection. In milliseconds since
    /// `start`; zero if no transfer has been given up.
    short_until: AtomicU64,
    /// Until this time, in milliseconds since `start`, no search for a stalled transfer is made,
    /// because the last one found none.
    fruitless_until: AtomicU64,
    /// Until this time, in milliseconds since `start`, requests do not share HTTP/2 connections.
    /// Zero if they always could.
    pub(super) separate_until: AtomicU64,
}

/// The right to open a connection, held as long as the connection is open.
#[derive(Debug)]
pub(super) struct Permit {
    limit: Arc<ConnectionLimit>,
    server: Arc<Server>,
    pub(super) usage: Arc<Usage>,
}

/// The limit that has been reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitReached {
    /// The limit of connections to one server.
    Server,
    /// The limit of connections to all servers of the site.
    Site,
}

/// Pause after a search that found no stalled transfer, in milliseconds.
const FRUITLESS: u64 = 20;

/// How long requests share no HTTP/2 connection after a response that ended one, in milliseconds.
pub(super) const SEPARATE: u64 = 60_000;

/// Maximum number of stalled transfers tried in one search. A chosen transfer can resume before it
/// is given up; after this many, the request waits.
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

    /// Limits each HTTP/2 connection to a single request at a time for [`SEPARATE`] milliseconds,
    /// because a response has ended a connection with all its requests. The next such response then
    /// ends only its own request. This applies to all servers of the site and all workers: a second
    /// attempt goes to another server, which may send the same response.
    pub(super) fn separate_requests(&self) {
        self.separate_until.store(millis(self.start) + SEPARATE, Ordering::Relaxed);
    }

    /// Reports whether each HTTP/2 connection is currently limited to one request at a time.
    pub(super) fn are_requests_separate(&self) -> bool {
        let until = self.separate_until.load(Ordering::Relaxed);
        until != 0 && millis(self.start) <= until
    }

    /// Reports whether a transfer was given up recently, so that clients beyond their share get no
    /// connection.
    pub(super) fn are_short(&self) -> bool {
        let until = self.short_until.load(Ordering::Relaxed);
        if until == 0 {
            return false;
        }
        let is_over = millis(self.start) > until;
        if is_over {
            // Fails if another transfer has been given up meanwhile.
            let _ = self.short_until.compare_exchange(until, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
        !is_over
    }

    /// Reports whether requests of clients within their share are waiting.
    pub(super) fn are_owed(&self) -> bool {
        self.waiting.within.load(Ordering::SeqCst) > 0
    }

    /// Gives up a stalled transfer over which this client's request takes precedence, if there is
    /// one. Returns how long it has stalled, and its server. Its permit becomes free as soon as its
    /// task has run.
    pub(super) fn give_up_for(&self, client: ClientKey, servers: &[&Arc<Server>]) -> Option<(Duration, Arc<Server>)> {
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
            let (usage, stall) = shares.victim(client, self.share_out(servers.len()), now, helps)?;
            // Inside the lock, so that no other request chooses the same transfer. Its client may
            // have resumed just now; then the transfer is no longer a candidate.
            Some(usage.give_up(stall).then_some((usage, stall)))
        };
        let taken = (0..CHOICES).map_while(|_| take()).flatten().next();
        drop(shares);
        let Some((usage, stall)) = taken else {
            self.fruitless_until.store(now + FRUITLESS, Ordering::Relaxed);
            return None;
        };
        usage.wake();
        self.short_until.store(now + STALLED.as_millis() as u64, Ordering::Relaxed);
        Some((stall.lasts(now), Arc::clone(&usage.server)))
    }

    /// Returns the maximum number of connections to `servers` servers together.
    pub(super) fn share_out(&self, servers: usize) -> usize {
        self.per_server.saturating_mul(servers.max(1)).min(self.capacity)
    }
}

impl Permit {
    /// Takes a permit for a connection to this server, on behalf of this client.
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
        // A request is counted as waiting before it looks for a permit, so either it sees the free
        // permit or it is seen here.
        if let Some(first) = self.limit.waiting.first() {
            self.limit.freed.of(first).notify_one();
        }
    }
}

fn take_one(count: &AtomicUsize, capacity: usize) -> bool {
    count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |open| (open < capacity).then_some(open + 1)).is_ok()
}

/// One value for clients within their share and one for clients beyond it.
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
    /// Returns the class of requests to serve first, or `None` if no request waits.
    pub(super) fn first(&self) -> Option<ShareUse> {
        [ShareUse::Within, ShareUse::Beyond]
            .into_iter()
            .find(|share_use| self.of(*share_use).load(Ordering::SeqCst) > 0)
    }
}

/// The waiting requests of one worker.
#[derive(Debug)]
pub(super) struct Demand {
    pub(super) limit: Arc<ConnectionLimit>,
    waiting: ByShareUse<AtomicUsize>,
    /// Requests of `waiting` that only wait; the others are already connecting.
    parked: ByShareUse<AtomicUsize>,
    /// Notified when a connection of this worker becomes free.
    pub(super) returned: ByShareUse<Notify>,
    /// Connections returned to the pool while requests of this worker waited.
    turn: AtomicUsize,
}

/// A waiting request.
#[derive(Debug)]
pub(super) struct QueuedRequest<'d> {
    demand: &'d Demand,
    client: ClientKey,
    pub(super) share_use: ShareUse,
}

/// If requests wait both here and on other workers, one of this many returned connections is closed
/// for the other workers.
const FOR_OTHERS: usize = 8;

impl Demand {
    pub(super) fn new(limit: Arc<ConnectionLimit>) -> Self {
        let (waiting, parked, returned) = Default::default();
        Self { limit, waiting, parked, returned, turn: AtomicUsize::new(0) }
    }

    /// Reports whether a request of this worker already waits. It is served first, unless it is
    /// beyond its client's share and the new request is not.
    pub(super) fn has_parked(&self) -> bool {
        self.has_parked_within() || self.parked.beyond.load(Ordering::Relaxed) > 0
    }

    /// Reports whether a request of this worker waits whose client is within its share.
    pub(super) fn has_parked_within(&self) -> bool {
        self.parked.within.load(Ordering::Relaxed) > 0
    }

    /// Begins to wait, with `servers` servers to choose from.
    pub(super) fn wait(&self, client: ClientKey, servers: usize) -> QueuedRequest<'_> {
        let mut shares = self.limit.shares.lock();
        let share_use = shares.share_use(client, self.limit.share_out(servers), millis(self.limit.start));
        let waiting = QueuedRequest { demand: self, client, share_use };
        waiting.enter(&mut shares);
        waiting
    }

    /// Reports whether another worker should get the permit of a reusable connection.
    pub(super) fn are_others_first(&self) -> bool {
        let Some(first) = self.limit.waiting.first() else { return false };
        let everywhere = self.limit.waiting.of(first).load(Ordering::SeqCst);
        let here = self.waiting.of(first).load(Ordering::SeqCst);
        everywhere > here && (here == 0 || self.turn.fetch_add(1, Ordering::Relaxed) % FOR_OTHERS == FOR_OTHERS - 1)
    }

    /// Notifies a waiting request that the pool has a free connection again.
    pub(super) fn has_returned(&self) {
        if let Some(first) = self.waiting.first() {
            self.returned.of(first).notify_one();
        }
    }
}

impl QueuedRequest<'_> {
    /// Compares the request with its client's share again, with `servers` servers to choose from.
    pub(super) fn review(&mut self, servers: usize) {
        let limit = &self.demand.limit;
        let mut shares = limit.shares.lock();
        self.leave(&mut shares);
        self.share_use = shares.share_use(self.client, limit.share_out(servers), millis(limit.start));
        self.enter(&mut shares);
    }

    /// Reports whether the request may take a free connection.
    pub(super) fn may_take(&self) -> bool {
        let limit = &self.demand.limit;
        self.share_use == ShareUse::Within || !(limit.are_owed() || limit.are_short())
    }

    /// Waits for a connection or a permit.
    pub(super) async fn park<T>(&self, free: impl Future<Output = T>) -> T {
        let parked = self.demand.parked.of(self.share_use);
        parked.fetch_add(1, Ordering::Relaxed);
        let _parked = scopeguard::guard(parked, |parked| {
            parked.fetch_sub(1, Ordering::Relaxed);
        });
        // A request that may not take a connection gains nothing from idle connections of other
        // workers.
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
