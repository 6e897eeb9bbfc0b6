//! Which of several processes sends a notification that all of them have: the first that asks; another if that one has ended or gave up.

use tokio::sync::oneshot;
use tower_robots::live::VersionHash;

use super::settings::Notice;

/// Decides which process sends.
pub(crate) trait Turns: Send + Sync {
    /// It does not block. A process that gets no answer sends.
    fn ask(&self, id: String, of: TurnOf) -> oneshot::Receiver<Turn>;
}

/// What a process reports about a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnOf {
    /// It asks to send it.
    Wish,
    Sent,
    /// It was not sent, or the event is over and may be sent again.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Own,
    /// Another process that runs is about to send it.
    Other,
    Sent,
}

/// The id of a notification to a receiver, the same in all processes.
pub(super) fn turn_id(hook: &str, notice: &Notice) -> String {
    format!("{}:{}", notice.id(), VersionHash::of(hook.as_bytes()).short())
}
