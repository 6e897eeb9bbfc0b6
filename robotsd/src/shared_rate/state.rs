//! What requests and the thread of a store share.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use super::breaker::StoreBreaker;
use super::bucket::micros;
use super::counts::{StoreCounts, StoreReport};
use super::ledgers::BucketLedgers;
use super::settings::StoreSettings;

#[derive(Debug)]
pub(super) struct StoreState {
    pub(super) settings: StoreSettings,
    pub(super) ledgers: BucketLedgers,
    pub(super) counts: StoreCounts,
    breaker: Mutex<StoreBreaker>,
    trouble: Mutex<Option<(SystemTime, String)>>,
    /// Where the clock of the ledgers begins.
    start: Instant,
}

impl StoreState {
    pub(super) fn new(settings: StoreSettings) -> Self {
        Self {
            settings,
            ledgers: BucketLedgers::default(),
            counts: StoreCounts::default(),
            breaker: Mutex::new(StoreBreaker::new(Instant::now())),
            trouble: Mutex::default(),
            start: Instant::now(),
        }
    }

    pub(super) fn breaker(&self) -> MutexGuard<'_, StoreBreaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
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
        let is_used = self.breaker().is_closed();
        self.counts.report(self.settings.place(), is_used, trouble)
    }
}
