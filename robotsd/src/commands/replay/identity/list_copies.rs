//! The copies of a published list, and which requests of the past they are evidence about.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use tower_robots::identity::{PublicAddress, RangeSet};
use tower_robots::source::evidence::ListCopy;

use crate::commands::arguments::site::EvidencePlaces;

const DAY: i64 = 24 * 60 * 60;

/// How long before a request a list may have been confirmed, to make an impostor of its sender: as for a server.
const CONFIRMED_BEFORE: i64 = DAY;

/// How long after it. Lists lose addresses: over four months one lost half of its prefixes. So a list of today says little
/// about who had an address a year ago.
const CONFIRMED_AFTER: i64 = 30 * DAY;

/// The copies of one list.
#[derive(Debug)]
pub(crate) struct ListCopies {
    pub(crate) url: String,
    /// The one that a server begins with.
    pub(crate) best: DatedCopy,
    /// They verify requests that were made before the date of the best one, or where they are newer.
    others: Vec<DatedCopy>,
}

#[derive(Debug)]
pub(crate) struct DatedCopy {
    pub(crate) copy: ListCopy,
    /// When it was right, in seconds since 1970: when it was fetched or last confirmed, or what its file says.
    pub(crate) date: i64,
}

impl ListCopies {
    /// The copies of the list at a URL. Notes why one cannot be used.
    pub(super) fn read(url: &str, places: &EvidencePlaces, troubles: &mut Vec<String>) -> Option<Self> {
        let copies = places.list_copies(url, |trouble| troubles.push(trouble));
        let mut copies = copies.into_iter().map(|copy| DatedCopy::of(copy, places.own_copy(url)));
        Some(Self { url: url.to_owned(), best: copies.next()?, others: copies.collect() })
    }

    /// The addresses of the list for a question about one of them, of a request at this time.
    ///
    /// An address that the best copy lost was the operator's as long as an older copy holds, and one that only a newer copy has
    /// is the operator's now.
    pub(super) fn set_for(&self, address: PublicAddress, time: Option<i64>) -> &RangeSet {
        let best = &self.best.copy.list.set;
        if self.others.is_empty() || best.contains(address.get()) {
            return best;
        }
        let is_after = time.is_some_and(|time| time >= self.best.date);
        let holds = |other: &&DatedCopy| !is_after || other.date > self.best.date;
        let mut others = self.others.iter().filter(holds).map(|other| &other.copy.list.set);
        others.find(|set| set.contains(address.get())).unwrap_or(best)
    }
}

impl DatedCopy {
    /// `own` is the operator's own file: its list may say when it was made, else it is of the time of its last change.
    fn of(copy: ListCopy, own: Option<&Path>) -> Self {
        let changed = || own.and_then(|path| std::fs::metadata(path).and_then(|meta| meta.modified()).ok());
        let written = || copy.fetched.or(copy.list.created.as_deref()).and_then(day);
        let date = match copy.confirmed {
            Some(confirmed) => seconds(confirmed),
            None => written().or_else(|| changed().map(seconds)).unwrap_or(0),
        };
        Self { copy, date }
    }
}

/// Whether evidence of a date may refute a request of this time.
pub(super) fn is_close(date: i64, time: Option<i64>) -> bool {
    time.is_some_and(|time| (-CONFIRMED_BEFORE..=CONFIRMED_AFTER).contains(&date.saturating_sub(time)))
}

pub(crate) fn seconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// The beginning of the day that a text begins with.
fn day(text: &str) -> Option<i64> {
    let day = text.get(..10)?;
    humantime::parse_rfc3339_weak(&format!("{day}T00:00:00Z")).ok().map(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_close_to_requests_shortly_before_and_after_it() {
        for (days, want) in [(-31, false), (-30, true), (0, true), (1, true), (2, false)] {
            assert_eq!(is_close(1_795_000_000, Some(1_795_000_000 + days * DAY)), want, "{days}");
        }
        assert!(!is_close(1_795_000_000, None));
        assert!(!is_close(i64::MAX, Some(i64::MIN)));
    }

    #[test]
    fn dates_are_read_as_far_as_they_are_dates() {
        assert_eq!(day("2026-09-02T14:46:00.000000"), Some(1_788_307_200));
        assert_eq!(day("2026-09-02"), Some(1_788_307_200));
        assert_eq!((day("September"), day("")), (None, None));
    }
}
