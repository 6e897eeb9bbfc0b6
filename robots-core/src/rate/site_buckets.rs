//! The buckets of a site: one group of buckets for each crawler's name. The buckets of networks are
//! shared by all sites, and contain entries of this site.
//!
//! **Buckets outlive snapshots and sites.** All snapshots of a site share its buckets. A site that
//! is opened again under the same name (`LiveBuilder::counted_as`) shares them, too. So a reload
//! does not give any sender a new burst.
//!
//! Names come only from the registry and the file, so there are few, and [`SiteBuckets::MAX_NAMES`]
//! limits their number in any case. The clock is monotonic and starts when the `CompileCache` is
//! created, which all sites of a process share.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use foldhash::quality::RandomState;

use super::gcra::{Bucket, Quota, RateKey, RateSender, nanoseconds};
use crate::agent::Network;
use crate::rules::ProductToken;

/// Finds the bucket of a sender. Cloning is cheap. Clones share the buckets, so a reload can pass a
/// clone to the new snapshot, and no sender gets a new burst.
///
/// Keys use only names from the registry or the file, so there are few names. Each name gets its
/// own atomics on its first request. Names beyond [`SiteBuckets::MAX_NAMES`] use entries in the
/// buckets of networks.
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
    /// Maximum number of names that have their own atomics.
    pub const MAX_NAMES: usize = NameBuckets::CAPACITY;

    /// Creates empty buckets. `site` is a number that distinguishes the sites that share
    /// `networks`.
    pub fn new(site: u64, networks: Arc<NetworkBuckets>) -> Self {
        let shared = SharedBuckets { site, names: NameBuckets::default(), refused: AtomicU32::new(0) };
        Self { shared: Arc::new(shared), networks }
    }

    /// Takes one request from the bucket of a sender.
    ///
    /// # Errors
    ///
    /// Returns the time to wait if the request comes too early. The bucket then stays unchanged.
    pub fn take(&self, key: &RateKey<'_>, quota: Quota, now: Duration) -> Result<(), Duration> {
        match self.bucket(key) {
            Ok(bucket) => bucket.take(quota, now),
            Err(hash) => self.networks.take(hash, quota, now),
        }
    }

    /// Reports whether a request of a sender would pass, without taking it from the bucket.
    ///
    /// # Errors
    ///
    /// Returns the time to wait if the request would come too early.
    pub fn look(&self, key: &RateKey<'_>, quota: Quota, now: Duration) -> Result<(), Duration> {
        match self.bucket(key) {
            Ok(bucket) => bucket.look(quota, now),
            Err(hash) => self.networks.look(hash, quota, now),
        }
    }

    /// Returns the bucket for a key. If its requests are counted by network, returns the key of the
    /// bucket in `networks`.
    fn bucket(&self, key: &RateKey<'_>) -> Result<&Bucket, u64> {
        let (site, hasher) = (self.shared.site, &self.networks.hasher);
        // An IPv6 client controls the last 64 bits of its address.
        if let RateSender::Claimed(Some(address)) = key.sender {
            return Err(hasher.hash_one((site, key.token, Network::around(address, 32, 64))));
        }
        let buckets = key.token.and_then(|token| self.shared.names.of(token));
        buckets.map(|buckets| buckets.of(key.sender)).ok_or_else(|| hasher.hash_one((site, key)))
    }

    /// Counts a request that was refused because it exceeded its crawl delay. Returns the number of
    /// earlier refused requests, which wraps around after `u32::MAX`.
    pub fn refused(&self) -> u32 {
        self.shared.refused.fetch_add(1, Ordering::Relaxed)
    }

    /// Reports whether another clone of these buckets exists.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.shared) > 1
    }
}

crate::debug_as!(|it| SiteBuckets { site: it.shared.site, names: it.shared.names.len() });

/// Number of lists of entries. The lists take 1 KiB in total and are allocated with the first
/// entry.
const LISTS: usize = 64;

/// Buckets for a limited number of names. The bucket of a name is created when it is first needed.
///
/// A delay in a group for `*` applies to hundreds of registered crawlers, but only a few of them
/// visit a site. Entries are never removed, so neither lookups nor references to entries need a
/// lock.
#[derive(Default)]
pub(super) struct NameBuckets {
    lists: OnceLock<Box<[EntryLink; LISTS]>>,
    len: AtomicUsize,
    hasher: RandomState,
}

