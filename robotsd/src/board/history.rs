//! Stores the rows of the board in files in the state directory, or in memory if there is no state
//! directory.
//!
//! `board/SITE/DATE.jsonl` contains the rows of a site for one day. Each file is written under a
//! temporary name and then renamed, so the file at the path is always complete. If a file is
//! damaged, a copy is kept as `DATE.jsonl.damaged`, and a new file with the lines that can be
//! parsed replaces it.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use tower_robots::internals::folder_name;

use super::day::{self, Damage, DayRows, SiteLine};
use super::row::{DAY, Second, date_of, day_of, parse_day};
use super::watch::Lost;
use crate::files;

const FOLDER: &str = "board";

/// Name of a file in [`FOLDER`] that contains a date. Hourly rows of all days before this date are
/// already merged into daily rows.
const FOLDED_FILE: &str = "folded";

/// Maximum number of bytes that a query reads per site. When the limit is reached, all older days
/// count as lost.
const MAX_READ_BYTES: u64 = 256 << 20;

/// Maximum number of attempts to lock the folder.
const MAX_LOCK_TRIES: usize = 200;
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retention {
    /// Maximum age of hourly rows, in seconds.
    pub(crate) hours: Second,
    /// Maximum age of daily rows, in seconds.
    pub(crate) days: Second,
    /// Maximum size of all files together, in bytes.
    pub(crate) size: u64,
}

#[derive(Debug)]
pub(crate) enum Added {
    Complete,
    /// The rows were added. The old file was damaged, and keeping a copy of it failed.
    WithoutDamagedCopy(io::Error),
}

#[derive(Debug)]
pub(crate) enum History {
    Files(PathBuf),
    Memory(BTreeMap<(String, Second), DayRows>),
}

impl History {
    pub(crate) fn folder_below(state_dir: &Path) -> PathBuf {
        state_dir.join(FOLDER)
    }

    pub(crate) fn below(state_dir: &Path) -> Self {
        Self::Files(Self::folder_below(state_dir))
    }

    pub(crate) const fn memory() -> Self {
        Self::Memory(BTreeMap::new())
    }

    /// Returns the rows of a site for the days from `from` to `to`. `merged` is the number of
    /// processes whose counts the caller adds up. Blocks the thread.
    ///
    /// If other processes may have received fetches of robots.txt on a day, the day is added to
    /// `unseen`.
    pub(crate) fn range(&self, site: &str, from: Second, to: Second, merged: usize) -> DayRows {
        let (mut all, mut bytes) = (DayRows::default(), 0);
        // The newest day is read first, because another thread may delete the oldest days at the
        // same time. In this order, no day can be missing between two days that were read.
        for day in days(from, to).rev() {
            if bytes > MAX_READ_BYTES {
                all.lost.push(Lost { from: 0, to: day + DAY });
                break;
            }
            let (mut rows, read) = self.read(site, day);
            bytes += read;
            if rows.site.as_ref().is_some_and(|site| !site.is_complete(merged)) {
                // The first watch in the file may have begun on an earlier day, which has no file
                // if nothing was counted.
                let from = rows.watches.iter().map(|watch| watch.from).fold(day, Second::min);
                rows.unseen.push(Lost { from, to: day.saturating_add(DAY) });
            }
            let newest = all.site.take();
            all.merge(&rows);
            all.site = newest.or(all.site);
        }
        all
    }

    /// Returns a site's rows for a day, and the number of bytes read. If the file cannot be read
    /// completely, the whole day counts as lost.
    fn read(&self, site: &str, day: Second) -> (DayRows, u64) {
        match self {
            Self::Memory(days) => (days.get(&(site.to_owned(), day)).cloned().unwrap_or_default(), 0),
            Self::Files(folder) => match day::read(&path_of(folder, site, day), day) {
                Ok((rows, _, bytes)) => (rows, bytes),
                Err(error) if error.kind() == io::ErrorKind::NotFound => (DayRows::default(), 0),
                Err(_) => (DayRows::of_lost_day(day), 0),
            },
        }
    }

