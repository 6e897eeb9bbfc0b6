//! The records of one site for one or more days. The records contain counts for each crawler
//! (rows), periods in which every fetch of robots.txt was recorded (watches), and periods in which
//! fetches may be missing from the records (lost times). This module also reads and writes the file
//! for a day. The file has one JSON object per line, and the last line contains the hash of all
//! previous lines.
//!
//! The contents of a file are not trusted. A damaged file may lack fetches of robots.txt at any
//! time of its day. The lines that can be parsed are counted, but they are not evidence against a
//! crawler: a lost line may have contained the fetch that excuses the crawler.
//!
//! *Folding* merges the hourly rows of an old day into one row per crawler. Every file is written
//! under a temporary name and then renamed, so the file at the path is always complete, even if the
//! process is killed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tower_robots::live::VersionHash;

use super::requested_paths::RequestedPaths;
use super::row::{ClaimResult, DAY, HOUR, Row, RowKey, Second, day_of};
use super::visitors::SentVisitors;
use super::watch::{self, Lost, Watch};
use crate::files;

/// Maximum total number of watches and lost times in a day's file.
const MAX_TIMES: usize = 256;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct DayRows {
    /// Name and settings of the site; `None` if nothing was recorded.
    pub(crate) site: Option<SiteLine>,
    pub(crate) watches: Vec<Watch>,
    pub(crate) lost: Vec<Lost>,
    /// Periods when other processes may have received fetches of robots.txt, computed from
    /// `sees_all` and `replicas` in the site line of each day. Not stored in the file.
    pub(crate) unseen: Vec<Lost>,
    #[serde(with = "pairs")]
    pub(crate) rows: BTreeMap<RowKey, Row>,
    /// Rows per crawler and day, for days whose hours were folded. Counts that are added to one of
    /// these days after folding are in `rows`.
    #[serde(with = "pairs")]
    pub(crate) days: BTreeMap<RowKey, Row>,
    /// Paths that verified search engines requested, by day. The gate checks these paths against
    /// new versions of robots.txt.
    #[serde(skip)]
    pub(crate) requested: BTreeMap<Second, RequestedPaths>,
    pub(crate) visitors: SentVisitors,
}

/// First line of a day's file: the site, and the settings that applied on that day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SiteLine {
    pub(crate) name: String,
    /// Whether the config states that every fetch of the site's robots.txt reaches robotsd.
    pub(crate) sees_all: bool,
    /// Number of processes that serve the site.
    pub(crate) replicas: usize,
}

impl SiteLine {
    /// Combines the site lines of two records of the same day.
    fn and(self, other: &Self) -> Self {
        Self {
            name: other.name.clone(),
            sees_all: self.sees_all && other.sees_all,
            replicas: self.replicas.max(other.replicas),
        }
    }

    /// Reports whether the combined records of `merged` processes contain every fetch of
    /// robots.txt.
    pub(super) const fn is_complete(&self, merged: usize) -> bool {
        self.sees_all && self.replicas <= merged
    }
}

