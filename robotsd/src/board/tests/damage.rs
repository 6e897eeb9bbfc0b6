//! Damaged files cause no panic, do not exceed any limit, and do not make a crawler appear to
//! ignore robots.txt.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use super::super::day::{Damage, encoded, parse};
use super::*;

fn file(state: &Path, day: Second) -> PathBuf {
    let mut files: Vec<PathBuf> =
        fs::read_dir(state.join("board/shop")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.remove(day as usize)
}

/// The fetch that would excuse a crawler may have been in the lost line or the lost file.
#[test]
fn a_day_with_a_damaged_file_does_not_count_against_any_crawler() {
    let folder = tempfile::tempdir().unwrap();
    drop(played(Some(folder.path())));
    let state = folder.path();
    assert_eq!(said_at_the_end(state), week());
    // Day 1 contains the requests of `ignorer` and `stale`.
    let path = file(state, 1);
    let text = fs::read_to_string(&path).unwrap();
    let without = |what: &str| text.lines().filter(|line| !line.contains(what)).collect::<Vec<_>>().join("\n") + "\n";
    let read_of_ignorer = text.lines().position(|line| line.contains("ignorer")).unwrap();
    let cut_at_a_line = text.lines().take(read_of_ignorer + 3).collect::<Vec<_>>().join("\n") + "\n";
    for (what, damaged) in [
        ("a line that is cut", text.replacen("\"claimer\"", "\"claim", 1)),
        ("a line that is another", text.replacen("https://shop.test", "https://shop.tes!", 1)),
        ("a line that is gone", without("\"late\"")),
        ("an end that is gone", without("{\"end\":")),
        ("a cut at a line's end", cut_at_a_line),
        ("lines after the end", format!("{text}{text}")),
        ("nothing", String::new()),
    ] {
        fs::write(&path, damaged).unwrap();
        assert!(!accuses(&said_at_the_end(state)), "{what}: {:?}", said_at_the_end(state));
    }
    // The next process that writes the file must record that data was lost.
    fs::write(&path, without("\"late\"")).unwrap();
    let next = Board::new(settings(true, 1), Some(state), START + 7 * DAY);
    let late = counted(START + 47 * HOUR, ("ignorer", ClaimResult::Verified), What::Private);
    next.add(START + 7 * DAY, [moment(START + 7 * DAY, vec![late])]);
    next.write(START + 7 * DAY).unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains("{\"lost\":"));
    assert!(!accuses(&said_at_the_end(state)));
    // The other days are unaffected, except for requests that a fetch on the damaged day could
    // excuse.
    fs::write(&path, &text).unwrap();
    assert_eq!(said_at_the_end(state), week());
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(!accuses(&said_at_the_end(state)), "a file that cannot be read at all");
}

/// Returns the rows of a week, and the file of the day on which a crawler ignores robots.txt.
fn guilty() -> (Vec<DayRows>, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    drop(played(Some(folder.path())));
    let bytes = fs::read(file(folder.path(), 1)).unwrap();
    let day = |day: Second| parse(&fs::read(file(folder.path(), day)).unwrap(), START + day * DAY).0;
    ((0..7).map(day).collect(), bytes)
}

fn of_week(processes: &[DayRows]) -> Vec<CrawlerBoard> {
    sum_up("shop", processes, Period::days(START + 7 * DAY - 1, 7), Evidence::Complete, Some("2")).crawlers
}

/// Returns the number of requests that count against each crawler.
fn ignored(days: &[DayRows]) -> Vec<(String, u64)> {
    let mut all = DayRows::default();
    days.iter().for_each(|day| all.merge(day));
    of_week(&[all]).into_iter().map(|row| (row.crawler + &row.identity, row.judged.ignored)).collect()
}

