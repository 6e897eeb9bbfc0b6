//! A bounded map in which the entries that were looked up lately stay longest.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;

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
}

#[derive(Debug)]
struct Shard<K, V> {
    younger: HashMap<K, V, RandomState>,
    older: HashMap<K, V, RandomState>,
}

impl<K: Hash + Eq + Clone, V: Clone> Generations<K, V> {
    /// A map of at most so many entries.
    pub(super) fn new(most: usize) -> Self {
        let shard = || Mutex::new(Shard { younger: HashMap::default(), older: HashMap::default() });
        Self {
            shards: std::iter::repeat_with(shard).take(SHARDS).collect(),
            most: (most / SHARDS / 2).max(1),
            hasher: RandomState::default(),
        }
    }

    /// The value of a key.
    pub(super) fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
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

    pub(super) fn remove<Q: Hash + Eq + ?Sized>(&self, key: &Q)
    where
        K: Borrow<Q>,
    {
        let mut shard = self.shard(key);
        shard.younger.remove(key);
        shard.older.remove(key);
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(lock).map(|shard| shard.younger.len() + shard.older.len()).sum()
    }

    fn put(&self, shard: &mut Shard<K, V>, key: K, value: V) {
        if shard.younger.len() >= self.most && !shard.younger.contains_key(&key) {
            shard.older = std::mem::take(&mut shard.younger);
        }
        shard.younger.insert(key, value);
    }

    fn shard<Q: Hash + ?Sized>(&self, key: &Q) -> MutexGuard<'_, Shard<K, V>> {
        // The upper octet: the maps use the others.
        let at = (self.hasher.hash_one(key) >> 56) as usize % SHARDS;
        lock(&self.shards[at])
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
