//! How many questions leave for the resolver.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// The time between two questions: at most 50 a second leave, whatever requests claim.
const PACE: Duration = Duration::from_millis(20);

/// Lets one question pass at a time, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct QuestionGate(Mutex<Option<Instant>>);

impl QuestionGate {
    /// Completes when the next question may leave.
    pub(super) async fn pass(&self) {
        sleep_until(self.turn()).await;
    }

    fn turn(&self) -> Instant {
        let now = Instant::now();
        let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = next.map_or(now, |next| next.max(now));
        *next = Some(turn + PACE);
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn fifty_questions_leave_in_a_second() {
        let (gate, start) = (QuestionGate::default(), Instant::now());
        for _ in 0..=100 {
            gate.pass().await;
        }
        assert_eq!(start.elapsed(), Duration::from_secs(2));
        // Time without questions is not saved up.
        tokio::time::advance(Duration::from_secs(60)).await;
        let start = Instant::now();
        for _ in 0..=50 {
            gate.pass().await;
        }
        assert_eq!(start.elapsed(), Duration::from_secs(1));
    }
}
