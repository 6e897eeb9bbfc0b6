//! What is so or not, told from one task to another.

use std::sync::atomic::{AtomicBool, Ordering};

/// What is so or not, told from one task to another; at first it is not. It orders nothing else that they share.
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
