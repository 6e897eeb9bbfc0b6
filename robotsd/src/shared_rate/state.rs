//! The state that requests share with the thread of a store, and the counts for the status.

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
    problem: Mutex<Option<(SystemTime, String)>>,
}

impl StoreState {
    pub(super) fn new(settings: StoreSettings) -> Self {
        Self {
            settings,
            denials: StoreDenials::default(),
            breaker: Mutex::new(StoreBreaker::new(Instant::now())),
            counts: Default::default(),
            problem: Mutex::default(),
        }
    }

    pub(super) fn usage(&self) -> StoreUsage {
        if self.breaker.lock().is_closed() { StoreUsage::Used } else { StoreUsage::Out }
    }

    pub(super) fn count(&self, outcome: StoreCount) {
        self.counts[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Records a failure, to be shown in the status.
    pub(super) fn failed(&self, why: &str) {
        *self.problem.lock() = Some((SystemTime::now(), why.to_owned()));
    }

    pub(super) fn report(&self) -> StoreReport {
        let problem = self.problem.lock().clone();
        let counts = StoreCounts(StoreCount::ALL.map(|outcome| self.counts[outcome as usize].load(Ordering::Relaxed)));
        StoreReport { place: self.settings.place(), usage: self.usage(), problem, counts }
    }
}

word_enum! {
    /// A kind of event that is counted since the process began to use the store.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum StoreCount {
        /// How often requests stopped using the store.
        Outages = "outages",
        /// Calls of the script that were sent to the store.
        Calls = "calls",
        /// Calls that were answered.
        Answered = "answered",
        /// Calls that were not answered in time.
        Late = "late",
        /// Calls that failed for another reason.
        Failed = "failed",
        /// Requests that the store allowed.
        Allowed = "allowed",
        /// Requests that the store denied.
        Denied = "denied",
        /// Requests that were denied without a call, because an earlier denial of the store was
        /// still in force.
        KnownDenied = "known-denied",
        /// Requests that the process's own bucket decided, because the store could not be reached
        /// or did not answer.
        Alone = "alone",
    }
}

/// The counts at one point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreCounts([u64; StoreCount::ALL.len()]);

impl StoreCounts {
    /// Returns the count of an outcome.
    pub fn of(&self, outcome: StoreCount) -> u64 {
        self.0[outcome as usize]
    }
}

word_enum! {
    /// Whether requests use the store.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum StoreUsage {
        /// Requests use the store.
        Used = "used",
        /// Requests do not use the store, and the process counts alone.
        Out = "out",
    }
}

/// The state of the store, and the counts since the process began to use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreReport {
    /// The address of the store, without secrets.
    pub place: String,
    /// Whether requests use the store.
    pub usage: StoreUsage,
    /// Time and description of the last failure.
    pub problem: Option<(SystemTime, String)>,
    /// The counts by outcome.
    pub counts: StoreCounts,
}
