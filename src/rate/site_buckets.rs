//! The buckets of a site.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::gcra::{Quota, TooSoon};
use super::key::{RateKey, RateSender, SharedNetwork};
use super::name_buckets::NameBuckets;
use super::network_buckets::NetworkBuckets;

/// Finds the bucket of a sender. Cheap to clone; clones share the buckets, so a reload that keeps them gives nobody a new burst.
///
/// A name that a key has is that of a crawler which somebody knows, so there are few: each has words of its own from its first
/// request on. Where there are more than [`SiteBuckets::MOST_NAMES`], the others have buckets among those of networks.
#[derive(Clone)]
pub struct SiteBuckets {
    shared: Arc<SharedBuckets>,
    networks: Arc<NetworkBuckets>,
}

struct SharedBuckets {
    site: u64,
    names: NameBuckets,
    refused: AtomicU32,
}

impl SiteBuckets {
    /// The most names that have words of their own.
    pub const MOST_NAMES: usize = NameBuckets::CAPACITY;

    /// Without words. `site` tells the sites apart that share the buckets of networks.
    #[must_use]
    pub fn new(site: u64, networks: Arc<NetworkBuckets>) -> Self {
        let shared = SharedBuckets { site, names: NameBuckets::default(), refused: AtomicU32::new(0) };
        Self { shared: Arc::new(shared), networks }
    }

    /// Takes one request from the bucket of a sender.
    ///
    /// # Errors
    ///
    /// If it comes too soon. Nothing is taken then.
    pub fn take(&self, key: &RateKey<'_>, quota: Quota, now: Duration) -> Result<(), TooSoon> {
        let site = self.shared.site;
        if let RateSender::Claimed(Some(address)) = key.sender() {
            return self.networks.take(&(site, key.token(), SharedNetwork::of(address)), quota, now);
        }
        match key.token().and_then(|token| self.shared.names.of(token)) {
            Some(buckets) => buckets.of(key.sender()).take(quota, now),
            None => self.networks.take(&(site, key), quota, now),
        }
    }

    /// Whether a request of a sender would pass. Nothing is taken.
    ///
    /// # Errors
    ///
    /// If it would come too soon.
    pub fn look(&self, key: &RateKey<'_>, quota: Quota, now: Duration) -> Result<(), TooSoon> {
        let site = self.shared.site;
        if let RateSender::Claimed(Some(address)) = key.sender() {
            return self.networks.look(&(site, key.token(), SharedNetwork::of(address)), quota, now);
        }
        match key.token().and_then(|token| self.shared.names.of(token)) {
            Some(buckets) => buckets.of(key.sender()).look(quota, now),
            None => self.networks.look(&(site, key), quota, now),
        }
    }

    /// Counts a request that was refused because it came too soon; how many there were before it. After four thousand million the
    /// count begins again.
    pub fn refused(&self) -> u32 {
        self.shared.refused.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether anything else has these buckets too.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.shared) > 1
    }

    /// How many names have words.
    #[cfg(test)]
    pub(super) fn names(&self) -> usize {
        self.shared.names.len()
    }
}

impl fmt::Debug for SiteBuckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SiteBuckets")
            .field("site", &self.shared.site)
            .field("names", &self.shared.names.len())
            .finish_non_exhaustive()
    }
}