    /// Adds rows to a site's file for a day. Blocks the thread.
    ///
    /// # Errors
    ///
    /// Returns an error if the rows cannot be written. In this case, the file is unchanged.
    pub(crate) fn add(&mut self, site: &str, day: Second, rows: &DayRows) -> io::Result<Added> {
        match self {
            Self::Memory(days) => {
                let all = days.entry((site.to_owned(), day)).or_default();
                all.merge(rows);
                all.limit_periods();
                Ok(Added::Complete)
            }
            Self::Files(folder) => rewrite(&path_of(folder, site, day), day, |all| all.merge(rows)),
        }
    }

    /// Locks the folder. Without the lock, another process could read a file before this process
    /// changes it, and later overwrite the change. Returns `None` if the file system does not
    /// support locks, or if another process keeps holding the lock.
    pub(crate) fn lock(&self) -> Option<fs::File> {
        if let Self::Files(folder) = self {
            let folder = fs::File::open(folder).ok()?;
            for _ in 0..MAX_LOCK_TRIES {
                match rustix::fs::flock(&folder, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
                    Ok(()) => return Some(folder),
                    Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(LOCK_RETRY_DELAY),
                    Err(_) => return None,
                }
            }
        }
        None
    }

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

    /// Deletes days that are older than the retention, then the oldest days until the total size is
    /// within the limit. If the history is in memory, the limit is `most_rows` rows, and old hourly
    /// rows are also merged into daily rows. Blocks the thread.
    pub(crate) fn prune(&mut self, now: Second, retention: Retention, most_rows: usize) -> io::Result<()> {
        let oldest = day_of(now.saturating_sub(retention.days));
        match self {
            Self::Memory(days) => {
                refuse_clock_jump(days.keys().map(|(_, day)| *day), day_of(now), oldest)?;
                days.retain(|(_, day), _| *day >= oldest);
                let first = day_of(now.saturating_sub(retention.hours));
                days.iter_mut().filter(|((_, day), _)| *day < first).for_each(|(_, rows)| rows.fold());
                while days.values().map(DayRows::count).sum::<usize>() > most_rows {
                    let Some(first) = days.keys().map(|(_, day)| *day).min() else { break };
                    days.retain(|(_, day), _| *day > first);
                }
                Ok(())
            }
            Self::Files(folder) => {
                let mut files = files(folder, |_| true)?;
                // The largest file of a day is deleted first, so that a small site does not lose
                // its records because of a large site.
                files.sort_unstable_by(|one, other| {
                    (one.day, other.bytes, &one.path).cmp(&(other.day, one.bytes, &other.path))
                });
                let today = day_of(now);
                refuse_clock_jump(files.iter().map(|file| file.day), today, oldest)?;
                let mut size: u64 = files.iter().map(|file| file.bytes).sum();
                // If a file cannot be deleted, newer files of its site are kept, because a gap
                // between the remaining days could hide fetches that excuse a crawler.
                let mut failed = Ok(());
                let mut kept_folders = HashSet::new();
                for DayFile { day, bytes, path } in files {
                    let is_surplus = size > retention.size && day < today;
                    if (day < oldest || is_surplus) && !kept_folders.contains(path.parent().unwrap_or(&path)) {
                        match fs::remove_file(&path) {
                            Ok(()) => size -= bytes,
                            Err(error) => {
                                failed = failed.and(Err(error));
                                kept_folders.extend(path.parent().map(Path::to_owned));
                            }
                        }
                    }
                }
                if size > retention.size {
                    let most = retention.size;
                    let why = format!(
                        "today's files alone take {size} bytes, but size in [board] is {most}: increase size, because \
                         today's files are never removed"
                    );
                    failed = failed.and(Err(io::Error::other(why)));
                }
                failed
            }
        }
    }

