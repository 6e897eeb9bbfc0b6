//! A breaker for each path that claims come on, and the file that keeps what it learned for the next start.

use std::collections::HashMap;
use std::fs;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, SystemTime};

use foldhash::fast::RandomState;
use robots_core::internals::bits;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lookup_queue::RecentMarks;
use super::path_breaker::PathBreaker;
use super::verification_plan::{OperatorTable, ResolverProof};
use super::verified_claims::{minute, second};
use crate::agent::{Identity, IdentityMethod, Network, UndecidedReason};
use crate::identity::PublicAddress;
use crate::live::{Clock, Mutex};
use crate::source::follow::{read_json, write_json};

/// Paths that have a breaker of their own. If crawlers were lately verified on so many, nothing is refuted on others.
const MOST: usize = 4_096;

/// The way of a request: claims of one crawler on one path come from its addresses, or from those of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClaimPath<'a> {
    /// The site that is requested.
    pub site: &'a str,
    /// The listener that the request came in at.
    pub listener: &'a str,
}

/// The claims of one crawler on a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct CrawlerPath<'a> {
    path: ClaimPath<'a>,
    crawler: &'a str,
    /// The hash of both.
    pub(super) key: u64,
}

/// Failures are counted apart for addresses and for signatures.
const METHODS: [IdentityMethod; 2] = [IdentityMethod::Range, IdentityMethod::Signature];

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

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
    /// Why learned results will not outlive this process, or those of an earlier one are not known.
    pub(super) trouble: Mutex<Option<Arc<str>>>,
}

type PathTable = HashMap<u64, Counted, RandomState>;

#[derive(Debug)]
struct Counted {
    site: Box<str>,
    listener: Box<str>,
    crawler: Box<str>,
    breaker: PathBreaker,
    /// When a claim was last counted.
    used: SystemTime,
}

/// A path on which nothing is refuted now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SuspectPath {
    /// The site.
    pub site: String,
    /// The listener.
    pub listener: String,
    /// The crawler that is claimed; empty for signed requests that name none.
    pub crawler: String,
    /// The kind of evidence that fails: [`Range`](IdentityMethod::Range) stands for addresses, by lists or by names. If
    /// signatures fail, a proxy may change what they are over, such as `Host`, or the clock is wrong.
    pub method: IdentityMethod,
    /// The networks of the clients that fail, at most three. If addresses fail, one of them is probably that of a proxy which is
    /// not configured as trusted.
    pub networks: Vec<Network>,
    /// When the crawler was last verified on it by this method.
    pub last_verified: Option<SystemTime>,
}

impl ClaimPaths {
    /// The claims of a crawler on a path.
    pub(super) fn of_crawler<'a>(&self, path: ClaimPath<'a>, crawler: &'a str) -> CrawlerPath<'a> {
        CrawlerPath { path, crawler, key: self.hasher.hash_one((path, crawler)) }
    }

    /// Counts what the methods say about a claim, and says what counts: on a suspect path nothing is refuted.
    pub(super) fn judge(
        &self,
        claims: CrawlerPath<'_>,
        identity: Identity,
        address: Option<PublicAddress>,
        now: SystemTime,
    ) -> Identity {
        if !matches!(identity, Identity::Verified(_) | Identity::Refuted(_)) {
            return identity;
        }
        let CrawlerPath { path, crawler, key } = claims;
        if let Identity::Verified(method) = identity
            && !self.verified.is_new(self.mark(key, method, address, now))
        {
            return identity;
        }
        let mut paths = self.shard(key);
        if !paths.contains_key(&key) && !self.has_room(&mut paths, now) {
            return match identity {
                Identity::Refuted(_) => Identity::Undecided(UndecidedReason::SuspectPath),
                identity => identity,
            };
        }
        let counted = paths.entry(key).or_insert_with(|| Counted {
            site: path.site.into(),
            listener: path.listener.into(),
            crawler: crawler.into(),
            breaker: PathBreaker::default(),
            used: now,
        });
        counted.used = now;
        counted.breaker.record(identity, address, now);
        counted.breaker.applied_to(identity, now)
    }

