//! The buckets of a site: those of names, and its part in those of networks.
//!
//! **Buckets outlive snapshots, and sites.** All snapshots of a site have the same, and so has a site that is opened
//! anew under its name (`LiveBuilder::counted_as`), so a reload gives no sender a new burst. Names are those of the
//! registry and the file, so there are few, and a bound besides. The clock is monotonic and began with the
//! `CompileCache`, which is what the sites of a process share.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use foldhash::quality::RandomState;

use super::gcra::{Bucket, Quota, RateKey, RateSender, nanoseconds};
use crate::agent::Network;
use crate::rules::ProductToken;

/// Finds the bucket of a sender. Cheap to clone; clones share the buckets, so a reload that keeps them gives no sender a new burst.
///
/// A name that a key has is that of a crawler which somebody knows, so there are few: each has words of its own from its first
/// request on. If there are more than [`SiteBuckets::MOST_NAMES`], the others have buckets among those of networks.
#[derive(Clone)]
pub struct SiteBuckets {
    pub(super) shared: Arc<SharedBuckets>,
    networks: Arc<NetworkBuckets>,
}

pub(super) struct SharedBuckets {
    site: u64,
    pub(super) names: NameBuckets,
    refused: AtomicU32,
}

impl SiteBuckets {
    /// The most names that have words of their own.
    pub const MOST_NAMES: usize = NameBuckets::CAPACITY;

    /// Without words. `site` tells the sites apart that share the buckets of networks.
    pub fn new(site: u64, networks: Arc<NetworkBuckets>) -> Self {
        let shared = SharedBuckets { site, names: NameBuckets::default(), refused: AtomicU32::new(0) };
        Self { shared: Arc::new(shared), networks }
    }

    /// Takes one request from the bucket of a sender.
    ///
    /// # Errors
    ///
    /// If it comes too soon. Nothing is taken then.
    pub fn take(&self, key: &RateKey<'_>, quota: Quota, now: Duration) -> Result<(), Duration> {
        match self.bucket(key) {
            Ok(bucket) => bucket.take(quota, now),
            Err(hash) => self.networks.take(hash, quota, now),
        }
    }

    /// Whether a request of a sender would pass. Nothing is taken.
    ///
    /// # Errors
    ///
    /// If it would come too soon.
    pub fn look(&self, key: &RateKey<'_>, quota: Quota, now: Duration) -> Result<(), Duration> {
        match self.bucket(key) {
            Ok(bucket) => bucket.look(quota, now),
            Err(hash) => self.networks.look(hash, quota, now),
        }
    }

    /// The bucket of a name, or the hash by which the networks have it.
    fn bucket(&self, key: &RateKey<'_>) -> Result<&Bucket, u64> {
        let (site, hasher) = (self.shared.site, &self.networks.hasher);
        // Of IPv6, a client has the last 64 bits for itself.
        if let RateSender::Claimed(Some(address)) = key.sender {
            return Err(hasher.hash_one((site, key.token, Network::around(address, 32, 64))));
        }
        let buckets = key.token.and_then(|token| self.shared.names.of(token));
        buckets.map(|buckets| buckets.of(key.sender)).ok_or_else(|| hasher.hash_one((site, key)))
    }

    /// Counts a request that was refused because it came too soon; how many there were before it. After four thousand million the
    /// count begins again.
    pub fn refused(&self) -> u32 {
        self.shared.refused.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether anything else has these buckets too.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.shared) > 1
    }
}

crate::debug_as!(|it| SiteBuckets { site: it.shared.site, names: it.shared.names.len() });

/// Lists of entries, 1 KiB; they are made with the first entry.
const LISTS: usize = 64;

/// The buckets that a bounded number of names has, a word each. One is made when its name first needs it.
///
/// A delay of `*` holds for each of hundreds of registered crawlers, of which a site sees a few. Entries are never
/// taken out, so they are found without a lock, and what refers to them needs none either.
#[derive(Default)]
pub(super) struct NameBuckets {
    lists: OnceLock<Box<[EntryLink; LISTS]>>,
    len: AtomicUsize,
    hasher: RandomState,
}

/// The next entry of a list, once there is one.
type EntryLink = OnceLock<Box<NameEntry>>;

struct NameEntry {
    token: ProductToken,
    buckets: TokenBuckets,
    next: EntryLink,
}

