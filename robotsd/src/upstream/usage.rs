//! Tracks which client uses a connection, and whether that client has stalled.
//!
//! Every connection has a [`Usage`]. The task that uses the connection writes it; for nearly every
//! request, these are four words that no other task writes. It is read only when connections run
//! out, to find out [who has the most](super::shares) and whose client has stalled.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;

use super::server::{ConnectionUse, Server};
use crate::http_common::{Peer, StallObserver};

/// Identifies the client of a request, for sharing out connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClientKey {
    /// The IPv4 address, or the /64 prefix of an IPv6 address, which is what one client is
    /// assigned.
    pub(super) address: u64,
    /// The number of the client's connection; zero if several clients share the connection.
    pub(super) connection: u64,
}

impl ClientKey {
    pub(super) fn new(peer: &Peer) -> Self {
        let address = match peer.address.ip().to_canonical() {
            IpAddr::V4(address) => u64::from(u32::from(address)),
            // The ranges do not overlap: the /64 prefixes with such small numbers are reserved.
            IpAddr::V6(address) => (u128::from(address) >> 64) as u64,
        };
        Self { address, connection: peer.connection.map_or(0, u64::from) }
    }
}

/// The use of one connection.
#[derive(Debug)]
pub(super) struct Usage {
    pub(super) server: Arc<Server>,
    /// The origin of times; the same for all connections of a site.
    start: Instant,
    /// Index in [`ConnectionUse::ALL`] of the current use.
    what: AtomicU8,
    address: AtomicU64,
    connection: AtomicU64,
    /// Since when the client has neither read nor sent data: milliseconds since `start`, plus 1.
    /// Zero while it makes progress, [`GIVEN_UP`] after its connection is taken. A single atomic
    /// holds all three, so that a stall that has ended is not given up.
    pub(super) stalled: AtomicU64,
    waker: AtomicWaker,
}

/// Value of `stalled`: the connection has been taken from its client.
const GIVEN_UP: u64 = u64::MAX;

/// A stall as it was observed, which may have ended since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stall {
    since: u64,
}

impl Stall {
    pub(super) fn lasts(self, now: u64) -> Duration {
        Duration::from_millis(now.saturating_sub(self.since))
    }
}

impl Usage {
    /// Creates the usage of a connection that is about to be opened for a client.
    pub(super) fn new(server: Arc<Server>, start: Instant, client: ClientKey) -> Self {
        Self {
            server,
            start,
            what: AtomicU8::new(ConnectionUse::Exchange as u8),
            address: AtomicU64::new(client.address),
            connection: AtomicU64::new(client.connection),
            stalled: AtomicU64::new(0),
            waker: AtomicWaker::new(),
        }
    }

    pub(super) fn what(&self) -> ConnectionUse {
        let place = usize::from(self.what.load(Ordering::Relaxed));
        ConnectionUse::ALL.get(place).copied().unwrap_or(ConnectionUse::Exchange)
    }

    pub(super) fn client(&self) -> ClientKey {
        ClientKey { address: self.address.load(Ordering::Relaxed), connection: self.connection.load(Ordering::Relaxed) }
    }

    /// Returns the current stall; `None` if the client makes progress, or if the connection was
    /// taken from it.
    pub(super) fn stalled(&self) -> Option<Stall> {
        let since = self.stalled.load(Ordering::Relaxed);
        (since != 0 && since != GIVEN_UP).then_some(Stall { since })
    }

    /// Notes that a request begins.
    pub(super) fn begin(&self, client: ClientKey) {
        self.address.store(client.address, Ordering::Relaxed);
        self.connection.store(client.connection, Ordering::Relaxed);
        self.what.store(ConnectionUse::Exchange as u8, Ordering::Relaxed);
        self.moved();
    }

    /// Notes that the exchange is over and the connection is kept.
    pub(super) fn rest(&self) {
        self.what.store(ConnectionUse::Idle as u8, Ordering::Relaxed);
        self.moved();
    }