    /// The paths on which claims failed and are not refuted.
    pub(super) fn suspects(&self, now: SystemTime) -> Vec<SuspectPath> {
        let mut suspects: Vec<SuspectPath> = Vec::new();
        for paths in self.shards.iter().map(Mutex::lock) {
            for counted in paths.values().filter(|counted| is_of_last_day(counted.used, now)) {
                suspects.extend(METHODS.into_iter().filter_map(|method| counted.suspect(method, now)));
            }
        }
        suspects.sort_by(|left, right| (&left.site, &left.crawler).cmp(&(&right.site, &right.crawler)));
        suspects
    }

    /// The paths on which crawlers were verified within a day.
    pub(super) fn verified_paths(&self, now: SystemTime) -> Vec<VerifiedPath> {
        let lately = |time: Option<SystemTime>| {
            let seconds = second(time.filter(|at| is_of_last_day(*at, now))?);
            Some(seconds - seconds % STEP)
        };
        let mut verified = Vec::new();
        for paths in self.shards.iter().map(Mutex::lock) {
            verified.extend(paths.values().map(|counted| VerifiedPath {
                site: counted.site.clone(),
                listener: counted.listener.clone(),
                crawler: counted.crawler.clone(),
                verified: lately(counted.breaker.last_verified(IdentityMethod::Range)),
                signed: lately(counted.breaker.last_verified(IdentityMethod::Signature)),
            }));
        }
        verified.retain(|path| path.verified.is_some() || path.signed.is_some());
        verified.sort_by(|left, right| {
            (&left.site, &left.crawler, &left.listener).cmp(&(&right.site, &right.crawler, &right.listener))
        });
        verified
    }

    /// Takes over what an earlier process learned. A time that is not of the last day says nothing: it is too old, or the clock
    /// was wrong then or is wrong now.
    pub(super) fn restore(&self, verified: Vec<VerifiedPath>, now: SystemTime) {
        let time = |seconds: Option<u64>| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds?));
        for VerifiedPath { site, listener, crawler, verified, signed } in verified.into_iter().take(MOST) {
            let [verified, signed] = [verified, signed].map(time);
            let lately = |time: Option<SystemTime>| time.filter(|at| is_of_last_day(*at, now));
            let breaker = PathBreaker::new(lately(verified), lately(signed));
            let key = self.of_crawler(ClaimPath { site: &site, listener: &listener }, &crawler).key;
            let used = verified.max(signed).unwrap_or(SystemTime::UNIX_EPOCH);
            let counted = Counted { site, listener, crawler, breaker, used };
            if self.shard(key).insert(key, counted).is_none() {
                self.known.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// The mark of the claims of one client that one method verifies within a minute. Few whole numbers are hashed: this is
    /// done for every request of a crawler.
    fn mark(&self, path: u64, method: IdentityMethod, address: Option<PublicAddress>, now: SystemTime) -> u64 {
        let client = address.map_or(0, |address| bits(address.get()));
        self.hasher.hash_one((path, client, minute(now) << 2 | method as u64))
    }

    /// Whether there is room for one more path. One on which no request was verified within a day makes room, the one that was used the
    /// longest ago: claims that are made up do not displace paths that bring the crawlers' own.
    fn has_room(&self, paths: &mut PathTable, now: SystemTime) -> bool {
        if self.known.fetch_add(1, Ordering::Relaxed) < MOST {
            return true;
        }
        self.known.fetch_sub(1, Ordering::Relaxed);
        let unverified = paths.iter().filter(|(_, counted)| !counted.is_verified(now));
        let oldest = unverified.min_by_key(|(_, counted)| counted.used).map(|(key, _)| *key);
        oldest.is_some_and(|oldest| paths.remove(&oldest).is_some())
    }

    fn shard(&self, key: u64) -> MutexGuard<'_, PathTable> {
        // The upper bits: the tables use the others.
        self.shards[(key >> 56) as usize % SHARDS].lock()
    }
}

