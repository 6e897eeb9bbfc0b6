//! The records of one site for a day, or for several: rows, when reads were watched, and which time cannot be vouched for; and the
//! file of a day, one JSON object a line, and at the end the hash of all that precedes it.
//!
//! Nothing in a file is believed: damage at any octet, or a cut at the end of a line, makes the whole day one in
//! which reads may have been lost. Lines that can still be read count, and accuse no crawler: the line that is lost
//! may be the read that excuses.
//!
//! Hours become a day within the same file, by one rename, so that a kill at any moment leaves one or the other.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tower_robots::live::VersionHash;

use super::requested_paths::RequestedPaths;
use super::row::{DAY, HOUR, Row, RowKey, Second, Standing, day_of};
use super::visitors::SentVisitors;
use super::watch::{self, Lost, Watch};
use crate::files;

/// Times that a file has of a day.
const MOST_TIMES: usize = 256;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct DayRows {
    /// None where nothing was kept.
    pub(crate) site: Option<SiteLine>,
    pub(crate) watches: Vec<Watch>,
    /// When what was counted may be missing.
    pub(crate) lost: Vec<Lost>,
    /// When reads may have reached others: under other settings than those of today. It is in no file.
    pub(crate) unseen: Vec<Lost>,
    /// Hours of crawlers.
    #[serde(with = "pairs")]
    pub(crate) rows: BTreeMap<RowKey, Row>,
    /// Days of crawlers, whose hours are given up; one that still came for such a day stands in `rows`.
    #[serde(with = "pairs")]
    pub(crate) days: BTreeMap<RowKey, Row>,
    /// The paths that verified search engines requested, by day: for the gate of this process alone.
    #[serde(skip)]
    pub(crate) requested: BTreeMap<Second, RequestedPaths>,
    pub(crate) visitors: SentVisitors,
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
    /// The completeness of a day that was written with both.
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
        self.visitors.merge(&other.visitors);
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
        self.lost = all.reduce(Lost::and).into_iter().collect();
    }

    /// Makes one row of the hours that a crawler has in a day. Sums and moments stay what they are.
    pub(super) fn fold(&mut self) {
        // From the first hour to the last, as they were counted.
        for (key, row) in std::mem::take(&mut self.rows) {
            self.days.entry(RowKey { begin: day_of(key.begin), ..key }).or_default().merge(&row);
        }
    }

    /// Leaves nothing but the reads of hours and days that are over at a moment.
    pub(super) fn keep_reads_before(&mut self, moment: Second) {
        for (rows, length) in [(&mut self.rows, HOUR), (&mut self.days, DAY)] {
            for (_, row) in rows.iter_mut().filter(|(key, _)| key.begin + length <= moment) {
                (row.cases, row.lines) = Default::default();
            }
            rows.retain(|key, row| key.begin + length > moment || !row.reads.is_empty());
        }
    }

    /// Whether its rows are what a process can have counted.
    pub(super) fn is_sound(&self) -> bool {
        let are_hours = self.rows.iter().all(|(key, row)| is_sound(key, row, HOUR));
        are_hours && self.days.iter().all(|(key, row)| is_sound(key, row, DAY))
    }

    /// Whether nothing was counted, seen or lost.
    pub(super) fn is_empty(&self) -> bool {
        let is_counted = self.count() > 0 || !self.requested.is_empty() || !self.visitors.is_empty();
        !is_counted && self.watches.is_empty() && self.lost.is_empty()
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
}

/// The pairs of a map whose keys are no text, which JSON has no map for.
mod pairs {
    use super::*;

    pub(super) fn serialize<S: Serializer>(rows: &BTreeMap<RowKey, Row>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(rows)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<BTreeMap<RowKey, Row>, D::Error> {
        Ok(Vec::deserialize(from)?.into_iter().collect())
    }
}

/// Octets of a file: the rest is not read, and a day that would be larger gives up its hours.
const LARGEST: usize = 64 << 20;

/// Octets of a line: one that is longer is damaged.
const LONGEST_LINE: usize = 1 << 20;

/// Octets of a name in a row, and of each entry in a list of it.
const LONGEST_NAME: usize = 1024;
const LONGEST_LIST: usize = 64;

/// Whether a file is as it was written.
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
        identity: Standing,
        #[serde(flatten)]
        row: Row,
    },
    End {
        hash: String,
    },
}

