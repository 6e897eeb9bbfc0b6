//! Builds a board from an access log. If the versions of robots.txt that were live during the log
//! are known, the board shows what a live board would have shown.
//!
//! If the log has no line for more than an hour, this time is a gap, like a time when robotsd was
//! not running: any crawler may have fetched robots.txt.

use std::collections::BTreeMap;
use std::slice;

use super::day::DayRows;
use super::recorder::{Counted, OTHER_CRAWLERS};
use super::report::SiteBoard;
use super::row::{ClaimResult, DAY, HOUR, RowKey, Second, hour_of};
use super::summary::{Evidence, Period, sum_up};
use super::table::{MAX_LIVE, UnregisteredNames};
use super::watch::{Lost, Watch};

/// Maximum number of hourly rows. If there are more hourly rows, all of them are merged into daily
/// rows.
const MAX_HOURLY: usize = MAX_LIVE / 2;

/// Maximum number of hours in [`LoggedTimes`]: a little more than four years.
const MAX_HOURS: usize = 40_000;

/// Maximum number of bars in a trend.
const MAX_BARS: Second = 400;

/// Times of the first and the last log line in each hour.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoggedTimes(BTreeMap<Second, (Second, Second)>);

#[derive(Debug, Default)]
pub(crate) struct LogBoard {
    rows: DayRows,
    times: LoggedTimes,
    names: UnregisteredNames,
}

impl LoggedTimes {
    pub(crate) fn note(&mut self, at: Second) {
        self.note_span(at, at);
    }

    /// Adds the times of the first and last line of an hour. Hours beyond [`MAX_HOURS`] are
    /// dropped, and count as gaps in the log.
    fn note_span(&mut self, first: Second, last: Second) {
        let hour = hour_of(first);
        if let Some(known) = self.0.get_mut(&hour) {
            *known = (known.0.min(first), known.1.max(last));
        } else if self.0.len() < MAX_HOURS {
            self.0.insert(hour, (first, last));
        }
    }

    fn merge(&mut self, other: &Self) {
        other.0.values().for_each(|(first, last)| self.note_span(*first, *last));
    }

    /// Returns the periods in which no two consecutive log lines are more than an hour apart.
    fn spans(&self) -> Vec<(Second, Second)> {
        let mut spans: Vec<(Second, Second)> = Vec::new();
        for (first, last) in self.0.values().copied() {
            match spans.last_mut() {
                Some(span) if first <= span.1 + HOUR => span.1 = last,
                _ => spans.push((first, last)),
            }
        }
        spans
    }
}

impl LogBoard {
    /// Adds counts of requests, and the times of the log lines that contain these requests.
    pub(crate) fn join(&mut self, counted: Counted, times: &LoggedTimes) {
        let mut is_lost = counted.lost > 0;
        for (mut key, row) in counted.rows {
            if row.operator.is_empty() && !self.names.admit(key.begin, &key.crawler) {
                OTHER_CRAWLERS.clone_into(&mut key.crawler);
            }
            if self.rows.rows.len() >= MAX_HOURLY {
                self.rows.fold();
            }
            if self.rows.count() < MAX_LIVE || self.rows.rows.contains_key(&key) {
                self.rows.rows.entry(key).or_default().merge(&row);
            } else {
                // This row is dropped, so fetches of robots.txt may now be missing.
                is_lost = true;
            }
        }
        let span = times.0.values().map(|(from, to)| Lost { from: *from, to: *to }).reduce(Lost::and);
        if let Some(span) = span.filter(|_| is_lost) {
            self.rows.lost = self.rows.lost.drain(..).chain([span]).reduce(Lost::and).into_iter().collect();
        }
        self.times.merge(times);
    }

