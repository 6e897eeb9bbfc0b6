//! A breaker for each path that claims come on.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use foldhash::fast::RandomState;

use super::recent_marks::RecentMarks;
use crate::agent::{Identity, IdentityMethod, Network, UndecidedReason};
use crate::identity::{Breaker, PublicAddress};

/// Paths that have a breaker of their own. On more nothing is refuted.
const MOST: usize = 4_096;

/// The way of a request: claims of one crawler on one path come from its addresses, or from those of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClaimPath<'a> {
    /// The site that is asked.
    pub site: &'a str,
    /// The listener that the request came in at.
    pub listener: &'a str,
}

/// Parts of the breakers with a lock of their own.
const SHARDS: usize = 16;

/// The breakers of a process.
///
/// A claim that verifies is counted once a minute, whatever the number of requests: the breaker counts clients, not
/// requests. So the common request takes no lock.
#[derive(Debug, Default)]
pub(super) struct ClaimPaths {
    /// By the hash of path and crawler, so that no request copies names.
    shards: [Mutex<PathTable>; SHARDS],
    /// How many paths there are.
    known: AtomicUsize,
    verified: RecentMarks,
    hasher: RandomState,
}

type PathTable = HashMap<u64, Counted, RandomState>;

#[derive(Debug)]
struct Counted {
    site: Box<str>,
    listener: Box<str>,
    crawler: Box<str>,
    breaker: Breaker,
}

/// A path on which nothing is refuted now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SuspectPath {
    /// The site.
    pub site: String,
    /// The listener.
    pub listener: String,
    /// The crawler that is claimed.
    pub crawler: String,
    /// The networks that most of the addresses are in that fail: one of them is probably that of a proxy that is not
    /// configured as trusted.
    pub networks: Vec<Network>,
    /// When the crawler was last verified on it.
    pub last_verified: Option<SystemTime>,
}

impl ClaimPaths {
    /// Counts what the methods say about a claim, and says what counts: on a suspect path nothing is refuted.
    pub(super) fn judge(
        &self,
        path: ClaimPath<'_>,
        crawler: &str,
        identity: Identity,
        address: Option<PublicAddress>,
        now: SystemTime,
    ) -> Identity {
        if !matches!(identity, Identity::Verified(_) | Identity::Refuted(_)) {
            return identity;
        }
        let key = self.hasher.hash_one((path, crawler));
        if let Identity::Verified(method) = identity {
            let minute = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() / 60);
            if !self.verified.is_new(self.hasher.hash_one((key, address, method, minute))) {
                return identity;
            }
        }
        let mut paths = self.shard(key);
        let counted = match paths.get_mut(&key) {
            Some(counted) => counted,
            None if self.known.fetch_add(1, Ordering::Relaxed) >= MOST => {
                self.known.fetch_sub(1, Ordering::Relaxed);
                return match identity {
                    Identity::Refuted(why) if why.method() != IdentityMethod::Signature => {
                        Identity::Undecided(UndecidedReason::SuspectPath)
                    }
                    identity => identity,
                };
            }
            None => paths.entry(key).or_insert_with(|| Counted {
                site: path.site.into(),
                listener: path.listener.into(),
                crawler: crawler.into(),
                breaker: Breaker::default(),
            }),
        };
        counted.breaker.record(identity, address, now);
        counted.breaker.applied_to(identity, now)
    }

    /// The paths on which claims failed and are not refuted.
    pub(super) fn suspects(&self, now: SystemTime) -> Vec<SuspectPath> {
        let mut suspects: Vec<SuspectPath> = Vec::new();
        for paths in self.shards.iter().map(lock) {
            let suspect = paths.values().filter(|counted| counted.breaker.is_suspect(IdentityMethod::Range, now));
            suspects.extend(suspect.map(|counted| SuspectPath {
                site: counted.site.to_string(),
                listener: counted.listener.to_string(),
                crawler: counted.crawler.to_string(),
                networks: counted.breaker.refuted_networks(),
                last_verified: counted.breaker.last_verified(),
            }));
        }
        suspects.retain(|suspect| !suspect.networks.is_empty());
        suspects.sort_by(|left, right| (&left.site, &left.crawler).cmp(&(&right.site, &right.crawler)));
        suspects
    }

    fn shard(&self, key: u64) -> MutexGuard<'_, PathTable> {
        // The upper bits: the tables use the others.
        lock(&self.shards[(key >> 56) as usize % SHARDS])
    }
}

fn lock(shard: &Mutex<PathTable>) -> MutexGuard<'_, PathTable> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::agent::Refutation;

    const VERIFIED: Identity = Identity::Verified(IdentityMethod::Range);
    const REFUTED: Identity = Identity::Refuted(Refutation::NotListed);
    const SUSPECT: Identity = Identity::Undecided(UndecidedReason::SuspectPath);

    fn address(octets: [u8; 4]) -> Option<PublicAddress> {
        PublicAddress::of(Some(IpAddr::from(octets)), |_| false).ok()
    }

    fn path(site: &str) -> ClaimPath<'_> {
        ClaimPath { site, listener: "[::]:443" }
    }

    #[test]
    fn a_path_refutes_once_its_crawler_was_verified_on_it() {
        let (paths, now) = (ClaimPaths::default(), SystemTime::now());
        let judge = |site, crawler, identity| paths.judge(path(site), crawler, identity, address([9, 9, 9, 9]), now);
        assert_eq!(judge("a", "Googlebot", REFUTED), SUSPECT);
        let suspects = paths.suspects(now);
        assert_eq!((suspects.len(), &*suspects[0].site, &*suspects[0].crawler), (1, "a", "Googlebot"));
        assert_eq!(suspects[0].networks, ["9.9.9.0/24".parse().expect("a network")]);
        assert_eq!(judge("a", "Googlebot", VERIFIED), VERIFIED);
        assert_eq!(judge("a", "Googlebot", REFUTED), REFUTED);
        assert_eq!(paths.suspects(now), []);
        // Each site and each crawler by itself.
        assert_eq!(judge("b", "Googlebot", REFUTED), SUSPECT);
        assert_eq!(judge("a", "bingbot", REFUTED), SUSPECT);
        assert_eq!(paths.suspects(now).len(), 2);
    }

    #[test]
    fn on_more_paths_than_there_are_breakers_for_nothing_is_refuted() {
        let (paths, now) = (ClaimPaths::default(), SystemTime::now());
        for number in 0..=MOST {
            let site = number.to_string();
            paths.judge(path(&site), "Googlebot", VERIFIED, address([8, 8, 8, 8]), now);
        }
        let last = MOST.to_string();
        let judge = |site| paths.judge(path(site), "Googlebot", REFUTED, address([9, 9, 9, 9]), now);
        assert_eq!((judge("0"), judge(&last)), (REFUTED, SUSPECT));
        assert_eq!(paths.shards.iter().map(|shard| lock(shard).len()).sum::<usize>(), MOST);
    }
}
