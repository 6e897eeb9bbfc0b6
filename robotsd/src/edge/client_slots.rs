//! Limits the number of open connections, and chooses the idle connection to close if a new
//! connection needs a slot.
//!
//! Anyone can open connections and send nothing on them. So if the process-wide limit is reached, a
//! new connection takes the slot of the connection that has been idle for longest, as in nginx.
//! Connections of the same worker as the new connection are considered first, then those of other
//! workers. A connection with a request in progress is never closed for a new connection.
//!
//! Serving a request does not touch the lists of connections. The [`ConnectionState`] of a
//! connection is read only when the limit is reached. A *pass* then examines all connections of a
//! worker, and keeps those that have been idle for longest as candidates (usually a sixteenth of
//! the connections). Each candidate is checked again before its slot is claimed. A connection that
//! becomes idle after the pass has been idle for less time than any candidate, so the candidates
//! remain the best choice.
//!
//! A connection whose slot was claimed closes when its worker next runs the connection's task. If
//! the worker is busy, this may take a while. During this time, claiming more slots would close
//! more connections, but would not free a slot sooner. So each waiting connection claims only one
//! slot. If a request arrives on the claimed connection, that connection stays open, and the
//! waiting connection claims another slot.

use std::pin::pin;
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

use super::connection_state::{ConnectionState, Idleness};
use crate::edge::connection_error::{ConnectionErrorKind, ConnectionErrorReporter};

#[derive(Debug, Default)]
pub(crate) struct WorkerConnections {
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    entries: Vec<Option<Arc<ConnectionState>>>,
    free: Vec<usize>,
    /// Idle connections found by the last pass, indexed by [`Idleness`]. A connection that is
    /// [`Idleness::Slow`] becomes a candidate only after [`HEAD_GRACE`]. In each list, the
    /// connections that have been idle for longest are last.
    candidates: [Vec<SlotCandidate>; 2],
    /// Earliest time of the next pass.
    next_pass: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct SlotCandidate {
    since: Instant,
    entry: usize,
}

/// Registration of an open connection. Dropping the registration removes the connection from its
/// worker's list.
pub(crate) struct RegisteredConnection {
    worker: Arc<WorkerConnections>,
    entry: usize,
}

/// Minimum time that a connection with an incomplete request head keeps its slot. After that time,
/// the connection can lose its slot if no connection is idle. Without this limit, a client could
/// keep a slot for the whole timeout `header_read` by sending one byte. Well-behaved clients send
/// the whole head within this time.
const HEAD_GRACE: Duration = Duration::from_secs(1);

/// Maximum number of candidates that a pass keeps per [`Idleness`], unless a sixteenth of the
/// worker's connections is more.
const BATCH: usize = 64;

/// Pause after a pass that found few candidates, as a multiple of the pass's duration. With this
/// pause, passes use at most a twentieth of a core.
const PASS_SHARE: u32 = 20;

/// Maximum pause after a pass. A longer pause would mean that the pass took very long, probably
/// because its thread was interrupted.
const MAX_PAUSE: Duration = Duration::from_secs(1);

impl WorkerConnections {
    pub(crate) fn add(self: &Arc<Self>, connection: &Arc<ConnectionState>) -> RegisteredConnection {
        let mut open = self.open.lock();
        let entry = open.free.pop().unwrap_or_else(|| {
            open.entries.push(None);
            open.entries.len() - 1
        });
        open.entries[entry] = Some(Arc::clone(connection));
        RegisteredConnection { worker: Arc::clone(self), entry }
    }

