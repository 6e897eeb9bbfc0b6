//! Requests reach this process by different network paths, for example through a CDN or directly
//! ([`ClaimPath`]). For each crawler and each path, this module has a circuit breaker. The breaker
//! opens if checks of the crawler's address or signature probably fail because of a proxy on the
//! path. While the breaker is open, a client on this path may still be the crawler that it claims
//! to be, even if its checks fail. A file stores the time when each crawler was last verified on
//! each path.

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

/// Maximum number of breakers. If this number is reached, a new breaker replaces a breaker whose
/// crawler was not verified recently. If all crawlers were verified recently, a claim that needs a
/// new breaker is not refuted.
const MAX_PATHS: usize = 4_096;

/// The way that a request took to this process (not the path of a URL), identified by site and
/// listener. On one claim path, either all requests arrive with the clients' own addresses, or all
/// arrive with addresses of the same proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClaimPath<'a> {
    /// The requested site.
    pub site: &'a str,
    /// Listener that received the request.
    pub listener: &'a str,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CrawlerPath<'a> {
    path: ClaimPath<'a>,
    crawler: &'a str,
    pub(super) key: u64,
}

/// The methods of identification whose results are counted separately. `Range` also includes checks
/// of reverse DNS names.
const METHODS: [IdentityMethod; 2] = [IdentityMethod::Range, IdentityMethod::Signature];

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

const SHARDS: usize = 16;

/// The breakers of all crawlers on all claim paths. Breakers count clients, not requests. A
/// verified client is counted only once per minute, so most of its requests need no lock.
#[derive(Debug, Default)]
pub(super) struct ClaimPaths {
    shards: [Mutex<PathTable>; SHARDS],
    known: AtomicUsize,
    verified: RecentMarks,
    hasher: RandomState,
    /// The reason why results cannot be saved, or why the results of an earlier process could not
    /// be loaded.
    pub(super) problem: Mutex<Option<Arc<str>>>,
}

type PathTable = HashMap<u64, BreakerEntry, RandomState>;

#[derive(Debug)]
struct BreakerEntry {
    site: Box<str>,
    listener: Box<str>,
    crawler: Box<str>,
    breaker: PathBreaker,
    used: SystemTime,
}

/// A suspect claim path, and the crawler that fails the checks there. Failed checks on this path do
/// not refute claims to be this crawler, because a proxy may have caused the failures.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SuspectPath {
    /// The requested site.
    pub site: String,
    /// The listener that received the requests.
    pub listener: String,
    /// The claimed crawler; an empty string for signed requests whose `User-Agent` does not name a
    /// registered crawler.
    pub crawler: String,
    /// The method of identification whose checks fail. [`Range`](IdentityMethod::Range) covers both
    /// checks of an address: by a list, and by reverse DNS names. Checks of signatures fail if a
    /// proxy changes signed fields such as `Host`, or if the clock is wrong.
    pub method: IdentityMethod,
    /// Up to three networks of clients whose checks failed. If `method` is `Range`, one of these
    /// networks probably belongs to a proxy that is not configured as trusted.
    pub networks: Vec<Network>,
    /// When the crawler was last verified on this path by this method.
    pub last_verified: Option<SystemTime>,
}

impl ClaimPaths {
    pub(super) fn of_crawler<'a>(&self, path: ClaimPath<'a>, crawler: &'a str) -> CrawlerPath<'a> {
        CrawlerPath { path, crawler, key: self.hasher.hash_one((path, crawler)) }
    }