    /// Merges the hourly rows of a file into daily rows. Blocks the thread.
    pub(super) fn fold(&mut self, file: &DayFile) -> io::Result<Added> {
        match day::read(&file.path, file.day) {
            Ok((rows, Damage::None, _)) if rows.rows.is_empty() => Ok(Added::Complete),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Added::Complete),
            _ => rewrite(&file.path, file.day, DayRows::fold),
        }
    }
}

/// Returns an error if the retention would delete the files of all days before today. In this case,
/// the system clock has probably jumped ahead.
fn refuse_clock_jump(days: impl Iterator<Item = Second>, today: Second, oldest: Second) -> io::Result<()> {
    match days.filter(|day| *day < today).max() {
        Some(newest) if newest < oldest => Err(io::Error::other(format!(
            "the newest file before today is from {day}, so all files before today would be removed as too old: check \
             the clock",
            day = date_of(newest)
        ))),
        _ => Ok(()),
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DayFile {
    day: Second,
    bytes: u64,
    path: PathBuf,
}

/// Returns the files of days before `before`, except files that are known to contain only daily
/// rows. Blocks the thread.
pub(super) fn unfolded(folder: &Path, before: Second) -> io::Result<Vec<DayFile>> {
    // If the file `FOLDED_FILE` contains no valid date, every file of the board is read. This is
    // harmless, because folding does not change a folded file.
    let mark = fs::read_to_string(folder.join(FOLDED_FILE)).ok().and_then(|mark| parse_day(mark.trim()));
    let from = mark.unwrap_or(0);
    if from >= before {
        return Ok(Vec::new());
    }
    let mut files = files(folder, |day| (from..before).contains(&day))?;
    files.retain(|file| file.path.extension().is_some_and(|end| end == "jsonl"));
    Ok(files)
}

/// Records that the hourly rows of all days before `before` are merged into daily rows. The next
/// folding does not read the files of these days again. Blocks the thread.
pub(super) fn mark_folded(folder: &Path, before: Second) -> io::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    files::replace(&folder.join(FOLDED_FILE), (date_of(before) + "\n").as_bytes())
}

fn files(folder: &Path, is_wanted: impl Fn(Second) -> bool) -> io::Result<Vec<DayFile>> {
    let mut files = Vec::new();
    for site in subfolders(folder)? {
        for entry in fs::read_dir(site)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(day) = name.get(..10).and_then(parse_day).filter(|day| is_wanted(*day)) else { continue };
            files.push(DayFile { day, bytes: entry.metadata()?.len(), path: entry.path() });
        }
    }
    Ok(files)
}

