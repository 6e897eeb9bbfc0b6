//! What versions of many sites share: equal files are compiled once.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::agent_cache::Budget;
use super::snapshot::Compiled;
use super::version_hash::VersionHash;
use crate::agent::Registry;
use crate::check;
use crate::rules::{Reading, RobotsTxt};

/// The places that the agent caches of a [`CompileCache`] may have together past the eight each begins with. With 10,000 sites all
/// places together took 26 MiB, filled with headers of 90 octets (`benches/sites.rs`).
const PLACES: usize = 64 << 10;

/// Lets sites share what is made of equal files, and bounds what all of them remember of requests.
///
/// Cheap to clone; clones share everything. Give one to every [`LiveBuilder`](crate::source::LiveBuilder) of a process that has
/// many sites; a builder that is given none has one of its own. It holds on to nothing that no site has.
#[derive(Clone)]
pub struct CompileCache {
    shared: Arc<Shared>,
}

struct Shared {
    /// By what each is made of; several only where the settings of sites differ.
    versions: Mutex<HashMap<VersionHash, Vec<Kept>>>,
    budget: Arc<Budget>,
}

struct Kept {
    reading: Reading,
    registry: Weak<Registry>,
    options: check::Options,
    compiled: Weak<Compiled>,
}

impl CompileCache {
    /// An empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self { shared: Arc::new(Shared { versions: Mutex::default(), budget: Budget::new(PLACES) }) }
    }

    /// What a file amounts to, made only if no site has it.
    pub(super) fn compile(
        &self,
        robots: RobotsTxt,
        reading: Reading,
        registry: &Arc<Registry>,
        options: check::Options,
    ) -> Arc<Compiled> {
        let hash = VersionHash::of(robots.bytes());
        let found = |kept: &Kept| {
            let same = kept.reading == reading
                && std::ptr::eq(kept.registry.as_ptr(), Arc::as_ptr(registry))
                && kept.options == options;
            same.then(|| kept.compiled.upgrade()).flatten()
        };
        let find = |versions: &HashMap<VersionHash, Vec<Kept>>| {
            versions.get(&hash).and_then(|kept| kept.iter().find_map(found))
        };
        if let Some(compiled) = find(&self.versions()) {
            return compiled;
        }
        // Not under the lock: one long file would hold up every other site.
        let compiled = Compiled::new(robots, hash, reading, registry, &options, self.shared.budget.clone());
        let compiled = Arc::new(compiled);
        let mut versions = self.versions();
        // Two sites may have compiled the same at once; then the first is for both.
        if let Some(first) = find(&versions) {
            return first;
        }
        if versions.len() == versions.capacity() {
            // Before it grows, so that it grows with what is live and the cost is spread.
            versions.retain(|_, kept| {
                kept.retain(|kept| kept.compiled.strong_count() > 0);
                !kept.is_empty()
            });
        }
        let kept = versions.entry(hash).or_default();
        kept.retain(|kept| kept.compiled.strong_count() > 0);
        let (registry, made) = (Arc::downgrade(registry), Arc::downgrade(&compiled));
        kept.push(Kept { reading, registry, options, compiled: made });
        compiled
    }

    fn versions(&self) -> std::sync::MutexGuard<'_, HashMap<VersionHash, Vec<Kept>>> {
        // Only whole entries are put in.
        self.shared.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for CompileCache {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for CompileCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompileCache").field("versions", &self.versions().len()).finish()
    }
}