/// Reads the file of a day. Blocks.
pub(super) fn read(path: &Path, day: Second) -> io::Result<(DayRows, Damage, u64)> {
    let mut octets = Vec::new();
    let read = File::open(path)?.take(LARGEST as u64 + 1).read_to_end(&mut octets)?;
    let (rows, damage) = parse(&octets, day);
    Ok((rows, damage, read as u64))
}

/// The day that the octets of a file describe.
pub(super) fn parse(octets: &[u8], day: Second) -> (DayRows, Damage) {
    let (mut rows, mut damage) = (DayRows::default(), Damage::None);
    let mut end = None;
    let mut at = 0;
    for line in octets[..octets.len().min(LARGEST)].split_inclusive(|octet| *octet == b'\n') {
        let begin = at;
        at += line.len();
        let parsed = if line.len() > LONGEST_LINE { None } else { serde_json::from_slice(line).ok() };
        match parsed {
            Some(Line::Site { site, requested, visitors }) if requested.is_sound() && visitors.is_sound(day) => {
                rows.site = Some(site);
                rows.visitors.merge(&visitors);
                if !requested.is_empty() {
                    rows.requested.entry(day).or_default().merge(&requested);
                }
            }
            Some(Line::Watch(watch)) if watch.from <= watch.to && day_of(watch.to) == day && rows.is_room() => {
                watch::merge(&mut rows.watches, &[watch]);
            }
            Some(Line::Lost(lost)) if rows.is_room() => rows.lost.push(lost),
            Some(Line::Hour { key, row }) if day_of(key.begin) == day && is_sound(&key, &row, HOUR) => {
                rows.rows.entry(key).or_default().merge(&row);
            }
            Some(Line::Day { day: begin, crawler, identity, row }) => {
                let key = RowKey { begin, crawler, identity };
                if begin == day && is_sound(&key, &row, DAY) {
                    rows.days.entry(key).or_default().merge(&row);
                } else {
                    damage = Damage::Some;
                }
            }
            Some(Line::End { hash }) if end.is_none() => end = Some((begin, at, hash)),
            _ => damage = Damage::Some,
        }
    }
    let is_whole = end.is_some_and(|(begin, after, hash)| after == octets.len() && hash == hash_of(&octets[..begin]));
    if !is_whole || damage == Damage::Some {
        rows.doubt(day);
        return (rows, Damage::Some);
    }
    (rows, Damage::None)
}

/// Whether a row is of the time and the size that rows have.
fn is_sound(key: &RowKey, row: &Row, length: Second) -> bool {
    let is_within = |first: Second, last: Second| first <= last && key.begin <= first && last - key.begin < length;
    let are_names = |names: &[String]| names.len() <= LONGEST_LIST && names.iter().all(|name| is_name(name));
    [row.reads.len(), row.cases.len(), row.lines.len()].iter().all(|length| *length <= LONGEST_LIST)
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
    name.len() <= LONGEST_NAME
}

fn hash_of(octets: &[u8]) -> String {
    VersionHash::of(octets).to_string()
}

/// Writes the file of a day aside and renames it, so that it is whole or as it was before. Blocks.
pub(super) fn write(path: &Path, rows: &DayRows) -> io::Result<()> {
    let mut octets = encoded(rows)?;
    if octets.len() > LARGEST {
        let mut folded = rows.clone();
        folded.fold();
        octets = encoded(&folded)?;
    }
    if octets.len() > LARGEST {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it has too many rows for a day"));
    }
    files::replace_by(path, |file| {
        file.write_all(&octets)?;
        file.flush()?;
        file.get_ref().sync_data()
    })
}

/// The lines of a file.
pub(super) fn encoded(rows: &DayRows) -> io::Result<Vec<u8>> {
    let mut octets = Vec::new();
    let mut line = |line: &Line| {
        serde_json::to_writer(&mut octets, line)?;
        octets.push(b'\n');
        io::Result::Ok(())
    };
    // A file has one day.
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
    let end = Line::End { hash: hash_of(&octets) };
    serde_json::to_writer(&mut octets, &end)?;
    octets.push(b'\n');
    Ok(octets)
}
