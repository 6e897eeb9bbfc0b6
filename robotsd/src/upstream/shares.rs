//! Decides which client gets a connection, and which client loses one, when all connections are in
//! use.
//!
//! 1. An equal share is the maximum number of connections divided by the number of clients. A
//!    client counts if it uses a connection, waits for a connection within its share, or asks for a
//!    connection now. Waiting clients must count: otherwise a new client would immediately get a
//!    connection that was freed for a waiting client. The connections that a client uses are
//!    counted twice: by its address, and by its connection to robotsd. The count by connection does
//!    not apply if a trusted proxy multiplexes several clients over the connection. A client
//!    exceeds its share if its count by address or its count by connection is higher than the
//!    share.
//! 2. A request is within its client's share if the client would not exceed its share with this
//!    request and the client's other waiting requests. A request within its client's share takes
//!    precedence over all requests that are beyond their clients' shares.
//! 3. For a request within its client's share, one transfer whose client has stalled is aborted.
//!    The first candidates are clients that have stalled for [`STALLED`] and exceed their share by
//!    address and by connection. Next are clients that have stalled for [`STALLED`] and exceed
//!    their share by only one of these counts. Next are tunnels that had no traffic for [`LONG`]
//!    and whose clients exceed their share by address. The last candidates are clients within their
//!    share that have stalled for [`LONG`], unless any client beyond its share has stalled. Among
//!    equal candidates, the longest stall is chosen.
//! 4. After a transfer was aborted, clients beyond their share get no new connection for
//!    [`STALLED`]. Otherwise, these clients would immediately get the connection that was freed for
//!    a client within its share.
//!
//! A transfer whose client makes progress is never aborted, and neither is a request that waits for
//! its upstream. Progress is reported by the code that writes to clients (`edge::connection`,
//! `http_common::idle_timeout`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::server::{ConnectionUse, Server};
use super::usage::{ClientKey, Stall, Usage};

/// Time without reading until a client beyond its share counts as stalled. A client that reads 33
/// KB per second is not stalled, because progress is visible every 64 KiB (see
/// `edge::connection::watched_socket`). Must be shorter than the time limit of waiting requests (by
/// default, three seconds).
pub(super) const STALLED: Duration = Duration::from_secs(2);

/// Time without reading until a client within its share counts as stalled.
pub(super) const LONG: Duration = Duration::from_secs(5);

/// Minimum time between two counts of the connections, in milliseconds.
const FRESH: u64 = 10;

/// Whether the client of a request is within its share. Requests of clients within their share are
/// served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShareUse {
    Within,
    Beyond,
}

#[derive(Debug, Default)]
pub(super) struct Shares {
    usages: Vec<Arc<Usage>>,
    /// Time when the connections were last counted, in milliseconds.
    counted: u64,
    in_use: ClientCounts,
    /// Number of waiting requests per client, without requests beyond the client's share.
    waiting: ClientCounts,
}

/// Rank of a transfer that may be aborted. The transfer with the highest rank is aborted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct VictimRank {
    /// 4 if the client exceeds its share by address and by connection, 2 if by only one of them, 1
    /// for a tunnel, 0 if the client is within its share.
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

    pub(super) fn uses(&self, server: &Arc<Server>) -> Vec<(ConnectionUse, usize)> {
        let of_server = || self.usages.iter().filter(|usage| Arc::ptr_eq(&usage.server, server));
        let count = |what| (what, of_server().filter(|usage| usage.what() == what).count());
        ConnectionUse::ALL.map(count).into()
    }

    /// Determines whether a client is within its share with one more connection, if there are at
    /// most `capacity` connections.
    pub(super) fn share_use(&mut self, client: ClientKey, capacity: usize, now: u64) -> ShareUse {
        self.count(now);
        let is_beyond = |side| {
            let wanted = self.in_use.of(side, client) + self.waiting.of(side, client) + 1;
            let clients = self.clients(side, client);
            // The first connection of a client is always within its share. If there are no other
            // clients, a client is always within its share.
            wanted > 1 && clients > 1 && wanted * clients > capacity
        };
        if ClientCounts::SIDES.into_iter().any(is_beyond) { ShareUse::Beyond } else { ShareUse::Within }
    }

    pub(super) fn wait(&mut self, client: ClientKey) {
        self.waiting.add(client);
    }

    pub(super) fn stop_waiting(&mut self, client: ClientKey) {
        self.waiting.remove(client);
    }

    /// Chooses a stalled transfer to abort, so that a waiting request of `client` gets a
    /// connection. Considers only transfers from servers for which `helps` returns `true`. Returns
    /// the transfer and its stall; `None` if no transfer qualifies, or if the request can use an
    /// idle connection.
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
            let stalled = stall.duration(now);
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
        // A client beyond its share has stalled and will soon lose a connection, so clients within
        // their share keep their connections.
        if rank.excess == 0 && has_stalled_beyond {
            return None;
        }
        Some((Arc::clone(usage), stall))
    }

    /// Returns the number of clients that share the connections, including `asking`.
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

#[derive(Debug, Default)]
pub(super) struct ClientCounts {
    addresses: HashMap<u64, usize>,
    connections: HashMap<u64, usize>,
}

/// How a count identifies a client: by address, or by connection to robotsd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountedBy {
    Address,
    Connection,
}

/// Key of a connection that a trusted proxy uses for requests of several clients. For such a
/// connection, only the addresses of the clients are counted.
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
