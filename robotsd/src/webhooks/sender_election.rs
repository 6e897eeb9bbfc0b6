//! The waits before a notice is sent: for the coordinator's decision, and for the next attempt.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::sender::{Delivery, PublishHooks};
use super::turns::{Turn, TurnReport, turn_id};

/// Maximum time to wait for the coordinator's decision. Without a decision, this process sends the
/// notification, because a duplicate is better than no notification.
const DECISION_TIMEOUT: Duration = Duration::from_secs(1);

/// Interval between questions to the coordinator while another process sends the notification.
const ASK_INTERVAL: Duration = Duration::from_secs(5);

impl PublishHooks {
    /// Reports whether this process must send the notification. If another process is about to send
    /// the notification, waits until that process has succeeded or failed.
    pub(super) async fn must_send(&self, of: &Delivery) -> bool {
        let Delivery { key, notice, .. } = of;
        let Some(turns) = self.turns.as_ref().filter(|_| notice.event.is_some()) else { return true };
        let id = turn_id(&key.1, notice);
        let mut before = None;
        self.update(key, |job| before = job.turn_id.replace(id.clone()));
        self.report_turn(before.filter(|before| *before != id), TurnReport::Over);
        loop {
            match timeout(DECISION_TIMEOUT, turns.ask(id.clone(), TurnReport::Wish)).await {
                Ok(Ok(Turn::Other)) => {}
                Ok(Ok(Turn::Sent)) => {
                    // The delivery is recorded as if this process had delivered the notification.
                    // After a restart, this process therefore does not ask again, even if the
                    // coordinator has forgotten the notification.
                    let written = self.record(of);
                    let problem = written.err().map(|error| error.to_string());
                    self.update(key, |job| job.status.rest("delivered", problem));
                    return false;
                }
                _ => return true,
            }
            if !self.wait_unless_superseded(of, ASK_INTERVAL).await {
                return false;
            }
        }
    }

    pub(super) fn report_turn(&self, id: Option<String>, of: TurnReport) {
        if let (Some(turns), Some(id)) = (&self.turns, id) {
            drop(turns.ask(id, of));
        }
    }

    /// Waits for `time`. Returns `false` early if the notice is superseded or the process ends. If
    /// the process ends, the notice is sent after the next start.
    pub(super) async fn wait_unless_superseded(&self, of: &Delivery, time: Duration) -> bool {
        let until = Instant::now() + time;
        while timeout_at(until, of.woken.notified()).await.is_ok() {
            if self.is_superseded(of) || self.is_ending.load(Ordering::Acquire) {
                return false;
            }
        }
        true
    }
}
