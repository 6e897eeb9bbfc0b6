//! Fuzzing entry point for the parser of a day's file. The file may be damaged.

use tower_robots::live::VersionHash;

use super::day::{Damage, DayRows, encoded, parse};
use super::row::{DAY, Row, RowKey};
use super::watch::{Lost, Watch};

const TODAY: u64 = 20_784 * DAY;

/// Parses arbitrary bytes as the file of a day, once as they are and once with a valid last line.
/// The parsed records are then encoded, and parsing the result must return the same records.
pub fn board_day(bytes: &[u8]) {
    let (_, cut) = parse(bytes, TODAY);
    // A file with two end lines is damaged, so at most one of the two files is undamaged.
    let end = format!("{{\"end\":{{\"hash\":\"{}\"}}}}\n", VersionHash::of(bytes));
    let with_end = [bytes, end.as_bytes()].concat();
    let (rows, damage) = parse(&with_end, TODAY);
    assert!(cut == Damage::Some || damage == Damage::Some, "a file that is whole twice");
    let Ok(written) = encoded(&rows) else { return };
    let (again, damage) = parse(&written, TODAY);
    assert!(damage == Damage::None, "what was written is damaged: {}", written.escape_ascii());
    assert_eq!(sums(&again), sums(&rows), "{}", written.escape_ascii());
}

/// The parts of a day's records that the fuzz target compares: counts, watches and lost times.
type Sums<'a> = (Vec<(&'a RowKey, [u64; 5])>, &'a [Watch], &'a [Lost]);

/// Only sums are compared, because parsing merges spans that have become equal.
fn sums(day: &DayRows) -> Sums<'_> {
    let of_row = |row: &Row| {
        let reads = row.reads.iter().fold(0, |sum: u64, read| sum.saturating_add(read.count));
        let hits = row.lines.iter().fold(0, |sum: u64, line| sum.saturating_add(line.hits));
        [row.allowed, row.disallowed, row.pages, reads, hits]
    };
    let rows = day.rows.iter().chain(&day.days).map(|(key, row)| (key, of_row(row))).collect();
    (rows, &day.watches, &day.lost)
}
