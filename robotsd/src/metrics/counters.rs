//! A counter with one writer, one of events that are reported once a second, and counters by key; and what responses are counted by, in
//! words that no client chooses.
//!
//! Requests are counted by the worker that serves them, which has counters of its own: a word that all workers write would go
//! from core to core with each request. So counting is a load and a store, and not an instruction that locks the word. Any
//! thread may read; who wants a sum adds up what the workers have counted.
//!
//! A key is added once and never moves, so a reader sees each whole or not at all. Three tables of growing size are made as the
//! one before has no room near the place of a key; what fits nowhere is for the caller to count elsewhere.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use http::{Method, StatusCode};

/// Counts events of one thread.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Counts one. Only one thread may call this, or events are lost.
    pub(crate) fn add_one(&self) {
        self.add(1);
    }

    /// Counts so many, likewise.
    pub(crate) fn add(&self, count: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
    }

    /// How many so far.
    pub(crate) fn total(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts one kind of event, and decides when it is reported: at most once a second.
#[derive(Debug, Default)]
pub(crate) struct EventCounter {
    total: AtomicU64,
    unreported: AtomicU64,
    /// The second, counted from the start and from one, in which this kind was last reported; zero for never.
    reported: AtomicU64,
}

impl EventCounter {
    /// How many events there were, reported or not.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Whether one was reported in the last so many seconds.
    pub(crate) fn is_recent(&self, start: Instant, seconds: u64) -> bool {
        let last = self.reported.load(Ordering::Relaxed);
        last > 0 && start.elapsed().as_secs() + 1 < last + seconds
    }

    /// Counts an event. Returns the number to report, if it is time to.
    pub(crate) fn count(&self, start: Instant) -> Option<u64> {
        self.total.fetch_add(1, Ordering::Relaxed);
        self.unreported.fetch_add(1, Ordering::Relaxed);
        let second = start.elapsed().as_secs() + 1;
        let last = self.reported.load(Ordering::Relaxed);
        // Losing the exchange means that another thread reports, and this event is in its count or in the next one.
        let is_ours = last != second
            && self.reported.compare_exchange(last, second, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        is_ours.then(|| self.unreported.swap(0, Ordering::Relaxed).max(1))
    }
}

/// The sizes of the tables; powers of two.
const SIZES: [usize; 3] = [8, 64, 512];

/// Entries that are looked through in each, from the place that the hash gives.
const NEAR: usize = 8;

/// Counts events of one thread by key.
#[derive(Debug)]
pub(crate) struct KeyedCounters<K> {
    tables: [OnceLock<Box<[KeyedCounter<K>]>>; SIZES.len()],
}

/// The place of a key in one worker's counters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyPlace {
    table: u8,
    at: u16,
}

/// A key, once there is one, and its count.
type KeyedCounter<K> = (OnceLock<K>, Counter);

impl<K> KeyedCounters<K> {
    /// Counts one for the key that `is` accepts, whose hash this is; `make` makes it where there is none yet, and may decline. Says
    /// whether it was counted. Only one thread may call this.
    #[inline]
    pub(crate) fn count(&self, hash: u64, is: impl Fn(&K) -> bool, make: impl FnOnce() -> Option<K>) -> bool {
        // Nearly every key is in its place in the first table.
        if let Some((key, count)) = self.tables[0].get().and_then(|table| table.get(hash as usize & (SIZES[0] - 1)))
            && key.get().is_some_and(&is)
        {
            count.add_one();
            return true;
        }
        let place = self.place(hash, is, make);
        place.inspect(|place| self.count_at(*place)).is_some()
    }

    /// The place of a key that may count later, as [`KeyedCounters::count`] finds and makes it.
    #[inline(never)]
    pub(crate) fn place(
        &self,
        hash: u64,
        is: impl Fn(&K) -> bool,
        make: impl FnOnce() -> Option<K>,
    ) -> Option<KeyPlace> {
        for (number, (table, size)) in self.tables.iter().zip(SIZES).enumerate() {
            let table = table.get_or_init(|| (0..size).map(|_| KeyedCounter::<K>::default()).collect());
            for near in 0..NEAR {
                let at = (hash as usize).wrapping_add(near) & (size - 1);
                let (entry, _) = &table[at];
                match entry.get() {
                    Some(key) if is(key) => {}
                    Some(_) => continue,
                    // One thread writes, so no other key has come meanwhile.
                    None => _ = entry.set(make()?),
                }
                return Some(KeyPlace { table: number as u8, at: at as u16 });
            }
        }
        None
    }

    /// Counts one for the key at a place.
    pub(crate) fn count_at(&self, place: KeyPlace) {
        let table = self.tables.get(usize::from(place.table)).and_then(OnceLock::get);
        if let Some((_, count)) = table.and_then(|table| table.get(usize::from(place.at))) {
            count.add_one();
        }
    }

    /// Every key with its count.
    pub(crate) fn totals(&self) -> impl Iterator<Item = (&K, u64)> {
        let entries = self.tables.iter().filter_map(OnceLock::get).flat_map(|table| table.iter());
        entries.filter_map(|(key, count)| Some((key.get()?, count.total())))
    }
}

impl<K> Default for KeyedCounters<K> {
    fn default() -> Self {
        Self { tables: Default::default() }
    }
}

/// The methods that are named; any other is `_OTHER`, as OpenTelemetry writes it.
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

/// Listener, method and status of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ResponseKey {
    /// The listener's number.
    pub(crate) listener: u16,
    method: MethodLabel,
    /// 0 for responses that no counter has room for.
    code: u16,
}

