//! Who gets a connection, and who loses one, when all are in use.
//!
//! Nothing here is looked at while there are connections enough. When there are not:
//!
//! 1. An equal share is the number of connections there may be, divided by the clients that use any or wait for one within
//!    their share, and the one that asks: were those that wait not counted, a client would take again at once what was
//!    freed for them. Clients are counted twice: by connection, unless a trusted proxy sends requests of several clients over it, and by
//!    address. A client has more than its share where either count says so.
//! 2. A request of a client that, this one and those that wait included, stays within its share comes before all requests
//!    that do not.
//! 3. For such a request a transfer is given up whose client has stalled: of clients beyond their share by both counts
//!    first, then by one of them; of those, the one that has stalled for longest, and not before [`STALLED`]. Next come
//!    tunnels through which nothing has passed for [`LONG`], of addresses beyond their share. Where no client beyond its
//!    share has stalled at all, it is the client that has stalled for longest, and not before [`LONG`].
//! 4. For [`STALLED`] after that, clients beyond their share get no further connection: else they would take up at once
//!    what was freed for others.
//!
//! A transfer whose client is seen to move is not given up, nor is a request that waits for its upstream. Those who write to
//! clients say what they see: see `edge::client_socket` and `edge::write_timeout`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::server::Server;
use super::usage::{ClientKey, ConnectionUse, Stall, Usage};

/// After so long without taking anything a client beyond its share has stalled. One that reads 32 KB a second is seen to
/// move within that: every 64 KiB, see `edge::client_socket`. Requests wait for three seconds by default.
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

/// How many each client has.
#[derive(Debug, Default)]
struct ClientCounts {
    addresses: HashMap<u64, usize>,
    connections: HashMap<u64, usize>,
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

    /// Where a request stands that asks for one more connection of `capacity`.
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
                if helps(usage.server()) {
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
            if stalled >= due && first.is_none_or(|(before, ..)| before < rank) && helps(usage.server()) {
                first = Some((rank, stall, usage));
            }
        }
        let (rank, stall, usage) = first?;
        // Who is within its share does not suffer for those beyond theirs, who will be due soon.
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

/// What clients are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CountedBy {
    ServerAddress,
    Connection,
}

/// The number of a connection over which a trusted proxy sends requests of several clients: it counts for none of them.
const SHARED: u64 = 0;

impl CountedBy {
    const fn key(self, client: ClientKey) -> u64 {
        match self {
            Self::ServerAddress => client.address,
            Self::Connection => client.connection,
        }
    }
}

impl ClientCounts {
    const SIDES: [CountedBy; 2] = [CountedBy::ServerAddress, CountedBy::Connection];

    fn of(&self, side: CountedBy, client: ClientKey) -> usize {
        self.keys(side).get(&side.key(client)).copied().unwrap_or(0)
    }

    /// How many each has, by what a side knows them by.
    fn keys(&self, side: CountedBy) -> &HashMap<u64, usize> {
        match side {
            CountedBy::ServerAddress => &self.addresses,
            CountedBy::Connection => &self.connections,
        }
    }

    fn add(&mut self, client: ClientKey) {
        *self.addresses.entry(client.address).or_default() += 1;
        if client.connection != SHARED {
            *self.connections.entry(client.connection).or_default() += 1;
        }
    }

