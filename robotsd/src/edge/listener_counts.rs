//! The counters of all listeners, by listener and worker.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::edge::request::response_counts::{ResponseCounts, ResponseTotals};
use crate::metrics::ResponseKey;

/// What was counted on the listeners of a process. A listener is known by its label, so one that takes the place of another goes
/// on with its counts.
#[derive(Debug, Default)]
pub(crate) struct ListenerCounts(Mutex<ListenerParts>);

#[derive(Debug, Default)]
struct ListenerParts {
    /// By the number of a listener.
    labels: Vec<Arc<str>>,
    shards: Vec<Arc<ResponseCounts>>,
    /// The sums of shards that no thread writes any more.
    ended: ResponseTotals,
    ended_siteless: BTreeMap<ResponseKey, u64>,
}

/// What was counted on every listener, for metrics.
#[derive(Debug)]
pub(crate) struct ListenerTraffic {
    /// The labels of listeners by their number.
    pub(crate) labels: Vec<Arc<str>>,
    /// Connections that are open, by the number of the listener.
    pub(crate) connections: Vec<u64>,
    /// Responses that no site gave.
    pub(crate) siteless: BTreeMap<ResponseKey, u64>,
}

impl ListenerCounts {
    /// Counters for one worker of the listener that has this label.
    pub(crate) fn of_worker(&self, label: &str) -> Arc<ResponseCounts> {
        let mut parts = self.parts();
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
        let parts = self.parts();
        let mut totals = parts.ended;
        parts.shards.iter().for_each(|counts| totals.add(counts));
        totals
    }

    pub(crate) fn traffic(&self) -> ListenerTraffic {
        let parts = self.parts();
        let mut siteless = parts.ended_siteless.clone();
        let mut connections = vec![0; parts.labels.len()];
        for counts in &parts.shards {
            counts.add_siteless(&mut siteless);
            if let Some(sum) = connections.get_mut(usize::from(counts.listener())) {
                *sum += counts.connections();
            }
        }
        ListenerTraffic { labels: parts.labels.clone(), connections, siteless }
    }

    fn parts(&self) -> MutexGuard<'_, ListenerParts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use http::{Method, StatusCode};

    use super::*;

    #[test]
    fn a_listener_that_is_opened_again_goes_on_with_its_counts() {
        let counts = ListenerCounts::default();
        for _ in 0..3 {
            for label in ["a", "b"] {
                let shard = counts.of_worker(label);
                shard.answered(StatusCode::BAD_REQUEST);
                shard.siteless((&Method::GET).into(), StatusCode::BAD_REQUEST);
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
        assert!(counts.parts().shards.len() <= 2);
    }
}
