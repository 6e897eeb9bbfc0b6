//! Requests of crawlers by the hour, in bounded memory.

use std::collections::BTreeMap;

use serde::Serialize;

/// Hours with counts of their own: a little more than four years.
const HOURS: usize = 40_000;

#[derive(Clone, Debug)]
pub(super) struct Hours {
    /// How many hours have counts.
    most: usize,
    hours: BTreeMap<i64, HourCounts>,
}

impl Default for Hours {
    fn default() -> Self {
        Self::new(HOURS)
    }
}

/// Requests of crawlers in an hour, or in several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct HourCounts {
    pub(super) allowed: u64,
    pub(super) disallowed: u64,
    /// Disallowed, but before the rules held.
    pub(super) not_blamed: u64,
    /// Those that a change shuts out, of them those of search engines with an index, and those that it lets in.
    pub(super) shut: u64,
    pub(super) shut_search_engines: u64,
    pub(super) opened: u64,
}

impl Hours {
    pub(super) const fn new(most: usize) -> Self {
        Self { most, hours: BTreeMap::new() }
    }

    /// The counts of the hour of a time in seconds since 1970, or `None` where there are too many hours.
    pub(super) fn of(&mut self, time: i64) -> Option<&mut HourCounts> {
        self.hour(time.div_euclid(3600))
    }

    fn hour(&mut self, hour: i64) -> Option<&mut HourCounts> {
        if self.hours.len() >= self.most && !self.hours.contains_key(&hour) {
            return None;
        }
        Some(self.hours.entry(hour).or_default())
    }

    pub(super) fn merge(&mut self, other: Self) {
        for (hour, counts) in other.hours {
            if let Some(own) = self.hour(hour) {
                own.add(counts);
            }
        }
    }

    /// Hours as seconds since 1970.
    pub(super) fn sorted(&self) -> impl Iterator<Item = (i64, HourCounts)> {
        self.hours.iter().map(|(hour, counts)| (hour * 3600, *counts))
    }
}

impl HourCounts {
    pub(super) const fn add(&mut self, other: Self) {
        self.allowed += other.allowed;
        self.disallowed += other.disallowed;
        self.not_blamed += other.not_blamed;
        self.shut += other.shut;
        self.shut_search_engines += other.shut_search_engines;
        self.opened += other.opened;
    }
}
