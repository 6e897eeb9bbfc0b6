//! A mutex that stays usable after a panic. The code of this crate keeps the protected values
//! consistent between any two statements, so a panic cannot leave an inconsistent value.

use std::sync::{self, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
