//! Counters for metrics, and the labels of counted responses. Labels never come from clients.
//!
//! Each worker has its own counters, because a counter that several cores write to is slow. A
//! [`Counter`] is a single number, which only one thread writes. Counts by key are in a map behind
//! a mutex, which is contended only while a scrape reads the counts. An [`EventCounter`] also
//! limits how often events are reported.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use http::{Method, StatusCode};
use parking_lot::Mutex;

/// Number of events, counted by one thread.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds one. Only one thread may call this function: concurrent calls would lose counts.
    pub(crate) fn add_one(&self) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts the events of one kind, and limits the reports about them to one per second.
#[derive(Debug, Default)]
pub(crate) struct EventCounter(Mutex<EventCount>);

#[derive(Debug, Default)]
struct EventCount {
    total: u64,
    unreported: u64,
    /// Time of the last report, in seconds since `start`.
    reported: Option<u64>,
}

impl EventCounter {
    pub(crate) fn total(&self) -> u64 {
        self.0.lock().total
    }

    /// Reports whether the last report is less than `seconds` seconds old.
    pub(crate) fn is_recent(&self, start: Instant, seconds: u64) -> bool {
        self.0.lock().reported.is_some_and(|last| start.elapsed().as_secs() < last + seconds)
    }

    /// Counts an event. If a report is due, returns the number of events since the last report.
    pub(crate) fn count(&self, start: Instant) -> Option<u64> {
        let second = start.elapsed().as_secs();
        let mut count = self.0.lock();
        count.total += 1;
        count.unreported += 1;
        (count.reported.replace(second) != Some(second)).then(|| std::mem::take(&mut count.unreported))
    }
}

/// Methods with their own label. All other methods have the label `_OTHER`, as in OpenTelemetry.
static METHODS: [Method; 9] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
    Method::CONNECT,
    Method::TRACE,
];

/// Maximum number of keys in a map of response counts. Clients choose the method and upstreams
/// choose the status, so the map could otherwise become large.
const MAX_KEYS: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ResponseKey {
    /// Index of the listener.
    pub(crate) listener: u16,
    method: MethodLabel,
    /// The status code; 0 for responses beyond [`MAX_KEYS`].
    code: u16,
}

impl ResponseKey {
    #[inline]
    pub(crate) fn new(listener: u16, method: MethodLabel, status: StatusCode) -> Self {
        Self { listener, method, code: status.as_u16() }
    }

    pub(crate) fn count(self, counts: &mut BTreeMap<Self, u64>) {
        let has_room = counts.len() < MAX_KEYS || counts.contains_key(&self);
        let key = if has_room { self } else { Self { method: MethodLabel::OTHER, code: 0, ..self } };
        *counts.entry(key).or_default() += 1;
    }

    pub(crate) fn method(&self) -> &'static str {
        METHODS.get(usize::from(self.method.0)).map_or("_OTHER", Method::as_str)
    }

    pub(crate) fn code(&self) -> String {
        if self.code == 0 { "other".to_owned() } else { self.code.to_string() }
    }
}

/// The method of a request as a label: an index in [`METHODS`]; a larger number means `_OTHER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MethodLabel(u8);

impl MethodLabel {
    const OTHER: Self = Self(METHODS.len() as u8);
}

impl From<&Method> for MethodLabel {
    fn from(method: &Method) -> Self {
        Self(METHODS.iter().position(|known| known == method).map_or(Self::OTHER.0, |at| at as u8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_beyond_the_limit_of_keys_are_counted_together() {
        let mut counts = BTreeMap::new();
        for _ in 0..2 {
            for code in 100..1000 {
                let status = StatusCode::from_u16(code).unwrap();
                ResponseKey::new(7, (&Method::GET).into(), status).count(&mut counts);
            }
        }
        let other = ResponseKey { listener: 7, method: MethodLabel::OTHER, code: 0 };
        assert_eq!(counts.remove(&other), Some(2 * (900 - MAX_KEYS as u64)));
        assert!(counts.len() == MAX_KEYS && counts.values().all(|count| *count == 2), "{counts:?}");
    }

    #[test]
    fn unknown_methods_have_the_label_other() {
        for (method, want) in [("GET", "GET"), ("TRACE", "TRACE"), ("PROPFIND", "_OTHER"), ("get", "_OTHER")] {
            let label = MethodLabel::from(&Method::from_bytes(method.as_bytes()).unwrap());
            assert_eq!(ResponseKey::new(0, label, StatusCode::OK).method(), want);
        }
        for method in &METHODS {
            assert_eq!(ResponseKey::new(0, method.into(), StatusCode::OK).method(), method.as_str());
        }
        let other = ResponseKey { listener: 7, method: MethodLabel::OTHER, code: 0 };
        assert_eq!((other.code(), other.method()), ("other".to_owned(), "_OTHER"));
    }
}