fn accused(processes: &[DayRows]) -> usize {
    of_week(processes).iter().filter(|crawler| crawler.judged.ignored > 0).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if std::env::var_os("ROBOTSD_LONG").is_some() { 512 } else { 192 }))]

    #[test]
    fn a_file_of_arbitrary_bytes_does_not_count_against_any_crawler(bytes in prop::collection::vec(any::<u8>(), 0..4096)) {
        let (rows, damage) = parse(&bytes, START);
        prop_assert_eq!(damage, Damage::Some);
        prop_assert_eq!(accused(std::slice::from_ref(&rows)), 0);
    }

    #[test]
    fn lines_with_arbitrary_values_do_not_count_against_any_crawler(
        lines in prop::collection::vec((0..6_u8, any::<u64>(), any::<u64>(), ".{0,40}"), 0..30)
    ) {
        let line = |(kind, one, other, name): &(u8, u64, u64, String)| {
            let (version, at) = (name, START + one % DAY);
            let row = serde_json::json!({
                "hour": if other % 2 == 0 { hour_of(at) } else { *one }, "day": START, "crawler": name, "identity": "verified",
                "chain": [name], "allowed": other, "disallowed": other, "done": { "refused": other },
                "reads": [{ "origin": name, "version": version, "first": one, "last": other, "count": other }],
                "cases": [{ "origin": name, "disallowed_by": [version], "allowed_by": [], "first": at, "last": at, "count": other }],
                "lines": [{ "version": version, "line": one, "pattern": name, "hits": other }],
            });
            match kind {
                0 => serde_json::json!({ "site": { "name": name, "sees_all": true, "replicas": one } }),
                1 => serde_json::json!({ "watch": { "from": one, "to": other, "version": version, "process": 1 } }),
                2 => serde_json::json!({ "lost": { "from": one, "to": other } }),
                3 => serde_json::json!({ "hour": row }),
                4 => serde_json::json!({ "day": row }),
                _ => serde_json::json!({ "end": { "hash": name } }),
            }
            .to_string()
        };
        let bytes = lines.iter().map(line).collect::<Vec<_>>().join("\n");
        let (mut rows, _) = parse(bytes.as_bytes(), START);
        prop_assert_eq!(accused(std::slice::from_ref(&rows)), 0);
        // The parsed rows must result in an undamaged file when they are written.
        rows.limit_periods();
        rows.fold();
        let (again, damage) = parse(&encoded(&rows).unwrap(), START);
        prop_assert_eq!((again, damage), (rows, Damage::None));
    }

    /// In the file of a day on which a crawler ignores robots.txt, one byte is changed, or the end
    /// is cut off. No other crawler may be reported as a result.
    #[test]
    fn a_file_with_any_change_does_not_count_against_any_crawler(
        at in any::<prop::sample::Index>(), with in any::<u8>(), how in 0..4_u8
    ) {
        let (mut days, mut bytes) = GUILTY.with(Clone::clone);
        let before: BTreeMap<String, u64> = ignored(&days).into_iter().collect();
        prop_assert!(before.values().any(|count| *count > 0));
        // The final line feed is not changed, because the parser does not need it.
        let at = at.index(bytes.len() - 1);
        match how {
            0 => bytes[at] = if bytes[at] == with { !with } else { with },
            1 => bytes.truncate(at),
            2 => bytes.insert(at, with),
            _ => { bytes.remove(at); }
        }
        let (rows, damage) = parse(&bytes, START + DAY);
        prop_assert_eq!(damage, Damage::Some);
        prop_assert_eq!(accused(std::slice::from_ref(&rows)), 0);
        // The change must not increase the number of requests that count against any crawler.
        days[1] = rows;
        for (crawler, count) in ignored(&days) {
            prop_assert!(count <= before.get(&crawler).copied().unwrap_or(0), "{crawler}: {count}");
        }
    }
}

thread_local! {
    static GUILTY: (Vec<DayRows>, Vec<u8>) = guilty();
}

#[test]
fn the_entries_of_a_file_are_bounded_when_read_and_written() {
    let site = "{\"site\":{\"name\":\"shop\",\"sees_all\":true,\"replicas\":1}}\n";
    let endless = [site.as_bytes(), &vec![b'x'; 80 << 20]].concat();
    let (rows, damage) = parse(&endless, START);
    assert!(rows.site.is_some() && damage == Damage::Some);
    let watch = |at: usize| format!("{{\"watch\":{{\"from\":{at},\"to\":{START},\"version\":null,\"process\":1}}}}\n");
    let lost = |at: usize| format!("{{\"lost\":{{\"from\":{at},\"to\":{START}}}}}\n");
    let many: String = (0..100_000).map(|at| watch(at) + &lost(at)).collect();
    let (rows, damage) = parse(many.as_bytes(), START);
    assert!(rows.watches.len() + rows.lost.len() < 300 && damage == Damage::Some);
    // A written file must not exceed the limit either, so the oldest watches become lost times.
    let mut rows = DayRows::default();
    for number in 0..2_000 {
        let at = START + number;
        rows.merge(&DayRows {
            watches: vec![Watch { from: at, to: at, version: None, process: START, live_since: None }],
            ..DayRows::default()
        });
        rows.limit_periods();
    }
    assert!(rows.watches.len() <= 256 && rows.lost.len() == 1);
    assert_eq!(rows.lost[0].from, START);
    assert_eq!(rows.watches.last().unwrap().to, START + 1_999);
}
