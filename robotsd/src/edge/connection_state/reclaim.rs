//! The mark that a new connection leaves on an idle one whose slot it needs, and the steps by which that one closes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// No phase, and no microsecond.
pub(crate) const NEVER: u64 = u64::MAX;

/// Whether the slot of a connection has been claimed, and in which phase the connection was then.
///
/// A connection that goes on is in another phase, so a request does not have to take anything back.
#[derive(Debug)]
pub(crate) struct ReclaimMark {
    /// [`NEVER`] until a new connection claims the slot.
    phase: AtomicU64,
    /// The slot was claimed although a head or a frame has come in part.
    is_slow: AtomicBool,
    /// The microsecond in which a claim last failed: since then the connection counts as idle, so that others go first.
    declined: AtomicU64,
    close: IdleClose,
}

/// How an idle connection past the fast path is closed: its driver requests it, its socket does it.
#[derive(Debug, Default)]
pub(crate) struct IdleClose {
    requested: AtomicBool,
    done: AtomicBool,
}

impl ReclaimMark {
    pub(crate) fn new() -> Self {
        Self {
            phase: AtomicU64::new(NEVER),
            is_slow: AtomicBool::new(false),
            declined: AtomicU64::new(0),
            close: IdleClose::default(),
        }
    }

    /// Claims the slot of a connection that is in this phase.
    pub(crate) fn set(&self, phase: u64, is_slow: bool) {
        self.is_slow.store(is_slow, Ordering::Relaxed);
        self.phase.store(phase, Ordering::Release);
    }

    /// Whether the slot has been claimed in this phase.
    pub(crate) fn is_set_in(&self, phase: u64) -> bool {
        self.phase.load(Ordering::Acquire) == phase
    }

    pub(crate) fn is_slow(&self) -> bool {
        self.is_slow.load(Ordering::Relaxed)
    }

    /// The connection cannot close now: the claim lapses, and others go before the connection is claimed again.
    pub(crate) fn decline(&self, microsecond: u64) {
        self.declined.store(microsecond, Ordering::Relaxed);
        self.phase.store(NEVER, Ordering::Release);
    }

    /// The microsecond in which a claim last failed.
    pub(crate) fn declined(&self) -> u64 {
        self.declined.load(Ordering::Relaxed)
    }

    pub(crate) fn close(&self) -> &IdleClose {
        &self.close
    }
}

impl IdleClose {
    /// The next read that finds nothing closes the connection.
    pub(crate) fn request(&self) {
        self.requested.store(true, Ordering::Relaxed);
    }

    /// A read has found something instead.
    pub(crate) fn cancel(&self) {
        self.requested.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    pub(crate) fn finish(&self) {
        self.done.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::Relaxed)
    }
}
