//! Whether the store is called: a state machine that is given the time.
//!
//! Closed, it is called. Three calls in a row without an answer, or one broken connection, open it: no request calls it then, and a
//! probe is sent every second. The first that is answered closes it, so a store that is back is used within two seconds. One that
//! answers probes and fails under questions is held open for longer each time, up to half a minute.

use std::time::{Duration, Instant};

/// Questions in a row that may go unanswered.
const FAILURES: u32 = 3;

/// How often the store is probed while it is not called.
pub(super) const PROBE: Duration = Duration::from_secs(1);

/// The shortest and the longest time for which a store is not called that has failed again.
const HOLDS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

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
        Self { state: BreakerState::Open { until: now }, hold: Duration::ZERO }
    }

    pub(super) const fn is_closed(&self) -> bool {
        matches!(self.state, BreakerState::Closed { .. })
    }

    /// The store answered a question.
    pub(super) const fn answered(&mut self) {
        if let BreakerState::Closed { failures, .. } = &mut self.state {
            *failures = 0;
        }
    }

    /// The store did not answer a question in time. Returns whether that opens the breaker.
    pub(super) fn unanswered(&mut self, now: Instant) -> bool {
        match &mut self.state {
            BreakerState::Closed { failures, .. } if *failures + 1 < FAILURES => {
                *failures += 1;
                false
            }
            _ => self.broken(now),
        }
    }

    /// The connection broke, or the store says that it cannot be used. Returns whether that opens the breaker.
    pub(super) fn broken(&mut self, now: Instant) -> bool {
        let BreakerState::Closed { since, .. } = self.state else { return false };
        if now.saturating_duration_since(since) >= RECOVERED {
            self.hold = Duration::ZERO;
        }
        self.state = BreakerState::Open { until: now + self.hold };
        self.hold = (self.hold * 2).clamp(HOLDS.0, HOLDS.1);
        true
    }

    /// A probe was answered. Returns whether that closes the breaker.
    pub(super) fn probed(&mut self, now: Instant) -> bool {
        match self.state {
            BreakerState::Open { until } if until <= now => {
                self.state = BreakerState::Closed { since: now, failures: 0 };
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(now: Instant) -> StoreBreaker {
        let mut breaker = StoreBreaker::new(now);
        assert!(!breaker.is_closed());
        assert!(breaker.probed(now) && breaker.is_closed());
        breaker
    }

    #[test]
    fn three_questions_in_a_row_open_it_and_an_answer_between_does_not() {
        let now = Instant::now();
        let mut breaker = closed(now);
        for _ in 0..10 {
            assert!(!breaker.unanswered(now) && !breaker.unanswered(now));
            breaker.answered();
        }
        assert!(!breaker.unanswered(now) && !breaker.unanswered(now) && breaker.is_closed());
        assert!(breaker.unanswered(now) && !breaker.is_closed());
        // What was under way then changes nothing.
        assert!(!breaker.unanswered(now) && !breaker.broken(now));
        breaker.answered();
        assert!(!breaker.is_closed());
    }

    #[test]
    fn a_broken_connection_opens_it_and_the_first_answered_probe_closes_it() {
        let now = Instant::now();
        let mut breaker = closed(now);
        assert!(breaker.broken(now) && !breaker.is_closed());
        assert!(breaker.probed(now + Duration::from_millis(1)) && breaker.is_closed());
    }

    #[test]
    fn what_fails_again_and_again_is_held_open_for_longer_and_never_for_more_than_half_a_minute() {
        let mut now = Instant::now();
        let mut breaker = closed(now);
        let mut held = Vec::new();
        for _ in 0..8 {
            assert!(breaker.broken(now));
            let opened = now;
            while !breaker.probed(now) {
                now += PROBE;
            }
            held.push((now - opened).as_secs());
        }
        assert_eq!(held, [0, 1, 2, 4, 8, 16, 30, 30]);
        // After ten seconds of answers it is as new.
        now += RECOVERED;
        assert!(breaker.broken(now) && breaker.probed(now));
    }
}
