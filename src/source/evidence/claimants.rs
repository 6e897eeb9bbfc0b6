//! When addresses that claim to be crawlers were first seen, and the map of bounded memory that such facts are kept in.

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

/// Addresses that are remembered.
const MOST: usize = 65_536;

/// Parts of them.
const PARTS: usize = 256;

/// When addresses first claimed to be a crawler whose lists lack them.
#[derive(Debug)]
pub(super) struct FirstSeen {
    times: Generations<PublicAddress, SystemTime>,
    noted: RecentMarks,
    hasher: RandomState,
}

impl Default for FirstSeen {
    fn default() -> Self {
        // By network, so that the addresses of one displace few of others.
        let times = Generations::in_parts(MOST, PARTS, |hasher, address: &PublicAddress| {
            hasher.hash_one(Network::around(address.get(), 24, 48))
        });
        Self { times, noted: RecentMarks::default(), hasher: RandomState::default() }
    }
}

impl FirstSeen {
    /// When an address was first seen; `None` if that is now.
    pub(super) fn time(&self, address: PublicAddress, now: SystemTime) -> Option<SystemTime> {
        let known = self.times.get(&address);
        if known.is_none() {
            self.times.insert(address, now);
        }
        known
    }

    /// Remembers an address, and keeps one that comes again from being forgotten: once a minute, so that its other requests take
    /// no lock.
    pub(super) fn note(&self, address: PublicAddress, now: SystemTime) {
        if self.noted.is_new(self.hasher.hash_one((address, minute(now)))) {
            let _ = self.time(address, now);
        }
    }
}

/// Parts with a lock of their own.
const SHARDS: usize = 16;

/// A map in two generations. A new entry goes into the younger one; when that is full, the older one is dropped and the
/// younger one takes its place. An entry that is looked up moves into the younger one again. So nothing is ever searched for what is
/// oldest, and the bound holds at every moment.
#[derive(Debug)]
pub(super) struct Generations<K, V> {
    shards: Box<[Mutex<Shard<K, V>>]>,
    /// How many entries one generation of a shard holds.
    most: usize,
    hasher: RandomState,
    place: PlaceOf<K>,
}

/// The function that chooses the shard of a key: keys for which it is equal displace each other, and none of other shards.
type PlaceOf<K> = fn(&RandomState, &K) -> u64;

#[derive(Debug)]
struct Shard<K, V> {
    younger: HashMap<K, V, RandomState>,
    older: HashMap<K, V, RandomState>,
}

impl<K: Hash + Eq + Clone, V: Clone> Generations<K, V> {
    /// A map of at most so many entries.
    pub(super) fn new(most: usize) -> Self {
        Self::in_parts(most, SHARDS, |hasher, key| hasher.hash_one(key))
    }

    /// The same in so many parts, of which each has its share. `place` chooses the part.
    pub(super) fn in_parts(most: usize, parts: usize, place: PlaceOf<K>) -> Self {
        let shard = || Mutex::new(Shard { younger: HashMap::default(), older: HashMap::default() });
        Self {
            shards: std::iter::repeat_with(shard).take(parts).collect(),
            most: (most / parts / 2).max(1),
            hasher: RandomState::default(),
            place,
        }
    }

    /// The value of a key.
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

    /// How many entries there are.
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
        // The upper bits: the maps use the others.
        let at = ((self.place)(&self.hasher, key) >> 48) as usize % self.shards.len();
        self.shards[at].lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_holds_and_what_is_used_stays() {
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