    /// Counts the result of checking a claim, and returns the identity to use. If the claim path is
    /// suspect ([`SuspectPath`]), a refuted claim becomes undecided.
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
            && !self.verified.is_new(self.client_hash(key, method, address, now))
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
        let counted = paths.entry(key).or_insert_with(|| BreakerEntry {
            site: path.site.into(),
            listener: path.listener.into(),
            crawler: crawler.into(),
            breaker: PathBreaker::default(),
            used: now,
        });
        counted.used = now;
        counted.breaker.record(identity, address, now);
        counted.breaker.effective_identity(identity, now)
    }

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

    /// Loads the results of an earlier process. Ignores times that are more than a day old. Also
    /// ignores times in the future, which come from a wrong clock.
    pub(super) fn restore(&self, verified: Vec<VerifiedPath>, now: SystemTime) {
        let time = |seconds: Option<u64>| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds?));
        for VerifiedPath { site, listener, crawler, verified, signed } in verified.into_iter().take(MAX_PATHS) {
            let [verified, signed] = [verified, signed].map(time);
            let lately = |time: Option<SystemTime>| time.filter(|at| is_of_last_day(*at, now));
            let breaker = PathBreaker::new(lately(verified), lately(signed));
            let key = self.of_crawler(ClaimPath { site: &site, listener: &listener }, &crawler).key;
            let used = verified.max(signed).unwrap_or(SystemTime::UNIX_EPOCH);
            let counted = BreakerEntry { site, listener, crawler, breaker, used };
            if self.shard(key).insert(key, counted).is_none() {
                self.known.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Returns the hash that identifies a verified client in [`RecentMarks`] for one minute, so
    /// that the client is counted only once in this minute. `path` is the value of
    /// [`CrawlerPath::key`]. The hash covers only a few integers, because this function runs for
    /// every request of a crawler.
    fn client_hash(&self, path: u64, method: IdentityMethod, address: Option<PublicAddress>, now: SystemTime) -> u64 {
        let client = address.map_or(0, |address| bits(address.get()));
        self.hasher.hash_one((path, client, minute(now) << 2 | method as u64))
    }

    /// Reports whether a breaker can be added. If there are already [`MAX_PATHS`] breakers, first
    /// removes from `paths` the least recently used breaker whose crawler was not verified within
    /// the last day. So clients with invented claims cannot displace the breakers of verified
    /// crawlers.
    fn has_room(&self, paths: &mut PathTable, now: SystemTime) -> bool {
        if self.known.fetch_add(1, Ordering::Relaxed) < MAX_PATHS {
            return true;
        }
        self.known.fetch_sub(1, Ordering::Relaxed);
        let unverified = paths.iter().filter(|(_, counted)| !counted.is_verified(now));
        let oldest = unverified.min_by_key(|(_, counted)| counted.used).map(|(key, _)| *key);
        oldest.is_some_and(|oldest| paths.remove(&oldest).is_some())
    }

    fn shard(&self, key: u64) -> MutexGuard<'_, PathTable> {
        // The upper bits of the hash select the shard; the hash table in the shard uses the lower
        // bits.
        self.shards[(key >> 56) as usize % SHARDS].lock()
    }
}

impl BreakerEntry {
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

/// Resolution of saved times, in seconds. If the file contained exact times, each verified request
/// would change the file.
const STEP: u64 = 10 * 60;

/// Tolerance if a saved time is in the future, for example after the clock was set back.
const CLOCK_STEP: Duration = Duration::from_secs(60);

/// An entry of the file: the times when a crawler was last verified on a claim path, by a signature
/// (`signed`) and by its address (`verified`), in seconds since 1970.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct VerifiedPath {
    crawler: Box<str>,
    listener: Box<str>,
    signed: Option<u64>,
    site: Box<str>,
    verified: Option<u64>,
}

/// Interval at which new results are saved.
const SAVE_INTERVAL: Duration = if cfg!(test) { Duration::from_millis(10) } else { Duration::from_secs(60) };

/// The file that keeps the results of checks for the next start. For each claim path and crawler,
/// the file contains the time of the last verification. For each operator of crawlers, the file
/// also contains an address that was verified by its reverse DNS name.
///
/// Without this file, a new process could not refute claims until it has verified a genuine
/// crawler.
#[derive(Clone, Debug)]
pub(super) struct SavedPaths(PathBuf);

#[derive(Debug, Default, Serialize)]
struct SavedResults {
    paths: Vec<VerifiedPath>,
    proofs: Vec<ResolverProof>,
}

impl SavedPaths {
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self(folder.join("claim-paths.json"))
    }

    pub(super) fn restore(&self, now: SystemTime) -> (Arc<ClaimPaths>, Arc<OperatorTable>) {
        let paths = Arc::new(ClaimPaths::default());
        let learned = self.load(now).unwrap_or_else(|problem| {
            *paths.problem.lock() = Some(problem.into());
            SavedResults::default()
        });
        paths.restore(learned.paths, now);
        (paths, Arc::new(OperatorTable::new(learned.proofs)))
    }

    /// Returns the saved results, except for times in the future, which were saved with a wrong
    /// clock. If the file contains such a time, also removes the file, because the time would seem
    /// valid later.
    fn load(&self, now: SystemTime) -> Result<SavedResults, String> {
        let mut learned = self.read()?;
        let known = learned.paths.len();
        learned.paths.retain(|path| path.verified.max(path.signed) <= Some(second(now + CLOCK_STEP)));
        if learned.paths.len() < known {
            fs::remove_file(&self.0).map_err(|error| format!("{}: {error}", self.0.display()))?;
        }
        Ok(learned)
    }

    /// Reads the file. Returns no results if the file does not exist.
    fn read(&self) -> Result<SavedResults, String> {
        let Some(value) = read_json(&self.0)? else { return Ok(SavedResults::default()) };
        let paths = value.get("paths").and_then(Value::as_array);
        let paths = paths.ok_or_else(|| format!("{}: `paths` is missing", self.0.display()))?;
        let proofs = value.get("proofs").and_then(Value::as_array);
        Ok(SavedResults { paths: parse_valid(paths), proofs: parse_valid(proofs.into_iter().flatten()) })
    }

    /// Saves the results at intervals of [`SAVE_INTERVAL`] if they have changed. Returns only if
    /// saving panics.
    pub(super) async fn keep(self, paths: Arc<ClaimPaths>, operators: Arc<OperatorTable>, clock: Clock) {
        let mut last = String::new();
        loop {
            tokio::time::sleep(SAVE_INTERVAL).await;
            let text = SavedResults { paths: paths.verified_paths(clock.now()), proofs: operators.proofs() }.written();
            if text == last || text.is_empty() {
                continue;
            }
            let (file, to_write) = (self.clone(), text.clone());
            // Another thread writes the file, because writing to a disk blocks.
            let saved = tokio::task::spawn_blocking(move || write_json(&file.0, &to_write)).await;
            match saved {
                Ok(Ok(())) => {
                    *paths.problem.lock() = None;
                    last = text;
                }
                Ok(Err(error)) => *paths.problem.lock() = Some(format!("{}: {error}", self.0.display()).into()),
                Err(_) => return,
            }
        }
    }
}

