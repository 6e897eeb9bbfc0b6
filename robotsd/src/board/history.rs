//! Where rows are kept: files below the state directory, or the memory of the process where there is none.
//!
//! `board/SITE/DATE.jsonl` has one JSON object a line: `{"watch": …}` for a time in which reads were watched, `{"hour": …}` for an
//! hour of a crawler, `{"day": …}` for a day once its hours are given up. A file is written aside and renamed, so it is whole or
//! as it was before. A line that cannot be read is left out, and a file with one is kept beside as `DATE.jsonl.damaged`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use tower_robots::live::VersionHash;

use super::moment::{DAY, Second, date_of, day_named, day_of};
use super::row::{Row, RowKey};
use super::watch::{self, Watch};

/// The folder below the state directory.
const FOLDER: &str = "board";

/// Octets of a line: one that is longer is damaged.
const LONGEST_LINE: usize = 1 << 20;

/// What is kept of a site for a day.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DayRows {
    /// None where nothing was kept.
    pub(crate) site: Option<SiteLine>,
    pub(crate) watches: Vec<Watch>,
    pub(crate) rows: BTreeMap<RowKey, Row>,
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

/// How long rows are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retention {
    /// Seconds for which files are kept.
    pub(crate) keep: Second,
    /// Octets that all files may have together.
    pub(crate) size: u64,
}

/// Rows on the disk, or in memory.
#[derive(Debug)]
pub(crate) enum History {
    Files(PathBuf),
    Memory(BTreeMap<(String, Second), DayRows>),
}

/// One line of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Site(SiteLine),
    Watch(Watch),
    Hour {
        #[serde(flatten)]
        key: RowKey,
        #[serde(flatten)]
        row: Row,
    },
}

impl DayRows {
    pub(crate) fn merge(&mut self, other: &Self) {
        if other.site.is_some() {
            self.site.clone_from(&other.site);
        }
        watch::merge(&mut self.watches, &other.watches);
        for (key, row) in &other.rows {
            self.rows.entry(key.clone()).or_default().merge(row);
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.watches.is_empty()
    }
}

impl History {
    /// Files below a state directory.
    pub(crate) fn below(state_dir: &Path) -> Self {
        Self::Files(state_dir.join(FOLDER))
    }

    pub(crate) const fn memory() -> Self {
        Self::Memory(BTreeMap::new())
    }

    /// Whether it outlives the process.
    pub(crate) const fn is_kept(&self) -> bool {
        matches!(self, Self::Files(_))
    }

    /// What is kept of a site for a day; what cannot be read is left out.
    pub(crate) fn day(&self, site: &str, day: Second) -> DayRows {
        match self {
            Self::Memory(days) => days.get(&(site.to_owned(), day)).cloned().unwrap_or_default(),
            Self::Files(folder) => read(&path_of(folder, site, day)).map(|(rows, _)| rows).unwrap_or_default(),
        }
    }

    /// Adds rows to what is kept of a site for a day. Blocks.
    ///
    /// # Errors
    ///
    /// If they could not be written; nothing is changed then.
    pub(crate) fn add(&mut self, site: &str, day: Second, rows: &DayRows) -> io::Result<()> {
        match self {
            Self::Memory(days) => {
                days.entry((site.to_owned(), day)).or_default().merge(rows);
                Ok(())
            }
            Self::Files(folder) => {
                let path = path_of(folder, site, day);
                let mut all = match read(&path) {
                    Ok((all, Damage::None)) => all,
                    Ok((all, Damage::Some)) => {
                        // Evidence for the operator; only the first is kept.
                        let beside = path.with_extension("jsonl.damaged");
                        if !beside.exists() {
                            fs::copy(&path, beside)?;
                        }
                        all
                    }
                    Err(error) if error.kind() == io::ErrorKind::NotFound => DayRows::default(),
                    Err(error) => return Err(error),
                };
                all.merge(rows);
                write(&path, &all)
            }
        }
    }

    /// The sites of which something is kept.
    pub(crate) fn sites(&self) -> Vec<String> {
        let mut sites: Vec<String> = match self {
            Self::Memory(days) => days.keys().map(|(site, _)| site.clone()).collect(),
            Self::Files(folder) => {
                let folders = subfolders(folder).unwrap_or_default();
                folders.iter().filter_map(|folder| site_of(folder)).collect()
            }
        };
        sites.sort_unstable();
        sites.dedup();
        sites
    }

