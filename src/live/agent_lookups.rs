//! How often agents were known by their header, for metrics.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of lookups among the agents that were recognised before, by `User-Agent` line.
///
/// A count is a load and a store, in place of an instruction that locks a word which every core writes. So each thread that serves
/// needs a layer with counts of its own: two that share them lose some, and count none twice. Any thread may read.
#[derive(Default)]
#[repr(align(64))]
pub struct AgentLookups {
    hits: AtomicU64,
    misses: AtomicU64,
}

impl AgentLookups {
    /// Lookups whose agents were known.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Lookups after which the line was recognised anew: it had not come before or not for long, or is longer than those that are
    /// kept.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.misses.load(Ordering::Relaxed)
    }

    pub(super) fn hit(&self) {
        add_one(&self.hits);
    }

    pub(super) fn miss(&self) {
        add_one(&self.misses);
    }
}

fn add_one(count: &AtomicU64) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

impl fmt::Debug for AgentLookups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentLookups").field("hits", &self.hits()).field("misses", &self.misses()).finish()
    }
}
