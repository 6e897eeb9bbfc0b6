//! How many connections may be open, to one server and to a site's servers together, over all workers.
//!
//! A connection has a [`Place`] from before it is made until its socket is closed, idle or not, tunnel or not: that is
//! what a server feels. So the counters are written where a connection opens or closes, never by a request on one that
//! is open.
//!
//! A request for which there is no place waits. An idle connection of another worker must not keep it waiting: workers
//! are told that somebody waits, and give up what they do not use.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::server::Server;

/// The places of a site.
#[derive(Debug)]
pub(super) struct Places {
    open: AtomicUsize,
    capacity: usize,
    per_server: usize,
    /// Requests that wait for a place, on all workers.
    waiting: AtomicUsize,
    freed: Notify,
    wanted: Notify,
}

/// The right to a connection, held as long as it is open.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    server: Arc<Server>,
}

/// What the requests of one worker are waiting for.
#[derive(Debug)]
pub(super) struct Demand {
    places: Arc<Places>,
    waiting: AtomicUsize,
    /// Those of them that do nothing else: who waits may also be connecting by now.
    parked: AtomicUsize,
    returned: Notify,
    /// Connections that came back while somebody here waited.
    turn: AtomicUsize,
}

/// What becomes of a connection whose exchange is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Keep,
    /// Another worker needs its place.
    Close,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// The server has as many connections as it may.
    Server,
    /// All servers together have.
    Site,
}

/// A request that waits.
#[derive(Debug)]
pub(super) struct Waiting<'d>(&'d Demand);

/// Of so many connections that come back while requests wait here and elsewhere, one is closed for those elsewhere.
const FOR_OTHERS: usize = 8;

impl Places {
    pub(super) fn new(capacity: usize, per_server: usize) -> Self {
        Self {
            open: AtomicUsize::new(0),
            capacity,
            per_server,
            waiting: AtomicUsize::new(0),
            freed: Notify::new(),
            wanted: Notify::new(),
        }
    }

    /// Told when somebody starts to wait.
    pub(super) fn wanted(&self) -> Notified<'_> {
        self.wanted.notified()
    }

    /// Told when a place has become free, one waiting request at a time.
    pub(super) fn freed(&self) -> Notified<'_> {
        self.freed.notified()
    }
}

impl Place {
    /// A place for a connection to this server, if there is one.
    pub(super) fn take(places: &Arc<Places>, server: &Arc<Server>) -> Result<Self, Full> {
        if !take_one(server.open(), places.per_server) {
            return Err(Full::Server);
        }
        if !take_one(&places.open, places.capacity) {
            server.open().fetch_sub(1, Ordering::SeqCst);
            return Err(Full::Site);
        }
        Ok(Self { places: Arc::clone(places), server: Arc::clone(server) })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.server.open().fetch_sub(1, Ordering::SeqCst);
        self.places.open.fetch_sub(1, Ordering::SeqCst);
        // Who waits has said so before it looked: either it saw the place, or it is seen here.
        if self.places.waiting.load(Ordering::SeqCst) > 0 {
            self.places.freed.notify_one();
        }
    }
}

impl Demand {
    pub(super) fn new(places: Arc<Places>) -> Self {
        let zero = || AtomicUsize::new(0);
        Self { places, waiting: zero(), parked: zero(), returned: Notify::new(), turn: zero() }
    }

    /// Whether somebody of this worker waits already, and so comes first.
    pub(super) fn has_parked(&self) -> bool {
        self.parked.load(Ordering::Relaxed) > 0
    }

    /// Begins to wait.
    pub(super) fn wait(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        self.places.waiting.fetch_add(1, Ordering::SeqCst);
        self.places.wanted.notify_waiters();
        Waiting(self)
    }

    /// Told when a connection of this worker is free.
    pub(super) fn returned(&self) -> Notified<'_> {
        self.returned.notified()
    }

    /// What to do with a connection that could be used again.
    pub(super) fn fate(&self) -> Fate {
        let everywhere = self.places.waiting.load(Ordering::SeqCst);
        if everywhere == 0 {
            return Fate::Keep;
        }
        let here = self.waiting.load(Ordering::SeqCst);
        let is_for_others = everywhere > here
            && (here == 0 || self.turn.fetch_add(1, Ordering::Relaxed) % FOR_OTHERS == FOR_OTHERS - 1);
        if is_for_others { Fate::Close } else { Fate::Keep }
    }

    /// A connection has been put where the next request finds it.
    pub(super) fn has_returned(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.returned.notify_one();
        }
    }
}

impl Waiting<'_> {
    /// Waits for something to come free.
    pub(super) async fn park<T>(&self, free: impl Future<Output = T>) -> T {
        let _parked = Parked::new(&self.0.parked);
        free.await
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
        self.0.places.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Counted while it exists.
struct Parked<'c>(&'c AtomicUsize);

impl<'c> Parked<'c> {
    fn new(count: &'c AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Parked<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn take_one(count: &AtomicUsize, capacity: usize) -> bool {
    count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |open| (open < capacity).then_some(open + 1)).is_ok()
}