    /// Gives up what is older than the retention allows, and the oldest days of what is larger. Blocks. In memory, days are
    /// given up while there are more rows than `most_rows`.
    pub(crate) fn prune(&mut self, now: Second, retention: Retention, most_rows: usize) -> io::Result<()> {
        let oldest = day_of(now.saturating_sub(retention.keep));
        match self {
            Self::Memory(days) => {
                days.retain(|(_, day), _| *day >= oldest);
                while days.values().map(|day| day.rows.len()).sum::<usize>() > most_rows {
                    let Some(first) = days.keys().map(|(_, day)| *day).min() else { break };
                    days.retain(|(_, day), _| *day > first);
                }
                Ok(())
            }
            Self::Files(folder) => {
                let mut files = Vec::new();
                for site in subfolders(folder)? {
                    for entry in fs::read_dir(site)? {
                        let entry = entry?;
                        let name = entry.file_name().to_string_lossy().into_owned();
                        let Some(day) = name.get(..10).and_then(day_named) else { continue };
                        files.push((day, entry.metadata()?.len(), entry.path()));
                    }
                }
                files.sort_unstable();
                let mut size: u64 = files.iter().map(|(_, size, _)| size).sum();
                // A file that stays must not keep the others.
                let mut failed = Ok(());
                for (day, octets, path) in files {
                    if day < oldest || size > retention.size {
                        match fs::remove_file(path) {
                            Ok(()) => size -= octets,
                            Err(error) => failed = failed.and(Err(error)),
                        }
                    }
                }
                failed
            }
        }
    }
}

/// Whether every line could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    None,
    Some,
}

fn read(path: &Path) -> io::Result<(DayRows, Damage)> {
    let mut reader = BufReader::new(File::open(path)?);
    let (mut day, mut damage, mut line) = (DayRows::default(), Damage::None, Vec::new());
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok((day, damage));
        }
        match serde_json::from_slice(&line) {
            _ if line.len() > LONGEST_LINE => damage = Damage::Some,
            Ok(Line::Site(site)) => day.site = Some(site),
            Ok(Line::Watch(watched)) => watch::merge(&mut day.watches, &[watched]),
            Ok(Line::Hour { key, row }) => day.rows.entry(key).or_default().merge(&row),
            Err(_) => damage = Damage::Some,
        }
    }
}

fn write(path: &Path, day: &DayRows) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let aside = path.with_extension("tmp");
    let written = create(folder, &aside).and_then(|file| {
        let mut out = BufWriter::new(file);
        let site = day.site.iter().map(|site| serde_json::to_vec(&Line::Site(site.clone())));
        let watches = day.watches.iter().map(|watched| serde_json::to_vec(&Line::Watch(watched.clone())));
        let hours =
            day.rows.iter().map(|(key, row)| serde_json::to_vec(&Line::Hour { key: key.clone(), row: row.clone() }));
        for line in site.chain(watches).chain(hours) {
            out.write_all(&line?)?;
            out.write_all(b"\n")?;
        }
        out.into_inner()?.sync_data()?;
        fs::rename(&aside, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written
}

/// A new file, for its owner alone, as the folders above it.
fn create(folder: &Path, path: &Path) -> io::Result<File> {
    let mut folders = fs::DirBuilder::new();
    let mut options = fs::OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
        folders.mode(0o700);
        options.mode(0o600);
    }
    folders.recursive(true).create(folder)?;
    // What a process left that was killed; a link is removed, not followed.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    options.write(true).create_new(true).open(path)
}

fn subfolders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut folders = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.push(entry.path());
        }
    }
    Ok(folders)
}

fn path_of(folder: &Path, site: &str, day: Second) -> PathBuf {
    folder.join(folder_of(site)).join(format!("{}.jsonl", date_of(day)))
}

/// The name of a site as that of a folder: lower-case letters, digits, `-`, `_` and inner dots stand for themselves, so that
/// names stay different where file systems know no case, and none leaves the folder.
fn folder_of(site: &str) -> String {
    let plain = |at: usize, byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_') || byte == b'.' && at > 0
    };
    let escape = |(at, byte)| if plain(at, byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") };
    let name: String = site.bytes().enumerate().map(escape).collect();
    match name.len() {
        1..=120 => name,
        _ => format!("{}%{}", &name[..name.len().min(60)], VersionHash::of(site.as_bytes()).short()),
    }
}

