//! Which client uses a connection, and whether that client has stalled.
//!
//! Every connection has a [`Usage`]. The task that uses the connection writes it, for nearly every request four words that
//! no other task writes; it is read only when connections run out, to find out [who has the most](super::shares) and whose
//! client has stalled.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;

use super::server::{ConnectionUse, Server};
use crate::exchange::{Peer, StallObserver};

/// The client of a request, as far as connections are shared out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClientKey {
    /// The IPv4 address, or the /64 of an IPv6 address: that is what one client is assigned.
    pub(super) address: u64,
    /// The number of the client's connection; zero where requests of several clients come over it.
    pub(super) connection: u64,
}

impl ClientKey {
    pub(super) fn new(peer: &Peer) -> Self {
        let address = match peer.address.ip().to_canonical() {
            IpAddr::V4(address) => u64::from(u32::from(address)),
            // The two do not meet: what would be the /64 of an IPv4 address is reserved.
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
    /// The place in [`ConnectionUse::ALL`] of what it is used for.
    what: AtomicU8,
    address: AtomicU64,
    connection: AtomicU64,
    /// Since when the client has taken or sent nothing, in milliseconds since `start`, from 1; zero while it moves, and
    /// [`GIVEN_UP`]. One word for all three, so that a stall that has ended is not given up after its end.
    pub(super) stalled: AtomicU64,
    waker: AtomicWaker,
}

/// A value of `stalled`: the connection has been taken from its client.
const GIVEN_UP: u64 = u64::MAX;

/// A stall as it was seen, which may be over.
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
    /// Of a connection that is about to be made for a client.
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

    /// Since when the client has stood still; none while it moves, and once the connection is taken from it.
    pub(super) fn stalled(&self) -> Option<Stall> {
        let since = self.stalled.load(Ordering::Relaxed);
        (since != 0 && since != GIVEN_UP).then_some(Stall { since })
    }

    /// A request begins.
    pub(super) fn begin(&self, client: ClientKey) {
        self.address.store(client.address, Ordering::Relaxed);
        self.connection.store(client.connection, Ordering::Relaxed);
        self.what.store(ConnectionUse::Exchange as u8, Ordering::Relaxed);
        self.moved();
    }

    /// The exchange is over, and the connection kept.
    pub(super) fn rest(&self) {
        self.what.store(ConnectionUse::Idle as u8, Ordering::Relaxed);
        self.moved();
    }

    /// The connection has become a tunnel.
    pub(super) fn tunnel(&self) {
        self.what.store(ConnectionUse::Tunnel as u8, Ordering::Relaxed);
        self.passed();
    }

    /// The client does not go on; the first call after it moved counts.
    pub(super) fn stall(&self) {
        if self.stalled.load(Ordering::Relaxed) == 0 {
            self.stalled.store(millis(self.start), Ordering::Relaxed);
        }
    }

    /// The client has gone on.
    pub(super) fn moved(&self) {
        if self.stalled.load(Ordering::Relaxed) != 0 {
            self.end_stall();
        }
    }

    /// Apart, because nearly no client stalls.
    #[cold]
    fn end_stall(&self) {
        // One that goes on in the last moment keeps what it has.
        self.stalled.store(0, Ordering::Relaxed);
        // An idle connection should not keep the task it was used by.
        drop(self.waker.take());
    }

    /// Something has passed through the tunnel, which is quiet from now on. Its task still waits for more.
    pub(super) fn passed(&self) {
        self.stalled.store(millis(self.start), Ordering::Relaxed);
    }

    /// Takes the connection from a client that has stalled; its task is to be [woken](Self::wake) then. Returns false where
    /// that stall is over by now, and the connection may have another client.
    pub(super) fn give_up(&self, stall: Stall) -> bool {
        self.stalled.compare_exchange(stall.since, GIVEN_UP, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Wakes the task that has stalled.
    pub(super) fn wake(&self) {
        self.waker.wake();
    }

    /// Ready once the connection has been taken from its client, which has stalled.
    pub(super) fn poll_given_up(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.waker.register(cx.waker());
        // After the waker is there: either this sees it, or the waker is called.
        if self.stalled.load(Ordering::SeqCst) == GIVEN_UP { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// As a tunnel: what passes through it is noted where the connection is read and written.
impl StallObserver for Usage {
    fn poll_stalled(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_given_up(cx)
    }

    fn resumed(&self) {
        self.passed();
    }
}

/// Milliseconds since `start`, from 1.
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
        // Between the choice and the deed the client goes on, its answer ends, and the next request begins.
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
        // A transfer that is taken is not taken twice, nor does waiting for longer change it.
        usage.stall();
        assert!(usage.stalled().is_none() && is_given_up(&usage));
        usage.begin(ClientKey::default());
        usage.stall();
        assert!(usage.stalled().is_some() && !is_given_up(&usage));
    }
}
