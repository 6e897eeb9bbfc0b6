//! Stores when each address first claimed to be a crawler. Also contains a map of limited size, in
//! which other modules store the results of checks.

use crate::live::Mutex;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::sync::MutexGuard;
use std::time::SystemTime;

use foldhash::fast::RandomState;

use super::lookup_queue::RecentMarks;
use super::verified_claims::minute;
use crate::agent::Network;
use crate::identity::PublicAddress;

/// Maximum number of addresses whose first claims are stored.
const MAX_ADDRESSES: usize = 65_536;

const PARTS: usize = 256;

/// When each address first claimed to be a crawler whose lists do not contain the address.
#[derive(Debug)]
pub(super) struct FirstSeen {
    times: Generations<PublicAddress, SystemTime>,
    noted: RecentMarks,
    hasher: RandomState,
}

impl Default for FirstSeen {
    fn default() -> Self {
        // The network selects the shard, so many addresses of one network displace only few
        // addresses of other networks.
        let times = Generations::in_parts(MAX_ADDRESSES, PARTS, |hasher, address: &PublicAddress| {
            hasher.hash_one(Network::around(address.get(), 24, 48))
        });
        Self { times, noted: RecentMarks::default(), hasher: RandomState::default() }
    }
}

impl FirstSeen {
    /// Returns when an address was first seen. If the address is new, stores `now` and returns
    /// `None`.
    pub(super) fn time(&self, address: PublicAddress, now: SystemTime) -> Option<SystemTime> {
        let known = self.times.get(&address);
        if known.is_none() {
            self.times.insert(address, now);
        }
        known
    }

    /// Stores an address, or marks a known address as recently used. For each address, only the
    /// first call in a minute has an effect, so most requests need no lock.
    pub(super) fn note(&self, address: PublicAddress, now: SystemTime) {
        if self.noted.is_new(self.hasher.hash_one((address, minute(now)))) {
            let _ = self.time(address, now);
        }
    }
}

const SHARDS: usize = 16;

/// A map of limited size with two generations of entries. A new entry is added to the younger
/// generation. If the younger generation is full, it becomes the older generation, and the entries
/// of the previous older generation are dropped. An entry that is looked up moves to the younger
/// generation. With two generations, the map need not search for its least recently used entry when
/// it is full.
#[derive(Debug)]
pub(super) struct Generations<K, V> {
    shards: Box<[Mutex<Shard<K, V>>]>,
    /// Maximum number of entries in one generation of a shard.
    most: usize,
    hasher: RandomState,
    place: ShardOf<K>,
}

/// A function that selects the shard of a key. A new key displaces only keys of the same shard.
type ShardOf<K> = fn(&RandomState, &K) -> u64;

#[derive(Debug)]
struct Shard<K, V> {
    younger: HashMap<K, V, RandomState>,
    older: HashMap<K, V, RandomState>,
}

impl<K: Hash + Eq + Clone, V: Clone> Generations<K, V> {
    pub(super) fn new(most: usize) -> Self {
        Self::in_parts(most, SHARDS, |hasher, key| hasher.hash_one(key))
    }

    pub(super) fn in_parts(most: usize, parts: usize, place: ShardOf<K>) -> Self {
        let shard = || Mutex::new(Shard { younger: HashMap::default(), older: HashMap::default() });
        Self {
            shards: std::iter::repeat_with(shard).take(parts).collect(),
            most: (most / parts / 2).max(1),
            hasher: RandomState::default(),
            place,
        }
    }

    pub(super) fn get(&self, key: &K) -> Option<V> {
        let mut shard = self.shard(key);
        if let Some(value) = shard.younger.get(key) {
            return Some(value.clone());
        }
        let (key, value) = shard.older.remove_entry(key)?;
        self.put(&mut shard, key, value.clone());
        Some(value)
    }

    pub(super) fn insert(&self, key: K, value: V) {
        let mut shard = self.shard(&key);
        shard.older.remove(&key);
        self.put(&mut shard, key, value);
    }

    pub(super) fn remove(&self, key: &K) {
        let mut shard = self.shard(key);
        shard.younger.remove(key);
        shard.older.remove(key);
    }

    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(Mutex::lock).map(|shard| shard.younger.len() + shard.older.len()).sum()
    }

    fn put(&self, shard: &mut Shard<K, V>, key: K, value: V) {
        if shard.younger.len() >= self.most && !shard.younger.contains_key(&key) {
            shard.older = std::mem::take(&mut shard.younger);
        }
        shard.younger.insert(key, value);
    }

    fn shard(&self, key: &K) -> MutexGuard<'_, Shard<K, V>> {
        // The upper bits of the hash select the shard; the hash map in the shard uses the lower
        // bits.
        let at = ((self.place)(&self.hasher, key) >> 48) as usize % self.shards.len();
        self.shards[at].lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_map_stays_within_its_limit_and_keeps_entries_that_are_used() {
        let map: Generations<u32, u32> = Generations::new(1_024);
        map.insert(7, 70);
        for key in 1_000..100_000 {
            map.insert(key, key);
            assert!(map.len() <= 1_024);
            assert_eq!(map.get(&7), Some(70), "after {key}");
        }
        assert_eq!(map.get(&99_999), Some(99_999));
        assert_eq!(map.get(&1_000), None);
    }

    #[test]
    fn a_key_has_one_value_and_can_be_removed() {
        let map: Generations<u32, u32> = Generations::new(1);
        for key in 0..100 {
            map.insert(key, 1);
        }
        for key in 0..100 {
            map.insert(key, 2);
            assert_eq!(map.get(&key), Some(2));
            map.remove(&key);
            assert_eq!(map.get(&key), None);
        }
        assert_eq!(map.len(), 0);
    }
}
