//! Records which client uses a connection, and whether this client has stalled.
//!
//! Every connection has a [`Usage`]. The task that uses the connection updates this value. If no
//! connection is free, other tasks read the value to find out [which client has the most
//! connections](super::shares) and which clients have stalled.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;

use super::server::{ConnectionUse, Server};
use crate::http_common::{Peer, StallObserver};

/// Identifies the client of a request, for the fair shares of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClientKey {
    /// The IPv4 address, or the /64 prefix of an IPv6 address, because an IPv6 client usually has a
    /// whole /64.
    pub(super) address: u64,
    /// The number of the client's connection to robotsd, or zero if several clients share the
    /// connection.
    pub(super) connection: u64,
}

impl ClientKey {
    pub(super) fn new(peer: &Peer) -> Self {
        let address = match peer.address.ip().to_canonical() {
            IpAddr::V4(address) => u64::from(u32::from(address)),
            // The value of a /64 prefix never equals the value of an IPv4 address, because IPv6
            // prefixes below 2^32 are reserved.
            IpAddr::V6(address) => (u128::from(address) >> 64) as u64,
        };
        Self { address, connection: peer.connection.map_or(0, u64::from) }
    }
}

#[derive(Debug)]
pub(super) struct Usage {
    pub(super) server: Arc<Server>,
    /// Reference point of all times in milliseconds. All connections of a site have the same
    /// reference point.
    start: Instant,
    /// Index in [`ConnectionUse::ALL`] of the current use.
    what: AtomicU8,
    address: AtomicU64,
    connection: AtomicU64,
    /// Time when the client stopped reading and sending data, in milliseconds since `start`, plus
    /// one. Zero while the client makes progress; [`GIVEN_UP`] once its transfer is aborted. One
    /// atomic holds all of these states, so that a transfer whose stall has just ended cannot be
    /// aborted.
    pub(super) stalled: AtomicU64,
    waker: AtomicWaker,
}

/// Value of `stalled` for a transfer that has been aborted.
const GIVEN_UP: u64 = u64::MAX;

/// An observed stall of a client. The stall may have ended in the meantime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stall {
    since: u64,
}

impl Stall {
    pub(super) fn duration(self, now: u64) -> Duration {
        Duration::from_millis(now.saturating_sub(self.since))
    }
}

impl Usage {
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

    /// Returns the current stall, or `None` if the client makes progress or its transfer was
    /// aborted.
    pub(super) fn stalled(&self) -> Option<Stall> {
        let since = self.stalled.load(Ordering::Relaxed);
        (since != 0 && since != GIVEN_UP).then_some(Stall { since })
    }

    pub(super) fn begin(&self, client: ClientKey) {
        self.address.store(client.address, Ordering::Relaxed);
        self.connection.store(client.connection, Ordering::Relaxed);
        self.what.store(ConnectionUse::Exchange as u8, Ordering::Relaxed);
        self.moved();
    }

    /// Records that the exchange has ended and the connection is idle.
    pub(super) fn rest(&self) {
        self.what.store(ConnectionUse::Idle as u8, Ordering::Relaxed);
        self.moved();
    }

    pub(super) fn tunnel(&self) {
        self.what.store(ConnectionUse::Tunnel as u8, Ordering::Relaxed);
        self.passed();
    }

    /// Records that the client makes no progress. If the client was already stalled, the stall
    /// continues.
    pub(super) fn stall(&self) {
        if self.stalled.load(Ordering::Relaxed) == 0 {
            self.stalled.store(millis(self.start), Ordering::Relaxed);
        }
    }

    pub(super) fn moved(&self) {
        if self.stalled.load(Ordering::Relaxed) != 0 {
            self.end_stall();
        }
    }

    /// Ends the stall. The function is not inlined, because clients rarely stall.
    #[cold]
    fn end_stall(&self) {
        // May overwrite `GIVEN_UP`: if the client resumes before the task notices the abort, the
        // transfer continues.
        self.stalled.store(0, Ordering::Relaxed);
        // The waker is not needed any more, and an idle connection should not keep its task alive.
        drop(self.waker.take());
    }

    /// Records that data has passed through a tunnel. The next stall starts immediately, because a
    /// tunnel always waits for more data.
    pub(super) fn passed(&self) {
        self.stalled.store(millis(self.start), Ordering::Relaxed);
    }

    /// Aborts the transfer of a stalled client. The caller must then [wake](Self::wake) the
    /// transfer's task. Returns false if the stall is over; the connection may already serve
    /// another client.
    pub(super) fn abort_transfer(&self, stall: Stall) -> bool {
        self.stalled.compare_exchange(stall.since, GIVEN_UP, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    pub(super) fn wake(&self) {
        self.waker.wake();
    }

    pub(super) fn poll_aborted(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.waker.register(cx.waker());
        // The waker is registered before the value is loaded: if the transfer is aborted in
        // between, either this load returns `GIVEN_UP`, or the waker is called.
        if self.stalled.load(Ordering::SeqCst) == GIVEN_UP { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// This implementation is used for tunnels. `poll_stalled` need not record a stall, because
/// `passed` does so at every read and write of a tunnel.
impl StallObserver for Usage {
    fn poll_stalled(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_aborted(cx)
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
        usage.poll_aborted(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_stall_that_has_ended_does_not_abort_the_next_request() {
        let usage = usage();
        usage.stalled.store(1, Ordering::Relaxed);
        let seen = usage.stalled().unwrap();
        // The chosen transfer ends before it can be aborted, and the next request begins.
        usage.moved();
        assert!(!usage.abort_transfer(seen));
        usage.rest();
        usage.begin(ClientKey { address: 2, connection: 2 });
        assert!(!usage.abort_transfer(seen));
        usage.stalled.store(5, Ordering::Relaxed);
        assert!(!usage.abort_transfer(seen) && !is_given_up(&usage));
    }

    #[test]
    fn an_abort_applies_only_to_the_current_request_of_a_connection() {
        let usage = usage();
        usage.stalled.store(1, Ordering::Relaxed);
        assert!(usage.abort_transfer(usage.stalled().unwrap()) && is_given_up(&usage));
        // A transfer cannot be aborted a second time, however long its client stalls.
        usage.stall();
        assert!(usage.stalled().is_none() && is_given_up(&usage));
        usage.begin(ClientKey::default());
        usage.stall();
        assert!(usage.stalled().is_some() && !is_given_up(&usage));
    }
}
