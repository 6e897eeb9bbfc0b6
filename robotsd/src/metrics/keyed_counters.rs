//! Counters by key, with one writer and without locks.
//!
//! A key is added once and never moves, so a reader sees each whole or not at all. Three tables of growing size are made as the
//! one before has no room near the place of a key; what fits nowhere is for the caller to count elsewhere.

use std::sync::OnceLock;

use crate::counter::Counter;

/// The sizes of the tables; powers of two.
const SIZES: [usize; 3] = [8, 64, 512];

/// Entries that are looked through in each, from the place that the hash gives.
const NEAR: usize = 8;

/// Counts events of one thread by key.
#[derive(Debug)]
pub(crate) struct KeyedCounters<K> {
    tables: [OnceLock<Box<[Entry<K>]>>; SIZES.len()],
}

#[derive(Debug)]
struct Entry<K> {
    key: OnceLock<K>,
    count: Counter,
}

impl<K> KeyedCounters<K> {
    /// Counts one for the key that `is` accepts, whose hash this is; `make` makes it where there is none yet, and may decline. Says
    /// whether it was counted. Only one thread may call this.
    #[inline]
    pub(crate) fn count(&self, hash: u64, is: impl Fn(&K) -> bool, make: impl FnOnce() -> Option<K>) -> bool {
        // Nearly every key is in its place in the first table.
        if let Some(entry) = self.tables[0].get().and_then(|table| table.get(hash as usize & (SIZES[0] - 1)))
            && entry.key.get().is_some_and(&is)
        {
            entry.count.add_one();
            return true;
        }
        self.count_elsewhere(hash, is, make)
    }

    #[inline(never)]
    fn count_elsewhere(&self, hash: u64, is: impl Fn(&K) -> bool, make: impl FnOnce() -> Option<K>) -> bool {
        for (table, size) in self.tables.iter().zip(SIZES) {
            let table = table.get_or_init(|| (0..size).map(|_| Entry::default()).collect());
            for near in 0..NEAR {
                let entry = &table[(hash as usize).wrapping_add(near) & (size - 1)];
                match entry.key.get() {
                    Some(key) if is(key) => entry.count.add_one(),
                    Some(_) => continue,
                    None => match make() {
                        Some(key) => {
                            entry.count.add_one();
                            // One thread writes, so no other key has come meanwhile.
                            let _ = entry.key.set(key);
                        }
                        None => return false,
                    },
                }
                return true;
            }
        }
        false
    }

    /// Every key with its count.
    pub(crate) fn totals(&self) -> impl Iterator<Item = (&K, u64)> {
        let entries = self.tables.iter().filter_map(OnceLock::get).flat_map(|table| table.iter());
        entries.filter_map(|entry| Some((entry.key.get()?, entry.count.total())))
    }
}

impl<K> Default for KeyedCounters<K> {
    fn default() -> Self {
        Self { tables: Default::default() }
    }
}

impl<K> Default for Entry<K> {
    fn default() -> Self {
        Self { key: OnceLock::new(), count: Counter::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_counted_by_itself_while_there_is_room() {
        let counters = KeyedCounters::default();
        for _ in 0..3 {
            for key in 0..300_u64 {
                // A hash as bad as one that is good for a table at most.
                assert!(counters.count(key, |other| *other == key, || Some(key)), "{key}");
            }
        }
        let mut found: Vec<_> = counters.totals().map(|(key, count)| (*key, count)).collect();
        found.sort_unstable();
        assert_eq!(found, (0..300).map(|key| (key, 3)).collect::<Vec<_>>());
    }

    #[test]
    fn what_has_no_room_or_is_declined_is_not_counted() {
        let counters = KeyedCounters::default();
        let counted = (0..1000_u64).filter(|key| counters.count(0, |other| other == key, || Some(*key))).count();
        assert_eq!((counted, counters.totals().count()), (NEAR * SIZES.len(), NEAR * SIZES.len()));
        assert!(counters.count(0, |key| *key == 3, || None), "a key that is there needs no new one");
        assert!(!KeyedCounters::<u64>::default().count(0, |_| true, || None));
    }
}
