//! Compiles equal files of many sites once, and contains the other data that the sites of a process
//! share to limit memory.
//!
//! **An earlier version is not parsed again for a comparison.** The publisher finds its compiled
//! form in the `CompileCache`, which contains every version that any site holds, or among the rules
//! of the grace period. A pending version stays compiled, so accepting it compiles nothing.

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

/// Number of slots that the agent caches of a [`CompileCache`] may have in total, in addition to
/// the initial eight slots of each cache. With 10,000 sites, all slots filled with headers of 90
/// bytes took 26 MiB (`benches/sites.rs`).
const PLACES: usize = 64 << 10;

/// Lets sites share compiled files, and limits the total memory of their agent caches and of the
/// rate limits by address.
///
/// Cheap to clone; clones share everything. Give one cache to every
/// [`LiveBuilder`](crate::source::LiveBuilder) of a process that has many sites; a builder without
/// one creates its own. The cache does not keep a file in memory that no site uses.
#[derive(Clone)]
pub struct CompileCache {
    shared: Arc<SharedCompilations>,
}

struct SharedCompilations {
    /// By hash. A hash has several entries only if the settings of sites differ.
    versions: Mutex<HashMap<VersionHash, Vec<Compilation>>>,
    budget: Arc<Budget>,
    networks: Arc<NetworkBuckets>,
    /// Number of sites that have joined.
    sites: AtomicU64,
    /// The rate limit buckets of sites that have a name, by name.
    counted: Mutex<HashMap<String, SiteBuckets>>,
    /// The start time of the buckets' steady clock.
    began: Instant,
}

struct Compilation {
    reading: Reading,
    registry: Weak<Registry>,
    options: check::Options,
    compiled: Weak<Compiled>,
}

/// The settings that a version is compiled with.
#[derive(Clone, Debug)]
pub(super) struct CompileSettings {
    pub(super) reading: Reading,
    pub(super) registry: Arc<Registry>,
    pub(super) check: check::Options,
}

impl CompileCache {
    /// Returns the buckets for a site that joins. Sites with the same name share their buckets.
    pub(super) fn join(&self, name: Option<&str>) -> SiteBuckets {
        let new =
            || SiteBuckets::new(self.shared.sites.fetch_add(1, Ordering::Relaxed), Arc::clone(&self.shared.networks));
        let Some(name) = name else { return new() };
        // The entry is complete when it is inserted, so a panic cannot leave a partial entry
        // behind.
        let mut counted = self.shared.counted.lock();
        if let Some(buckets) = counted.get(name) {
            return buckets.clone();
        }
        if counted.len() == counted.capacity() {
            // Unused entries are removed before the map grows, so that its size follows the number
            // of sites.
            counted.retain(|_, buckets| buckets.is_shared());
        }
        counted.entry(name.to_owned()).or_insert_with(new).clone()
    }

    /// Returns the start time of the buckets of all sites.
    pub(super) fn began(&self) -> Instant {
        self.shared.began
    }

    /// Returns a compiled version, if a site holds it.
    pub(super) fn find(&self, hash: VersionHash, settings: &CompileSettings) -> Option<Arc<Compiled>> {
        find(&self.shared.versions.lock(), hash, settings, &settings.options())
    }

    /// Returns a compiled version; compiles it unless a site holds it already compiled.
    pub(super) fn compile(&self, hash: VersionHash, robots: RobotsTxt, settings: &CompileSettings) -> Arc<Compiled> {
        let options = settings.options();
        if let Some(compiled) = find(&self.shared.versions.lock(), hash, settings, &options) {
            return compiled;
        }
        // Compiles without holding the lock: one long file would delay every other site.
        let (reading, registry) = (settings.reading, &settings.registry);
        let compiled = Compiled::new(robots, hash, reading, registry, &options, self.shared.budget.clone());
        let compiled = Arc::new(compiled);
        let mut versions = self.shared.versions.lock();
        // If two sites have compiled the same version at once, both use the result that was stored
        // first.
        if let Some(first) = find(&versions, hash, settings, &options) {
            return first;
        }
        if versions.len() == versions.capacity() {
            // Unused versions are removed before the map grows, so that its size follows the number
            // of live versions and the cost is amortised.
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
                budget: Budget::new(PLACES),
                networks: Arc::new(NetworkBuckets::new()),
                sites: AtomicU64::new(0),
                counted: Mutex::default(),
                began: Instant::now(),
            }),
        }
    }
}

robots_core::debug_as!(|it| CompileCache { versions: it.shared.versions.lock().len() });
