//! The buckets of a site: a few buckets for each crawler name. Clients with unverified claims are
//! counted by network, in buckets that all sites share.
//!
//! **Buckets outlive snapshots and sites.** All snapshots of a site share its buckets. If a site is
//! opened again under the same name (`LiveBuilder::counted_as`), the new site uses the same
//! buckets. So a reload does not give any sender a new burst.
//!
//! A crawler name has buckets only if it is in the registry or in the robots.txt, or if the claim
//! to be this crawler is verified. So there are few buckets, and [`SiteBuckets::MAX_NAMES`] limits
//! the number of names. A monotonic clock measures all times from the creation of the
//! `CompileCache`, which all sites of a process share.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use foldhash::quality::RandomState;

use super::gcra::{Bucket, Quota, RateKey, RateSender, nanoseconds};
use crate::agent::Network;
use crate::rules::ProductToken;

/// Finds the bucket of a sender. Cloning is cheap, and clones share the buckets.
///
/// If [`SiteBuckets::MAX_NAMES`] crawler names already have buckets, requests with other names use
/// the [`NetworkBuckets`].
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
    /// Maximum number of crawler names with buckets of their own.
    pub const MAX_NAMES: usize = NameBuckets::CAPACITY;

    /// Creates empty buckets. `site` is a number that distinguishes this site from other sites that
    /// share `networks`.
    pub fn new(site: u64, networks: Arc<NetworkBuckets>) -> Self {
        let shared = SharedBuckets { site, names: NameBuckets::default(), refused: AtomicU32::new(0) };
        Self { shared: Arc::new(shared), networks }
    }

    /// Counts one request in the bucket of a sender if the request may pass.
    ///
    /// # Errors
    ///
    /// Returns the time to wait if the request exceeds the quota. The bucket does not count refused
    /// requests.
    pub fn take(&self, key: &RateKey<'_>, quota: Quota, now: Duration) -> Result<(), Duration> {
        match self.bucket(key) {
            Ok(bucket) => bucket.take(quota, now),
            Err(hash) => self.networks.take(hash, quota, now),
        }
    }

    /// Reports whether a request from a sender would pass, without counting it in the bucket.
    ///
    /// # Errors
    ///
    /// Returns the time to wait if the request would exceed the quota.
    pub fn look(&self, key: &RateKey<'_>, quota: Quota, now: Duration) -> Result<(), Duration> {
        match self.bucket(key) {
            Ok(bucket) => bucket.look(quota, now),
            Err(hash) => self.networks.look(hash, quota, now),
        }
    }

    /// Returns the bucket for a key. If the key's bucket is one of `networks`, returns `Err` with
    /// the hash that selects this bucket.
    fn bucket(&self, key: &RateKey<'_>) -> Result<&Bucket, u64> {
        let (site, hasher) = (self.shared.site, &self.networks.hasher);
        // IPv6 clients are counted by /64, because a client can choose the last 64 bits of its
        // address.
        if let RateSender::Claimed(Some(address)) = key.sender {
            return Err(hasher.hash_one((site, key.token, Network::around(address, 32, 64))));
        }
        let buckets = key.token.and_then(|token| self.shared.names.of(token));
        buckets.map(|buckets| buckets.of(key.sender)).ok_or_else(|| hasher.hash_one((site, key)))
    }

    /// Counts a request that was refused because its crawl delay had not passed yet. Returns the
    /// number of requests that were refused before this one. The number wraps around after
    /// `u32::MAX`.
    pub fn refused(&self) -> u32 {
        self.shared.refused.fetch_add(1, Ordering::Relaxed)
    }

    /// Reports whether another clone of these buckets exists.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.shared) > 1
    }
}

crate::debug_as!(|it| SiteBuckets { site: it.shared.site, names: it.shared.names.len() });

/// Number of linked lists of names. The heads of the lists take 1 KiB in total and are allocated
/// when the first name is added.
const LISTS: usize = 64;

/// Buckets for a limited number of crawler names.
///
/// A delay in a group for `*` applies to hundreds of registered crawlers, but only a few of them
/// visit a site. So the buckets of a name are created on the first request with this name. The
/// buckets are never removed, so lookups need no lock.
#[derive(Default)]
pub(super) struct NameBuckets {
    lists: OnceLock<Box<[EntryLink; LISTS]>>,
    len: AtomicUsize,
    hasher: RandomState,
}

type EntryLink = OnceLock<Box<NameEntry>>;

struct NameEntry {
    token: ProductToken,
    buckets: TokenBuckets,
    next: EntryLink,
}