/// The site of a folder, as its newest file that says so.
fn site_of(folder: &Path) -> Option<String> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort_unstable();
    files.iter().rev().find_map(|path| Some(read(path).ok()?.0.site?.name))
}

/// The days from one moment to another, both included.
pub(crate) fn days(from: Second, to: Second) -> impl DoubleEndedIterator<Item = Second> {
    (day_of(from) / DAY..=day_of(to) / DAY).map(|day| day * DAY)
}

#[cfg(test)]
mod tests {
    use super::super::row::Standing;
    use super::*;

    const DAY_ONE: Second = 20_000 * DAY;

    fn rows(crawler: &str, allowed: u64) -> DayRows {
        let key = RowKey { hour: DAY_ONE, crawler: crawler.into(), identity: Standing::Claimed };
        let site = SiteLine { name: "shop".into(), sees_all: false, replicas: 1 };
        let watches = vec![Watch { from: DAY_ONE, to: DAY_ONE + allowed, version: None }];
        DayRows { site: Some(site), watches, rows: [(key, Row { allowed, ..Row::default() })].into() }
    }

    #[test]
    fn what_is_added_is_the_sum_on_the_disk_and_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        for mut history in [History::below(folder.path()), History::memory()] {
            history.add("shop", DAY_ONE, &rows("a", 1)).unwrap();
            history.add("shop", DAY_ONE, &rows("a", 2)).unwrap();
            let kept = history.day("shop", DAY_ONE);
            assert_eq!(kept, DayRows { watches: rows("a", 2).watches, ..rows("a", 3) });
            assert_eq!(history.sites(), ["shop"]);
            assert!(history.day("shop", DAY_ONE + DAY).is_empty());
            assert!(history.day("other", DAY_ONE).is_empty());
        }
    }

    #[test]
    fn a_damaged_line_costs_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let mut history = History::below(folder.path());
        history.add("shop", DAY_ONE, &rows("a", 1)).unwrap();
        history.add("shop", DAY_ONE, &rows("b", 1)).unwrap();
        let path = path_of(&folder.path().join(FOLDER), "shop", DAY_ONE);
        let text = fs::read_to_string(&path).unwrap();
        let cut = text.trim_end().len() - 7;
        fs::write(&path, format!("\u{0}\u{1}{{]\n{}", &text[..cut])).unwrap();
        let kept = history.day("shop", DAY_ONE);
        assert_eq!(kept.rows.keys().map(|key| &*key.crawler).collect::<Vec<_>>(), ["a"]);
        history.add("shop", DAY_ONE, &rows("b", 5)).unwrap();
        assert_eq!(history.day("shop", DAY_ONE).rows.values().map(|row| row.allowed).collect::<Vec<_>>(), [1, 5]);
        assert!(path.with_extension("jsonl.damaged").exists());
    }

    #[test]
    fn what_is_old_or_too_large_is_given_up_from_the_oldest_on() {
        let folder = tempfile::tempdir().unwrap();
        for mut history in [History::below(folder.path()), History::memory()] {
            for day in 0..10 {
                history.add("shop", DAY_ONE + day * DAY, &rows("a", 1)).unwrap();
            }
            let kept = |history: &History| {
                (0..10).filter(|day| !history.day("shop", DAY_ONE + day * DAY).is_empty()).collect::<Vec<_>>()
            };
            let now = DAY_ONE + 9 * DAY + 5;
            history.prune(now, Retention { keep: 4 * DAY, size: 1 << 20 }, 100).unwrap();
            assert_eq!(kept(&history), [5, 6, 7, 8, 9]);
            let size = match &history {
                History::Files(folder) => 2 * fs::metadata(path_of(folder, "shop", DAY_ONE + 9 * DAY)).unwrap().len(),
                History::Memory(_) => 0,
            };
            history.prune(now, Retention { keep: 4 * DAY, size }, 2).unwrap();
            assert_eq!(kept(&history), [8, 9]);
        }
    }

    #[test]
    fn a_site_is_a_folder_of_its_own() {
        for (site, name) in [("shop.example.com", "shop.example.com"), ("..", "%2e."), ("a/b", "a%2fb"), ("A", "%41")] {
            assert_eq!(folder_of(site), name);
        }
        assert_ne!(folder_of(&"x".repeat(300)), folder_of(&"x".repeat(301)));
        assert!(folder_of(&"x".repeat(300)).len() < 100);
    }
}
