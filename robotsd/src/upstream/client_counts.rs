//! How many connections each client has, by its address and by its own connection.

use std::collections::HashMap;

use super::usage::ClientKey;

/// How many each client has.
#[derive(Debug, Default)]
pub(super) struct ClientCounts {
    addresses: HashMap<u64, usize>,
    connections: HashMap<u64, usize>,
}

/// What clients are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountedBy {
    Address,
    Connection,
}

/// The number of a connection over which a trusted proxy sends requests of several clients: it counts for none of them.
pub(super) const SHARED: u64 = 0;

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