impl DayRows {
    /// Returns the records for a day whose file cannot be read: the whole day counts as lost.
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
        self.visitors.merge(&other.visitors);
    }

    pub(super) fn can_add_period(&self) -> bool {
        self.watches.len() + self.lost.len() < MAX_TIMES
    }

    /// Removes the oldest watches if there are more watches and lost times than a file may contain.
    /// The period of each removed watch is recorded as lost.
    pub(super) fn limit_periods(&mut self) {
        let surplus = (self.watches.len() + self.lost.len()).saturating_sub(MAX_TIMES);
        if surplus == 0 {
            return;
        }
        // In addition to the surplus, a quarter of `MAX_TIMES` is removed. Otherwise, the next
        // watch would exceed the limit again.
        self.watches.sort_by_key(|watch| (watch.to, watch.from));
        let dropped = self.watches.drain(..(surplus + MAX_TIMES / 4).min(self.watches.len()));
        let dropped = dropped.map(|watch| Lost { from: watch.from, to: watch.to });
        let all = dropped.chain(self.lost.drain(..));
        self.lost = all.reduce(Lost::and).into_iter().collect();
    }

    /// Merges the hours of each crawler into one row per day.
    pub(super) fn fold(&mut self) {
        // The content of a row depends on the order of fetches and requests, so hours are merged in
        // ascending order.
        for (key, row) in std::mem::take(&mut self.rows) {
            self.days.entry(RowKey { begin: day_of(key.begin), ..key }).or_default().merge(&row);
        }
    }

    /// Removes everything except fetches of robots.txt from rows whose hour or day ended before
    /// `moment`.
    pub(super) fn keep_reads_before(&mut self, moment: Second) {
        for (rows, length) in [(&mut self.rows, HOUR), (&mut self.days, DAY)] {
            for (_, row) in rows.iter_mut().filter(|(key, _)| key.begin + length <= moment) {
                (row.cases, row.lines) = Default::default();
            }
            rows.retain(|key, row| key.begin + length > moment || !row.reads.is_empty());
        }
    }

    /// Reports whether the values in these rows are valid. Invalid values show that the file is
    /// damaged.
    pub(super) fn is_valid(&self) -> bool {
        let are_hours = self.rows.iter().all(|(key, row)| is_valid(key, row, HOUR));
        are_hours && self.days.iter().all(|(key, row)| is_valid(key, row, DAY))
    }

    pub(super) fn is_empty(&self) -> bool {
        let is_counted = self.count() > 0 || !self.requested.is_empty() || !self.visitors.is_empty();
        !is_counted && self.watches.is_empty() && self.lost.is_empty()
    }

    pub(super) fn count(&self) -> usize {
        self.rows.len() + self.days.len()
    }

    /// Marks the whole day as lost, because records of a damaged file must not be evidence against
    /// a crawler. A fetch on this day could also be used to judge requests on a later day, so the
    /// versions of all fetches are removed.
    pub(super) fn mark_day_lost(&mut self, day: Second) {
        self.watches.clear();
        self.lost.clear();
        self.site.iter_mut().for_each(|site| site.sees_all = false);
        for row in self.rows.values_mut().chain(self.days.values_mut()) {
            row.reads.iter_mut().for_each(|read| read.version = None);
        }
        self.merge(&Self::of_lost_day(day));
    }
}

/// Serializes a map as a list of pairs, because the keys of a JSON object must be strings.
mod pairs {
    use super::*;

    pub(super) fn serialize<S: Serializer>(rows: &BTreeMap<RowKey, Row>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(rows)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<BTreeMap<RowKey, Row>, D::Error> {
        Ok(Vec::deserialize(from)?.into_iter().collect())
    }
}

/// Maximum size of a day's file, in bytes. If the records of a day exceed the limit, the hours are
/// folded before writing.
const MAX_FILE_BYTES: usize = 64 << 20;

/// Maximum length of a line, in bytes. A longer line counts as damaged.
const MAX_LINE_LENGTH: usize = 1 << 20;

/// Maximum length of each name in a row, in bytes.
const MAX_NAME_LENGTH: usize = 1024;
const MAX_LIST_LENGTH: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    None,
    Some,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Site {
        #[serde(flatten)]
        site: SiteLine,
        #[serde(default, skip_serializing_if = "RequestedPaths::is_empty")]
        requested: RequestedPaths,
        #[serde(default, skip_serializing_if = "SentVisitors::is_empty")]
        visitors: SentVisitors,
    },
    Watch(Watch),
    Lost(Lost),
    Hour {
        #[serde(flatten)]
        key: RowKey,
        #[serde(flatten)]
        row: Row,
    },
    Day {
        day: Second,
        crawler: String,
        identity: ClaimResult,
        #[serde(flatten)]
        row: Row,
    },
    End {
        hash: String,
    },
}

/// Reads the file for a day. Returns the records, whether the file is damaged, and the number of
/// bytes read. Blocks the thread.
pub(super) fn read(path: &Path, day: Second) -> io::Result<(DayRows, Damage, u64)> {
    let mut bytes = Vec::new();
    let read = File::open(path)?.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    let (rows, damage) = parse(&bytes, day);
    Ok((rows, damage, read as u64))
}

