//! The requests of one worker that wait for a connection.
//!
//! They wait in two queues, of clients within their share and of clients beyond it; the first queue is served first. In
//! one queue, a client with a hundred requests would be given every connection that is freed for others.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use super::connection_limit::{ByStanding, ConnectionLimit};
use super::shares::{Shares, Standing};
use super::usage::{ClientKey, millis};

/// The waiting requests of one worker.
#[derive(Debug)]
pub(super) struct Demand {
    limit: Arc<ConnectionLimit>,
    waiting: ByStanding<AtomicUsize>,
    /// Those of them that only wait; the others are connecting by now.
    parked: ByStanding<AtomicUsize>,
    /// Notified when a connection of this worker is free.
    pub(super) returned: ByStanding<Notify>,
    /// Connections that came back while requests of this worker waited.
    turn: AtomicUsize,
}

/// A request that waits.
#[derive(Debug)]
pub(super) struct QueuedRequest<'d> {
    demand: &'d Demand,
    client: ClientKey,
    pub(super) standing: Standing,
}

/// Of so many connections that come back while requests wait here and elsewhere, one is closed for those elsewhere.
const FOR_OTHERS: usize = 8;

impl Demand {
    pub(super) fn new(limit: Arc<ConnectionLimit>) -> Self {
        let (waiting, parked, returned) = Default::default();
        Self { limit, waiting, parked, returned, turn: AtomicUsize::new(0) }
    }

    /// Whether a request of this worker waits already. It comes first, unless the new one is within its client's share and it
    /// is not.
    pub(super) fn has_parked(&self) -> bool {
        self.has_parked_within() || self.parked.beyond.load(Ordering::Relaxed) > 0
    }

    /// Whether a request of this worker waits whose client stays within its share.
    pub(super) fn has_parked_within(&self) -> bool {
        self.parked.within.load(Ordering::Relaxed) > 0
    }

    /// Begins to wait, with so many servers to choose from.
    pub(super) fn wait(&self, client: ClientKey, servers: usize) -> QueuedRequest<'_> {
        let mut shares = self.limit.shares();
        let standing = shares.standing(client, self.limit.share_out(servers), millis(self.limit.start));
        let waiting = QueuedRequest { demand: self, client, standing };
        waiting.enter(&mut shares);
        waiting
    }

    /// Whether another worker needs the permit of a connection that could be used again.
    pub(super) fn are_others_first(&self) -> bool {
        let Some(first) = self.limit.waiting.first() else { return false };
        let everywhere = self.limit.waiting.of(first).load(Ordering::SeqCst);
        let here = self.waiting.of(first).load(Ordering::SeqCst);
        everywhere > here && (here == 0 || self.turn.fetch_add(1, Ordering::Relaxed) % FOR_OTHERS == FOR_OTHERS - 1)
    }

    /// A connection is back in the pool.
    pub(super) fn has_returned(&self) {
        if let Some(first) = self.waiting.first() {
            self.returned.of(first).notify_one();
        }
    }
}

impl QueuedRequest<'_> {
    /// Compares the request with its client's share again, with so many servers to choose from.
    pub(super) fn review(&mut self, servers: usize) {
        let limit = &self.demand.limit;
        let mut shares = limit.shares();
        self.leave(&mut shares);
        self.standing = shares.standing(self.client, limit.share_out(servers), millis(limit.start));
        self.enter(&mut shares);
    }

    /// Whether a connection that is free may be taken.
    pub(super) fn may_take(&self) -> bool {
        let limit = &self.demand.limit;
        self.standing == Standing::Within || !(limit.are_owed() || limit.are_short())
    }

    /// Waits for a connection or a permit.
    pub(super) async fn park<T>(&self, free: impl Future<Output = T>) -> T {
        let _parked = ParkedCount::new(self.demand.parked.of(self.standing));
        // A request that may take no connection gains nothing from idle connections of other workers.
        if self.may_take() {
            self.demand.limit.wanted.notify_waiters();
        }
        free.await
    }

    fn enter(&self, shares: &mut Shares) {
        self.demand.waiting.add(self.standing);
        self.demand.limit.waiting.add(self.standing);
        if self.standing == Standing::Within {
            shares.wait(self.client);
        }
    }

    fn leave(&self, shares: &mut Shares) {
        self.demand.waiting.remove(self.standing);
        self.demand.limit.waiting.remove(self.standing);
        if self.standing == Standing::Within {
            shares.stop_waiting(self.client);
        }
    }
}

impl Drop for QueuedRequest<'_> {
    fn drop(&mut self) {
        self.leave(&mut self.demand.limit.shares());
    }
}

/// Counted while it exists.
struct ParkedCount<'c>(&'c AtomicUsize);

impl<'c> ParkedCount<'c> {
    fn new(count: &'c AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for ParkedCount<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
