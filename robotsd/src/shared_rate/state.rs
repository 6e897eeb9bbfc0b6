//! What requests and the thread of a store share.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use super::breaker::StoreBreaker;
use super::bucket::{SharedKey, micros};
use super::counts::{StoreCounts, StoreReport, StoreUsage};
use super::ledgers::BucketLedgers;
use super::parts;
use super::settings::StoreSettings;

#[derive(Debug)]
pub(super) struct StoreState {
    pub(super) settings: StoreSettings,
    pub(super) ledgers: BucketLedgers,
    pub(super) counts: StoreCounts,
    /// One for each part of the store.
    breakers: Vec<Mutex<StoreBreaker>>,
    /// The key with which each part is probed; none where no bucket is in it.
    pub(super) probes: Vec<Option<SharedKey>>,
    trouble: Mutex<Option<(SystemTime, String)>>,
    /// Where the clock of the ledgers begins.
    start: Instant,
}

impl StoreState {
    pub(super) fn new(settings: StoreSettings) -> Self {
        let breaker = || Mutex::new(StoreBreaker::new(Instant::now()));
        Self {
            breakers: std::iter::repeat_with(breaker).take(parts::count(settings.nodes)).collect(),
            probes: parts::probes(&settings),
            settings,
            ledgers: BucketLedgers::default(),
            counts: StoreCounts::default(),
            trouble: Mutex::default(),
            start: Instant::now(),
        }
    }

    /// Whether the part that a key is in is asked.
    pub(super) fn breaker_of(&self, key: SharedKey) -> MutexGuard<'_, StoreBreaker> {
        self.breaker(parts::of(key, &self.settings))
    }

    pub(super) fn breaker(&self, part: usize) -> MutexGuard<'_, StoreBreaker> {
        self.breakers[part].lock().unwrap_or_else(PoisonError::into_inner)
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

    /// What failed, for the status.
    pub(super) fn failed(&self, why: &str) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some((SystemTime::now(), why.to_owned()));
    }

    pub(super) fn report(&self) -> StoreReport {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.counts.report(self.settings.place(), self.usage(), trouble)
    }
}
