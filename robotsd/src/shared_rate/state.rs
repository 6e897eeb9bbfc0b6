//! The state that requests and the thread of a store share; and the outcome of the questions, for the status.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime};

use parking_lot::{Mutex, MutexGuard};

use super::breaker::{self, StoreBreaker};
use super::bucket::{SharedKey, micros};
use super::ledgers::BucketLedgers;
use crate::store::StoreSettings;
use crate::word_enum::word_enum;

#[derive(Debug)]
pub(super) struct StoreState {
    pub(super) settings: StoreSettings,
    pub(super) ledgers: BucketLedgers,
    counts: [AtomicU64; StoreCount::ALL.len()],
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
            counts: Default::default(),
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

    pub(super) fn count(&self, outcome: StoreCount) {
        self.counts[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Records a failure, for the status.
    pub(super) fn failed(&self, why: &str) {
        *self.trouble.lock() = Some((SystemTime::now(), why.to_owned()));
    }

    pub(super) fn report(&self) -> StoreReport {
        let trouble = self.trouble.lock().clone();
        let counts = StoreCounts(StoreCount::ALL.map(|outcome| self.counts[outcome as usize].load(Ordering::Relaxed)));
        StoreReport { place: self.settings.place(), usage: self.usage(), trouble, counts }
    }
}

word_enum! {
    /// An outcome of questions, which is counted since the process began to use the store.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum StoreCount {
        /// How often it stopped being used, or a node of it.
        Outages = "outages",
        /// Runs of the script that were sent to it.
        Calls = "calls",
        /// Those of them that were answered.
        Answered = "answered",
        /// Those that were not answered in time.
        Late = "late",
        /// Those that failed otherwise.
        Failed = "failed",
        /// Requests that passed because the store said so.
        Allowed = "allowed",
        /// Requests that the store denied.
        Denied = "denied",
        /// Requests that passed by what was known of the store, without asking.
        KnownAllowed = "known-allowed",
        /// Requests that were denied likewise.
        KnownDenied = "known-denied",
        /// Requests for which this process's own bucket decided alone, because the store could not be reached or did not answer.
        Alone = "alone",
    }
}

/// The counts as they were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreCounts([u64; StoreCount::ALL.len()]);

impl StoreCounts {
    /// How often it came to that.
    pub fn of(&self, outcome: StoreCount) -> u64 {
        self.0[outcome as usize]
    }
}

word_enum! {
    /// How much of the store requests ask.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum StoreUsage {
        /// All of it.
        Used = "used",
        /// The nodes of a cluster that are there: the process counts alone what is of the others.
        Partly = "partly",
        /// Nothing.
        Out = "out",
    }
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
