//! Requests whose evidence refutes the crawler that they claim: impostors, unless the log is found not to hold the addresses
//! of clients.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};

use foldhash::fast::RandomState;

use super::hours::Hours;
use super::rule_paths::RulePaths;
use super::tally::{Period, RequestTally};

/// Addresses that have counts of their own, for each crawler.
const ADDRESSES: usize = 1_024;

/// Nodes of the path trees.
const NODES: usize = 256;

/// Hours with counts: half a year.
const HOURS: usize = 4_400;

/// What was requested under the name of a crawler, from addresses that are not its operator's.
#[derive(Clone, Debug)]
pub(super) struct FailedClaims {
    pub(super) tally: RequestTally,
    pub(super) rules: RulePaths,
    pub(super) hours: Hours,
    pub(super) period: Period,
    pub(super) addresses: FailedAddresses,
}

/// Requests by address, in bounded memory.
#[derive(Clone, Debug, Default)]
pub(super) struct FailedAddresses {
    /// With a fast hash of a random seed: every failed request is counted here.
    counts: HashMap<IpAddr, AddressTally, RandomState>,
    /// Of the addresses that were dropped for others.
    dropped: AddressTally,
}

/// Requests from an address, or from several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AddressTally {
    pub(super) requests: u64,
    pub(super) disallowed: u64,
}

impl Default for FailedClaims {
    fn default() -> Self {
        Self {
            tally: RequestTally::default(),
            rules: RulePaths::new(NODES),
            hours: Hours::new(HOURS),
            period: Period::default(),
            addresses: FailedAddresses::default(),
        }
    }
}

impl FailedClaims {
    pub(super) fn merge(&mut self, next: Self) {
        self.tally.add(&next.tally);
        self.rules.merge(next.rules);
        self.hours.merge(next.hours);
        self.period.merge(next.period);
        self.addresses.merge(next.addresses);
    }
}

impl FailedAddresses {
    /// Counts a request from an address.
    pub(super) fn note(&mut self, address: IpAddr, is_disallowed: bool) {
        self.add(address, AddressTally { requests: 1, disallowed: u64::from(is_disallowed) });
    }

    fn add(&mut self, address: IpAddr, tally: AddressTally) {
        if let Some(known) = self.counts.get_mut(&address) {
            known.add(tally);
            return;
        }
        if self.counts.len() >= ADDRESSES {
            self.drop_rare();
        }
        self.counts.insert(address, tally);
    }

    fn merge(&mut self, next: Self) {
        self.dropped.add(next.dropped);
        // Nearly all are known once a few chunks are counted.
        let mut new = Vec::new();
        for (address, tally) in next.counts {
            match self.counts.get_mut(&address) {
                Some(known) => known.add(tally),
                None => new.push((address, tally)),
            }
        }
        if self.counts.len() + new.len() > ADDRESSES {
            // Not all have room, so the order must not be that of a map.
            sort(&mut new);
        }
        for (address, tally) in new {
            self.add(address, tally);
        }
    }

    /// Drops the less frequent half.
    fn drop_rare(&mut self) {
        let mut all = sorted(std::mem::take(&mut self.counts));
        for (_, tally) in all.split_off(ADDRESSES / 2) {
            self.dropped.add(tally);
        }
        self.counts = all.into_iter().collect();
    }

    /// The addresses that are known, those with the most requests first.
    pub(super) fn sorted(&self) -> Vec<(IpAddr, AddressTally)> {
        sorted(self.counts.clone())
    }

    /// The requests of addresses that are not known any more.
    pub(super) const fn dropped(&self) -> AddressTally {
        self.dropped
    }

    /// How many addresses there are, as far as they are known. Those of one IPv6 network (/64) count once.
    pub(super) fn count(&self) -> usize {
        self.networks().len()
    }

    /// The clients: addresses, or networks of one client.
    pub(super) fn networks(&self) -> HashSet<IpAddr> {
        self.counts.keys().map(|address| client(*address)).collect()
    }
}

impl AddressTally {
    pub(super) const fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.disallowed += other.disallowed;
    }
}

fn sorted(counts: HashMap<IpAddr, AddressTally, RandomState>) -> Vec<(IpAddr, AddressTally)> {
    let mut sorted: Vec<_> = counts.into_iter().collect();
    sort(&mut sorted);
    sorted
}

/// Those with the most requests first.
fn sort(counts: &mut [(IpAddr, AddressTally)]) {
    counts.sort_unstable_by_key(|(address, tally)| (std::cmp::Reverse(tally.requests), *address));
}

/// A client has a whole /64.
fn client(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_the_busy_addresses_stay() {
        let busy = IpAddr::from([8, 8, 8, 8]);
        let mut all = FailedAddresses::default();
        for chunk in 0..8_u32 {
            let mut one = FailedAddresses::default();
            for number in 0..2_000_u32 {
                one.note(IpAddr::from((0x0909_0000 + chunk * 2_000 + number).to_be_bytes()), false);
                one.note(busy, true);
                assert!(one.counts.len() <= ADDRESSES);
            }
            all.merge(one);
            assert!(all.counts.len() <= ADDRESSES);
        }
        let known = all.sorted();
        assert_eq!(known[0], (busy, AddressTally { requests: 16_000, disallowed: 16_000 }));
        let sum: u64 = known.iter().map(|(_, tally)| tally.requests).sum();
        assert_eq!(sum + all.dropped().requests, 32_000);
    }

    #[test]
    fn a_network_of_one_client_counts_once() {
        let mut all = FailedAddresses::default();
        for address in ["9.9.9.9", "2001:db8:1:2::1", "2001:db8:1:2:3::", "2001:db8:1:3::1"] {
            all.note(address.parse().expect(address), false);
        }
        assert_eq!((all.sorted().len(), all.count()), (4, 3));
    }
}