    fn reclaim(&self, idleness: Idleness) -> Option<SlotClaim> {
        let mut open = self.open.lock();
        let now = Instant::now();
        loop {
            while let Some(SlotCandidate { since, entry }) = open.candidates[idleness as usize].pop() {
                // A request may have arrived on the connection since the pass, or another waiter
                // may have claimed the slot.
                let unchanged =
                    open.entries[entry].as_ref().filter(|connection| connection.idle() == Some((idleness, since)));
                if let Some(connection) = unchanged.filter(|connection| connection.reclaim(idleness)) {
                    let idle = now.saturating_duration_since(since);
                    return Some(SlotClaim { connection: Arc::clone(connection), made: now, idle });
                }
            }
            if open.next_pass.is_some_and(|next| now < next) {
                return None;
            }
            open.pass(now);
        }
    }
}

impl OpenConnections {
    fn pass(&mut self, now: Instant) {
        self.candidates.iter_mut().for_each(Vec::clear);
        for (entry, connection) in self.entries.iter().enumerate() {
            if let Some((idleness, since)) = connection.as_ref().and_then(|connection| connection.idle())
                && (idleness == Idleness::Idle || now.saturating_duration_since(since) >= HEAD_GRACE)
            {
                self.candidates[idleness as usize].push(SlotCandidate { since, entry });
            }
        }
        let few = self.candidates[Idleness::Idle as usize].len() < BATCH;
        let most = BATCH.max(self.entries.len() / 16);
        self.candidates.iter_mut().for_each(|candidates| keep_oldest(candidates, most));
        let pause = if few { (now.elapsed() * PASS_SHARE).min(MAX_PAUSE) } else { Duration::ZERO };
        // `next_pass` must be later than `now`: otherwise, the caller, which retries immediately,
        // would start another pass.
        self.next_pass = Some(now + pause.max(Duration::from_micros(1)));
    }
}

/// Keeps the `most` connections that have been idle for longest. Sorts them by idle time, with the
/// longest idle time last.
fn keep_oldest(candidates: &mut Vec<SlotCandidate>, most: usize) {
    if candidates.len() > most {
        candidates.select_nth_unstable_by_key(most, |candidate| candidate.since);
        candidates.truncate(most);
        candidates.shrink_to_fit();
    }
    candidates.sort_unstable_by_key(|candidate| std::cmp::Reverse(candidate.since));
}

impl Drop for RegisteredConnection {
    fn drop(&mut self) {
        let mut open = self.worker.open.lock();
        if let Some(connection) = open.entries[self.entry].take() {
            connection.has_ended.set(true);
        }
        open.free.push(self.entry);
    }
}

/// A claim on the slot of an open connection. The slot becomes free when the connection closes.
#[derive(Debug)]
pub(crate) struct SlotClaim {
    connection: Arc<ConnectionState>,
    made: Instant,
    pub(crate) idle: Duration,
}

#[derive(Debug, Default)]
struct SlotClaims {
    waiters: usize,
    claims: Vec<SlotClaim>,
    /// Maximum number of claims if there is one waiter. Each additional waiter allows one more
    /// claim.
    at_once: usize,
}

/// A new connection that waits for a slot. Dropping this value ends the waiting.
struct SlotWaiter<'c>(&'c Mutex<SlotClaims>);

/// Maximum number of slots that one waiter claims if requests keep arriving on claimed connections.
const MAX_CLAIMS: usize = 32;

/// Maximum age of a claim. If the claimed connection has not closed by then, the waiter may claim
/// the slot of another connection.
const MAX_CLAIM_AGE: Duration = Duration::from_secs(5);

impl<'c> SlotWaiter<'c> {
    fn new(claims: &'c Mutex<SlotClaims>) -> Self {
        claims.lock().waiters += 1;
        Self(claims)
    }

    /// Calls `reclaim` for more claims, up to their maximum number. Returns `false` if there is no
    /// claim and `reclaim` finds no slot.
    fn claim(&self, mut reclaim: impl FnMut() -> Option<SlotClaim>) -> bool {
        let mut outstanding = self.0.lock();
        let SlotClaims { waiters, claims, at_once } = &mut *outstanding;
        let (mut came, mut declined) = (false, false);
        claims.retain(|claim| {
            let has_ended = claim.connection.has_ended.is_set();
            came |= has_ended;
            let is_open = !has_ended && claim.connection.is_reclaimed();
            declined |= !has_ended && !is_open;
            is_open && claim.made.elapsed() < MAX_CLAIM_AGE
        });
        *at_once = match (came, declined) {
            (false, false) => (*at_once).max(1),
            (_, true) => (*at_once * 2).clamp(1, MAX_CLAIMS),
            (true, false) => 1,
        };
        while claims.len() + 1 < *waiters + *at_once {
            match reclaim() {
                Some(claim) => claims.push(claim),
                None => return !claims.is_empty(),
            }
        }
        true
    }
}

