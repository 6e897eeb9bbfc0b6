//! What was decided about the requests of a site since the process started, on all workers and under all configs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tower_robots::live::AgentLookups;

use crate::board::TrafficTotals;
use crate::decision::{CrawlerCombinations, OutcomeCounts, OutcomeTotals, SiteTotals};

/// The counts of a site. Cheap to clone; clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct SiteOutcomes(Arc<Mutex<OutcomeParts>>);

#[derive(Debug, Default)]
struct OutcomeParts {
    workers: Vec<Arc<OutcomeCounts>>,
    /// The sums of workers that do not count for the site any more.
    ended: SiteTotals,
    combinations: Arc<CrawlerCombinations>,
}

impl SiteOutcomes {
    /// Counters for one worker, which counts lookups of agents for all sites together.
    pub(crate) fn of_worker(&self, agent_lookups: &Arc<AgentLookups>) -> Arc<OutcomeCounts> {
        let mut parts = self.parts();
        let OutcomeParts { workers, ended, combinations } = &mut *parts;
        workers.retain(|counts| {
            let is_used = Arc::strong_count(counts) > 1;
            if !is_used {
                ended.add(counts);
            }
            is_used
        });
        let counts = Arc::new(OutcomeCounts::of_site(Arc::clone(combinations), agent_lookups));
        workers.push(Arc::clone(&counts));
        counts
    }

    pub(super) fn total(&self) -> OutcomeTotals {
        let parts = self.parts();
        let mut total = parts.ended.outcomes;
        parts.workers.iter().for_each(|counts| total.add(counts));
        total
    }

    /// What the board shows of it.
    pub(super) fn traffic(&self) -> TrafficTotals {
        let parts = self.parts();
        let mut total = parts.ended.outcomes;
        let mut durations = parts.ended.decision_durations.clone();
        for counts in &parts.workers {
            total.add(counts);
            counts.add_decision_durations(&mut durations);
        }
        let OutcomeTotals { requests, refused, .. } = total;
        TrafficTotals { requests, refused, decision_p99: durations.quantile(0.99) }
    }

    /// All that is counted.
    pub(super) fn totals(&self) -> SiteTotals {
        let parts = self.parts();
        let mut totals = parts.ended.clone();
        parts.workers.iter().for_each(|counts| totals.add(counts));
        totals
    }

    fn parts(&self) -> MutexGuard<'_, OutcomeParts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_worker_has_counted_stays_when_it_counts_no_more() {
        let outcomes = SiteOutcomes::default();
        let counts = outcomes.of_worker(&Arc::default());
        let _ = counts.request(b"/a", (&http::Method::GET).into(), 0);
        drop(counts);
        for _ in 0..100 {
            let _ = outcomes.of_worker(&Arc::default()).request(b"/b", (&http::Method::GET).into(), 0);
        }
        assert_eq!(outcomes.total().requests, 101);
        assert_eq!(outcomes.totals().outcomes, outcomes.total());
        assert!(outcomes.parts().workers.len() <= 2);
    }
}
