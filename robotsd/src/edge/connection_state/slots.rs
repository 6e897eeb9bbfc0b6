//! How many connections the process may have open, and the wait for a slot when it has that many.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use crate::edge::connection_error::{ConnectionError, ConnectionErrorKind, ConnectionErrorReporter};
use crate::edge::connection_state::claims::SlotClaims;
use crate::edge::connection_state::connection_registry::{ConnectionRegistry, WorkerConnections};

/// One count for the whole process: divided among listeners and threads, one could be full while others have room.
pub(crate) struct ClientSlots {
    slots: Arc<Semaphore>,
    registry: ConnectionRegistry,
    claims: SlotClaims,
}

/// How soon a waiter looks whether a claimed slot has come, has to be claimed elsewhere, or can be claimed at all.
pub(crate) const CLAIM_AGAIN: Duration = Duration::from_millis(10);

impl ClientSlots {
    pub(crate) fn new(connections: usize) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(connections)),
            registry: ConnectionRegistry::default(),
            claims: SlotClaims::default(),
        }
    }

    /// The connections of the current thread, which a new one enters.
    pub(crate) fn of_this_worker(&self) -> Arc<WorkerConnections> {
        self.registry.of_this_worker()
    }

    /// A slot, if one is free.
    pub(crate) fn try_acquire(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.slots).try_acquire_owned().ok()
    }

    /// Waits for a slot, for which idle connections close, those of the `own` worker first.
    pub(crate) async fn acquire<F: Fn(&ConnectionError)>(
        &self,
        own: &Arc<WorkerConnections>,
        reporter: &ConnectionErrorReporter<F>,
    ) -> OwnedSemaphorePermit {
        let mut acquiring = pin!(Arc::clone(&self.slots).acquire_owned());
        let waiter = self.claims.wait();
        let mut is_first = true;
        loop {
            let is_full = !waiter.claim(|| {
                let claim = self.registry.reclaim(own)?;
                reporter.report(
                    ConnectionErrorKind::Recycled,
                    None,
                    &format_args!(
                        "as many connections are open as may be: the longest idle was closed for a new one, after {:.1?}",
                        claim.idle
                    ),
                );
                Some(claim)
            });
            if is_full && is_first {
                reporter.report(
                    ConnectionErrorKind::Full,
                    None,
                    &"as many connections are open as may be and none is idle: new ones wait",
                );
            }
            is_first = false;
            tokio::select! {
                biased;
                Ok(slot) = &mut acquiring => return slot,
                () = sleep(CLAIM_AGAIN) => {}
            }
        }
    }

    /// How many connections are open.
    pub(crate) fn open(&self) -> usize {
        self.registry.open()
    }

    /// Adds slots.
    pub(crate) fn grow(&self, slots: usize) {
        self.slots.add_permits(slots);
    }

    /// Takes free slots away. Returns how many are still to be taken, from connections that end.
    pub(crate) fn shrink(&self, slots: usize) -> usize {
        slots - self.slots.forget_permits(slots)
    }
}