impl SavedResults {
    /// Returns the JSON to write. If there are no results, the string is empty, and the caller does
    /// not change the file.
    fn written(&self) -> String {
        let is_empty = self.paths.is_empty() && self.proofs.is_empty();
        if is_empty { String::new() } else { serde_json::to_string(self).unwrap_or_default() }
    }
}

/// Parses the values. Skips invalid values.
fn parse_valid<'v, T: Deserialize<'v>>(values: impl IntoIterator<Item = &'v Value>) -> Vec<T> {
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

    fn address(bytes: [u8; 4]) -> Option<PublicAddress> {
        PublicAddress::of(Some(IpAddr::from(bytes)), |_| false).ok()
    }

    fn path(site: &str) -> ClaimPath<'_> {
        ClaimPath { site, listener: "[::]:443" }
    }

    #[test]
    fn a_claim_is_refuted_on_a_path_only_after_the_crawler_was_verified_on_that_path() {
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
        assert_eq!(judge("b", "Googlebot", REFUTED), SUSPECT);
        assert_eq!(judge("a", "bingbot", REFUTED), SUSPECT);
        assert_eq!(paths.suspects(now).len(), 2);
    }

    #[test]
    fn paths_of_invented_claims_neither_block_nor_displace_paths_of_verified_claims() {
        let (paths, now) = (ClaimPaths::default(), SystemTime::now());
        let judge = |site: &str, identity, now| {
            paths.judge(paths.of_crawler(path(site), "Googlebot"), identity, address([9, 9, 9, 9]), now)
        };
        let flood = |from: usize, seconds: u64| {
            for number in from..from + 2 * MAX_PATHS {
                assert_eq!(judge(&number.to_string(), REFUTED, now + Duration::from_secs(seconds)), SUSPECT);
            }
            assert_eq!(paths.shards.iter().map(|shard| shard.lock().len()).sum::<usize>(), MAX_PATHS);
        };
        flood(0, 0);
        assert_eq!(judge("real", VERIFIED, now), VERIFIED);
        flood(2 * MAX_PATHS, 1);
        assert_eq!(judge("real", REFUTED, now), REFUTED);
        // A path is suspect for at most a day if all of its claims are invented.
        assert_eq!(paths.suspects(now).len(), MAX_PATHS - 1);
        assert_eq!(paths.suspects(now + DAY + DAY), []);
        // If the last verified claim on a path is more than a day old, another path may displace
        // this path.
        flood(4 * MAX_PATHS, DAY.as_secs() + 2);
        assert!(paths.shards.iter().all(|shard| shard.lock().values().all(|counted| &*counted.site != "real")));
    }

    #[test]
    fn no_claim_is_refuted_on_paths_beyond_the_maximum_number_of_breakers() {
        let (paths, now) = (ClaimPaths::default(), SystemTime::now());
        for number in 0..=MAX_PATHS {
            let site = number.to_string();
            paths.judge(paths.of_crawler(path(&site), "Googlebot"), VERIFIED, address([8, 8, 8, 8]), now);
        }
        let last = MAX_PATHS.to_string();
        let judge = |site| paths.judge(paths.of_crawler(path(site), "Googlebot"), REFUTED, address([9, 9, 9, 9]), now);
        assert_eq!((judge("0"), judge(&last)), (REFUTED, SUSPECT));
        assert_eq!(paths.shards.iter().map(|shard| shard.lock().len()).sum::<usize>(), MAX_PATHS);
    }
}
