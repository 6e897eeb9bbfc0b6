//! Counters for each listener, with a separate set of counters for each worker.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use parking_lot::Mutex;

use crate::metrics::{Counter, MethodLabel, ResponseKey};

/// Counters of the listeners of a process. A listener is identified by its label. A new listener
/// therefore continues the counts of an earlier listener with the same label.
#[derive(Debug, Default)]
pub(crate) struct ListenerCounts(Mutex<ListenerParts>);

#[derive(Debug, Default)]
struct ListenerParts {
    /// The labels of the listeners; the index is the listener's number.
    labels: Vec<Arc<str>>,
    shards: Vec<Arc<ResponseCounts>>,
    ended: ResponseTotals,
    ended_siteless: BTreeMap<ResponseKey, u64>,
}

#[derive(Debug)]
pub(crate) struct ListenerTraffic {
    /// The labels of the listeners; the index is the listener's number.
    pub(crate) labels: Vec<Arc<str>>,
    /// Open connections, by listener number.
    pub(crate) connections: Vec<u64>,
    /// Number of responses that did not come from a site.
    pub(crate) siteless: BTreeMap<ResponseKey, u64>,
}

impl ListenerCounts {
    pub(crate) fn of_worker(&self, label: &str) -> Arc<ResponseCounts> {
        let mut parts = self.0.lock();
        let ListenerParts { labels, shards, ended, ended_siteless } = &mut *parts;
        shards.retain(|counts| {
            let is_used = Arc::strong_count(counts) > 1;
            if !is_used {
                ended.add(counts);
                counts.add_siteless(ended_siteless);
            }
            is_used
        });
        let number = labels.iter().position(|known| **known == *label).unwrap_or_else(|| {
            labels.push(label.into());
            labels.len() - 1
        });
        let counts = Arc::new(ResponseCounts::of_listener(u16::try_from(number).unwrap_or(u16::MAX)));
        shards.push(Arc::clone(&counts));
        counts
    }

    pub(crate) fn responses(&self) -> ResponseTotals {
        let parts = self.0.lock();
        let mut totals = parts.ended;
        parts.shards.iter().for_each(|counts| totals.add(counts));
        totals
    }

    pub(crate) fn traffic(&self) -> ListenerTraffic {
        let parts = self.0.lock();
        let mut siteless = parts.ended_siteless.clone();
        let mut connections = vec![0; parts.labels.len()];
        for counts in &parts.shards {
            counts.add_siteless(&mut siteless);
            if let Some(sum) = connections.get_mut(usize::from(counts.listener)) {
                *sum += counts.connections();
            }
        }
        ListenerTraffic { labels: parts.labels.clone(), connections, siteless }
    }
}

/// Counters of one listener on one worker. Only that worker writes the counters. The alignment
/// keeps the counters of different workers in different cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ResponseCounts {
    pub(crate) listener: u16,
    by_class: [Counter; 5],
    unanswered: Counter,
    opened: Counter,
    closed: Counter,
    siteless: Mutex<BTreeMap<ResponseKey, u64>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResponseTotals {
    /// Number of responses by the first digit of their status: index 0 is for 1xx.
    pub(crate) by_class: [u64; 5],
    /// Number of requests without a response, because the client disconnected or the request was
    /// cut off.
    pub(crate) unanswered: u64,
}

impl ResponseCounts {
    pub(crate) fn of_listener(listener: u16) -> Self {
        Self { listener, ..Self::default() }
    }

    pub(crate) fn count_response(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(count) = self.by_class.get(class) {
            count.add_one();
        }
    }

    pub(crate) fn count_unanswered(&self) {
        self.unanswered.add_one();
    }

    /// Counts a response that did not come from a site. The caller must call
    /// [`count_response`](Self::count_response) as well.
    pub(crate) fn count_siteless(&self, method: MethodLabel, status: StatusCode) {
        ResponseKey::new(self.listener, method, status).count(&mut self.siteless.lock());
    }

    /// Counts a connection as open until the returned value is dropped.
    pub(crate) fn open(self: Arc<Self>) -> impl Send {
        self.opened.add_one();
        scopeguard::guard(self, |counts| counts.closed.add_one())
    }

    /// Returns the number of open connections. Connections that open or close during the call may
    /// be counted or not.
    pub(crate) fn connections(&self) -> u64 {
        let closed = self.closed.total();
        self.opened.total().saturating_sub(closed)
    }

    pub(crate) fn add_siteless(&self, sums: &mut BTreeMap<ResponseKey, u64>) {
        for (key, count) in &*self.siteless.lock() {
            *sums.entry(*key).or_default() += count;
        }
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

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    #[test]
    fn a_reopened_listener_keeps_its_counts() {
        let counts = ListenerCounts::default();
        for _ in 0..3 {
            for label in ["a", "b"] {
                let shard = counts.of_worker(label);
                shard.count_response(StatusCode::BAD_REQUEST);
                shard.count_siteless((&Method::GET).into(), StatusCode::BAD_REQUEST);
                let open = Arc::clone(&shard).open();
                assert_eq!(counts.traffic().connections.iter().sum::<u64>(), 1);
                drop(open);
            }
        }
        let ListenerTraffic { labels, connections, siteless } = counts.traffic();
        assert_eq!(labels.iter().map(|label| &**label).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(connections, [0, 0]);
        assert!(siteless.values().eq(&[3, 3]), "{siteless:?}");
        assert_eq!(counts.responses().by_class, [0, 0, 0, 6, 0]);
        assert!(counts.0.lock().shards.len() <= 2);
    }
}
