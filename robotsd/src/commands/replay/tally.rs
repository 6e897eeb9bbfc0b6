//! Counts requests in bounded memory.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::ops::AddAssign;

use foldhash::fast::RandomState;
use serde::Serialize;

use crate::refusal::REFUSAL_STATUSES;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, derive_more::AddAssign)]
pub(super) struct RequestTally {
    pub(super) requests: u64,
    pub(super) allowed: u64,
    pub(super) disallowed: u64,
    /// Number of requests that the first file disallows; `disallowed` counts the requests that the
    /// last file disallows.
    pub(super) disallowed_before: u64,
    /// Number of requests that the first file allows and the second disallows.
    pub(super) shut: u64,
    /// Number of requests that the first file disallows and the second allows.
    pub(super) opened: u64,
    /// Number of disallowed requests that were sent before the rules began to apply.
    pub(super) not_blamed: u64,
    pub(super) robots_txt: u64,
    pub(super) shut_search_engines: u64,
    #[serde(skip)]
    pub(super) disallowed_search_engines: u64,
    /// Number of disallowed requests that robotsd would have refused in the mode `refuse`.
    #[serde(skip)]
    pub(super) would_refuse: u64,
    /// Number of disallowed requests that robotsd would only have tagged in the mode `refuse`.
    #[serde(skip)]
    pub(super) would_tag: u64,
    /// The requests in `would_refuse`, by the status of the response.
    #[serde(skip)]
    pub(super) refusals: RefusalTally,
    #[serde(skip)]
    pub(super) pages: u64,
}

/// Numbers of refused requests for each status in [`REFUSAL_STATUSES`]. The last element counts the
/// refused requests whose response comes from an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RefusalTally([u64; REFUSAL_STATUSES.len() + 1]);

impl RefusalTally {
    /// Returns the tally of `count` refusals with this status. `status` is `None` if an upstream
    /// responds.
    pub(super) fn of(status: Option<u16>, count: u64) -> Self {
        let mut tally = Self::default();
        let at = REFUSAL_STATUSES.iter().position(|known| Some(known.as_u16()) == status);
        tally.0[at.unwrap_or(REFUSAL_STATUSES.len())] = count;
        tally
    }

    pub(super) fn counts(&self) -> impl Iterator<Item = (String, u64)> {
        let labels = REFUSAL_STATUSES.iter().map(|status| status.as_str().to_owned()).chain(["upstream".to_owned()]);
        labels.zip(self.0).filter(|(_, count)| *count > 0)
    }
}

impl AddAssign for RefusalTally {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, count)| *sum += count);
    }
}

/// The times of the first and the last request, in seconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LogPeriod {
    pub(super) first: Option<i64>,
    pub(super) last: Option<i64>,
}

impl LogPeriod {
    #[inline]
    pub(super) fn note(&mut self, time: Option<i64>) {
        let Some(time) = time else { return };
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        self.last = Some(self.last.map_or(time, |last| last.max(time)));
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.note(other.first);
        self.note(other.last);
    }

    /// Reports whether more than `seconds` lie between the two periods.
    pub(super) fn is_apart_from(&self, other: &Self, seconds: i64) -> bool {
        let is_after = |this: &Self, that: &Self| {
            this.first.zip(that.last).is_some_and(|(first, last)| first.saturating_sub(last) > seconds)
        };
        is_after(self, other) || is_after(other, self)
    }
}

/// Maximum number of hours with their own counts: a little more than four years.
const MAX_HOURS: usize = 40_000;

#[derive(Clone, Debug)]
pub(super) struct Hours {
    most: usize,
    hours: BTreeMap<i64, RequestTally>,
}

impl Default for Hours {
    fn default() -> Self {
        Self::new(MAX_HOURS)
    }
}

impl Hours {
    pub(super) const fn new(most: usize) -> Self {
        Self { most, hours: BTreeMap::new() }
    }