fn rewrite(path: &Path, day: Second, change: impl FnOnce(&mut DayRows)) -> io::Result<Added> {
    let (mut all, mut added) = (DayRows::default(), Added::Complete);
    match day::read(path, day) {
        Ok((rows, damage, _)) => {
            all = rows;
            if damage == Damage::Some {
                // The site line is removed, because its settings may not apply to rows that are
                // added later.
                all.site = None;
                // The new rows are written even if no copy of the damaged file can be kept.
                added = keep_damaged_copy(path).map_or_else(Added::WithoutDamagedCopy, |()| Added::Complete);
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    change(&mut all);
    all.limit_periods();
    day::write(path, &all)?;
    Ok(added)
}

/// Keeps a copy of a damaged file for the operator, unless an earlier copy exists. A hard link is
/// tried first, because it needs no space on a full disk.
fn keep_damaged_copy(path: &Path) -> io::Result<()> {
    let copy = path.with_extension("jsonl.damaged");
    if copy.exists() || fs::hard_link(path, &copy).is_ok() {
        return Ok(());
    }
    fs::copy(path, &copy).map(|_| ()).inspect_err(|_| {
        let _ = fs::remove_file(&copy);
    })
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
    folder.join(folder_name(site)).join(format!("{}.jsonl", date_of(day)))
}

/// Returns the name of the site whose files are in `folder`, from the newest file with a readable
/// site line.
fn site_of(folder: &Path) -> Option<String> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort_unstable();
    files.iter().rev().find_map(|path| Some(site_line(path)?.name))
}

fn site_line(path: &Path) -> Option<SiteLine> {
    let day = path.file_stem().and_then(|stem| parse_day(stem.to_str()?))?;
    day::read(path, day).ok()?.0.site
}

pub(crate) fn days(from: Second, to: Second) -> impl DoubleEndedIterator<Item = Second> {
    (day_of(from) / DAY..=day_of(to) / DAY).map(|day| day * DAY)
}

#[cfg(test)]
mod tests {
    use super::super::row::{ClaimResult, Row, RowKey};
    use super::super::watch::Watch;
    use super::*;

    const DAY_ONE: Second = 20_000 * DAY;

    fn day(history: &History, site: &str, day: Second) -> DayRows {
        history.read(site, day).0
    }

    fn rows(crawler: &str, allowed: u64) -> DayRows {
        rows_of(DAY_ONE, crawler, allowed)
    }

    fn rows_of(day: Second, crawler: &str, allowed: u64) -> DayRows {
        let key = RowKey { begin: day, crawler: crawler.into(), identity: ClaimResult::Claimed };
        let site = SiteLine { name: "shop".into(), sees_all: false, replicas: 1 };
        let watches = vec![Watch { from: day, to: day + allowed, version: None, process: day, live_since: None }];
        let rows = [(key, Row { allowed, ..Row::default() })].into();
        DayRows { site: Some(site), watches, rows, ..DayRows::default() }
    }

    #[test]
    fn added_rows_are_summed_on_disk_and_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        for mut history in [History::below(folder.path()), History::memory()] {
            history.add("shop", DAY_ONE, &rows("a", 1)).unwrap();
            history.add("shop", DAY_ONE, &rows("a", 2)).unwrap();
            let kept = day(&history, "shop", DAY_ONE);
            assert_eq!(kept, DayRows { watches: rows("a", 2).watches, ..rows("a", 3) });
            assert_eq!(history.sites(), ["shop"]);
            assert!(day(&history, "shop", DAY_ONE + DAY) == DayRows::default());
            assert!(day(&history, "other", DAY_ONE) == DayRows::default());
        }
    }

    #[test]
    fn a_damaged_line_loses_no_other_line_and_the_damaged_file_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let mut history = History::below(folder.path());
        history.add("shop", DAY_ONE, &rows("a", 1)).unwrap();
        history.add("shop", DAY_ONE, &rows("b", 1)).unwrap();
        let path = path_of(&folder.path().join(FOLDER), "shop", DAY_ONE);
        let text = fs::read_to_string(&path).unwrap();
        let cut = text.trim_end().len() - 7;
        fs::write(&path, format!("\u{0}\u{1}{{]\n{}", &text[..cut])).unwrap();
        let kept = day(&history, "shop", DAY_ONE);
        assert_eq!(kept.rows.keys().map(|key| &*key.crawler).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(kept.lost, [Lost { from: DAY_ONE, to: DAY_ONE + DAY }]);
        let damaged = fs::read(&path).unwrap();
        assert!(matches!(history.add("shop", DAY_ONE, &rows("b", 5)), Ok(Added::Complete)));
        let kept = day(&history, "shop", DAY_ONE);
        assert_eq!(kept.rows.values().map(|row| row.allowed).collect::<Vec<_>>(), [1, 6]);
        assert_eq!(kept.lost.len(), 1, "the lost time is kept");
        assert_eq!(fs::read(path.with_extension("jsonl.damaged")).unwrap(), damaged);
    }

    #[test]
    fn a_damaged_file_that_cannot_be_copied_does_not_stop_the_counting() {
        let folder = tempfile::tempdir().unwrap();
        let mut history = History::below(folder.path());
        history.add("shop", DAY_ONE, &rows("a", 1)).unwrap();
        let path = path_of(&folder.path().join(FOLDER), "shop", DAY_ONE);
        let mut text = fs::read(&path).unwrap();
        text.insert(0, b'{');
        fs::write(&path, text).unwrap();
        // A symbolic link into a missing folder occupies the path of the copy.
        let copy = path.with_extension("jsonl.damaged");
        std::os::unix::fs::symlink(folder.path().join("no/such/folder"), &copy).unwrap();
        assert!(matches!(history.add("shop", DAY_ONE, &rows("b", 5)), Ok(Added::WithoutDamagedCopy(_))));
        assert_eq!(day(&history, "shop", DAY_ONE).rows.len(), 2);
        assert!(matches!(history.add("shop", DAY_ONE, &rows("b", 5)), Ok(Added::Complete)));
    }

    #[test]
    fn old_days_and_days_above_the_size_limit_are_deleted_oldest_first() {
        let folder = tempfile::tempdir().unwrap();
        for mut history in [History::below(folder.path()), History::memory()] {
            for day in 0..10 {
                history.add("shop", DAY_ONE + day * DAY, &rows_of(DAY_ONE + day * DAY, "a", 1)).unwrap();
            }
            let kept = |history: &History| {
                (0..10)
                    .filter(|number| day(history, "shop", DAY_ONE + number * DAY) != DayRows::default())
                    .collect::<Vec<_>>()
            };
            let now = DAY_ONE + 9 * DAY + 5;
            history.prune(now, Retention { hours: 2 * DAY, days: 4 * DAY, size: 1 << 20 }, 100).unwrap();
            assert_eq!(kept(&history), [5, 6, 7, 8, 9]);
            let size = match &history {
                History::Files(folder) => 2 * fs::metadata(path_of(folder, "shop", DAY_ONE + 9 * DAY)).unwrap().len(),
                History::Memory(_) => 0,
            };
            history.prune(now, Retention { hours: 2 * DAY, days: 4 * DAY, size }, 2).unwrap();
            assert_eq!(kept(&history), [8, 9]);
        }
    }

    /// The largest files of a day are deleted first. Today's files are never deleted.
    #[test]
    fn the_files_of_a_large_site_are_deleted_before_those_of_a_small_site() {
        let folder = tempfile::tempdir().unwrap();
        let mut history = History::below(folder.path());
        for day in [DAY_ONE, DAY_ONE + DAY] {
            for count in 0..50 {
                history.add("large", day, &rows_of(day, &format!("crawler {count}"), 1)).unwrap();
            }
            history.add("small", day, &rows_of(day, "a", 1)).unwrap();
        }
        let retention = Retention { hours: 20 * DAY, days: 20 * DAY, size: 0 };
        let size =
            |site: &str, day| fs::metadata(path_of(&folder.path().join(FOLDER), site, day)).map_or(0, |it| it.len());
        let both = size("large", DAY_ONE + DAY) + size("small", DAY_ONE) + size("small", DAY_ONE + DAY);
        history.prune(DAY_ONE + DAY, Retention { size: both, ..retention }, 0).unwrap();
        assert!(size("small", DAY_ONE) > 0 && size("large", DAY_ONE) == 0);
        let why = history.prune(DAY_ONE + DAY, retention, 0).unwrap_err().to_string();
        assert!(size("small", DAY_ONE) == 0 && size("small", DAY_ONE + DAY) > 0 && size("large", DAY_ONE + DAY) > 0);
        assert!(why.contains("today's files are never removed"), "{why}");
    }

    #[test]
    fn a_clock_that_jumps_ahead_deletes_no_history() {
        let folder = tempfile::tempdir().unwrap();
        for mut history in [History::below(folder.path()), History::memory()] {
            let retention = Retention { hours: 20 * DAY, days: 20 * DAY, size: 1 << 20 };
            let later = DAY_ONE + 9_000 * DAY;
            (0..3).map(|day| DAY_ONE + day * DAY).chain([later]).for_each(|day| {
                history.add("shop", day, &rows_of(day, "a", 1)).unwrap();
            });
            let why = history.prune(later, retention, 100).unwrap_err().to_string();
            assert!(why.contains("check the clock"), "{why}");
            assert!((0..3).all(|number| day(&history, "shop", DAY_ONE + number * DAY) != DayRows::default()));
        }
    }
}
