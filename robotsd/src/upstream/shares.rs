//! Which client gets a connection, and which client loses one, when all are in use; and how many each client has.
//!
//! These rules apply only when no connection is left:
//!
//! 1. An equal share is the number of connections there may be, divided by the clients that use any or wait for one within
//!    their share, and the one that asks: were those that wait not counted, a client would take again at once what was
//!    freed for them. Clients are counted twice: by connection, unless a trusted proxy sends requests of several clients over it, and by
//!    address. A client has more than its share where either count says so.
//! 2. A request of a client that, this one and those that wait included, stays within its share comes before all requests
//!    that do not.
//! 3. For such a request a transfer is given up whose client has stalled: of clients beyond their share by both counts
//!    first, then by one of them; of those, the one that has stalled for longest, and not before [`STALLED`]. Next come
//!    tunnels through which nothing has passed for [`LONG`], of addresses beyond their share. If no client beyond its
//!    share has stalled at all, it is the client that has stalled for longest, and not before [`LONG`].
//! 4. For [`STALLED`] after that, clients beyond their share get no further connection: else they would take up at once
//!    what was freed for others.
//!
//! A transfer whose client is seen to move is not given up, nor is a request that waits for its upstream. Those who write to
//! clients say what they see: see `edge::connection` and `exchange::idle_timeout`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::server::{ConnectionUse, Server};
use super::usage::{ClientKey, Stall, Usage};

/// After so long without taking anything a client beyond its share has stalled. One that reads 32 KB a second is seen
/// to move within that: every 64 KiB, see `edge::connection::watched_socket`. Requests wait for three seconds by
/// default.
pub(super) const STALLED: Duration = Duration::from_secs(2);

/// After so long, any client has.
pub(super) const LONG: Duration = Duration::from_secs(5);

/// For so many milliseconds the connections need not be counted again.
const FRESH: u64 = 10;

/// Whether a request may have a connection that others ask for too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Its client stays within its share.
    Within,
    /// Its client has more already.
    Beyond,
}

/// The connections of a site, and how many of them each client has.
#[derive(Debug, Default)]
pub(super) struct Shares {
    usages: Vec<Arc<Usage>>,
    /// When they were counted, in milliseconds.
    counted: u64,
    in_use: ClientCounts,
    /// Requests that wait and are within their share.
    waiting: ClientCounts,
}

/// A transfer that may be given up; the largest goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct VictimRank {
    /// By how many counts its client is beyond its share, twice; and one more for what is no tunnel.
    excess: u8,
    stalled: Duration,
}

impl Shares {
    pub(super) fn add(&mut self, usage: Arc<Usage>) {
        self.usages.push(usage);
    }

    pub(super) fn remove(&mut self, usage: &Arc<Usage>) {
        if let Some(at) = self.usages.iter().position(|other| Arc::ptr_eq(other, usage)) {
            self.usages.swap_remove(at);
        }
    }

    /// How many connections to this server there are, by use.
    pub(super) fn uses(&self, server: &Arc<Server>) -> Vec<(ConnectionUse, usize)> {
        let of_server = || self.usages.iter().filter(|usage| Arc::ptr_eq(&usage.server, server));
        let count = |what| (what, of_server().filter(|usage| usage.what() == what).count());
        ConnectionUse::ALL.map(count).into()
    }

    /// The standing of a request that asks for one more connection of `capacity`.
    pub(super) fn standing(&mut self, client: ClientKey, capacity: usize, now: u64) -> Standing {
        self.count(now);
        let is_beyond = |side| {
            let wanted = self.in_use.of(side, client) + self.waiting.of(side, client) + 1;
            let clients = self.clients(side, client);
            // One is always within, and so is the only client.
            wanted > 1 && clients > 1 && wanted * clients > capacity
        };
        if ClientCounts::SIDES.into_iter().any(is_beyond) { Standing::Beyond } else { Standing::Within }
    }

    pub(super) fn wait(&mut self, client: ClientKey) {
        self.waiting.add(client);
    }

    pub(super) fn stop_waiting(&mut self, client: ClientKey) {
        self.waiting.remove(client);
    }