pub(super) fn parse(bytes: &[u8], day: Second) -> (DayRows, Damage) {
    let (mut rows, mut damage) = (DayRows::default(), Damage::None);
    let mut end = None;
    let mut at = 0;
    for line in bytes[..bytes.len().min(MAX_FILE_BYTES)].split_inclusive(|byte| *byte == b'\n') {
        let begin = at;
        at += line.len();
        let parsed = if line.len() > MAX_LINE_LENGTH { None } else { serde_json::from_slice(line).ok() };
        match parsed {
            Some(Line::Site { site, requested, visitors }) if requested.is_valid() && visitors.is_valid(day) => {
                rows.site = Some(site);
                rows.visitors.merge(&visitors);
                if !requested.is_empty() {
                    rows.requested.entry(day).or_default().merge(&requested);
                }
            }
            Some(Line::Watch(watch)) if watch.from <= watch.to && day_of(watch.to) == day && rows.can_add_period() => {
                watch::merge(&mut rows.watches, &[watch]);
            }
            Some(Line::Lost(lost)) if rows.can_add_period() => rows.lost.push(lost),
            Some(Line::Hour { key, row }) if day_of(key.begin) == day && is_valid(&key, &row, HOUR) => {
                rows.rows.entry(key).or_default().merge(&row);
            }
            Some(Line::Day { day: begin, crawler, identity, row }) => {
                let key = RowKey { begin, crawler, identity };
                if begin == day && is_valid(&key, &row, DAY) {
                    rows.days.entry(key).or_default().merge(&row);
                } else {
                    damage = Damage::Some;
                }
            }
            Some(Line::End { hash }) if end.is_none() => end = Some((begin, at, hash)),
            _ => damage = Damage::Some,
        }
    }
    let is_whole = end.is_some_and(|(begin, after, hash)| after == bytes.len() && hash == hash_of(&bytes[..begin]));
    if !is_whole || damage == Damage::Some {
        rows.mark_day_lost(day);
        return (rows, Damage::Some);
    }
    (rows, Damage::None)
}

fn is_valid(key: &RowKey, row: &Row, length: Second) -> bool {
    let is_within = |first: Second, last: Second| first <= last && key.begin <= first && last - key.begin < length;
    let are_names = |names: &[String]| names.len() <= MAX_LIST_LENGTH && names.iter().all(|name| is_name(name));
    [row.reads.len(), row.cases.len(), row.lines.len()].iter().all(|length| *length <= MAX_LIST_LENGTH)
        && is_name(&key.crawler)
        && is_name(&row.operator)
        && is_name(&row.category)
        && are_names(&row.chain)
        && row.reads.iter().all(|read| {
            is_within(read.first, read.last) && is_name(&read.origin) && read.version.as_deref().is_none_or(is_name)
        })
        && row.cases.iter().all(|case| {
            let versions = are_names(&case.disallowed_by) && are_names(&case.allowed_by);
            is_within(case.first, case.last) && is_name(&case.origin) && versions
        })
        && row.lines.iter().all(|line| is_name(&line.version) && is_name(&line.pattern))
}

fn is_name(name: &str) -> bool {
    name.len() <= MAX_NAME_LENGTH
}

fn hash_of(bytes: &[u8]) -> String {
    VersionHash::of(bytes).to_string()
}

/// Writes the file for a day. Blocks the thread.
pub(super) fn write(path: &Path, rows: &DayRows) -> io::Result<()> {
    let mut bytes = encoded(rows)?;
    if bytes.len() > MAX_FILE_BYTES {
        let mut folded = rows.clone();
        folded.fold();
        bytes = encoded(&folded)?;
    }
    if bytes.len() > MAX_FILE_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the day has too many rows for one file"));
    }
    files::replace_by(path, |file| {
        file.write_all(&bytes)?;
        file.flush()?;
        file.get_ref().sync_data()
    })
}

pub(super) fn encoded(rows: &DayRows) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut line = |line: &Line| {
        serde_json::to_writer(&mut bytes, line)?;
        bytes.push(b'\n');
        io::Result::Ok(())
    };
    // `rows` contains only one day, so `requested` has at most one entry.
    let requested = rows.requested.values().next().cloned().unwrap_or_default();
    let visitors = rows.visitors.clone();
    rows.site.iter().try_for_each(|site| {
        line(&Line::Site { site: site.clone(), requested: requested.clone(), visitors: visitors.clone() })
    })?;
    rows.watches.iter().try_for_each(|watch| line(&Line::Watch(watch.clone())))?;
    rows.lost.iter().try_for_each(|lost| line(&Line::Lost(lost.clone())))?;
    for (key, row) in &rows.days {
        let RowKey { begin: day, crawler, identity } = key.clone();
        line(&Line::Day { day, crawler, identity, row: row.clone() })?;
    }
    rows.rows.iter().try_for_each(|(key, row)| line(&Line::Hour { key: key.clone(), row: row.clone() }))?;
    let end = Line::End { hash: hash_of(&bytes) };
    serde_json::to_writer(&mut bytes, &end)?;
    bytes.push(b'\n');
    Ok(bytes)
}
