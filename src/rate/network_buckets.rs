//! The buckets of networks: as many as there is room for, regardless of the senders.
//!
//! A client chooses its address and its name, so their combinations have no bound. Entries stand in small sets; where a set is
//! full, the entry whose bucket is refilled first gives way. That is the one which has been silent the longest for its
//! interval, and a sender that it happens to starts anew, with its burst.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use foldhash::quality::SeedableRandomState;

use super::gcra::{Quota, TooSoon, nanoseconds};

/// Sets of one lock, and locks: 65,536 entries, 1 MiB.
const SETS: usize = 128;
const SHARDS: usize = 64;
/// Entries of a set, two cache lines.
const WAYS: usize = 8;

/// A bounded number of buckets. Many sites share them.
pub struct NetworkBuckets {
    /// Made with the first entry of each: most processes have none.
    shards: [OnceLock<Mutex<Box<[EntrySet]>>>; SHARDS],
    hasher: SeedableRandomState,
}

#[derive(Clone, Copy, Default)]
struct NetworkEntry {
    /// A hash, with secrets of this process where clients choose what is hashed: that two senders share one by chance, and so a bucket, takes 2^32 of them.
    key: u64,
    /// As in a [`Bucket`](super::Bucket); 0 where the entry is free.
    paid: u64,
}

/// Two cache lines, and no part of a third.
#[derive(Clone, Copy, Default)]
#[repr(align(128))]
struct EntrySet([NetworkEntry; WAYS]);

impl NetworkBuckets {
    /// The most entries.
    pub const CAPACITY: usize = SHARDS * SETS * WAYS;

    /// Without an entry.
    #[must_use]
    pub fn new() -> Self {
        Self::hashed_by(SeedableRandomState::random())
    }

    /// Without an entry. Which senders give way to which is the same in every process, so that counting the same requests again
    /// has the same result. Not for requests that clients send now: they could choose what falls together.
    #[must_use]
    pub fn reproducible() -> Self {
        Self::hashed_by(SeedableRandomState::fixed())
    }

    const fn hashed_by(hasher: SeedableRandomState) -> Self {
        Self { shards: [const { OnceLock::new() }; SHARDS], hasher }
    }

    /// Takes one request from the bucket of a key.
    pub(super) fn take(&self, key: &impl Hash, quota: Quota, now: Duration) -> Result<(), TooSoon> {
        let (key, now) = (self.hasher.hash_one(key), nanoseconds(now));
        let (shard, set) = (key as usize % SHARDS, (key >> 16) as usize % SETS);
        let shard = self.shards[shard].get_or_init(|| Mutex::new(vec![EntrySet::default(); SETS].into()));
        // Entries are plain numbers: a panic leaves nothing half done.
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let set = &mut shard[set].0;
        let known = set.iter().position(|entry| entry.key == key && entry.paid > 0);
        let place = known.unwrap_or_else(|| {
            let oldest = set.iter().enumerate().min_by_key(|(_, entry)| entry.paid);
            oldest.map_or(0, |(place, _)| place)
        });
        let paid = known.map_or(0, |place| set[place].paid);
        let (paid, taken) = match quota.take(paid, now) {
            Ok(next) => (next, Ok(())),
            Err((kept, too_soon)) => (kept, Err(too_soon)),
        };
        set[place] = NetworkEntry { key, paid };
        taken
    }

    /// Whether a request would pass. Nothing is taken, and no entry is made.
    pub(super) fn look(&self, key: &impl Hash, quota: Quota, now: Duration) -> Result<(), TooSoon> {
        let key = self.hasher.hash_one(key);
        let (shard, set) = (key as usize % SHARDS, (key >> 16) as usize % SETS);
        let Some(shard) = self.shards[shard].get() else { return Ok(()) };
        let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let known = shard[set].0.iter().find(|entry| entry.key == key);
        quota.look(known.map_or(0, |entry| entry.paid), nanoseconds(now))
    }

    /// How many entries there are, those included that would be as good as new.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let shards = self.shards.iter().filter_map(OnceLock::get);
        let used = |shard: &Mutex<Box<[EntrySet]>>| {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.iter().flat_map(|set| set.0).filter(|entry| entry.paid > 0).count()
        };
        shards.map(used).sum()
    }
}

impl Default for NetworkBuckets {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for NetworkBuckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.shards.iter().filter(|shard| shard.get().is_some()).count();
        f.debug_struct("NetworkBuckets").field("shards", &used).finish_non_exhaustive()
    }
}