    /// The transfer to give up for a request of `client`, of those on servers that `helps` says would do, and the stall of
    /// its client. None also where a connection is about to be freed without.
    pub(super) fn victim(
        &mut self,
        client: ClientKey,
        capacity: usize,
        now: u64,
        helps: impl Fn(&Arc<Server>) -> bool,
    ) -> Option<(Arc<Usage>, Stall)> {
        self.counted = 0;
        self.count(now);
        let mut first: Option<(VictimRank, Stall, &Arc<Usage>)> = None;
        let mut has_stalled_beyond = false;
        for usage in &self.usages {
            let what = usage.what();
            if what == ConnectionUse::Idle {
                if helps(&usage.server) {
                    return None;
                }
                continue;
            }
            let Some(stall) = usage.stalled() else { continue };
            let stalled = stall.lasts(now);
            let owner = usage.client();
            let [address, connection] =
                ClientCounts::SIDES.map(|side| self.in_use.of(side, owner) * self.clients(side, client) > capacity);
            let excess = u8::from(address) + u8::from(connection);
            let is_tunnel = what == ConnectionUse::Tunnel;
            let (due, excess) = match excess {
                _ if is_tunnel && !address => continue,
                _ if is_tunnel => (LONG, 1),
                0 => (LONG, 0),
                excess => (STALLED, excess * 2),
            };
            has_stalled_beyond |= excess > 0 && !is_tunnel;
            let rank = VictimRank { excess, stalled };
            if stalled >= due && first.is_none_or(|(before, ..)| before < rank) && helps(&usage.server) {
                first = Some((rank, stall, usage));
            }
        }
        let (rank, stall, usage) = first?;
        // A client within its share keeps its connection while one beyond its share is about to be due.
        if rank.excess == 0 && has_stalled_beyond {
            return None;
        }
        Some((Arc::clone(usage), stall))
    }

    /// Among how many clients the connections are shared, the one that asks included.
    fn clients(&self, side: CountedBy, asking: ClientKey) -> usize {
        let in_use = self.in_use.keys(side);
        let only_waiting = |key: &&u64| **key != side.key(asking) && !in_use.contains_key(*key);
        let is_asking =
            in_use.contains_key(&side.key(asking)) || side.key(asking) == SHARED && side == CountedBy::Connection;
        in_use.len() + self.waiting.keys(side).keys().filter(only_waiting).count() + usize::from(!is_asking)
    }

    fn count(&mut self, now: u64) {
        if self.counted != 0 && now < self.counted + FRESH {
            return;
        }
        self.counted = now;
        self.in_use.clear();
        for usage in self.usages.iter().filter(|usage| usage.what() != ConnectionUse::Idle) {
            self.in_use.add(usage.client());
        }
    }
}

/// How many each client has.
#[derive(Debug, Default)]
pub(super) struct ClientCounts {
    addresses: HashMap<u64, usize>,
    connections: HashMap<u64, usize>,
}

/// The key by which clients are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountedBy {
    Address,
    Connection,
}

/// The number of a connection over which a trusted proxy sends requests of several clients: it counts for none of them.
const SHARED: u64 = 0;

impl CountedBy {
    pub(super) const fn key(self, client: ClientKey) -> u64 {
        match self {
            Self::Address => client.address,
            Self::Connection => client.connection,
        }
    }
}

impl ClientCounts {
    pub(super) const SIDES: [CountedBy; 2] = [CountedBy::Address, CountedBy::Connection];

    pub(super) fn of(&self, side: CountedBy, client: ClientKey) -> usize {
        self.keys(side).get(&side.key(client)).copied().unwrap_or(0)
    }

    /// How many each has, by what a side knows them by.
    pub(super) fn keys(&self, side: CountedBy) -> &HashMap<u64, usize> {
        match side {
            CountedBy::Address => &self.addresses,
            CountedBy::Connection => &self.connections,
        }
    }

    pub(super) fn add(&mut self, client: ClientKey) {
        *self.addresses.entry(client.address).or_default() += 1;
        if client.connection != SHARED {
            *self.connections.entry(client.connection).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, client: ClientKey) {
        for (counts, key) in [(&mut self.addresses, client.address), (&mut self.connections, client.connection)] {
            if let Some(count) = counts.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&key);
                }
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.addresses.clear();
        self.connections.clear();
    }
}

#[cfg(test)]
mod tests;
