//! A flag without memory ordering.

use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that one task sets and another task reads. The flag does not order other memory accesses
/// (`Relaxed`).
#[derive(Debug, Default)]
pub(crate) struct Flag(AtomicBool);

impl Flag {
    pub(crate) fn set(&self, is_set: bool) {
        self.0.store(is_set, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Clears the flag and returns whether it was set.
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}
