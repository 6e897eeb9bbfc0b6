//! How the requests of a listener were answered on one worker, for the status and for metrics.

use std::collections::BTreeMap;

use http::StatusCode;

use crate::counter::Counter;
use crate::metrics::{KeyedCounters, MethodLabel, ResponseKey};

/// Counts the connections and responses of a listener on one worker, which alone writes it; apart from other data in the cache.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ResponseCounts {
    /// The number of the listener among those of the process.
    listener: u16,
    by_class: [Counter; 5],
    unanswered: Counter,
    opened: Counter,
    closed: Counter,
    /// Responses that no site gave.
    siteless: KeyedCounters<ResponseKey>,
}

/// The sums of several [`ResponseCounts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResponseTotals {
    /// Responses by the first digit of their status, from 1.
    pub(crate) by_class: [u64; 5],
    /// Requests whose clients left, or which were cut off, before there was a response.
    pub(crate) unanswered: u64,
}

/// A connection that is counted as open until this is dropped.
#[derive(Debug)]
pub(crate) struct CountedConnection(std::sync::Arc<ResponseCounts>);

impl ResponseCounts {
    pub(crate) fn of_listener(listener: u16) -> Self {
        Self { listener, ..Self::default() }
    }

    /// The number of the listener, for counters of a site.
    pub(crate) const fn listener(&self) -> u16 {
        self.listener
    }

    pub(crate) fn answered(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(count) = self.by_class.get(class) {
            count.add_one();
        }
    }

    pub(crate) fn unanswered(&self) {
        self.unanswered.add_one();
    }

    /// Counts a response that no site gave, besides [`answered`](Self::answered).
    pub(crate) fn siteless(&self, method: MethodLabel, status: StatusCode) {
        ResponseKey::new(self.listener, method, status).count(&self.siteless);
    }

    /// A connection is open.
    pub(crate) fn open(self: std::sync::Arc<Self>) -> CountedConnection {
        self.opened.add_one();
        CountedConnection(self)
    }

    /// Connections that are open now. A connection may open while they are read.
    pub(crate) fn connections(&self) -> u64 {
        let closed = self.closed.total();
        self.opened.total().saturating_sub(closed)
    }

    pub(crate) fn add_siteless(&self, sums: &mut BTreeMap<ResponseKey, u64>) {
        self.siteless.totals().for_each(|(key, count)| *sums.entry(*key).or_default() += count);
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.0.closed.add_one();
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