    /// Finishes counting. `versions` contains the time when each version came into force, oldest
    /// first. Impostors of the crawlers in `crawlers` are counted as unverified clients, because
    /// the log may not contain the addresses of clients.
    pub(crate) fn conclude(&mut self, versions: &[(Second, &str)], crawlers: &[String]) {
        self.rows.watches = watches(&self.times.spans(), versions);
        for rows in [&mut self.rows.rows, &mut self.rows.days] {
            let is_forgiven = |key: &RowKey| key.identity == ClaimResult::Impostor && crawlers.contains(&key.crawler);
            let keys: Vec<RowKey> = rows.keys().filter(|key| is_forgiven(key)).cloned().collect();
            for key in keys {
                if let Some(row) = rows.remove(&key) {
                    rows.entry(RowKey { identity: ClaimResult::Claimed, ..key }).or_default().merge(&row);
                }
            }
        }
    }

    pub(crate) fn board(&self, evidence: Evidence) -> SiteBoard {
        let spans = self.times.spans();
        let Some((from, to)) = spans.first().map(|first| first.0).zip(spans.last().map(|last| last.1)) else {
            return SiteBoard::default();
        };
        let step = DAY * ((to - from) / DAY / MAX_BARS + 1);
        let period = Period { from: hour_of(from), to, step };
        let live = self.rows.watches.last().and_then(|watch| watch.version.as_deref());
        sum_up("", slice::from_ref(&self.rows), period, evidence, live)
    }

    pub(crate) fn lacking(&self) -> Vec<(Second, Second)> {
        self.times.spans().windows(2).map(|pair| (pair[0].1, pair[1].0)).collect()
    }
}

/// Creates watches for the periods without a gap. The version in force is known during gaps, too,
/// because `versions` contains every change.
fn watches(spans: &[(Second, Second)], versions: &[(Second, &str)]) -> Vec<Watch> {
    let (Some((process, _)), Some((_, end))) = (spans.first().copied(), spans.last().copied()) else {
        return Vec::new();
    };
    let is_silent =
        |at: Second| process < at && at < end && !spans.iter().any(|(from, to)| (*from..=*to).contains(&at));
    let before = versions.first().map_or(Second::MAX, |(since, _)| *since);
    let unknown = [(0, before, None)].into_iter();
    let ends = versions.iter().skip(1).map(|(since, _)| *since).chain([Second::MAX]);
    let known = versions.iter().zip(ends).map(|((since, name), end)| (*since, end, Some(*name)));
    let mut watches = Vec::new();
    for (since, until, version) in unknown.chain(known) {
        let inside = spans.iter().map(|(from, to)| ((*from).max(since), (*to).min(until)));
        // A change of the version during a gap is recorded as a watch of zero length.
        let at = |moment: Second| is_silent(moment).then_some((moment, moment));
        let moments = at(since).into_iter().chain(inside.filter(|(from, to)| from <= to)).chain(at(until));
        let mut live_since = None;
        for (from, to) in moments {
            watches.push(Watch { from, to, version: version.map(str::to_owned), process, live_since });
            live_since = Some(to);
        }
    }
    watches
}

#[cfg(test)]
mod tests {
    use super::super::watch::gaps;
    use super::*;

    #[test]
    fn the_version_in_force_during_a_log_gap_is_known_between_changes() {
        let mut times = LoggedTimes::default();
        for at in [100, 3_000, 6_500, 20_000, 20_010, 90_000] {
            times.note(at);
        }
        assert_eq!(times.spans(), [(100, 6_500), (20_000, 20_010), (90_000, 90_000)]);
        let versions = [(50, "1"), (3_100, "2"), (30_000, "3"), (40_000, "1")];
        let gaps = gaps(&watches(&times.spans(), &versions), &[]);
        let gaps: Vec<_> = gaps.iter().map(|gap| (gap.from, gap.to, gap.version.as_deref())).collect();
        let want = [
            (0, 100, None),
            (6_500, 20_000, Some("2")),
            (20_010, 30_000, Some("2")),
            (30_000, 40_000, Some("3")),
            (40_000, 90_000, Some("1")),
            (90_000, Second::MAX, None),
        ];
        assert_eq!(gaps, want);
        let late = super::super::watch::gaps(&watches(&times.spans(), &[(10_000, "1")]), &[]);
        assert_eq!(late[1].version, None);
        assert_eq!((late[2].from, late[2].version.as_deref()), (10_000, Some("1")));
    }
}