    /// Returns the counts for the hour of `time` (seconds since 1970), or `None` if there are
    /// already too many hours.
    pub(super) fn of(&mut self, time: i64) -> Option<&mut RequestTally> {
        self.hour(time.div_euclid(3600))
    }

    fn hour(&mut self, hour: i64) -> Option<&mut RequestTally> {
        if self.hours.len() >= self.most && !self.hours.contains_key(&hour) {
            return None;
        }
        Some(self.hours.entry(hour).or_default())
    }

    pub(super) fn merge(&mut self, other: Self) {
        for (hour, counts) in other.hours {
            if let Some(own) = self.hour(hour) {
                *own += counts;
            }
        }
    }

    /// Returns the beginning of each hour, in seconds since 1970, with the counts of the hour.
    pub(super) fn sorted(&self) -> impl Iterator<Item = (i64, RequestTally)> {
        self.hours.iter().map(|(hour, counts)| (hour * 3600, *counts))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, derive_more::AddAssign)]
pub(super) struct AddressTally {
    pub(super) requests: u64,
    pub(super) disallowed: u64,
}

/// Numbers of requests for at most `MAX` keys, such as addresses. If there are more keys, the half
/// of the keys with the fewest requests is dropped.
#[derive(Clone, Debug)]
pub(super) struct FrequentCounts<K, const MAX: usize> {
    counts: HashMap<K, AddressTally, RandomState>,
    pub(super) dropped: AddressTally,
}

impl<K, const MAX: usize> Default for FrequentCounts<K, MAX> {
    fn default() -> Self {
        Self { counts: HashMap::default(), dropped: AddressTally::default() }
    }
}

impl<K: Copy + Hash + Ord, const MAX: usize> FrequentCounts<K, MAX> {
    pub(super) fn note(&mut self, key: K, is_disallowed: bool) {
        self.add(key, AddressTally { requests: 1, disallowed: u64::from(is_disallowed) });
    }

    fn add(&mut self, key: K, tally: AddressTally) {
        if let Some(known) = self.counts.get_mut(&key) {
            *known += tally;
            return;
        }
        if self.counts.len() >= MAX {
            // Half of the space is freed at once, because dropping keys takes time and should be
            // rare.
            let mut all = self.sorted();
            all.split_off(MAX / 2).into_iter().for_each(|(_, tally)| self.dropped += tally);
            self.counts = all.into_iter().collect();
        }
        self.counts.insert(key, tally);
    }

    pub(super) fn merge(&mut self, next: Self) {
        self.dropped += next.dropped;
        // After a few chunks, almost all keys are known, so few new keys have to be sorted.
        let (known, mut new): (Vec<_>, Vec<_>) =
            next.counts.into_iter().partition(|(key, _)| self.counts.contains_key(key));
        if self.counts.len() + new.len() > MAX {
            // If there is not enough space for all new keys, the new keys are sorted, because the
            // choice of keys must not depend on the iteration order of the map.
            sort(&mut new);
        }
        known.into_iter().chain(new).for_each(|(key, tally)| self.add(key, tally));
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &K> {
        self.counts.keys()
    }

    pub(super) fn sorted(&self) -> Vec<(K, AddressTally)> {
        let mut sorted: Vec<_> = self.counts.iter().map(|(key, tally)| (*key, *tally)).collect();
        sort(&mut sorted);
        sorted
    }
}

fn sort<K: Copy + Ord>(counts: &mut [(K, AddressTally)]) {
    counts.sort_unstable_by_key(|(key, tally)| (std::cmp::Reverse(tally.requests), *key));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_apart_if_one_ends_long_before_the_other_begins() {
        let period = |first, last| LogPeriod { first: Some(first), last: Some(last) };
        assert!(period(0, 5).is_apart_from(&period(16, 20), 10) && period(16, 20).is_apart_from(&period(0, 5), 10));
        assert!(!period(0, 5).is_apart_from(&period(15, 20), 10) && !period(0, 30).is_apart_from(&period(15, 20), 1));
        assert!(!period(0, 5).is_apart_from(&LogPeriod::default(), 1));
    }
}
