//! Which of several processes tells what all of them see: the first that asks, and another only where that one is gone or gave up.

use tokio::sync::oneshot;
use tower_robots::live::VersionHash;

use super::settings::Notice;

/// Decides it for all processes.
pub(crate) trait Turns: Send + Sync {
    /// It waits for nothing; an answer that does not come is the wish to tell.
    fn ask(&self, id: String, of: TurnOf) -> oneshot::Receiver<Turn>;
}

/// What a process says of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnOf {
    /// It wants to tell.
    Wish,
    Sent,
    /// It was not told, or is over and may be told again.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Own,
    /// Another that lives is about to tell.
    Other,
    Sent,
}

/// What a notice to a receiver is called among all processes.
pub(super) fn said(hook: &str, notice: &Notice) -> String {
    format!("{}:{}", notice.id(), VersionHash::of(hook.as_bytes()).short())
}
