//! Whether the store is asked: a state machine that is given the time.
//!
//! Closed, it is asked. Three questions in a row without an answer, or one broken connection, open it: no request asks then, and a
//! probe is sent every second. The first probe that is answered after the hold closes it. The hold is one second, so a store that is
//! back is used within two; it doubles, up to half a minute, for a store that answers probes and fails under questions.
//!
//! There is one breaker for all nodes of a cluster: the client that follows its slots does not say which node a key is at.

use std::time::{Duration, Instant};

/// Questions in a row that may go unanswered.
const FAILURES: u32 = 3;

/// How often the store is probed while it is not asked.
pub(super) const PROBE: Duration = Duration::from_secs(1);

/// The shortest and the longest time for which a store is not asked after a failure.
const MIN_HOLD: Duration = Duration::from_secs(1);
const MAX_HOLD: Duration = Duration::from_secs(30);

/// A store that answered for so long has recovered.
const RECOVERED: Duration = Duration::from_secs(10);

/// Whether requests ask the store.
#[derive(Debug)]
pub(super) struct StoreBreaker {
    state: BreakerState,
    /// For how long it is held open when it opens next.
    hold: Duration,
}

#[derive(Debug, PartialEq, Eq)]
enum BreakerState {
    Closed { since: Instant, failures: u32 },
    Open { until: Instant },
}

impl StoreBreaker {
    /// Open until a first probe is answered.
    pub(super) const fn new(now: Instant) -> Self {
        Self { state: BreakerState::Open { until: now }, hold: MIN_HOLD }
    }

    pub(super) const fn is_closed(&self) -> bool {
        matches!(self.state, BreakerState::Closed { .. })
    }

    /// The store answered a question or a probe.
    pub(super) fn answered(&mut self, now: Instant) {
        match &mut self.state {
            BreakerState::Closed { failures, .. } => *failures = 0,
            BreakerState::Open { until } if *until <= now => {
                self.state = BreakerState::Closed { since: now, failures: 0 };
            }
            BreakerState::Open { .. } => {}
        }
    }

    /// The store did not answer a question in time.
    pub(super) fn unanswered(&mut self, now: Instant) {
        if let BreakerState::Closed { failures, .. } = &mut self.state {
            *failures += 1;
            if *failures == FAILURES {
                self.broken(now);
            }
        }
    }

    /// The connection broke, or the store says that it cannot be used.
    pub(super) fn broken(&mut self, now: Instant) {
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
        breaker.answered(now);
        assert!(breaker.is_closed());
        breaker
    }

    #[test]
    fn three_questions_in_a_row_open_it_and_an_answer_between_does_not() {
        let now = Instant::now();
        let mut breaker = closed(now);
        for _ in 0..10 {
            breaker.unanswered(now);
            breaker.unanswered(now);
            breaker.answered(now);
        }
        breaker.unanswered(now);
        breaker.unanswered(now);
        assert!(breaker.is_closed());
        breaker.unanswered(now);
        assert!(!breaker.is_closed());
        // Questions that were under way then change nothing.
        breaker.unanswered(now);
        breaker.broken(now);
        breaker.answered(now);
        assert!(!breaker.is_closed());
        breaker.answered(now + MIN_HOLD);
        assert!(breaker.is_closed());
    }

    #[test]
    fn what_fails_again_and_again_is_held_open_for_longer_and_never_for_more_than_half_a_minute() {
        let mut now = Instant::now();
        let mut breaker = closed(now);
        let mut held = Vec::new();
        for _ in 0..8 {
            breaker.broken(now);
            let opened = now;
            while !breaker.is_closed() {
                now += PROBE;
                breaker.answered(now);
            }
            held.push((now - opened).as_secs());
        }
        assert_eq!(held, [1, 2, 4, 8, 16, 30, 30, 30]);
        // After ten seconds of answers it is as new.
        now += RECOVERED;
        breaker.broken(now);
        breaker.answered(now + MIN_HOLD);
        assert!(breaker.is_closed());
    }
}
