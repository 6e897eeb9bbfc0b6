//! Equal files of many sites are compiled once; and what else the sites of a process share, to bound it.
//!
//! **An earlier version is not parsed to be compared.** The publisher finds it in the `CompileCache`, in which every
//! version is that any site holds, or among the rules of the grace. A version that waits stays compiled, so accepting
//! it costs nothing.

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

/// The slots that the agent caches of a [`CompileCache`] may have together past the eight each begins with. With 10,000
/// sites all slots together took 26 MiB, filled with headers of 90 octets (`benches/sites.rs`).
const PLACES: usize = 64 << 10;

/// Lets sites share compiled files, and bounds the memory of all their agent caches together, and of what limits their crawlers
/// by address.
///
/// Cheap to clone; clones share everything. Give one to every [`LiveBuilder`](crate::source::LiveBuilder) of a process that has
/// many sites; a builder without one makes its own. It keeps no file alive that no site has.
#[derive(Clone)]
pub struct CompileCache {
    shared: Arc<SharedCompilations>,
}

struct SharedCompilations {
    /// By hash; several for one hash only where the settings of sites differ.
    versions: Mutex<HashMap<VersionHash, Vec<Compilation>>>,
    budget: Arc<Budget>,
    networks: Arc<NetworkBuckets>,
    /// Sites that have joined.
    sites: AtomicU64,
    /// The buckets of those that have a name, by name.
    counted: Mutex<HashMap<String, SiteBuckets>>,
    /// When time began for the buckets.
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
    /// The buckets of a site that joins: those of the sites of its name, if it has one.
    pub(super) fn join(&self, name: Option<&str>) -> SiteBuckets {
        let new =
            || SiteBuckets::new(self.shared.sites.fetch_add(1, Ordering::Relaxed), Arc::clone(&self.shared.networks));
        let Some(name) = name else { return new() };
        // Only whole entries are put in.
        let mut counted = self.shared.counted.lock();
        if let Some(buckets) = counted.get(name) {
            return buckets.clone();
        }
        if counted.len() == counted.capacity() {
            // Before it grows, so that it grows with the sites that there are.
            counted.retain(|_, buckets| buckets.is_shared());
        }
        counted.entry(name.to_owned()).or_insert_with(new).clone()
    }

    /// When time began for the buckets of all sites.
    pub(super) fn began(&self) -> Instant {
        self.shared.began
    }

    /// A compiled version, if a site holds it.
    pub(super) fn find(&self, hash: VersionHash, settings: &CompileSettings) -> Option<Arc<Compiled>> {
        find(&self.shared.versions.lock(), hash, settings, &settings.options())
    }

    /// Compiles a version, unless a site holds it compiled.
    pub(super) fn compile(&self, hash: VersionHash, robots: RobotsTxt, settings: &CompileSettings) -> Arc<Compiled> {
        let options = settings.options();
        if let Some(compiled) = find(&self.shared.versions.lock(), hash, settings, &options) {
            return compiled;
        }
        // Not under the lock: one long file would hold up every other site.
        let (reading, registry) = (settings.reading, &settings.registry);
        let compiled = Compiled::new(robots, hash, reading, registry, &options, self.shared.budget.clone());
        let compiled = Arc::new(compiled);
        let mut versions = self.shared.versions.lock();
        // Two sites may have compiled the same at once; then the first is for both.
        if let Some(first) = find(&versions, hash, settings, &options) {
            return first;
        }
        if versions.len() == versions.capacity() {
            // Before it grows, so that it grows with what is live and the cost is spread.
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
