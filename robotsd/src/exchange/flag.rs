//! A state that is set or not, for tasks that have nothing else to order.

use std::sync::atomic::{AtomicBool, Ordering};

/// A state that one task sets and another reads; at first it is not set. It orders nothing else that they share.
#[derive(Debug, Default)]
pub(crate) struct Flag(AtomicBool);

impl Flag {
    pub(crate) fn set(&self, is_set: bool) {
        self.0.store(is_set, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes it back. Whether it was set.
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}
