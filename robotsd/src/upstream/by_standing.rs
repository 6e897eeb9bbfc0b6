//! One value for requests of clients within their share, and one for those beyond.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::shares::Standing;

/// One for requests of clients within their share, and one for the others.
#[derive(Debug, Default)]
pub(super) struct ByStanding<T> {
    pub(super) within: T,
    pub(super) beyond: T,
}

impl<T> ByStanding<T> {
    pub(super) fn of(&self, standing: Standing) -> &T {
        match standing {
            Standing::Within => &self.within,
            Standing::Beyond => &self.beyond,
        }
    }
}

impl ByStanding<AtomicUsize> {
    pub(super) fn add(&self, standing: Standing) {
        self.of(standing).fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn remove(&self, standing: Standing) {
        self.of(standing).fetch_sub(1, Ordering::SeqCst);
    }

    /// Those who come first, if there are any.
    pub(super) fn first(&self) -> Option<Standing> {
        [Standing::Within, Standing::Beyond].into_iter().find(|standing| self.of(*standing).load(Ordering::SeqCst) > 0)
    }
}