/// The buckets of a crawler that have a word each.
#[derive(Debug, Default)]
pub(super) struct TokenBuckets {
    verified: Bucket,
    refuted: Bucket,
    /// Of those that claim the name from an address that is not known.
    unaddressed: Bucket,
}

impl NameBuckets {
    /// The most names: more than there are crawlers.
    pub(super) const CAPACITY: usize = 4096;

    /// The buckets of a name. `None` where it has none, and there is no room for more.
    pub(super) fn of(&self, token: &ProductToken) -> Option<&TokenBuckets> {
        let list = self.hasher.hash_one(token) as usize % LISTS;
        let mut link = &self.lists.get_or_init(|| Box::new([const { EntryLink::new() }; LISTS]))[list];
        loop {
            let entry = match link.get() {
                Some(entry) => entry,
                None if self.len() >= Self::CAPACITY => return None,
                // Another thread may be first, with this name or another.
                None => link.get_or_init(|| {
                    self.len.fetch_add(1, Ordering::Relaxed);
                    let (token, buckets, next) = (token.clone(), TokenBuckets::default(), EntryLink::new());
                    Box::new(NameEntry { token, buckets, next })
                }),
            };
            if entry.token == *token {
                return Some(&entry.buckets);
            }
            link = &entry.next;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }
}

impl TokenBuckets {
    pub(super) const fn of(&self, sender: RateSender) -> &Bucket {
        match sender {
            RateSender::Verified => &self.verified,
            RateSender::Refuted => &self.refuted,
            RateSender::Claimed(_) => &self.unaddressed,
        }
    }
}

/// Sets of one lock, and locks: 65,536 entries, 1 MiB.
const SETS: usize = 128;
const SHARDS: usize = 64;
/// Entries of a set, two cache lines.
const WAYS: usize = 8;

/// The buckets of networks: a bounded number, which many sites share.
///
/// A client chooses its address and its name, so their combinations have no bound. Entries stand in small sets; where a
/// set is full, the entry whose bucket is refilled first gives way. That is the one which has been silent the longest
/// for its interval, and a sender that it happens to starts anew, with its burst.
pub struct NetworkBuckets {
    /// Made with the first entry of each: most processes have none.
    pub(super) shards: [OnceLock<Mutex<Box<[EntrySet]>>>; SHARDS],
    hasher: RandomState,
}

#[derive(Clone, Copy, Default)]
pub(super) struct NetworkEntry {
    /// A hash, with secrets of this process where clients choose what is hashed: that two senders share one by chance, and so a bucket, takes 2^32 of them.
    key: u64,
    /// As in a [`Bucket`]; 0 where the entry is free.
    pub(super) paid: u64,
}

/// Two cache lines, and no part of a third.
#[derive(Clone, Copy, Default)]
#[repr(align(128))]
pub(super) struct EntrySet(pub(super) [NetworkEntry; WAYS]);

impl NetworkBuckets {
    /// The most entries.
    pub const CAPACITY: usize = SHARDS * SETS * WAYS;

    /// Without an entry.
    pub fn new() -> Self {
        Self { shards: [const { OnceLock::new() }; SHARDS], hasher: RandomState::default() }
    }

    /// Takes one request from the bucket of a key.
    fn take(&self, key: u64, quota: Quota, now: Duration) -> Result<(), Duration> {
        let (shard, set) = place(key);
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
        let (paid, taken) = quota.take(paid, nanoseconds(now));
        set[place] = NetworkEntry { key, paid };
        taken
    }

    /// Whether a request would pass. Nothing is taken, and no entry is made.
    fn look(&self, key: u64, quota: Quota, now: Duration) -> Result<(), Duration> {
        let (shard, set) = place(key);
        let Some(shard) = self.shards[shard].get() else { return Ok(()) };
        let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let known = shard[set].0.iter().find(|entry| entry.key == key);
        quota.look(known.map_or(0, |entry| entry.paid), nanoseconds(now))
    }
}

/// The shard of a key, and the set in it.
const fn place(key: u64) -> (usize, usize) {
    (key as usize % SHARDS, (key >> 16) as usize % SETS)
}

impl Default for NetworkBuckets {
    fn default() -> Self {
        Self::new()
    }
}

crate::debug_as!(|it| NetworkBuckets { shards: it.shards.iter().filter(|shard| shard.get().is_some()).count() });
