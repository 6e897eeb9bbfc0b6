//! A counter with one writer, and one of events that are reported once a second.
//!
//! Requests are counted by the worker that serves them, which has counters of its own: a word that all workers write would go
//! from core to core with each request. So counting is a load and a store, and not an instruction that locks the word. Any
//! thread may read; who wants a sum adds up what the workers have counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

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

/// Counts one kind of event, and decides when it is reported: at most once a second.
#[derive(Debug, Default)]
pub(crate) struct EventCounter {
    total: AtomicU64,
    unreported: AtomicU64,
    /// The second, counted from the start and from one, in which this kind was last reported; zero for never.
    reported: AtomicU64,
}

impl EventCounter {
    /// How many events there were, reported or not.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Counts an event. Returns the number to report, if it is time to.
    pub(crate) fn count(&self, start: Instant) -> Option<u64> {
        self.total.fetch_add(1, Ordering::Relaxed);
        self.unreported.fetch_add(1, Ordering::Relaxed);
        let second = start.elapsed().as_secs() + 1;
        let last = self.reported.load(Ordering::Relaxed);
        // Losing the exchange means that another thread reports, and this event is in its count or in the next one.
        let is_ours = last != second
            && self.reported.compare_exchange(last, second, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        is_ours.then(|| self.unreported.swap(0, Ordering::Relaxed).max(1))
    }
}
