//! The queue of addresses whose reverse DNS names must be looked up. The queue decides which
//! address is looked up next, and which address is dropped if the queue is full. Each network gets
//! a fair share of the lookups. This module also contains `RecentMarks`, which lets callers skip
//! repeated updates.
//!
//! When a lookup arrives, the queue counts the earlier lookups for the same narrow network (/24 for
//! IPv4, /64 for IPv6), and for the same wide network (/48 for IPv6). Both counts include waiting
//! lookups and lookups in progress. The next lookup is the lookup whose count for the narrow
//! network is lowest. If several lookups have this count, their counts for the wide network decide,
//! because one customer may have many /64 networks. If both counts are equal, the lookup that
//! arrived first is next.
//!
//! So if many addresses of one network claim to be crawlers, their waiting lookups delay only
//! lookups for the same network. Lookups for other networks only wait for the few lookups in
//! progress.

use crate::live::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

use super::dns_resolver::IN_FLIGHT;
use crate::agent::Network;
use crate::identity::PublicAddress;

/// Maximum number of addresses that are waiting for a lookup.
const QUEUE: usize = 256;

/// Maximum number of concurrent lookups for one narrow network (/24 or /64). Each lookup takes some
/// seconds if the network's DNS server does not respond.
const MAX_NARROW_LOOKUPS: usize = 4;
/// Maximum number of concurrent lookups for one wide network (/48).
const MAX_WIDE_LOOKUPS: usize = 8;

#[derive(Debug)]
pub(super) struct LookupQueue<T> {
    places: Mutex<Places<T>>,
    changed: Notify,
}

#[derive(Debug)]
struct Places<T> {
    /// Waiting lookups in the order of arrival.
    waiting: Vec<Waiting<T>>,
    in_flight: Vec<Networks>,
}

#[derive(Debug)]
struct Waiting<T> {
    networks: Networks,
    /// The two counts of earlier lookups when this lookup arrived: for the same narrow network, and
    /// for the same wide network.
    ahead: [usize; 2],
    lookup: T,
}

/// The narrow and the wide network of an address. For IPv4, both are the same network.
#[derive(Clone, Copy, Debug)]
struct Networks([Network; 2]);

/// A guard for a lookup in progress. The lookup counts as finished when the guard is dropped.
#[derive(Debug)]
pub(super) struct InFlight<T> {
    queue: Arc<LookupQueue<T>>,
    networks: Networks,
}

impl Networks {
    fn of(address: PublicAddress) -> Self {
        Self([64, 48].map(|length| Network::around(address.get(), 24, length)))
    }

    /// Counts the elements of `others` with the same narrow network as `self`, and the elements
    /// with the same wide network.
    fn count<'a>(self, others: impl Iterator<Item = &'a Self>) -> [usize; 2] {
        others.fold([0, 0], |[narrow, wide], other| {
            [narrow + usize::from(other.0[0] == self.0[0]), wide + usize::from(other.0[1] == self.0[1])]
        })
    }
}

impl<T> LookupQueue<T> {
    pub(super) fn new() -> Arc<Self> {
        let places = Places { waiting: Vec::with_capacity(QUEUE + 1), in_flight: Vec::with_capacity(IN_FLIGHT) };
        Arc::new(Self { places: Mutex::new(places), changed: Notify::new() })
    }

    /// Adds a lookup to the queue. If the queue is full, removes and returns the lookup with the
    /// highest counts, which may be the new lookup.
    pub(super) fn push(&self, address: PublicAddress, lookup: T) -> Option<T> {
        let mut places = self.places.lock();
        let networks = Networks::of(address);
        let ahead = networks.count(places.waiting.iter().map(|waiting| &waiting.networks).chain(&places.in_flight));
        places.waiting.push(Waiting { networks, ahead, lookup });
        let left_out = if places.waiting.len() > QUEUE {
            let last = places.waiting.iter().enumerate().max_by_key(|(at, waiting)| (waiting.ahead, *at));
            let last = last.map(|(at, _)| at);
            last.map(|at| places.waiting.remove(at).lookup)
        } else {
            None
        };
        drop(places);
        self.changed.notify_one();
        left_out
    }

    pub(super) async fn next(self: &Arc<Self>) -> (T, InFlight<T>) {
        loop {
            if let Some((networks, lookup)) = self.places.lock().next() {
                return (lookup, InFlight { queue: self.clone(), networks });
            }
            self.changed.notified().await;
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.places.lock().waiting.len()
    }
}

impl<T> Places<T> {
    fn next(&mut self) -> Option<(Networks, T)> {
        if self.in_flight.len() >= IN_FLIGHT {
            return None;
        }
        let has_room = |waiting: &Waiting<T>| {
            let [narrow, wide] = waiting.networks.count(self.in_flight.iter());
            narrow < MAX_NARROW_LOOKUPS && wide < MAX_WIDE_LOOKUPS
        };
        let next = self.waiting.iter().enumerate().filter(|(_, waiting)| has_room(waiting));
        let (at, _) = next.min_by_key(|(at, waiting)| (waiting.ahead, *at))?;
        let Waiting { networks, lookup, .. } = self.waiting.remove(at);
        self.in_flight.push(networks);
        Some((networks, lookup))
    }
}

impl<T> Drop for InFlight<T> {
    fn drop(&mut self) {
        let mut places = self.queue.places.lock();
        if let Some(at) = places.in_flight.iter().position(|networks| networks.0 == self.networks.0) {
            places.in_flight.swap_remove(at);
        }
        drop(places);
        self.queue.changed.notify_one();
    }
}

/// Number of slots, a power of two. Each slot stores one hash.
const SLOTS: usize = 8_192;

/// Remembers the hashes of recent updates, so that a caller can skip an update that repeats a
/// recent one.
///
/// Use this type only for updates that may be repeated or lost: a hash is forgotten when another
/// hash is stored in its slot, and an update is skipped by mistake if a different update has the
/// same hash.
#[derive(Debug)]
pub(super) struct RecentMarks(Box<[AtomicU64]>);

impl Default for RecentMarks {
    fn default() -> Self {
        Self(std::iter::repeat_with(AtomicU64::default).take(SLOTS).collect())
    }
}

impl RecentMarks {
    /// Stores the hash of an update, and reports whether the hash was new.
    pub(super) fn is_new(&self, mark: u64) -> bool {
        // The upper bits select the slot. The lowest bit is always set, because 0 means an empty
        // slot.
        let (mark, at) = (mark | 1, (mark >> 51) as usize % SLOTS);
        let Some(slot) = self.0.get(at) else { return true };
        // The slot is written only if its value changes, because each write removes the cache line
        // from the caches of other cores.
        slot.load(Ordering::Relaxed) != mark && slot.swap(mark, Ordering::Relaxed) != mark
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv6Addr};
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    type Queue = Arc<LookupQueue<IpAddr>>;

