//! A counter with one writer.
//!
//! Requests are counted by the worker that serves them, which has counters of its own: a word that all workers write would go
//! from core to core with each request. So counting is a load and a store, and not an instruction that locks the word. Any
//! thread may read; who wants a sum adds up what the workers have counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts events of one thread.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Counts one. Only one thread may call this, or events are lost.
    pub(crate) fn add_one(&self) {
        self.add(1);
    }

    /// Counts so many, likewise.
    pub(crate) fn add(&self, count: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
    }

    /// How many so far.
    pub(crate) fn total(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