impl ResponseKey {
    #[inline]
    pub(crate) fn new(listener: u16, method: MethodLabel, status: StatusCode) -> Self {
        Self { listener, method, code: status.as_u16() }
    }

    /// Counts one. Only the thread that writes the counters may call this.
    #[inline]
    pub(crate) fn count(self, counters: &KeyedCounters<Self>) {
        if !counters.count(self.hash(), |key| *key == self, || Some(self)) {
            let other = Self { method: MethodLabel::OTHER, code: 0, ..self };
            // Tables with no room near its place have counted hundreds of others.
            let _ = counters.count(other.hash(), |key| *key == other, || Some(other));
        }
    }

    /// Spreads keys over a table.
    const fn hash(self) -> u64 {
        let key = (self.listener as u64) << 24 | (self.method.0 as u64) << 16 | self.code as u64;
        key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
    }

    /// The method's label.
    pub(crate) fn method(&self) -> &'static str {
        METHODS.get(usize::from(self.method.0)).map_or("_OTHER", Method::as_str)
    }

    /// The status code's label.
    pub(crate) fn code(&self) -> String {
        if self.code == 0 { "other".to_owned() } else { self.code.to_string() }
    }
}

/// A method as it is counted.
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
    fn every_key_is_counted_by_itself_while_there_is_room() {
        let counters = KeyedCounters::default();
        for _ in 0..3 {
            for key in 0..300_u64 {
                // A hash as bad as one that is good for a table at most.
                assert!(counters.count(key, |other| *other == key, || Some(key)), "{key}");
            }
        }
        let mut found: Vec<_> = counters.totals().map(|(key, count)| (*key, count)).collect();
        found.sort_unstable();
        assert_eq!(found, (0..300).map(|key| (key, 3)).collect::<Vec<_>>());
    }

    #[test]
    fn what_has_no_room_or_is_declined_is_not_counted() {
        let counters = KeyedCounters::default();
        let counted = (0..1000_u64).filter(|key| counters.count(0, |other| other == key, || Some(*key))).count();
        assert_eq!((counted, counters.totals().count()), (NEAR * SIZES.len(), NEAR * SIZES.len()));
        assert!(counters.count(0, |key| *key == 3, || None), "a key that is there needs no new one");
        assert!(!KeyedCounters::<u64>::default().count(0, |_| true, || None));
    }

    #[test]
    fn a_method_is_one_of_a_few_words() {
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
