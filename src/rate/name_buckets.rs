//! The buckets of names: each is made when its name first needs one, and stays where it is.
//!
//! A delay of `*` holds for each of hundreds of registered crawlers, of which a site sees a few. Entries are never taken out, so
//! they are found without a lock, and what refers to them needs none either.

use std::hash::BuildHasher;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::gcra::Bucket;
use super::key::RateSender;
use crate::rules::ProductToken;

/// Lists of entries, 1 KiB; they are made with the first entry.
const LISTS: usize = 64;

/// The buckets that a bounded number of names has, a word each.
#[derive(Default)]
pub(super) struct NameBuckets {
    lists: OnceLock<Box<[EntryLink; LISTS]>>,
    len: AtomicUsize,
    hasher: foldhash::quality::RandomState,
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
