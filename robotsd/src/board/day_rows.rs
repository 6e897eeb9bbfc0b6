//! What is kept of one site for a day, or for several: rows, when reads were watched, and which time cannot be vouched for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::requested_paths::RequestedPaths;
use super::row::{DAY, Row, RowKey, Second, day_of};
use super::watch::{self, Lost, Watch};

/// Times that a file has of a day.
const MOST_TIMES: usize = 256;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DayRows {
    /// None where nothing was kept.
    pub(crate) site: Option<SiteLine>,
    pub(crate) watches: Vec<Watch>,
    /// When what was counted may be missing.
    pub(crate) lost: Vec<Lost>,
    /// When reads may have reached others: under other settings than those of today. It is in no file.
    pub(crate) unseen: Vec<Lost>,
    /// Hours of crawlers.
    pub(crate) rows: BTreeMap<RowKey, Row>,
    /// Days of crawlers, whose hours are given up; one that still came for such a day stands in `rows`.
    pub(crate) days: BTreeMap<RowKey, Row>,
    /// What verified search engines requested, by day.
    pub(crate) requested: BTreeMap<Second, RequestedPaths>,
}

/// The first line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SiteLine {
    pub(crate) name: String,
    /// Whether every read of robots.txt reaches these processes.
    pub(crate) sees_all: bool,
    /// How many processes serve the site.
    pub(crate) replicas: usize,
}

impl SiteLine {
    /// What can be said of a day that was written with the one and with the other.
    fn and(self, other: &Self) -> Self {
        Self {
            name: other.name.clone(),
            sees_all: self.sees_all && other.sees_all,
            replicas: self.replicas.max(other.replicas),
        }
    }

    /// Whether so many processes see every read together.
    pub(super) const fn is_complete(&self, merged: usize) -> bool {
        self.sees_all && self.replicas <= merged
    }
}

impl DayRows {
    /// A day of which nothing is known.
    pub(super) fn of_lost_day(day: Second) -> Self {
        Self { lost: vec![Lost { from: day, to: day.saturating_add(DAY) }], ..Self::default() }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        if let Some(site) = &other.site {
            self.site = Some(self.site.take().map_or_else(|| site.clone(), |own| own.and(site)));
        }
        watch::merge(&mut self.watches, &other.watches);
        for (own, others) in [(&mut self.lost, &other.lost), (&mut self.unseen, &other.unseen)] {
            for lost in others {
                if !own.contains(lost) {
                    own.push(lost.clone());
                }
            }
        }
        for (own, others) in [(&mut self.rows, &other.rows), (&mut self.days, &other.days)] {
            for (key, row) in others {
                own.entry(key.clone()).or_default().merge(row);
            }
        }
        for (day, requested) in &other.requested {
            self.requested.entry(*day).or_default().merge(requested);
        }
    }

    /// Whether a file has room for another time in which reads were watched or lost.
    pub(super) fn is_room(&self) -> bool {
        self.watches.len() + self.lost.len() < MOST_TIMES
    }

    /// Gives up the oldest times that a file has no room for: they count as lost.
    pub(super) fn bound(&mut self) {
        let surplus = (self.watches.len() + self.lost.len()).saturating_sub(MOST_TIMES);
        if surplus == 0 {
            return;
        }
        // With some room for those to come.
        self.watches.sort_by_key(|watch| (watch.to, watch.from));
        let given_up = self.watches.drain(..(surplus + MOST_TIMES / 4).min(self.watches.len()));
        let given_up = given_up.map(|watch| Lost { from: watch.from, to: watch.to });
        let all = given_up.chain(self.lost.drain(..));
        self.lost = all.reduce(|one, other| one.and(&other)).into_iter().collect();
    }

    /// Makes one row of the hours that a crawler has in a day. Sums and moments stay what they are.
    pub(super) fn fold(&mut self) {
        // From the first hour to the last, as they were counted.
        for (key, row) in std::mem::take(&mut self.rows) {
            self.days.entry(RowKey { begin: day_of(key.begin), ..key }).or_default().merge(&row);
        }
    }

    /// Whether it has hours that are not folded.
    pub(super) fn has_hours(&self) -> bool {
        !self.rows.is_empty()
    }

    /// How many rows there are.
    pub(super) fn count(&self) -> usize {
        self.rows.len() + self.days.len()
    }

    /// Takes their weight from what is left of a day of which a part was lost: nothing of it accuses anybody any more, on this
    /// day or another.
    pub(super) fn doubt(&mut self, day: Second) {
        self.watches.clear();
        self.lost.clear();
        self.site.iter_mut().for_each(|site| site.sees_all = false);
        for row in self.rows.values_mut().chain(self.days.values_mut()) {
            row.reads.iter_mut().for_each(|read| read.version = None);
        }
        self.merge(&Self::of_lost_day(day));
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.days.is_empty() && self.watches.is_empty()
    }
}