impl Drop for SlotWaiter<'_> {
    fn drop(&mut self) {
        self.0.lock().waiters -= 1;
    }
}

/// The slots for the connections of the whole process. If each listener or thread had its own
/// slots, one listener could have no free slot while another listener has many.
pub(crate) struct ClientSlots {
    pub(crate) slots: Arc<Semaphore>,
    workers: Mutex<Vec<(ThreadId, Arc<WorkerConnections>)>>,
    claims: Mutex<SlotClaims>,
}

/// Interval between two attempts of a waiter to claim further slots.
pub(crate) const CLAIM_AGAIN: Duration = Duration::from_millis(10);

impl ClientSlots {
    pub(crate) fn new(connections: usize) -> Self {
        Self { slots: Arc::new(Semaphore::new(connections)), workers: Mutex::default(), claims: Mutex::default() }
    }

    /// Returns the list of the current thread's connections, and creates it on the first call.
    pub(crate) fn current_worker(&self) -> Arc<WorkerConnections> {
        let thread = std::thread::current().id();
        let mut shards = self.workers.lock();
        if let Some((_, shard)) = shards.iter().find(|(of, _)| *of == thread) {
            return Arc::clone(shard);
        }
        let shard = Arc::<WorkerConnections>::default();
        shards.push((thread, Arc::clone(&shard)));
        shard
    }

    pub(crate) fn open(&self) -> usize {
        let all = self.workers.lock().clone();
        let open = |worker: &WorkerConnections| {
            let open = worker.open.lock();
            open.entries.len() - open.free.len()
        };
        all.iter().map(|(_, worker)| open(worker)).sum()
    }

    /// Claims the slot of an idle connection of the worker `own`: the connection that has been idle
    /// for longest. If `own` has no idle connection, claims a slot from another worker. Returns
    /// `None` if no connection is idle.
    fn reclaim(&self, own: &Arc<WorkerConnections>) -> Option<SlotClaim> {
        let all = self.workers.lock().clone();
        let others = || all.iter().map(|(_, shard)| shard).filter(|shard| !Arc::ptr_eq(shard, own));
        let reclaim = |idleness| std::iter::once(own).chain(others()).find_map(|shard| shard.reclaim(idleness));
        reclaim(Idleness::Idle).or_else(|| reclaim(Idleness::Slow))
    }

