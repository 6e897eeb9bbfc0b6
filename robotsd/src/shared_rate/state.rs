//! The state that requests share with the store's thread, and the counts of calls and verdicts.

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
    /// A counted event.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum StoreCount {
        /// Requests stopped using the store.
        Outages = "outages",
        /// A call of the script was sent to the store.
        Calls = "calls",
        /// A call was answered.
        Answered = "answered",
        /// A call was not answered in time.
        Late = "late",
        /// A call failed for another reason.
        Failed = "failed",
        /// The store allowed a request.
        Allowed = "allowed",
        /// The store denied a request.
        Denied = "denied",
        /// A request was denied without a call, because of an earlier denial that was still in
        /// force.
        KnownDenied = "known-denied",
        /// The bucket of this process decided whether a request is allowed, because the store did
        /// not reply or was not used.
        Alone = "alone",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreCounts([u64; StoreCount::ALL.len()]);

impl StoreCounts {
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
        /// Requests do not use the store. Each process counts separately.
        Out = "out",
    }
}

/// The state of the store, and the counts since this process began to use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreReport {
    /// The address of the store, without secrets.
    pub place: String,
    pub usage: StoreUsage,
    /// When the store last failed, and why; `None` if it never failed.
    pub problem: Option<(SystemTime, String)>,
    pub counts: StoreCounts,
}
