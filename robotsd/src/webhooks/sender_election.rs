//! Waiting of a notice: for its turn among several processes, or for the next attempt.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::sender::{Delivery, PublishHooks};
use super::turns::{Turn, TurnOf, turn_id};

/// How long to wait for an answer. Without one, the notification is sent: a duplicate is better
/// than none.
const ANSWER: Duration = Duration::from_secs(1);

/// Interval between questions whether the other process has sent the notification.
const AGAIN: Duration = Duration::from_secs(5);

impl PublishHooks {
    /// Reports whether this process has to send the notification. While another process sends it,
    /// waits for the outcome.
    pub(super) async fn has_turn(&self, of: &Delivery) -> bool {
        let Delivery { key, notice, .. } = of;
        let Some(turns) = self.turns.as_ref().filter(|_| notice.event.is_some()) else { return true };
        let id = turn_id(&key.1, notice);
        let mut before = None;
        self.update(key, |job| before = job.turn_id.replace(id.clone()));
        self.turn(before.filter(|before| *before != id), TurnOf::Over);
        loop {
            match timeout(ANSWER, turns.ask(id.clone(), TurnOf::Wish)).await {
                Ok(Ok(Turn::Other)) => {}
                Ok(Ok(Turn::Sent)) => {
                    // Recorded, so that a restart does not ask again, even when the other processes
                    // have forgotten it.
                    let written = self.record(of);
                    let problem = written.err().map(|error| error.to_string());
                    self.update(key, |job| job.status.rest("delivered", problem));
                    return false;
                }
                _ => return true,
            }
            if !self.waits(of, AGAIN).await {
                return false;
            }
        }
    }

    pub(super) fn turn(&self, id: Option<String>, of: TurnOf) {
        if let (Some(turns), Some(id)) = (&self.turns, id) {
            drop(turns.ask(id, of));
        }
    }

    /// Waits for `time`. Returns `false` immediately if the notice is superseded, or if the process
    /// ends, which leaves the notice to the next start.
    pub(super) async fn waits(&self, of: &Delivery, time: Duration) -> bool {
        let until = Instant::now() + time;
        while timeout_at(until, of.woken.notified()).await.is_ok() {
            if self.is_superseded(of) || self.is_ending.load(Ordering::Acquire) {
                return false;
            }
        }
        true
    }
}
