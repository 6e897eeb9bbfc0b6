//! The buckets of a site.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::gcra::{Bucket, Quota, TooSoon};
use super::key::{RateKey, RateSender, SharedNetwork};
use super::network_buckets::NetworkBuckets;
use crate::rules::ProductToken;

/// Finds the bucket of a sender. Cheap to clone; clones share the buckets.
///
/// Names that the site was made with have words of their own, which [`SiteBuckets::with_tokens`] takes over, so that a reload
/// gives nobody a new burst. Any other name is one that a client made up, and has a bucket among those of networks.
#[derive(Clone)]
pub struct SiteBuckets {
    site: u64,
    pub(super) named: Arc<HashMap<ProductToken, Arc<TokenBuckets>, foldhash::fast::RandomState>>,
    pub(super) networks: Arc<NetworkBuckets>,
}

/// The buckets of a crawler that have a word each.
#[derive(Debug, Default)]
pub(super) struct TokenBuckets {
    verified: Bucket,
    refuted: Bucket,
    /// Of those that claim the name from an address that is not known.
    unaddressed: Bucket,
}

impl SiteBuckets {
    /// Without words. `site` tells the sites apart that share the buckets of networks.
    #[must_use]
    pub fn new(site: u64, networks: Arc<NetworkBuckets>) -> Self {
        Self { site, named: Arc::default(), networks }
    }

    /// With a word for each of these names, and those it has that are still in use: of a name that it has already, the same
    /// words.
    #[must_use]
    pub fn with_tokens<'t>(&self, tokens: impl IntoIterator<Item = &'t ProductToken>, now: Duration) -> Self {
        let mut named = HashMap::default();
        for token in tokens {
            let known = self.named.get(token).cloned();
            named.entry(token.clone()).or_insert_with(|| known.unwrap_or_default());
        }
        for (token, buckets) in self.named.iter().filter(|(_, buckets)| !buckets.are_full(now)) {
            named.entry(token.clone()).or_insert_with(|| buckets.clone());
        }
        Self { site: self.site, named: Arc::new(named), networks: self.networks.clone() }
    }

    /// Takes one request from the bucket of a sender.
    ///
    /// # Errors
    ///
    /// If it comes too soon. Nothing is taken then.
    pub fn take(&self, key: &RateKey<'_>, quota: Quota, now: Duration) -> Result<(), TooSoon> {
        if let RateSender::Claimed(Some(address)) = key.sender() {
            return self.networks.take(&(self.site, key.token(), SharedNetwork::of(address)), quota, now);
        }
        match key.token().and_then(|token| self.named.get(token)) {
            Some(buckets) => buckets.of(key.sender()).take(quota, now),
            None => self.networks.take(&(self.site, key), quota, now),
        }
    }

    /// Whether a request of a sender would pass. Nothing is taken.
    ///
    /// # Errors
    ///
    /// If it would come too soon.
    pub fn look(&self, key: &RateKey<'_>, quota: Quota, now: Duration) -> Result<(), TooSoon> {
        if let RateSender::Claimed(Some(address)) = key.sender() {
            return self.networks.look(&(self.site, key.token(), SharedNetwork::of(address)), quota, now);
        }
        match key.token().and_then(|token| self.named.get(token)) {
            Some(buckets) => buckets.of(key.sender()).look(quota, now),
            None => self.networks.look(&(self.site, key), quota, now),
        }
    }
}

impl TokenBuckets {
    const fn of(&self, sender: RateSender) -> &Bucket {
        match sender {
            RateSender::Verified => &self.verified,
            RateSender::Refuted => &self.refuted,
            RateSender::Claimed(_) => &self.unaddressed,
        }
    }

    fn are_full(&self, now: Duration) -> bool {
        [&self.verified, &self.refuted, &self.unaddressed].into_iter().all(|bucket| bucket.is_full(now))
    }
}

impl fmt::Debug for SiteBuckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SiteBuckets")
            .field("site", &self.site)
            .field("named", &self.named.len())
            .finish_non_exhaustive()
    }
}