    /// Notes that the connection has become a tunnel.
    pub(super) fn tunnel(&self) {
        self.what.store(ConnectionUse::Tunnel as u8, Ordering::Relaxed);
        self.passed();
    }

    /// Notes that the client makes no progress; only the first call after progress counts.
    pub(super) fn stall(&self) {
        if self.stalled.load(Ordering::Relaxed) == 0 {
            self.stalled.store(millis(self.start), Ordering::Relaxed);
        }
    }

    /// Notes that the client has made progress.
    pub(super) fn moved(&self) {
        if self.stalled.load(Ordering::Relaxed) != 0 {
            self.end_stall();
        }
    }

    /// Ends the stall. Kept out of line, because clients rarely stall.
    #[cold]
    fn end_stall(&self) {
        // A client that continues at the last moment keeps its connection.
        self.stalled.store(0, Ordering::Relaxed);
        // An idle connection should not keep the waker of its last task.
        drop(self.waker.take());
    }

    /// Notes that data has passed through the tunnel. A stall begins immediately; its task still
    /// waits for more.
    pub(super) fn passed(&self) {
        self.stalled.store(millis(self.start), Ordering::Relaxed);
    }

    /// Takes the connection from a stalled client; the caller must then [wake](Self::wake) its
    /// task. Returns false if that stall is over; then the connection may already have another
    /// client.
    pub(super) fn give_up(&self, stall: Stall) -> bool {
        self.stalled.compare_exchange(stall.since, GIVEN_UP, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Wakes the stalled task.
    pub(super) fn wake(&self) {
        self.waker.wake();
    }

    /// Polls for the end of the transfer: ready when the connection has been taken from its stalled
    /// client.
    pub(super) fn poll_given_up(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.waker.register(cx.waker());
        // Loaded after the waker is registered: either this load sees the change, or the waker is
        // called.
        if self.stalled.load(Ordering::SeqCst) == GIVEN_UP { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// For tunnels: progress is recorded where the connection is read and written.
impl StallObserver for Usage {
    fn poll_stalled(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_given_up(cx)
    }

    fn resumed(&self) {
        self.passed();
    }
}

/// Returns the milliseconds since `start`, plus 1.
pub(super) fn millis(start: Instant) -> u64 {
    start.elapsed().as_millis() as u64 + 1
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::upstream::endpoint::{HttpVersions, ServerAddress};
    use crate::upstream::server::{Health, HealthPolicy};

    fn usage() -> Usage {
        let start = Instant::now();
        let health = Health::new(HealthPolicy::default(), start);
        Usage::new(
            Arc::new(Server::new(ServerAddress::Loopback(1), None, HttpVersions::Http1, health)),
            start,
            ClientKey::default(),
        )
    }

    fn is_given_up(usage: &Usage) -> bool {
        usage.poll_given_up(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_stall_that_has_ended_takes_nothing_from_the_next_client() {
        let usage = usage();
        usage.stalled.store(1, Ordering::Relaxed);
        let seen = usage.stalled().unwrap();
        // Between choosing the transfer and taking it, the client continues, its answer ends, and
        // the next request begins.
        usage.moved();
        assert!(!usage.give_up(seen));
        usage.rest();
        usage.begin(ClientKey { address: 2, connection: 2 });
        assert!(!usage.give_up(seen));
        usage.stalled.store(5, Ordering::Relaxed);
        assert!(!usage.give_up(seen) && !is_given_up(&usage));
    }

    #[test]
    fn what_was_given_up_ends_with_the_request() {
        let usage = usage();
        usage.stalled.store(1, Ordering::Relaxed);
        assert!(usage.give_up(usage.stalled().unwrap()) && is_given_up(&usage));
        // A transfer is not taken twice, even if the client stalls for longer.
        usage.stall();
        assert!(usage.stalled().is_none() && is_given_up(&usage));
        usage.begin(ClientKey::default());
        usage.stall();
        assert!(usage.stalled().is_some() && !is_given_up(&usage));
    }
}