    pub(crate) fn try_acquire(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.slots).try_acquire_owned().ok()
    }

    /// Waits for a slot. Closes idle connections to free a slot, beginning with the connections of
    /// the worker `own`.
    pub(crate) async fn acquire(
        &self,
        own: &Arc<WorkerConnections>,
        reporter: &ConnectionErrorReporter,
    ) -> OwnedSemaphorePermit {
        if let Some(slot) = self.try_acquire() {
            return slot;
        }
        let mut acquiring = pin!(Arc::clone(&self.slots).acquire_owned());
        let waiter = SlotWaiter::new(&self.claims);
        let mut is_first = true;
        loop {
            let is_full = !waiter.claim(|| {
                let claim = self.reclaim(own)?;
                reporter.report(
                    ConnectionErrorKind::Recycled,
                    None,
                    &format_args!(
                        "the limit of open connections is reached: a connection that was idle for {:.1?} was closed, \
                         so that a new one could be accepted",
                        claim.idle
                    ),
                );
                Some(claim)
            });
            if is_full && is_first {
                reporter.report(
                    ConnectionErrorKind::Full,
                    None,
                    &"the limit of open connections is reached and none is idle: new connections wait for a slot",
                );
            }
            is_first = false;
            tokio::select! {
                biased;
                Ok(slot) = &mut acquiring => return slot,
                () = sleep(CLAIM_AGAIN) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::connection::settings::EdgeLimits;

    fn connection() -> Arc<ConnectionState> {
        Arc::new(ConnectionState::new(&EdgeLimits::default()))
    }

    /// Waits until the connections' clock, which counts microseconds, has advanced.
    fn later() {
        std::thread::sleep(Duration::from_millis(2));
    }

    /// Creates idle connections. The first of the returned connections has been idle for longest.
    fn connections(
        shard: &Arc<WorkerConnections>,
        count: usize,
    ) -> (Vec<Arc<ConnectionState>>, Vec<RegisteredConnection>) {
        let open = |_| {
            later();
            let activity = connection();
            let registered = shard.add(&activity);
            (activity, registered)
        };
        (0..count).map(open).unzip()
    }

    fn left(all: &[Arc<ConnectionState>]) -> Vec<usize> {
        all.iter().enumerate().filter(|(_, activity)| activity.is_reclaimed()).map(|(number, _)| number).collect()
    }

    #[test]
    fn the_connection_that_was_idle_longest_is_closed_first() {
        let registry = ClientSlots::new(0);
        let shard = registry.current_worker();
        let (all, mut registered) = connections(&shard, 2 * BATCH);
        for expected in 1..=BATCH {
            assert!(registry.reclaim(&shard).is_some());
            assert_eq!(left(&all), (0..expected).collect::<Vec<_>>());
        }
        // Some connections end, and new connections take their places in the worker's list.
        registered.drain(BATCH..BATCH + 3);
        let (later, _later) = connections(&shard, 3);
        for expected in BATCH + 3..2 * BATCH {
            assert!(registry.reclaim(&shard).is_some());
            assert_eq!(left(&all).len(), expected - 2);
            assert!(all[expected].is_reclaimed());
        }
        assert!(left(&later).is_empty());
        drop(registered);
        for expected in 1..=3 {
            while registry.reclaim(&shard).is_none() {}
            assert_eq!(left(&later), (0..expected).collect::<Vec<_>>());
        }
        assert!(registry.reclaim(&shard).is_none());
    }

    #[test]
    fn busy_connections_stay_open_and_recently_busy_ones_are_closed_last() {
        let registry = ClientSlots::new(0);
        let shard = registry.current_worker();
        let (all, _registered) = connections(&shard, 4);
        let busy = all[0].begin(false);
        let was_busy = all[1].begin(false);
        later();
        drop(was_busy);
        for expected in [&[2][..], &[2, 3], &[1, 2, 3]] {
            assert!(registry.reclaim(&shard).is_some());
            assert_eq!(left(&all), expected);
        }
        later();
        assert!(registry.reclaim(&shard).is_none(), "only a connection with a request in progress is left");
        drop(busy);
        while registry.reclaim(&shard).is_none() {}
        assert!(all[0].is_reclaimed());
    }

    #[test]
    fn a_connection_that_is_used_again_is_not_closed() {
        let registry = ClientSlots::new(0);
        let shard = registry.current_worker();
        let (all, _registered) = connections(&shard, 1);
        assert!(registry.reclaim(&shard).is_some());
        assert!(all[0].is_reclaimed());
        let exchange = all[0].begin(false);
        assert!(!all[0].is_reclaimed());
        later();
        drop(exchange);
        assert!(!all[0].is_reclaimed());
    }

    #[test]
    fn connections_with_slow_heads_are_closed_if_no_connection_is_idle() {
        let registry = ClientSlots::new(0);
        let shard = registry.current_worker();
        let (all, _registered) = connections(&shard, 2);
        let begun = Instant::now();
        all[0].bytes_read();
        assert!(registry.reclaim(&shard).is_some());
        assert_eq!(left(&all), [1]);
        while registry.reclaim(&shard).is_none() {
            std::thread::yield_now();
        }
        assert!(begun.elapsed() > HEAD_GRACE / 2, "a head has a while");
        assert_eq!(left(&all), [0, 1]);
    }

    #[test]
    fn a_connection_of_another_worker_is_closed_if_the_own_worker_has_no_idle_one() {
        let registry = ClientSlots::new(0);
        let own = registry.current_worker();
        let other = std::thread::scope(|scope| scope.spawn(|| registry.current_worker()).join().unwrap());
        assert!(!Arc::ptr_eq(&own, &other));
        let (older, _older) = connections(&other, 1);
        let (all, _all) = connections(&own, 1);
        assert!(registry.reclaim(&own).is_some());
        assert_eq!((left(&all), left(&older).len()), (vec![0], 0));
        while registry.reclaim(&own).is_none() {}
        assert_eq!(left(&older), [0]);
    }
}
