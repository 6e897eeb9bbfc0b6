//! How many requests a site has now, from totals that are read every few seconds.

use std::collections::VecDeque;

use super::report::SiteTraffic;
use super::row::{MINUTE, Second};

/// Seconds between two totals.
const EVERY: Second = 5;

/// What a site has counted since its process began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TrafficTotals {
    pub(crate) requests: u64,
    pub(crate) refused: u64,
    /// The 99th percentile of the decisions that were timed, in seconds.
    pub(crate) decision_p99: Option<f64>,
}

/// The totals of the last minute.
#[derive(Clone, Debug, Default)]
pub(super) struct TrafficWindow {
    totals: VecDeque<(Second, u64, u64)>,
    decision_p99: Option<f64>,
}

impl TrafficWindow {
    /// Whether totals are to be read at a moment.
    pub(super) const fn is_due(at: Second) -> bool {
        at.is_multiple_of(EVERY)
    }

    pub(super) fn add(&mut self, now: Second, totals: TrafficTotals) {
        let TrafficTotals { requests, refused, decision_p99 } = totals;
        let goes_on = |(at, before, _): &(Second, u64, u64)| *at < now && *before <= requests;
        if !self.totals.back().is_none_or(goes_on) {
            // The clock was set back, or another site took over the name.
            self.totals.clear();
        }
        self.totals.push_back((now, requests, refused));
        while self.totals.front().is_some_and(|(at, ..)| now - at > MINUTE) {
            self.totals.pop_front();
        }
        self.decision_p99 = decision_p99;
    }

    /// None until there are two totals.
    pub(super) fn traffic(&self) -> Option<SiteTraffic> {
        let (first, last) = (self.totals.front()?, self.totals.back()?);
        let seconds = last.0 - first.0;
        let (requests, refused) = (last.1 - first.1, last.2.saturating_sub(first.2));
        (seconds > 0).then(|| SiteTraffic {
            seconds,
            requests_per_minute: requests as f64 * MINUTE as f64 / seconds as f64,
            refused_share: if requests == 0 { 0.0 } else { refused as f64 / requests as f64 },
            decision_p99_seconds: self.decision_p99,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_minute_is_counted_and_nothing_before_it() {
        let mut window = TrafficWindow::default();
        let mut add = |at, requests, refused| {
            window.add(at, TrafficTotals { requests, refused, decision_p99: Some(1e-6) });
            window.traffic().map(|now| (now.seconds, now.requests_per_minute, now.refused_share))
        };
        assert_eq!(add(1000, 5_000, 5_000), None);
        assert_eq!(add(1010, 5_100, 5_025), Some((10, 600.0, 0.25)));
        assert_eq!(add(1060, 5_100, 5_025), Some((60, 100.0, 0.25)));
        assert_eq!(add(1070, 5_150, 5_075), Some((60, 50.0, 1.0)));
        assert_eq!(add(1075, 5_150, 5_075), Some((15, 200.0, 1.0)), "what came from 1010 to 1060 is not known");
        // Another count begins.
        assert_eq!(add(1080, 3, 0), None);
        assert_eq!(add(1070, 4, 0), None, "the clock is set back");
        assert_eq!(add(1100, 4, 0), Some((30, 0.0, 0.0)));
    }
}
