//! A circuit breaker that decides whether rate limits use the shared store or only this process's
//! own buckets. The breaker is a state machine that takes the time as an argument.
//!
//! While the breaker is closed, requests use the store. Three consecutive queries without a reply,
//! or a broken connection, open the breaker. While the breaker is open, requests do not use the
//! store, and a probe is sent every second. The breaker closes at the first reply to a probe after
//! the hold time. At first, the hold time is one second, so a recovered store is used again within
//! two seconds. If the store answers probes but fails under load, the hold time doubles each time
//! the breaker opens, up to 30 seconds.
//!
//! All nodes of a cluster share one breaker, because the cluster client does not report which node
//! stores a key.

use std::time::{Duration, Instant};

/// Number of consecutive unanswered queries that open the breaker.
const FAILURES: u32 = 3;

/// Interval between probes while the breaker is open.
pub(super) const PROBE: Duration = Duration::from_secs(1);

/// Minimum and maximum hold time, which is the time that the breaker stays open.
const MIN_HOLD: Duration = Duration::from_secs(1);
const MAX_HOLD: Duration = Duration::from_secs(30);

/// If the breaker was closed for at least this time, its next hold time is the minimum again.
const RECOVERED: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct StoreBreaker {
    state: BreakerState,
    hold: Duration,
}

#[derive(Debug, PartialEq, Eq)]
enum BreakerState {
    Closed { since: Instant, failures: u32 },
    Open { until: Instant },
}

impl StoreBreaker {
    /// Creates an open breaker, which the first reply to a probe closes.
    pub(super) const fn new(now: Instant) -> Self {
        Self { state: BreakerState::Open { until: now }, hold: MIN_HOLD }
    }

    pub(super) const fn is_closed(&self) -> bool {
        matches!(self.state, BreakerState::Closed { .. })
    }

    pub(super) fn record_reply(&mut self, now: Instant) {
        match &mut self.state {
            BreakerState::Closed { failures, .. } => *failures = 0,
            BreakerState::Open { until } if *until <= now => {
                self.state = BreakerState::Closed { since: now, failures: 0 };
            }
            BreakerState::Open { .. } => {}
        }
    }

    pub(super) fn record_timeout(&mut self, now: Instant) {
        if let BreakerState::Closed { failures, .. } = &mut self.state {
            *failures += 1;
            if *failures == FAILURES {
                self.record_failure(now);
            }
        }
    }

    /// Records that the connection broke or is unusable.
    pub(super) fn record_failure(&mut self, now: Instant) {
        if let BreakerState::Closed { since, .. } = self.state {
            if now.saturating_duration_since(since) >= RECOVERED {
                self.hold = MIN_HOLD;
            }
            self.state = BreakerState::Open { until: now + self.hold };
            self.hold = (self.hold * 2).min(MAX_HOLD);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(now: Instant) -> StoreBreaker {
        let mut breaker = StoreBreaker::new(now);
        assert!(!breaker.is_closed());
        breaker.record_reply(now);
        assert!(breaker.is_closed());
        breaker
    }

    #[test]
    fn three_unanswered_requests_in_a_row_open_the_breaker() {
        let now = Instant::now();
        let mut breaker = closed(now);
        for _ in 0..10 {
            breaker.record_timeout(now);
            breaker.record_timeout(now);
            breaker.record_reply(now);
        }
        breaker.record_timeout(now);
        breaker.record_timeout(now);
        assert!(breaker.is_closed());
        breaker.record_timeout(now);
        assert!(!breaker.is_closed());
        breaker.record_timeout(now);
        breaker.record_failure(now);
        breaker.record_reply(now);
        assert!(!breaker.is_closed());
        breaker.record_reply(now + MIN_HOLD);
        assert!(breaker.is_closed());
    }

    #[test]
    fn repeated_failures_keep_the_breaker_open_for_longer_up_to_thirty_seconds() {
        let mut now = Instant::now();
        let mut breaker = closed(now);
        let mut held = Vec::new();
        for _ in 0..8 {
            breaker.record_failure(now);
            let opened = now;
            while !breaker.is_closed() {
                now += PROBE;
                breaker.record_reply(now);
            }
            held.push((now - opened).as_secs());
        }
        assert_eq!(held, [1, 2, 4, 8, 16, 30, 30, 30]);
        now += RECOVERED;
        breaker.record_failure(now);
        breaker.record_reply(now + MIN_HOLD);
        assert!(breaker.is_closed());
    }
}
