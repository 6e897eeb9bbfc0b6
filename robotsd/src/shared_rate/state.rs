//! The state that requests and the thread of a store share; and the outcome of the questions, for the status.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime};

use parking_lot::{Mutex, MutexGuard};

use super::breaker::{self, StoreBreaker};
use super::bucket::{SharedKey, micros};
use super::ledgers::BucketLedgers;
use crate::store::StoreSettings;

#[derive(Debug)]
pub(super) struct StoreState {
    pub(super) settings: StoreSettings,
    pub(super) ledgers: BucketLedgers,
    pub(super) counts: StoreCounts<AtomicU64>,
    /// One for each part of the store.
    breakers: Vec<Mutex<StoreBreaker>>,
    /// The key with which each part is probed; none where no bucket is in it.
    pub(super) probes: Vec<Option<SharedKey>>,
    trouble: Mutex<Option<(SystemTime, String)>>,
    /// The start of the ledgers' clock.
    start: Instant,
}

impl StoreState {
    pub(super) fn new(settings: StoreSettings) -> Self {
        let breaker = || Mutex::new(StoreBreaker::new(Instant::now()));
        Self {
            breakers: std::iter::repeat_with(breaker).take(breaker::part_count(settings.nodes)).collect(),
            probes: breaker::part_probes(&settings),
            settings,
            ledgers: BucketLedgers::default(),
            counts: StoreCounts::default(),
            trouble: Mutex::default(),
            start: Instant::now(),
        }
    }

    pub(super) fn breaker(&self, part: usize) -> MutexGuard<'_, StoreBreaker> {
        self.breakers[part].lock()
    }

    /// How much of it is asked.
    pub(super) fn usage(&self) -> StoreUsage {
        let parts = || (0..self.probes.len()).filter(|&part| self.probes[part].is_some());
        match parts().filter(|&part| self.breaker(part).is_closed()).count() {
            0 => StoreUsage::Out,
            asked if asked == parts().count() => StoreUsage::Used,
            _ => StoreUsage::Partly,
        }
    }

    /// Microseconds since the store began to be used.
    pub(super) fn now(&self) -> i64 {
        micros(self.start.elapsed())
    }

    /// Records a failure, for the status.
    pub(super) fn failed(&self, why: &str) {
        *self.trouble.lock() = Some((SystemTime::now(), why.to_owned()));
    }

    pub(super) fn report(&self) -> StoreReport {
        let (trouble, counts) = (self.trouble.lock().clone(), self.counts.read());
        StoreReport { place: self.settings.place(), usage: self.usage(), trouble, counts }
    }
}

/// The outcomes of the questions since the process began to use the store: as counters, or as they were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreCounts<N = u64> {
    /// How often it stopped being used, or a node of it.
    pub outages: N,
    /// Runs of the script that were sent to it.
    pub calls: N,
    /// Those of them that were answered.
    pub answered: N,
    /// Those that were not answered in time.
    pub late: N,
    /// Those that failed otherwise.
    pub failed: N,
    /// Requests that passed because the store said so.
    pub allowed: N,
    /// Requests that the store denied.
    pub denied: N,
    /// Requests that passed by what was known of the store, without asking.
    pub known_allowed: N,
    /// Requests that were denied likewise.
    pub known_denied: N,
    /// Requests for which this process's own bucket decided alone, because the store could not be reached or did not answer.
    pub alone: N,
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// How much of the store requests ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreUsage {
    /// All of it.
    Used,
    /// The nodes of a cluster that are there: the process counts alone what is of the others.
    Partly,
    /// Nothing.
    Out,
}

/// The state of the store, and the outcome of the questions since the process began to use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreReport {
    /// The address, without what is secret.
    pub place: String,
    /// How much of it requests ask.
    pub usage: StoreUsage,
    /// The last failure, and when it was.
    pub trouble: Option<(SystemTime, String)>,
    /// The outcomes of the questions.
    pub counts: StoreCounts,
}

impl StoreCounts<AtomicU64> {
    fn read(&self) -> StoreCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StoreCounts {
            outages: read(&self.outages),
            calls: read(&self.calls),
            answered: read(&self.answered),
            late: read(&self.late),
            failed: read(&self.failed),
            allowed: read(&self.allowed),
            denied: read(&self.denied),
            known_allowed: read(&self.known_allowed),
            known_denied: read(&self.known_denied),
            alone: read(&self.alone),
        }
    }
}
