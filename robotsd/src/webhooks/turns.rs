//! Decides which of several processes sends a notification that all of them have: the first process
//! that asks. If this process ends or its attempts fail, another one sends the notification.

use tokio::sync::oneshot;
use tower_robots::live::VersionHash;

use super::settings::Notice;

/// The coordinator, which decides which process sends a notification.
pub(crate) trait Turns: Send + Sync {
    /// Sends a report to the coordinator without blocking. The answer arrives on the returned
    /// channel. A process that gets no answer sends the notification.
    fn ask(&self, id: String, of: TurnOf) -> oneshot::Receiver<Turn>;
}

/// What a process reports about a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnOf {
    /// The process wants to send the notification.
    Wish,
    Sent,
    /// The notification was not sent, or its event is over, so that it may be sent again.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Own,
    /// Another running process is about to send the notification.
    Other,
    Sent,
}

/// Returns the id of a notification to a receiver. It is the same in all processes.
pub(super) fn turn_id(hook: &str, notice: &Notice) -> String {
    format!("{}:{}", notice.id(), VersionHash::of(hook.as_bytes()).short())
}