impl Counted {
    /// Whether its crawler was verified on it within a day.
    fn is_verified(&self, now: SystemTime) -> bool {
        METHODS.iter().filter_map(|method| self.breaker.last_verified(*method)).any(|at| is_of_last_day(at, now))
    }

    fn suspect(&self, method: IdentityMethod, now: SystemTime) -> Option<SuspectPath> {
        let networks = self.breaker.refuted_networks(method);
        if networks.is_empty() || !self.breaker.is_suspect(method, now) {
            return None;
        }
        Some(SuspectPath {
            site: self.site.to_string(),
            listener: self.listener.to_string(),
            crawler: self.crawler.to_string(),
            method,
            networks,
            last_verified: self.breaker.last_verified(method),
        })
    }
}

fn is_of_last_day(at: SystemTime, now: SystemTime) -> bool {
    match now.duration_since(at) {
        Ok(age) => age < DAY,
        Err(ahead) => ahead.duration() <= CLOCK_STEP,
    }
}

/// Times are saved in steps of ten minutes, so that a file is not written for each request that verifies.
const STEP: u64 = 10 * 60;

/// A clock may be set back a little.
const CLOCK_STEP: Duration = Duration::from_secs(60);

/// A path, and when its crawler was last verified on it, in seconds since the epoch. The fields stand in the order of the file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct VerifiedPath {
    crawler: Box<str>,
    listener: Box<str>,
    /// By its signature.
    signed: Option<u64>,
    site: Box<str>,
    /// By its address.
    verified: Option<u64>,
}

/// How long what was learned is at most not saved.
const PAUSE: Duration = if cfg!(test) { Duration::from_millis(10) } else { Duration::from_secs(60) };

/// The file of a folder that keeps, for the next start, when crawlers were last verified on each path, and an address
/// that proves each operator's names.
///
/// Without it nothing would be refuted on a path, or by a name, from a restart until its crawler comes again.
#[derive(Clone, Debug)]
pub(super) struct SavedPaths(PathBuf);

/// The results that a process learned.
#[derive(Debug, Default, Serialize)]
struct Learned {
    paths: Vec<VerifiedPath>,
    proofs: Vec<ResolverProof>,
}

impl SavedPaths {
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self(folder.join("claim-paths.json"))
    }

    /// The results of an earlier process.
    pub(super) fn restore(&self, now: SystemTime) -> (Arc<ClaimPaths>, Arc<OperatorTable>) {
        let paths = Arc::new(ClaimPaths::default());
        let learned = self.load(now).unwrap_or_else(|trouble| {
            *paths.trouble.lock() = Some(trouble.into());
            Learned::default()
        });
        paths.restore(learned.paths, now);
        (paths, Arc::new(OperatorTable::new(learned.proofs)))
    }

    /// The saved results, as far as their times still count. A file with times that are still to come is removed: when
    /// they come, nothing would show any more that they are from a clock that was wrong.
    fn load(&self, now: SystemTime) -> Result<Learned, String> {
        let mut learned = self.read()?;
        let known = learned.paths.len();
        // A time that is still to come: the clock was wrong then, or is wrong now.
        learned.paths.retain(|path| path.verified.max(path.signed) <= Some(second(now + CLOCK_STEP)));
        if learned.paths.len() < known {
            fs::remove_file(&self.0).map_err(|error| format!("{}: {error}", self.0.display()))?;
        }
        Ok(learned)
    }

    /// Nothing if there is no file.
    fn read(&self) -> Result<Learned, String> {
        let Some(value) = read_json(&self.0)? else { return Ok(Learned::default()) };
        let paths = value.get("paths").and_then(Value::as_array);
        let paths = paths.ok_or_else(|| format!("{}: `paths` is missing", self.0.display()))?;
        let proofs = value.get("proofs").and_then(Value::as_array);
        Ok(Learned { paths: each(paths), proofs: each(proofs.into_iter().flatten()) })
    }

    /// Saves what is learned, whenever it has changed.
    pub(super) async fn keep(self, paths: Arc<ClaimPaths>, operators: Arc<OperatorTable>, clock: Clock) {
        let mut last = String::new();
        loop {
            tokio::time::sleep(PAUSE).await;
            let text = Learned { paths: paths.verified_paths(clock.now()), proofs: operators.proofs() }.written();
            if text == last || text.is_empty() {
                continue;
            }
            let (file, to_write) = (self.clone(), text.clone());
            // A disk takes its time.
            let saved = tokio::task::spawn_blocking(move || write_json(&file.0, &to_write)).await;
            match saved {
                Ok(Ok(())) => {
                    *paths.trouble.lock() = None;
                    last = text;
                }
                Ok(Err(error)) => *paths.trouble.lock() = Some(format!("{}: {error}", self.0.display()).into()),
                Err(_) => return,
            }
        }
    }
}

