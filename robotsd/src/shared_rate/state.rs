//! The state that requests and the thread of a store share; and the outcome of the questions, for the status.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime};

use parking_lot::Mutex;

use super::breaker::StoreBreaker;
use super::denials::StoreDenials;
use crate::store::StoreSettings;
use crate::word_enum::word_enum;

#[derive(Debug)]
pub(super) struct StoreState {
    pub(super) settings: StoreSettings,
    pub(super) denials: StoreDenials,
    pub(super) breaker: Mutex<StoreBreaker>,
    counts: [AtomicU64; StoreCount::ALL.len()],
    trouble: Mutex<Option<(SystemTime, String)>>,
}

impl StoreState {
    pub(super) fn new(settings: StoreSettings) -> Self {
        Self {
            settings,
            denials: StoreDenials::default(),
            breaker: Mutex::new(StoreBreaker::new(Instant::now())),
            counts: Default::default(),
            trouble: Mutex::default(),
        }
    }

    pub(super) fn usage(&self) -> StoreUsage {
        if self.breaker.lock().is_closed() { StoreUsage::Used } else { StoreUsage::Out }
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
        /// How often it stopped being used.
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
        /// Requests that were denied because an earlier denial of the store still holds, without asking.
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
    /// Whether requests ask the store.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum StoreUsage {
        /// They do.
        Used = "used",
        /// They do not: the process counts alone.
        Out = "out",
    }
}

/// The state of the store, and the outcome of the questions since the process began to use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreReport {
    /// The address, without what is secret.
    pub place: String,
    /// Whether requests ask it.
    pub usage: StoreUsage,
    /// The last failure, and when it was.
    pub trouble: Option<(SystemTime, String)>,
    /// The outcomes of the questions.
    pub counts: StoreCounts,
}
