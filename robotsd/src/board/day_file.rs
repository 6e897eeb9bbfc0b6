//! The file of a site for a day: one JSON object a line, and at the end the hash of all that precedes it.
//!
//! Nothing in a file is believed: what is damaged at any octet, or was cut at the end of a line, makes the whole day
//! one in which reads may have been lost. What can still be read of it counts, and accuses no crawler: the line that is
//! lost may be the read that excuses.
//!
//! Hours become a day within the same file, by one rename, so that a kill at any moment leaves one or the other.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use tower_robots::live::VersionHash;

use super::day_rows::{DayRows, SiteLine};
use super::requested_paths::RequestedPaths;
use super::row::{DAY, HOUR, Row, RowKey, Second, Standing, day_of};
use super::watch::{self, Lost, Watch};
use crate::private_file;

/// Octets of a file: what is beyond is not read, and a day that would be larger gives up its hours.
const LARGEST: usize = 64 << 20;

/// Octets of a line: one that is longer is damaged.
const LONGEST_LINE: usize = 1 << 20;

/// Octets of a name in a row, and what a list of it has.
const LONGEST_NAME: usize = 1024;
const LONGEST_LIST: usize = 64;

/// Whether a file is what was written.
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
        /// Beside the site, where older releases overlook it.
        #[serde(default, skip_serializing_if = "RequestedPaths::is_empty")]
        requested: RequestedPaths,
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

/// What the octets of a file say of a day.
pub(super) fn parse(octets: &[u8], day: Second) -> (DayRows, Damage) {
    let (mut rows, mut damage) = (DayRows::default(), Damage::None);
    let mut end = None;
    let mut at = 0;
    for line in octets[..octets.len().min(LARGEST)].split_inclusive(|octet| *octet == b'\n') {
        let begin = at;
        at += line.len();
        let parsed = if line.len() > LONGEST_LINE { None } else { serde_json::from_slice(line).ok() };
        match parsed {
            Some(Line::Site { site, requested }) if requested.is_sound() => {
                rows.site = Some(site);
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
    private_file::replace_by(path, |file| {
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
    rows.site.iter().try_for_each(|site| line(&Line::Site { site: site.clone(), requested: requested.clone() }))?;
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
