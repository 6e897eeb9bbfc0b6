//! Hours are folded into days, and old days are deleted. If the process is killed, no count is lost
//! or counted twice.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::super::report::SiteBoard;
use super::*;

const END: Second = START + 7 * DAY;

/// Returns settings that keep hourly rows for `days` days.
fn keeping(days: Second) -> BoardConfig {
    BoardConfig { keep: Duration::from_secs(days * DAY), ..settings(true, 1) }
}

fn summed(board: &Board) -> SiteBoard {
    let rows = board.rows("shop", START - 30 * DAY, END);
    sum_up("shop", &[rows], Period::days(END, 30), Evidence::Complete, Some("2"))
}

/// Returns the parts of the board that folding must not change: all parts except the verdicts.
/// Folding may change verdicts, because a daily row contains less information than hourly rows.
fn counts(board: &SiteBoard) -> Vec<String> {
    let of = |crawler: &CrawlerBoard| {
        let bars: Vec<_> = crawler.trend.iter().map(|bar| (bar.allowed, bar.disallowed)).collect();
        let CrawlerBoard { crawler: name, identity, reads, allowed, disallowed, done, .. } = crawler;
        let moments = (&crawler.first_disallowed, &crawler.last_disallowed, &crawler.last_read);
        format!(
            "{name} {identity} {reads} {allowed} {disallowed} {done:?} {moments:?} {bars:?} {:?}",
            crawler.worst_line
        )
    };
    let mut all: Vec<String> = board.crawlers.iter().map(of).collect();
    all.sort();
    all.extend(board.lines.iter().map(|line| format!("{line:?}")));
    all
}

fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            files.extend(self::files(&entry));
        } else {
            files.insert(entry.clone(), fs::read(entry).unwrap());
        }
    }
    files
}

fn restore(folder: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) {
    fs::remove_dir_all(folder.join("board")).unwrap();
    for (path, bytes) in files {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn old_hours_are_folded_into_days_without_losing_counts() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path();
    let before = summed(&played(Some(state)));
    let on_disk = Board::new(keeping(2), Some(state), END);
    let in_memory = Board::new(keeping(2), None, START);
    play(&in_memory, 0, START, END);
    for folding in [on_disk, in_memory] {
        folding.write(END + HOUR).unwrap();
        let rows = folding.rows("shop", START, END);
        assert!(rows.rows.keys().all(|key| key.begin >= START + 5 * DAY), "hours of the last two days");
        assert!(rows.days.keys().all(|key| key.begin < START + 5 * DAY && key.begin % DAY == 0));
        assert!(!rows.days.is_empty() && !rows.rows.is_empty());
        let after = summed(&folding);
        assert_eq!(counts(&after), counts(&before), "a trend of 30 days is that of both");
        // Folding must not increase the number of requests that count against a crawler.
        for (one, other) in after.crawlers.iter().zip(&before.crawlers) {
            assert!(one.judged.ignored <= other.judged.ignored, "{one:?} {other:?}");
        }
        assert_eq!(after.crawlers.iter().filter(|crawler| crawler.judged.ignored > 0).count(), 2);
    }
}

/// The process is killed before, during and between writes, and before `mark_folded`.
#[test]
fn a_kill_at_any_step_of_folding_loses_and_duplicates_no_counts() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path();
    let before = counts(&summed(&played(Some(state))));
    let hours = files(&state.join("board"));
    Board::new(keeping(2), Some(state), END).write(END + HOUR).unwrap();
    let folded = files(&state.join("board"));
    let mark = state.join("board/folded");
    assert_eq!(fs::read_to_string(&mark).unwrap(), "2024-10-09\n");
    let changed: Vec<&PathBuf> = hours.keys().filter(|path| **path != mark && hours[*path] != folded[*path]).collect();
    assert_eq!(changed.len(), 5);
    for done in 0..=changed.len() {
        let mut stopped = hours.clone();
        for path in &changed[..done] {
            stopped.insert((*path).clone(), folded[*path].clone());
        }
        if let Some(next) = changed.get(done) {
            // A write was interrupted, so half of the temporary file exists.
            let half = &folded[*next][..folded[*next].len() / 2];
            stopped.insert(next.with_extension("tmp"), half.to_vec());
        }
        restore(state, &stopped);
        let next = Board::new(keeping(2), Some(state), END);
        assert_eq!(counts(&summed(&next)), before, "after {done} files");
        next.write(END + HOUR).unwrap();
        assert_eq!(counts(&summed(&next)), before, "after {done} files, and once more");
        for (path, bytes) in &folded {
            assert_eq!(fs::read(path).unwrap(), *bytes, "{}", path.display());
        }
    }
    // Counts that are added to a folded day later must not be lost.
    let next = Board::new(keeping(2), Some(state), END);
    let late = counted(START + HOUR, ("late", ClaimResult::Verified), What::Public);
    next.add(END + HOUR, [moment(END + HOUR, vec![late])]);
    next.write(END + HOUR).unwrap();
    let late = |board: &SiteBoard| {
        let late = board.crawlers.iter().find(|row| row.crawler == "late" && row.identity == "verified");
        late.unwrap().allowed
    };
    assert_eq!(late(&summed(&next)), 18);
}

#[test]
fn a_process_that_ends_writes_its_counts_but_does_not_fold_files() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path();
    drop(played(Some(state)));
    let hours = files(&state.join("board"));
    let next = Board::new(keeping(2), Some(state), END);
    next.end();
    let last = counted(END, ("last", ClaimResult::Verified), What::Public);
    next.add(END, [moment(END, vec![last])]);
    next.write(END + HOUR).unwrap();
    let left = files(&state.join("board"));
    assert!(hours.iter().all(|(path, bytes)| left[path] == *bytes));
    assert!(next.rows("shop", END, END).rows.keys().any(|key| key.crawler == "last"));
    // The next process must fold the files.
    Board::new(keeping(2), Some(state), END).write(END + HOUR).unwrap();
    assert!(!files(&state.join("board")).iter().all(|(path, bytes)| hours.get(path) == Some(bytes)));
}

#[test]
fn daily_rows_are_deleted_after_their_own_retention_time() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path();
    drop(played(Some(state)));
    let config = BoardConfig { keep_days: Duration::from_secs(5 * DAY), ..keeping(2) };
    let next = Board::new(config, Some(state), END + HOUR);
    next.write(END + HOUR).unwrap();
    let rows = next.rows("shop", START, END);
    let first = rows.days.keys().chain(rows.rows.keys()).map(|key| key.begin).min();
    assert_eq!(first, Some(START + 2 * DAY));
}
