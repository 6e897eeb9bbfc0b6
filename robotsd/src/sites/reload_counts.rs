//! Counts reloads by cause and outcome.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tower_robots::live::{Reload, Snapshot};

use crate::report::ReloadCount;

/// Counts the reloads of a site that are logged, since the process started. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct ReloadCounts(Arc<Mutex<BTreeMap<(&'static str, &'static str), u64>>>);

impl ReloadCounts {
    /// A listener that counts every reload.
    pub(super) fn listener(&self) -> impl Fn(&Reload, &Snapshot) + Send + Sync + 'static {
        let this = self.clone();
        move |reload, _| {
            let mut counts = this.0.lock().unwrap_or_else(PoisonError::into_inner);
            *counts.entry((reload.cause().as_str(), reload.outcome().kind().as_str())).or_default() += 1;
        }
    }

    pub(super) fn report(&self) -> Vec<ReloadCount> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = |((cause, outcome), count): (&(&str, &str), &u64)| ReloadCount {
            cause: (*cause).to_owned(),
            outcome: (*outcome).to_owned(),
            count: *count,
        };
        counts.iter().map(count).collect()
    }
}