/// The link to the next entry of a list; empty at the end of the list.
type EntryLink = OnceLock<Box<NameEntry>>;

struct NameEntry {
    token: ProductToken,
    buckets: TokenBuckets,
    next: EntryLink,
}

/// The buckets of one crawler. Each bucket is one atomic.
#[derive(Debug, Default)]
pub(super) struct TokenBuckets {
    verified: Bucket,
    refuted: Bucket,
    /// Bucket of senders that claim the name and whose address is unknown.
    unaddressed: Bucket,
}

impl NameBuckets {
    /// Maximum number of names, which is more than the number of registered crawlers.
    pub(super) const CAPACITY: usize = 4096;

    /// Returns the buckets of a name. `None` if the name has no entry yet and the maximum number of
    /// names is reached.
    pub(super) fn of(&self, token: &ProductToken) -> Option<&TokenBuckets> {
        let list = self.hasher.hash_one(token) as usize % LISTS;
        let mut link = &self.lists.get_or_init(|| Box::new([const { EntryLink::new() }; LISTS]))[list];
        loop {
            let entry = match link.get() {
                Some(entry) => entry,
                None if self.len() >= Self::CAPACITY => return None,
                // Another thread may add an entry at the same time, for this name or for another.
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

/// Number of sets per lock. All shards together have 65,536 entries, which take 1 MiB.
const SETS: usize = 128;
const SHARDS: usize = 64;
/// Number of entries of a set. A set takes two cache lines.
const WAYS: usize = 8;

/// Buckets for networks. Their number is bounded, and many sites share them.
///
/// A client can choose its name and, within limits, its address, so the number of combinations is
/// unbounded. Entries are stored in small sets. A new entry in a full set replaces the entry whose
/// bucket refills first, because the sender of this entry has been silent the longest, relative to
/// its interval. A sender whose entry was replaced starts again with a full burst.
pub struct NetworkBuckets {
    /// Shards, each allocated with its first entry; most processes need none.
    pub(super) shards: [OnceLock<Mutex<Box<[EntrySet]>>>; SHARDS],
    hasher: RandomState,
}

#[derive(Clone, Copy, Default)]
pub(super) struct NetworkEntry {
    /// Hash of the values that identify the sender. The hash is keyed with secrets of this process
    /// if clients can choose these values. Two senders with the same hash share a bucket; by
    /// chance, this happens only among about 2^32 senders.
    key: u64,
    /// State of the bucket, as in [`Bucket`]; 0 if the entry is free.
    pub(super) paid: u64,
}

/// A set of entries, aligned so that it takes exactly two cache lines.
#[derive(Clone, Copy, Default)]
#[repr(align(128))]
pub(super) struct EntrySet(pub(super) [NetworkEntry; WAYS]);

impl NetworkBuckets {
    /// Maximum number of senders with an entry at the same time.
    pub const CAPACITY: usize = SHARDS * SETS * WAYS;

    /// Creates buckets without entries.
    pub fn new() -> Self {
        Self { shards: [const { OnceLock::new() }; SHARDS], hasher: RandomState::default() }
    }

    /// Takes one request from the bucket of a key.
    fn take(&self, key: u64, quota: Quota, now: Duration) -> Result<(), Duration> {
        let (shard, set) = place(key);
        let shard = self.shards[shard].get_or_init(|| Mutex::new(vec![EntrySet::default(); SETS].into()));
        // Entries are plain numbers, so a panic of another thread leaves no entry half written.
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

    /// Reports whether a request would pass. The request is not counted, and no entry is added.
    fn look(&self, key: u64, quota: Quota, now: Duration) -> Result<(), Duration> {
        let (shard, set) = place(key);
        let Some(shard) = self.shards[shard].get() else { return Ok(()) };
        let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let known = shard[set].0.iter().find(|entry| entry.key == key);
        quota.look(known.map_or(0, |entry| entry.paid), nanoseconds(now))
    }
}

/// Returns the indexes of a key's shard and of its set in that shard.
const fn place(key: u64) -> (usize, usize) {
    (key as usize % SHARDS, (key >> 16) as usize % SETS)
}

impl Default for NetworkBuckets {
    fn default() -> Self {
        Self::new()
    }
}

crate::debug_as!(|it| NetworkBuckets { shards: it.shards.iter().filter(|shard| shard.get().is_some()).count() });
