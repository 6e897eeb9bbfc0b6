//! How the requests of a worker were answered, for the status.

use http::StatusCode;

use crate::counter::Counter;

/// Counts the responses of one worker, which alone writes it; apart from other data in the cache.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ResponseCounts {
    by_class: [Counter; 5],
    unanswered: Counter,
}

/// The sums of several [`ResponseCounts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResponseTotals {
    /// Responses by the first digit of their status, from 1.
    pub(crate) by_class: [u64; 5],
    /// Requests whose clients left, or which were cut off, before there was a response.
    pub(crate) unanswered: u64,
}

impl ResponseCounts {
    pub(crate) fn answered(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(count) = self.by_class.get(class) {
            count.add_one();
        }
    }

    pub(crate) fn unanswered(&self) {
        self.unanswered.add_one();
    }
}

impl ResponseTotals {
    pub(crate) fn add(&mut self, counts: &ResponseCounts) {
        for (sum, count) in self.by_class.iter_mut().zip(&counts.by_class) {
            *sum += count.total();
        }
        self.unanswered += counts.unanswered.total();
    }
}
