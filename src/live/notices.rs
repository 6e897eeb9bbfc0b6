//! Notifying listeners of reloads: each once, in the order of publication, while no lock of the site is held.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::reload::Reload;
#[cfg(feature = "tracing")]
use super::reload::ReloadOutcome;
use super::snapshot::Snapshot;

pub(crate) type ReloadListener = Box<dyn Fn(&Reload, &Snapshot) + Send + Sync>;

/// The listeners of a site, and the reloads that they are to be notified of.
///
/// A reload is queued under the lock that orders publications, and delivered after that lock is released. One thread
/// delivers at a time; another that has queued a reload leaves it to that thread. So a listener may reload the site, and
/// what comes of that is delivered after the listener returns.
pub(super) struct Notices {
    listeners: Vec<ReloadListener>,
    queue: Mutex<NoticeQueue>,
}

#[derive(Default)]
struct NoticeQueue {
    waiting: VecDeque<(Reload, Arc<Snapshot>)>,
    is_delivering: bool,
}

impl Notices {
    pub(super) fn new(listeners: Vec<ReloadListener>) -> Self {
        Self { listeners, queue: Mutex::default() }
    }

    /// Queues a reload with the snapshot that it left live.
    pub(super) fn push(&self, reload: Reload, snapshot: Arc<Snapshot>) {
        self.queue().waiting.push_back((reload, snapshot));
    }

    /// Notifies the listeners of everything queued, unless another call is doing so.
    pub(super) fn deliver(&self) {
        if std::mem::replace(&mut self.queue().is_delivering, true) {
            return;
        }
        while let Some((reload, snapshot)) = self.next() {
            // A panic must end neither the watching nor the delivery to the other listeners; the panic hook reports it.
            #[cfg(feature = "tracing")]
            let _ = catch_unwind(AssertUnwindSafe(|| trace(&reload)));
            for listener in &self.listeners {
                let _ = catch_unwind(AssertUnwindSafe(|| listener(&reload, &snapshot)));
            }
        }
    }

    /// The next in the queue; where there is none, the delivery ends under the same lock, so that none is left behind.
    fn next(&self) -> Option<(Reload, Arc<Snapshot>)> {
        let mut queue = self.queue();
        let next = queue.waiting.pop_front();
        queue.is_delivering = next.is_some();
        next
    }

    fn queue(&self) -> MutexGuard<'_, NoticeQueue> {
        // Only whole values are put in.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(feature = "tracing")]
fn trace(reload: &Reload) {
    match &reload.outcome {
        ReloadOutcome::Kept { .. } | ReloadOutcome::Gated { .. } => {
            tracing::warn!(target: "tower_robots::reload", cause = reload.cause.as_str(), "{reload}");
        }
        ReloadOutcome::Published { .. } | ReloadOutcome::Unchanged { .. } | ReloadOutcome::Absent { .. } => {
            tracing::info!(target: "tower_robots::reload", cause = reload.cause.as_str(), "{reload}");
        }
    }
}