    fn remove(&mut self, client: ClientKey) {
        for (counts, key) in [(&mut self.addresses, client.address), (&mut self.connections, client.connection)] {
            if let Some(count) = counts.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&key);
                }
            }
        }
    }

    fn clear(&mut self) {
        self.addresses.clear();
        self.connections.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::health::{Health, HealthPolicy};
    use super::super::server::ServerAddress;
    use super::*;

    const NOW: u64 = 100_000;

    struct Site {
        server: Arc<Server>,
        shares: Shares,
    }

    impl Site {
        fn new() -> Self {
            let health = Health::new(HealthPolicy::default(), Instant::now());
            Self { server: Arc::new(Server::new(ServerAddress::Loopback(1), None, health)), shares: Shares::default() }
        }

        /// Opens a connection for a client that has stalled for so many seconds, or moves.
        fn open(&mut self, client: (u64, u64), stalled: Option<u64>) -> Arc<Usage> {
            let usage = Arc::new(Usage::new(Arc::clone(&self.server), Instant::now(), by(client)));
            if let Some(seconds) = stalled {
                usage.stalled_since(NOW - seconds * 1000);
            }
            self.shares.add(Arc::clone(&usage));
            usage
        }

        /// Whose transfer is given up for a request of this client.
        fn victim(&mut self, client: (u64, u64)) -> Option<Arc<Usage>> {
            let capacity = self.shares.usages.len();
            self.shares.victim(by(client), capacity, NOW, |_| true).map(|(usage, _)| usage)
        }
    }

    fn by((address, connection): (u64, u64)) -> ClientKey {
        ClientKey { address, connection }
    }

    #[test]
    fn who_waits_within_its_share_counts_among_the_clients() {
        let mut site = Site::new();
        let _open: Vec<_> = (1..16).map(|at| site.open((1, 1 + at % 4), None)).collect();
        // Three connections are as many as a fifth of sixteen allows, four as a quarter.
        assert_eq!(site.shares.standing(by((1, 1)), 16, NOW), Standing::Within);
        site.shares.wait(by((1, 9)));
        assert_eq!(site.shares.standing(by((1, 1)), 16, NOW), Standing::Beyond);
        assert_eq!(site.shares.standing(by((1, 9)), 16, NOW), Standing::Within);
        site.shares.stop_waiting(by((1, 9)));
        assert_eq!(site.shares.standing(by((1, 1)), 16, NOW), Standing::Within);
    }

    #[test]
    fn of_those_beyond_their_share_the_one_that_has_stalled_for_longest_goes() {
        let mut site = Site::new();
        // Within its share, and for longer than all others.
        site.open((2, 2), Some(9));
        site.open((1, 1), Some(2));
        let longest = site.open((1, 1), Some(3));
        site.open((1, 1), None);
        assert!(Arc::ptr_eq(&site.victim((3, 3)).unwrap(), &longest));
        // What has been taken is not taken twice.
        assert!(longest.give_up(longest.stalled().unwrap()));
        let next = site.victim((3, 3)).unwrap().stalled().unwrap();
        assert_eq!(next.lasts(NOW), Duration::from_secs(2));
    }

    #[test]
    fn who_is_beyond_by_address_and_by_connection_goes_first() {
        let mut site = Site::new();
        site.open((2, 2), Some(4));
        let both = [site.open((1, 1), Some(3)), site.open((1, 1), Some(2))];
        site.open((1, 3), Some(3));
        site.open((1, 4), Some(3));
        assert!(Arc::ptr_eq(&site.victim((2, 5)).unwrap(), &both[0]));
    }

    #[test]
    fn who_moves_or_has_only_just_stalled_keeps_its_connection() {
        let mut site = Site::new();
        for stalled in [None, Some(0), None] {
            site.open((1, 1), stalled);
        }
        assert!(site.victim((2, 2)).is_none());
        // One within its share does not suffer for it.
        site.open((2, 2), Some(60));
        assert!(site.victim((3, 3)).is_none());
    }

    #[test]
    fn where_all_have_the_same_it_takes_longer() {
        let mut site = Site::new();
        site.open((1, 1), Some(4));
        let long = site.open((2, 2), Some(6));
        assert!(Arc::ptr_eq(&site.victim((2, 2)).unwrap(), &long));
        long.moved();
        assert!(site.victim((2, 2)).is_none());
    }

    #[test]
    fn tunnels_go_only_where_their_address_has_more_than_its_share() {
        let mut site = Site::new();
        let tunnels = [(1, 1), (1, 2), (1, 3), (2, 4)].map(|client| {
            let tunnel = site.open(client, None);
            tunnel.tunnel();
            tunnel.stalled_since(NOW - 60_000);
            tunnel
        });
        assert!(site.victim((1, 5)).is_some_and(|given_up| !Arc::ptr_eq(&given_up, &tunnels[3])));
        tunnels[..3].iter().for_each(|tunnel| tunnel.stalled_since(NOW - 4_000));
        assert!(site.victim((2, 5)).is_none());
    }

    #[test]
    fn an_idle_connection_is_waited_for() {
        let mut site = Site::new();
        site.open((1, 1), Some(9));
        site.open((1, 1), Some(9)).rest();
        assert!(site.victim((2, 2)).is_none());
    }

    #[test]
    fn a_request_stands_by_what_its_client_has_and_waits_for() {
        let mut site = Site::new();
        for _ in 0..6 {
            site.open((1, 1), None);
        }
        let mut stands = |client| site.shares.standing(by(client), 6, NOW);
        assert_eq!(stands((1, 1)), Standing::Within, "alone");
        site.open((2, 2), None);
        let mut stands = |client| site.shares.standing(by(client), 6, NOW + FRESH);
        assert_eq!((stands((1, 1)), stands((2, 2))), (Standing::Beyond, Standing::Within));
        // Its address has more than its share, on whatever connection.
        assert_eq!((stands((1, 7)), stands((3, 3))), (Standing::Beyond, Standing::Within));
        site.shares.wait(by((2, 2)));
        site.shares.wait(by((2, 2)));
        let mut stands = |client| site.shares.standing(by(client), 6, NOW + FRESH);
        assert_eq!(stands((2, 2)), Standing::Beyond);
        site.shares.stop_waiting(by((2, 2)));
        assert_eq!(site.shares.standing(by((2, 2)), 6, NOW + FRESH), Standing::Within);
    }

    #[test]
    fn a_connection_that_many_clients_share_is_no_client() {
        let mut site = Site::new();
        for address in [1, 1, 1, 2] {
            site.open((address, 0), None);
        }
        let mut stands = |address| site.shares.standing(by((address, 0)), 4, NOW);
        assert_eq!([1, 2, 3].map(&mut stands), [Standing::Beyond, Standing::Within, Standing::Within]);
    }
}
