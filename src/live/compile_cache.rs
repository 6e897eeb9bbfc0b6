//! Lets the sites of a process share memory. Identical files are compiled only once, and the agent
//! caches and rate limit buckets of all sites together have a size limit.
//!
//! **An earlier version is rarely parsed again for a comparison.** Usually, the grace period still
//! holds the compiled rules of this version, or the `CompileCache` contains the version, because a
//! site still uses it. A pending version is kept in its compiled form, so it need not be compiled
//! when it is accepted.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use super::agent_cache::Budget;
use super::snapshot::Compiled;
use super::{Mutex, VersionHash};
use crate::agent::Registry;
use crate::check;
use crate::rate::{NetworkBuckets, SiteBuckets};
use crate::rules::{Reading, RobotsTxt};

/// Number of slots that all agent caches of a [`CompileCache`] may have in total, in addition to
/// the initial eight slots of each cache. With 10,000 sites and all slots filled with headers of 90
/// bytes, the caches took 26 MiB (`benches/sites.rs`).
const MAX_EXTRA_SLOTS: usize = 64 << 10;

/// Shares compiled files between sites, and limits the total memory of the sites' agent caches and
/// rate limit buckets.
///
/// Cloning is cheap; clones share the compiled files and the limits. If a process has many sites,
/// give the same cache to every [`LiveBuilder`](crate::source::LiveBuilder); a builder without a
/// cache creates its own. Files that no site uses are not kept in memory.
#[derive(Clone)]
pub struct CompileCache {
    shared: Arc<SharedCompilations>,
}

struct SharedCompilations {
    /// The compiled versions, keyed by hash. A version is compiled more than once only if its sites
    /// have different settings.
    versions: Mutex<HashMap<VersionHash, Vec<Compilation>>>,
    budget: Arc<Budget>,
    networks: Arc<NetworkBuckets>,
    /// Number of [`SiteBuckets`] created so far, which is the id of the next `SiteBuckets`.
    sites: AtomicU64,
    /// Rate limit buckets, keyed by `SiteSettings::counted_as`. Sites without such a name are not
    /// in this map.
    named_buckets: Mutex<HashMap<String, SiteBuckets>>,
    /// When the steady clock for the rate limits started.
    began: Instant,
}

struct Compilation {
    reading: Reading,
    registry: Weak<Registry>,
    options: check::Options,
    compiled: Weak<Compiled>,
}

#[derive(Clone, Debug)]
pub(super) struct CompileSettings {
    pub(super) reading: Reading,
    pub(super) registry: Arc<Registry>,
    pub(super) check: check::Options,
}

impl CompileCache {
    /// Returns the rate limit buckets for a new site. Sites with the same name share their buckets.
    pub(super) fn join(&self, name: Option<&str>) -> SiteBuckets {
        let new =
            || SiteBuckets::new(self.shared.sites.fetch_add(1, Ordering::Relaxed), Arc::clone(&self.shared.networks));
        let Some(name) = name else { return new() };
        // An entry is complete when it is inserted, so the map has no incomplete entry even if a
        // panic has poisoned the lock.
        let mut named_buckets = self.shared.named_buckets.lock();
        if let Some(buckets) = named_buckets.get(name) {
            return buckets.clone();
        }
        if named_buckets.len() == named_buckets.capacity() {
            // Unused entries are removed before the map grows, so the size of the map stays
            // proportional to the number of sites.
            named_buckets.retain(|_, buckets| buckets.is_shared());
        }
        named_buckets.entry(name.to_owned()).or_insert_with(new).clone()
    }

    pub(super) fn began(&self) -> Instant {
        self.shared.began
    }

    /// Returns the version as compiled with these settings; `None` if no site uses it.
    pub(super) fn find(&self, hash: VersionHash, settings: &CompileSettings) -> Option<Arc<Compiled>> {
        find(&self.shared.versions.lock(), hash, settings, &settings.options())
    }

    pub(super) fn compile(&self, hash: VersionHash, robots: RobotsTxt, settings: &CompileSettings) -> Arc<Compiled> {
        let options = settings.options();
        if let Some(compiled) = find(&self.shared.versions.lock(), hash, settings, &options) {
            return compiled;
        }
        // The lock is not held while the version is compiled, so that a long file does not delay
        // other sites.
        let (reading, registry) = (settings.reading, &settings.registry);
        let compiled = Compiled::new(robots, hash, reading, registry, &options, self.shared.budget.clone());
        let compiled = Arc::new(compiled);
        let mut versions = self.shared.versions.lock();
        // If two sites have compiled the same version at the same time, both use the result that
        // was stored first.
        if let Some(first) = find(&versions, hash, settings, &options) {
            return first;
        }
        if versions.len() == versions.capacity() {
            // Unused versions are removed before the map grows, so the size of the map stays
            // proportional to the number of live versions.
            versions.retain(|_, compilations| {
                compilations.retain(|compilation| compilation.compiled.strong_count() > 0);
                !compilations.is_empty()
            });
        }
        let compilations = versions.entry(hash).or_default();
        compilations.retain(|compilation| compilation.compiled.strong_count() > 0);
        let (registry, made) = (Arc::downgrade(registry), Arc::downgrade(&compiled));
        compilations.push(Compilation { reading, registry, options, compiled: made });
        compiled
    }
}

impl CompileSettings {
    fn options(&self) -> check::Options {
        self.check.clone().with_registry(self.registry.clone())
    }
}

fn find(
    versions: &HashMap<VersionHash, Vec<Compilation>>,
    hash: VersionHash,
    settings: &CompileSettings,
    options: &check::Options,
) -> Option<Arc<Compiled>> {
    let is_same = |known: &&Compilation| {
        known.reading == settings.reading
            && std::ptr::eq(known.registry.as_ptr(), Arc::as_ptr(&settings.registry))
            && known.options == *options
    };
    versions.get(&hash)?.iter().filter(is_same).find_map(|known| known.compiled.upgrade())
}

impl Default for CompileCache {
    fn default() -> Self {
        Self {
            shared: Arc::new(SharedCompilations {
                versions: Mutex::default(),
                budget: Budget::new(MAX_EXTRA_SLOTS),
                networks: Arc::new(NetworkBuckets::new()),
                sites: AtomicU64::new(0),
                named_buckets: Mutex::default(),
                began: Instant::now(),
            }),
        }
    }
}

robots_core::debug_as!(|it| CompileCache { versions: it.shared.versions.lock().len() });