impl Learned {
    /// Empty where there is nothing to save: then a file that is there stays.
    fn written(&self) -> String {
        let is_empty = self.paths.is_empty() && self.proofs.is_empty();
        if is_empty { String::new() } else { serde_json::to_string(self).unwrap_or_default() }
    }
}

/// Those that can be read.
fn each<'v, T: Deserialize<'v>>(values: impl IntoIterator<Item = &'v Value>) -> Vec<T> {
    values.into_iter().filter_map(|value| T::deserialize(value).ok()).collect()
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
        let judge = |site, crawler, identity| {
            paths.judge(paths.of_crawler(path(site), crawler), identity, address([9, 9, 9, 9]), now)
        };
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
    fn claims_that_are_made_up_neither_block_nor_displace_those_that_verify() {
        let (paths, now) = (ClaimPaths::default(), SystemTime::now());
        let judge = |site: &str, identity, now| {
            paths.judge(paths.of_crawler(path(site), "Googlebot"), identity, address([9, 9, 9, 9]), now)
        };
        let flood = |from: usize, seconds: u64| {
            for number in from..from + 2 * MOST {
                assert_eq!(judge(&number.to_string(), REFUTED, now + Duration::from_secs(seconds)), SUSPECT);
            }
            assert_eq!(paths.shards.iter().map(|shard| shard.lock().len()).sum::<usize>(), MOST);
        };
        flood(0, 0);
        assert_eq!(judge("real", VERIFIED, now), VERIFIED);
        flood(2 * MOST, 1);
        assert_eq!(judge("real", REFUTED, now), REFUTED);
        // A path that was only ever made up is not reported for longer than a day.
        assert_eq!(paths.suspects(now).len(), MOST - 1);
        assert_eq!(paths.suspects(now + DAY + DAY), []);
        // Once no request is verified on it any more, its slot is free for others.
        flood(4 * MOST, DAY.as_secs() + 2);
        assert!(paths.shards.iter().all(|shard| shard.lock().values().all(|counted| &*counted.site != "real")));
    }

    #[test]
    fn on_more_paths_than_there_are_breakers_for_nothing_is_refuted() {
        let (paths, now) = (ClaimPaths::default(), SystemTime::now());
        for number in 0..=MOST {
            let site = number.to_string();
            paths.judge(paths.of_crawler(path(&site), "Googlebot"), VERIFIED, address([8, 8, 8, 8]), now);
        }
        let last = MOST.to_string();
        let judge = |site| paths.judge(paths.of_crawler(path(site), "Googlebot"), REFUTED, address([9, 9, 9, 9]), now);
        assert_eq!((judge("0"), judge(&last)), (REFUTED, SUSPECT));
        assert_eq!(paths.shards.iter().map(|shard| shard.lock().len()).sum::<usize>(), MOST);
    }
}