    fn v6(site: u16, network: u16, host: u64) -> IpAddr {
        let bits = u128::from(0x2600_0001_u32) << 96 | u128::from(site) << 80 | u128::from(network) << 64;
        Ipv6Addr::from_bits(bits | u128::from(host)).into()
    }

    fn v4(network: u8, host: u8) -> IpAddr {
        [9, 9, network, host].into()
    }

    fn push(queue: &Queue, address: IpAddr) -> Option<IpAddr> {
        queue.push(PublicAddress::of(Some(address), |_| false).expect("a public address"), address)
    }

    fn next(queue: &Queue) -> Option<(IpAddr, InFlight<IpAddr>)> {
        let mut next = pin!(queue.next());
        match next.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(next) => Some(next),
            Poll::Pending => None,
        }
    }

    fn all(queue: &Queue) -> (Vec<IpAddr>, Vec<InFlight<IpAddr>>) {
        std::iter::from_fn(|| next(queue)).unzip()
    }

    #[test]
    fn a_narrow_network_gets_at_most_four_concurrent_lookups_and_a_wide_one_eight() {
        for (flood, most) in [
            ((0..1_000).map(|host| v6(1, 1, host)).collect::<Vec<_>>(), MAX_NARROW_LOOKUPS),
            ((0..=255).map(|host| v4(1, host)).collect(), MAX_NARROW_LOOKUPS),
            ((0..1_000).map(|network| v6(1, network, 1)).collect(), MAX_WIDE_LOOKUPS),
        ] {
            let queue = LookupQueue::new();
            let left_out = flood.iter().filter_map(|address| push(&queue, *address)).count();
            assert_eq!((left_out, queue.waiting()), (flood.len() - QUEUE.min(flood.len()), QUEUE.min(flood.len())));
            let (taken, under_way) = all(&queue);
            assert_eq!(taken, flood[..most]);
            // An address of another network displaces one of the waiting addresses, and is looked
            // up next, although other addresses have waited longer.
            while queue.waiting() < QUEUE {
                push(&queue, flood[1]);
            }
            let left_out = push(&queue, v6(2, 1, 1)).expect("one of the flood");
            assert!(flood.contains(&left_out), "{left_out}");
            assert_eq!(next(&queue).map(|(address, _)| address), Some(v6(2, 1, 1)));
            drop(under_way.into_iter().next());
        }
    }

    #[test]
    fn an_address_of_a_new_network_is_looked_up_before_more_addresses_of_a_flooding_one() {
        let queue = LookupQueue::new();
        (0..QUEUE as u64).for_each(|host| assert_eq!(push(&queue, v6(1, 1, host)), None));
        assert_eq!(push(&queue, v6(1, 2, 1)), Some(v6(1, 1, QUEUE as u64 - 1)));
        let (taken, _under_way) = all(&queue);
        assert_eq!(taken[..2], [v6(1, 1, 0), v6(1, 2, 1)]);
    }

    /// If the waiting addresses are in many networks, they may use all concurrent lookups.
    #[test]
    fn addresses_of_many_networks_may_use_all_concurrent_lookups() {
        let queue = LookupQueue::new();
        (0..QUEUE as u16).for_each(|site| assert_eq!(push(&queue, v6(site, 1, 1)), None));
        assert_eq!(push(&queue, v4(1, 1)), Some(v4(1, 1)));
        let (taken, mut under_way) = all(&queue);
        assert_eq!(taken.len(), IN_FLIGHT);
        under_way.pop();
        assert_eq!(push(&queue, v4(1, 1)), None);
        let rest = std::iter::from_fn(|| next(&queue).map(|(address, _)| address));
        assert_eq!(rest.last(), Some(v4(1, 1)));
    }

    #[test]
    fn a_mark_is_new_until_stored_and_again_after_another_mark_takes_its_slot() {
        let marks = RecentMarks::default();
        for mark in [0, 7 << 51, u64::MAX, 9 << 51 | 2] {
            assert_eq!((marks.is_new(mark), marks.is_new(mark)), (true, false), "{mark}");
        }
        assert_eq!((marks.is_new(7 << 51 | 4), marks.is_new(7 << 51)), (true, true));
    }
}
