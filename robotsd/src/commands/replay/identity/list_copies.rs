//! The copies of a published list, and which requests of the past they are evidence about.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use tower_robots::identity::{PublicAddress, RangeList, RangeSet, embedded_lists};
use tower_robots::source::evidence::{EvidenceOrigin, SavedLists};

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
    url: String,
    best: ListCopy,
    /// They verify requests that were made before the date of the best one.
    others: Vec<ListCopy>,
}

#[derive(Debug)]
struct ListCopy {
    list: RangeList,
    origin: EvidenceOrigin,
    /// When it was right, in seconds since 1970.
    date: i64,
}

impl ListCopies {
    /// The copies of the list at a URL: saved by a running robotsd, if that is newer than the embedded one; else the
    /// operator's own; else the embedded one. Notes why one cannot be used.
    pub(super) fn read(url: &str, places: &EvidencePlaces, troubles: &mut Vec<String>) -> Option<Self> {
        let embedded = embedded_lists().iter().find(|list| list.url() == url).map(|list| ListCopy {
            list: RangeList::from(list),
            origin: EvidenceOrigin::Embedded,
            date: day(list.fetched()).unwrap_or(0),
        });
        let mut noted = |copy: Result<Option<ListCopy>, String>| {
            copy.unwrap_or_else(|trouble| {
                troubles.push(trouble);
                None
            })
        };
        let saved = noted(places.saved.as_deref().map_or(Ok(None), |folder| ListCopy::saved(url, folder)));
        let own = noted(places.files.get(url).map_or(Ok(None), |path| ListCopy::of_file(path).map(Some)));
        let is_newer = |saved: &ListCopy| [&own, &embedded].into_iter().flatten().all(|other| saved.date >= other.date);
        let (first, last) = if saved.as_ref().is_some_and(is_newer) { (saved, None) } else { (None, saved) };
        let mut copies = [first, own, embedded, last].into_iter().flatten();
        Some(Self { url: url.to_owned(), best: copies.next()?, others: copies.collect() })
    }

    /// The addresses of the list for a question about one of them, of a request at this time.
    ///
    /// An address that the best copy lost was the operator's as long as an older copy holds.
    pub(super) fn set_for(&self, address: PublicAddress, time: Option<i64>) -> &RangeSet {
        let best = self.best.list.set();
        if self.others.is_empty() || best.contains(address.get()) || time.is_some_and(|time| time >= self.best.date) {
            return best;
        }
        let others = self.others.iter().map(|copy| copy.list.set());
        others.into_iter().find(|set| set.contains(address.get())).unwrap_or(best)
    }

    /// Whether an address that the list lacks was not the operator's at this time, in seconds since 1970.
    ///
    /// Only a list that was fetched has a date on which its operator confirmed it.
    pub(super) fn is_close_to(&self, time: Option<i64>) -> bool {
        matches!(self.best.origin, EvidenceOrigin::Fetched | EvidenceOrigin::Saved) && is_close(self.best.date, time)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) const fn origin(&self) -> EvidenceOrigin {
        self.best.origin
    }

    /// When it was right, in seconds since 1970: when it was fetched or last confirmed, or what its file says.
    pub(crate) const fn date(&self) -> i64 {
        self.best.date
    }

    pub(crate) const fn prefixes(&self) -> usize {
        self.best.list.prefixes()
    }
}

impl ListCopy {
    fn saved(url: &str, folder: &Path) -> Result<Option<Self>, String> {
        let saved = SavedLists::in_folder(folder).read(url).map_err(|error| error.to_string())?;
        Ok(saved.map(|saved| Self { list: saved.list, origin: EvidenceOrigin::Saved, date: seconds(saved.confirmed) }))
    }

    fn of_file(path: &Path) -> Result<Self, String> {
        let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let octets = std::fs::read(path).map_err(|error| wrong(&error))?;
        let list = RangeList::parse(&octets).map_err(|error| match error.position() {
            Some(_) => format!("{}:{error}", path.display()),
            None => wrong(&error),
        })?;
        let changed = || std::fs::metadata(path).and_then(|meta| meta.modified()).map_or(0, seconds);
        let date = list.created().and_then(day).unwrap_or_else(changed);
        Ok(Self { list, origin: EvidenceOrigin::File, date })
    }
}

/// Whether evidence of a date may refute a request of this time.
pub(super) fn is_close(date: i64, time: Option<i64>) -> bool {
    time.is_some_and(|time| (-CONFIRMED_BEFORE..=CONFIRMED_AFTER).contains(&date.saturating_sub(time)))
}

pub(super) fn seconds(time: SystemTime) -> i64 {
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
