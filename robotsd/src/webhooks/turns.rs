//! Decides which of several processes sends a notification that concerns all of them: the first
//! process that asks. If that process ends or its attempts fail, another process sends the
//! notification.

use tokio::sync::oneshot;
use tower_robots::live::VersionHash;

use super::settings::Notice;

pub(crate) trait Turns: Send + Sync {
    /// Sends a report about the notification `id` to the coordinator. Does not block; the
    /// coordinator's decision arrives on the returned channel. A process that receives no decision
    /// sends the notification.
    fn ask(&self, id: String, of: TurnReport) -> oneshot::Receiver<Turn>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnReport {
    /// The process wants to send the notification.
    Wish,
    Sent,
    /// The notification was not sent, or its event is over. From now on, any process may send the
    /// notification.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Own,
    /// Another running process is about to send the notification.
    Other,
    Sent,
}

/// Returns the ID of a notification to one receiver. The ID is the same in all processes.
pub(super) fn turn_id(hook: &str, notice: &Notice) -> String {
    format!("{}:{}", notice.id(), VersionHash::of(hook.as_bytes()).short())
}