#[derive(Debug, Default)]
pub(super) struct TokenBuckets {
    verified: Bucket,
    refuted: Bucket,
    /// Bucket of senders with an unverified claim and an unknown address.
    unaddressed: Bucket,
}

impl NameBuckets {
    /// Maximum number of names. The registry contains fewer crawlers.
    pub(super) const CAPACITY: usize = 4096;

    /// Returns the buckets of a name, and creates them if necessary. `None` if the name is new and
    /// the maximum number of names is reached.
    pub(super) fn of(&self, token: &ProductToken) -> Option<&TokenBuckets> {
        let list = self.hasher.hash_one(token) as usize % LISTS;
        let mut link = &self.lists.get_or_init(|| Box::new([const { EntryLink::new() }; LISTS]))[list];
        loop {
            let entry = match link.get() {
                Some(entry) => entry,
                None if self.len() >= Self::CAPACITY => return None,
                // Another thread may add a different name here at the same time, so the code below
                // compares the token of the entry.
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

/// Number of sets per shard. Each shard has a lock. All shards together have 65,536 entries, which
/// take 1 MiB.
const SETS: usize = 128;
const SHARDS: usize = 64;
/// Number of entries per set. A set takes two cache lines.
const WAYS: usize = 8;

/// A bounded number of buckets for networks. Many sites share the buckets.
///
/// The number of buckets is bounded because a client can choose its name and, within limits, its
/// address. The hash of a sender selects a small set of entries. If all entries of the set are in
/// use, a new sender replaces the entry whose bucket will be full first. A sender whose entry was
/// replaced starts again with a full burst.
pub struct NetworkBuckets {
    /// Shards, each with its own lock. A shard is allocated with its first entry; most processes
    /// need no shard.
    pub(super) shards: [OnceLock<Mutex<Box<[EntrySet]>>>; SHARDS],
    hasher: RandomState,
}

#[derive(Clone, Copy, Default)]
pub(super) struct NetworkEntry {
    /// Hash of the site, the crawler's token and the sender, keyed with random secrets of this
    /// process. Senders with equal hashes share a bucket. Two senders are likely to have equal
    /// hashes only if there are about 2^32 senders.
    key: u64,
    /// The value that a [`Bucket`] would contain; 0 if the entry is free.
    pub(super) full_at: u64,
}

#[derive(Clone, Copy, Default)]
#[repr(align(128))]
pub(super) struct EntrySet(pub(super) [NetworkEntry; WAYS]);

impl NetworkBuckets {
    /// Maximum number of entries, one per sender.
    pub const CAPACITY: usize = SHARDS * SETS * WAYS;

    /// Creates buckets without entries.
    pub fn new() -> Self {
        Self { shards: [const { OnceLock::new() }; SHARDS], hasher: RandomState::default() }
    }

    fn take(&self, key: u64, quota: Quota, now: Duration) -> Result<(), Duration> {
        let (shard, set) = place(key);
        let shard = self.shards[shard].get_or_init(|| Mutex::new(vec![EntrySet::default(); SETS].into()));
        // A poisoned lock can be used: entries are plain numbers, so a panic leaves no entry half
        // written.
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let set = &mut shard[set].0;
        let known = set.iter().position(|entry| entry.key == key && entry.full_at > 0);
        let place = known.unwrap_or_else(|| {
            let oldest = set.iter().enumerate().min_by_key(|(_, entry)| entry.full_at);
            oldest.map_or(0, |(place, _)| place)
        });
        let full_at = known.map_or(0, |place| set[place].full_at);
        let (full_at, taken) = quota.take(full_at, nanoseconds(now));
        set[place] = NetworkEntry { key, full_at };
        taken
    }

    fn look(&self, key: u64, quota: Quota, now: Duration) -> Result<(), Duration> {
        let (shard, set) = place(key);
        let Some(shard) = self.shards[shard].get() else { return Ok(()) };
        let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let known = shard[set].0.iter().find(|entry| entry.key == key);
        quota.look(known.map_or(0, |entry| entry.full_at), nanoseconds(now))
    }
}

/// Returns the index of a key's shard, and the index of its set in this shard.
const fn place(key: u64) -> (usize, usize) {
    (key as usize % SHARDS, (key >> 16) as usize % SETS)
}

impl Default for NetworkBuckets {
    fn default() -> Self {
        Self::new()
    }
}

crate::debug_as!(|it| NetworkBuckets { shards: it.shards.iter().filter(|shard| shard.get().is_some()).count() });
