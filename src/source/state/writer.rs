//! Writing down what sites remember, behind their backs: ten thousand that start, or are changed at once, must not wait
//! for the disk.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

use super::site::Notes;

/// One thread for a state directory, which ends when there is nothing to write.
#[derive(Default)]
pub(super) struct Writer {
    queue: Mutex<Queue>,
    done: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Each at most once until it is written; those that are dropped have written for themselves.
    sites: VecDeque<Weak<Notes>>,
    is_running: bool,
}

impl Writer {
    /// Has a site written soon.
    pub(super) fn call(self: &Arc<Self>, site: &Arc<Notes>) {
        if site.queue() {
            return;
        }
        let mut queue = self.queue();
        queue.sites.push_back(Arc::downgrade(site));
        if queue.is_running {
            return;
        }
        let writer = self.clone();
        queue.is_running = thread::Builder::new().name("robots-state".into()).spawn(move || writer.work()).is_ok();
        if !queue.is_running {
            // The system gives no thread: it is written here.
            drop(queue);
            self.work();
        }
    }

    /// Waits until everything is written that was called for before.
    pub(super) fn wait(&self) {
        let mut queue = self.queue();
        while queue.is_running {
            queue = self.done.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn work(&self) {
        let mut queue = self.queue();
        while let Some(site) = queue.sites.pop_front() {
            drop(queue);
            if let Some(site) = site.upgrade() {
                // A fault of ours with one site must not end the writing of the others; the panic hook has told of it.
                let _ = catch_unwind(AssertUnwindSafe(|| site.write()));
            }
            queue = self.queue();
        }
        queue.is_running = false;
        self.done.notify_all();
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Nothing is written while it is held, and what is done under it leaves it whole.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("queued", &self.queue().sites.len()).finish_non_exhaustive()
    }
}
