//! Decides which of several processes sends a notification that all of them have: the first that
//! asks. If it ends or gives up, another one does.

use tokio::sync::oneshot;
use tower_robots::live::VersionHash;

use super::settings::Notice;

/// Decides which process sends.
pub(crate) trait Turns: Send + Sync {
    /// Sends a report to the coordinator, without blocking; its answer arrives on the channel. A
    /// process that gets no answer sends the notification.
    fn ask(&self, id: String, of: TurnOf) -> oneshot::Receiver<Turn>;
}

/// What a process reports about a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnOf {
    /// It wants to send the notification.
    Wish,
    Sent,
    /// It was not sent, or the event is over and may be sent again.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Own,
    /// Another running process is about to send it.
    Other,
    Sent,
}

/// Returns the id of a notification to a receiver, which is the same in all processes.
pub(super) fn turn_id(hook: &str, notice: &Notice) -> String {
    format!("{}:{}", notice.id(), VersionHash::of(hook.as_bytes()).short())
}
