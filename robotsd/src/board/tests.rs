//! Plays a scripted week with a simulated clock. The board must show exactly the expected verdicts
//! and counts, whatever happens to the process.

mod damage;
mod folding;

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use super::day::DayRows;
use super::recorder::Counted;
use super::report::{BoardReport, CrawlerBoard, JudgedCounts};
use super::row::{Case, ClaimResult, DAY, HOUR, LineHits, MINUTE, ReadSpan, Row, RowKey, Second, hour_of};
use super::summary::{Evidence, Period, sum_up};
use super::table::{Board, SiteUpdate};
use super::view::{BoardQuery, ReplicaRows, join};
use super::watch::{Sight, Watch};
use crate::config::BoardConfig;
use crate::report::ReplicaAnswer;

const START: Second = 20_000 * DAY;

/// Time when version 2 goes live. Version 2 disallows requests that version 1 allows.
const CHANGE: Second = START + DAY;

/// Interval between two ticks. Every event of the script is at a tick.
const TICK: Second = 20;

#[derive(Clone, Copy)]
enum What {
    Read,
    /// A request that both versions allow.
    Public,
    /// A request that version 2 disallows.
    Private,
}

/// An event of the script: its time, the replica that sees it, the crawler, and what happens.
type Step = (Second, usize, (&'static str, ClaimResult), What);

fn hours(from: Second, to: Second) -> impl Iterator<Item = Second> {
    (from..=to).map(|hour| START + hour * HOUR + 10 * MINUTE)
}

fn script() -> Vec<Step> {
    use ClaimResult::{Claimed, Impostor, Verified};
    let mut steps: Vec<Step> = Vec::new();
    let mut all = |at: &mut dyn Iterator<Item = Second>, replica, who, what| {
        steps.extend(at.map(|at| (at, replica, who, what)));
    };
    // `obeyer` fetches robots.txt every six hours and obeys.
    all(&mut hours(0, 167).step_by(6), 0, ("obeyer", Verified), What::Read);
    all(&mut hours(1, 167), 0, ("obeyer", Verified), What::Public);
    // `late` fetches version 1 one hour before version 2 goes live, and relies on it for 20 hours.
    // Then it fetches version 2 and obeys.
    all(&mut hours(23, 23), 0, ("late", Verified), What::Read);
    all(&mut hours(25, 42), 0, ("late", Verified), What::Private);
    all(&mut hours(43, 43), 0, ("late", Verified), What::Read);
    all(&mut hours(44, 60), 0, ("late", Verified), What::Public);
    // `ignorer` fetches version 2 and ignores it.
    all(&mut hours(30, 30), 0, ("ignorer", Verified), What::Read);
    all(&mut hours(31, 40), 0, ("ignorer", Verified), What::Private);
    // `stale` relies on version 1 for longer than a day.
    all(&mut hours(20, 20), 0, ("stale", Verified), What::Read);
    all(&mut hours(43, 48), 0, ("stale", Verified), What::Private);
    // `unseen` never fetches robots.txt.
    all(&mut hours(50, 54), 0, ("unseen", Verified), What::Private);
    // Impostors of `obeyer` and `late`. Fetches of impostors do not count for the real crawlers.
    all(&mut hours(60, 66), 0, ("obeyer", Impostor), What::Private);
    all(&mut hours(60, 60), 0, ("late", Impostor), What::Read);
    // The claim of `claimer` is never confirmed.
    all(&mut hours(29, 29), 0, ("claimer", Claimed), What::Read);
    all(&mut hours(70, 72), 0, ("claimer", Claimed), What::Private);
    // `split` fetches version 2 on one replica, and ignores it on the other replica.
    all(&mut hours(80, 80), 0, ("split", Verified), What::Read);
    all(&mut hours(81, 83), 1, ("split", Verified), What::Private);
    steps.sort_by_key(|(at, ..)| *at);
    steps
}

fn settings(sees_all: bool, replicas: usize) -> BoardConfig {
    let replicas = NonZeroUsize::new(replicas).unwrap();
    let (keep, keep_days) = (Duration::from_secs(14 * DAY), Duration::from_secs(400 * DAY));
    BoardConfig { sees_all, replicas, keep, keep_days, size: 1 << 30 }
}

fn counted(at: Second, (crawler, identity): (&str, ClaimResult), what: What) -> Counted {
    let (origin, count) = ("https://shop.test".to_owned(), 1);
    let (first, last) = (at, at);
    let live = if at < CHANGE { "1" } else { "2" };
    let operator = format!("operator of {crawler}");
    let mut row = Row { operator, category: "search".into(), chain: vec![crawler.to_owned()], ..Row::default() };
    match what {
        What::Read => row.read(&ReadSpan { origin, version: Some(live.to_owned()), first, last, count }),
        What::Private if live == "2" => {
            row.disallowed += 1;
            row.done.observed += 1;
            let (disallowed_by, allowed_by) = (vec!["2".to_owned()], vec!["1".to_owned()]);
            row.disallow(&Case { origin, disallowed_by, allowed_by, first, last, count });
            row.add_hits(&LineHits { version: live.to_owned(), line: 2, pattern: "/private/".into(), hits: 1 });
        }
        What::Public | What::Private => row.allowed += 1,
    }
    let key = RowKey { begin: hour_of(at), crawler: crawler.to_owned(), identity };
    Counted { rows: [(key, row)].into_iter().collect(), ..Counted::default() }
}

/// Plays the events of one replica between two times, with regular ticks.
fn play(board: &Board, replica: usize, from: Second, to: Second) {
    let script = script();
    let mut steps = script.iter().filter(|(at, on, ..)| *on == replica && (from..to).contains(at)).peekable();
    for now in (from..to).step_by(TICK as usize) {
        let mut taken = Vec::new();
        while let Some((at, _, who, what)) = steps.next_if(|(at, ..)| *at <= now) {
            taken.push(counted(*at, *who, *what));
        }
        if board.add(now, [moment(now, taken)]) {
            board.write(now).unwrap();
        }
    }
}

fn moment(now: Second, counted: Vec<Counted>) -> SiteUpdate {
    let version = Some(if now < CHANGE { "1" } else { "2" }.to_owned());
    SiteUpdate { version, ..SiteUpdate::new("shop", counted, None, Sight::Clear) }
}

/// Name, verdict (if any) and judged counts that the board shows for a crawler.
type Said = (String, Option<String>, JudgedCounts);

fn said(processes: &[DayRows], evidence: Evidence) -> Vec<Said> {
    let board = sum_up("shop", processes, Period::days(START + 7 * DAY - 1, 7), evidence, Some("2"));
    let said =
        |crawler: CrawlerBoard| (format!("{} {}", crawler.crawler, crawler.identity), crawler.word, crawler.judged);
    let mut all: Vec<Said> = board.crawlers.into_iter().map(said).collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

fn rows(board: &Board) -> DayRows {
    board.rows("shop", START, START + 7 * DAY)
}

fn expect(who: &str, word: Option<&str>, [ignored, not_newest, unread, undecided]: [u64; 4]) -> Said {
    (who.to_owned(), word.map(str::to_owned), JudgedCounts { ignored, not_newest, unread, undecided })
}

fn week() -> Vec<Said> {
    vec![
        expect("claimer claimed", None, [0, 0, 0, 0]),
        expect("ignorer verified", Some("ignores"), [10, 0, 0, 0]),
        expect("late impostor", None, [0, 0, 0, 0]),
        expect("late verified", Some("has not read the newest version"), [0, 18, 0, 0]),
        expect("obeyer impostor", None, [0, 0, 0, 0]),
        expect("obeyer verified", Some("obeys"), [0, 0, 0, 0]),
        expect("split verified", Some("obeys"), [0, 0, 0, 0]),
        // The first two requests were at most 24 hours after the fetch.
        expect("stale verified", Some("ignores"), [4, 2, 0, 0]),
        expect("unseen verified", Some("no read seen here"), [0, 0, 5, 0]),
    ]
}

/// Plays the whole week in one process.
fn played(state_dir: Option<&Path>) -> Board {
    let board = Board::new(settings(true, 1), state_dir, START);
    play(&board, 0, START, START + 7 * DAY);
    board
}

#[test]
fn a_scripted_week_gives_the_expected_judgement_of_every_crawler() {
    let folder = tempfile::tempdir().unwrap();
    for board in [played(None), played(Some(folder.path()))] {
        assert_eq!(said(&[rows(&board)], Evidence::Complete), week());
    }
    // A process that reads the files of the previous process must show the same board.
    let next = Board::new(settings(true, 1), Some(folder.path()), START + 7 * DAY);
    assert_eq!(said(&[rows(&next)], Evidence::Complete), week());
}

#[test]
fn counts_of_the_board_equal_those_of_the_scripted_week() {
    let board = played(None);
    let summed = sum_up("shop", &[rows(&board)], Period::days(START + 7 * DAY - 1, 7), Evidence::Complete, Some("2"));
    let find = |crawler: &str, identity: &str| {
        summed.crawlers.iter().find(|row| row.crawler == crawler && row.identity == identity).unwrap()
    };
    let obeyer = find("obeyer", "verified");
    assert_eq!((obeyer.reads, obeyer.allowed, obeyer.disallowed), (28, 167, 0));
    assert_eq!(obeyer.trend.iter().map(|bar| bar.allowed).collect::<Vec<_>>(), [23, 24, 24, 24, 24, 24, 24]);
    let late = find("late", "verified");
    assert_eq!((late.reads, late.allowed, late.disallowed, late.done.observed), (2, 17, 18, 18));
    let read = late.last_read.as_ref().unwrap();
    assert_eq!((read.version.as_deref(), read.is_newest), (Some("2"), Some(true)));
    let worst = late.worst_line.as_ref().unwrap();
    assert_eq!((worst.line, &*worst.pattern, worst.hits), (2, "/private/", 18));
    assert_eq!(find("claimer", "claimed").disallowed, 3);
    assert_eq!(find("obeyer", "impostor").disallowed, 7);
    let line = &summed.lines[0];
    assert_eq!((summed.lines.len(), line.hits), (1, 10 + 18 + 7 + 6 + 5 + 3));
}

/// During a restart, a crawler may fetch another version from another server. Fetches before the
/// restart must therefore not count against the crawler.
#[test]
fn reads_before_a_restart_do_not_count_against_a_crawler() {
    let folder = tempfile::tempdir().unwrap();
    let mut at = START;
    for (until, is_killed) in [(28 * HOUR, false), (35 * HOUR, true), (47 * HOUR, false), (7 * 24 * HOUR, false)] {
        let board = Board::new(settings(true, 1), Some(folder.path()), at);
        play(&board, 0, at, START + until);
        if is_killed {
            // The process is killed: counts since the last write are lost.
            let lost = counted(START + until, ("lost", ClaimResult::Verified), What::Private);
            board.add(START + until, [moment(START + until, vec![lost])]);
        } else {
            board.write(START + until).unwrap();
        }
        // No process runs for a minute.
        at = START + until + MINUTE;
    }
    let board = Board::new(settings(true, 1), Some(folder.path()), START + 7 * DAY);
    let mut want = week();
    // While no process runs, a crawler may fetch any version. This possible fetch excuses its
    // requests for a day.
    want[1] = expect("ignorer verified", Some("ignores"), [4, 0, 0, 6]);
    want[3] = expect("late verified", None, [0, 3, 0, 15]);
    want[7] = expect("stale verified", None, [0, 0, 0, 6]);
    assert_eq!(said(&[rows(&board)], Evidence::Complete), want);
}

/// The version changes while no process runs, so earlier fetches no longer prove anything.
#[test]
fn a_version_change_while_no_process_runs_excuses_crawlers() {
    let folder = tempfile::tempdir().unwrap();
    drop(played_with(settings(true, 1), folder.path(), START, START + 31 * HOUR));
    let after = Board::new(settings(true, 1), Some(folder.path()), START + 31 * HOUR + MINUTE);
    let other = SiteUpdate { version: Some("3".into()), ..moment(START + 31 * HOUR + MINUTE, Vec::new()) };
    after.add(START + 31 * HOUR + MINUTE, [other]);
    play(&after, 0, START + 31 * HOUR + MINUTE * 2, START + 7 * DAY);
    let said = said(&[rows(&after)], Evidence::Complete);
    assert_eq!(said[1], expect("ignorer verified", None, [0, 0, 0, 10]));
}

#[test]
fn no_crawler_is_reported_as_ignoring_rules_if_evidence_is_partial() {
    let board = played(None);
    let said = said(&[rows(&board)], Evidence::Partial);
    assert_eq!(said[1], expect("ignorer verified", None, [0, 0, 0, 10]));
    assert_eq!(said[3], week()[3]);
    assert!(said.iter().all(|(_, word, _)| word.as_deref() != Some("ignores")));
}

#[test]
fn a_read_on_one_replica_counts_for_the_requests_on_another() {
    let boards = [0, 1].map(|replica| {
        let board = Board::new(settings(true, 2), None, START);
        play(&board, replica, START, START + 7 * DAY);
        rows(&board)
    });
    let wanted = [expect("split verified", Some("no read seen here"), [0, 0, 3, 0])];
    assert_eq!(said(&boards[1..], Evidence::Partial), wanted);
    let mut want = week();
    want[6] = expect("split verified", Some("ignores"), [3, 0, 0, 0]);
    assert_eq!(said(&boards, Evidence::Complete), want);
}

#[test]
fn made_up_crawler_names_share_one_row_after_the_first_64() {
    let board = Board::new(settings(true, 1), None, START);
    for minute in 0..10 {
        for number in 0..60 {
            let now = START + minute * MINUTE + number % 20;
            let name = format!("made-up-{minute}-{number}");
            let mut counted = counted(now, (&name, ClaimResult::Claimed), What::Public);
            counted.rows.values_mut().for_each(|row| row.operator.clear());
            board.add(now, [moment(now, vec![counted])]);
        }
        board.write(START + minute * MINUTE).unwrap();
    }
    let rows = rows(&board).rows;
    assert_eq!(rows.len(), 65, "64 names, and one row for the others");
    assert_eq!(rows.values().map(|row| row.allowed).sum::<u64>(), 600);
}

/// Plays the script between two times in one process with these settings.
fn played_with(settings: BoardConfig, state: &Path, from: Second, to: Second) -> Board {
    let board = Board::new(settings, Some(state), from);
    play(&board, 0, from, to);
    board.write(to).unwrap();
    board
}

/// Returns what a process shows if it starts with these files at the end of the week.
fn said_at_the_end(state: &Path) -> Vec<Said> {
    let board = Board::new(settings(true, 1), Some(state), START + 7 * DAY);
    said(&[rows(&board)], Evidence::Complete)
}

fn accuses(said: &[Said]) -> bool {
    said.iter().any(|(_, word, judged)| word.as_deref() == Some("ignores") || judged.ignored > 0)
}

/// Before a restart, a cache or another replica also served the site. The fetches recorded before
/// the restart must not count against a crawler.
#[test]
fn settings_after_a_restart_do_not_apply_to_reads_before_it() {
    for before in [settings(false, 1), settings(true, 2)] {
        for restart in [START + 4 * DAY, START + 2 * DAY - HOUR] {
            let folder = tempfile::tempdir().unwrap();
            drop(played_with(before, folder.path(), START, restart));
            drop(played_with(settings(true, 1), folder.path(), restart + MINUTE, START + 7 * DAY));
            assert!(!accuses(&said_at_the_end(folder.path())), "{before:?}");
        }
    }
}

/// The disk is full at midnight, so the records of one day are not written. The file of the next
/// day must not claim to cover that day.
#[test]
fn a_day_that_could_not_be_written_does_not_count_as_watched() {
    let folder = tempfile::tempdir().unwrap();
    let board = Board::new(settings(true, 1), Some(folder.path()), START);
    let shop = folder.path().join("board/shop");
    std::fs::create_dir_all(&shop).unwrap();
    // Writing fails because a folder has the name of the file.
    let second = shop.join(super::row::date_of(START + DAY) + ".jsonl");
    std::fs::create_dir(&second).unwrap();
    let mut at = START;
    for end in [DAY, DAY + 10 * HOUR, 2 * DAY + HOUR] {
        for now in (at..START + end).step_by(TICK as usize) {
            board.add(now, [moment(now, vec![counted(now, ("obeyer", ClaimResult::Verified), What::Public)])]);
        }
        at = START + end;
        let _ = board.write(at);
    }
    drop(board);
    let third = shop.join(super::row::date_of(START + 2 * DAY) + ".jsonl");
    let text = std::fs::read_to_string(third).unwrap();
    assert!(text.contains("\"hour\"") && !text.contains("\"watch\""), "{text}");
}

#[test]
fn a_failed_write_is_repeated_after_half_a_minute() {
    let folder = tempfile::tempdir().unwrap();
    let board = Board::new(settings(true, 1), Some(folder.path()), START);
    let due = |from: Second| {
        let crawler = || counted(from, ("obeyer", ClaimResult::Verified), What::Public);
        (from + 1..).find(|now| board.add(*now, [moment(*now, vec![crawler()])])).unwrap()
    };
    let file = folder.path().join("board/shop").join(super::row::date_of(START) + ".jsonl");
    std::fs::create_dir_all(&file).unwrap();
    // After the first counts, a write must be due immediately.
    let first = due(START);
    board.write(first).unwrap_err();
    std::fs::remove_dir(&file).unwrap();
    let second = due(first);
    board.write(second).unwrap();
    assert_eq!([second - first, due(second) - second], [MINUTE / 2, MINUTE]);
    assert!(file.is_file() && board.problems().is_empty());
}

#[test]
fn old_files_that_cannot_be_removed_are_reported_until_removal_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let board = Board::new(settings(true, 1), Some(folder.path()), START);
    let write = |at: Second| {
        let counts = counted(at, ("obeyer", ClaimResult::Verified), What::Public);
        board.add(at, [moment(at, vec![counts])]);
        board.write(at)
    };
    // Without counts on the previous day, the clock would seem to have jumped. A folder has the
    // name of the old file, so the old file cannot be removed.
    write(START - DAY).unwrap();
    let old = folder.path().join("board/shop").join(super::row::date_of(START - 1000 * DAY) + ".jsonl");
    std::fs::create_dir(&old).unwrap();
    for at in [START, START + MINUTE] {
        let why = write(at).unwrap_err();
        assert_eq!(board.problems(), [why]);
        assert!(board.last_write_succeeded(), "counts are written");
    }
    std::fs::remove_dir(&old).unwrap();
    write(START + 2 * MINUTE).unwrap();
    assert!(board.problems().is_empty());
}

/// Counts a fetch of `version` by a verified crawler at `at`.
fn read_of(version: &str, at: Second) -> Counted {
    let mut counted = counted(at, ("crawler", ClaimResult::Verified), What::Read);
    let reads = counted.rows.values_mut().flat_map(|row| &mut row.reads);
    reads.for_each(|read| read.version = Some(version.to_owned()));
    counted
}

/// Plays three days in which a crawler sends the fetches in `reads`. Version 1 is live during
/// `version_1`, and version 2 before and after that. On the last day, the crawler sends a request
/// that version 2 disallows.
fn days_with(state: &Path, reads: &[(&str, Second)], version_1: std::ops::Range<Second>) {
    let board = Board::new(settings(true, 1), Some(state), START);
    let request = 2 * DAY + 10 * HOUR;
    for now in (0..request + HOUR).step_by(TICK as usize) {
        let mut counts: Vec<Counted> =
            reads.iter().filter(|(_, at)| *at == now).map(|(version, at)| read_of(version, START + at)).collect();
        if now == request {
            counts.push(counted(START + now, ("crawler", ClaimResult::Verified), What::Private));
        }
        let version = if version_1.contains(&now) { "1" } else { "2" };
        let moment = SiteUpdate { version: Some(version.to_owned()), ..moment(START + now, counts) };
        if board.add(START + now, [moment]) {
            board.write(START + now).unwrap();
        }
    }
    board.write(START + request + HOUR).unwrap();
}

/// A day whose file was deleted must not be treated as a day without fetches, because the file may
/// have contained the fetch that excuses the crawler. A day without counts has no file either, but
/// the next file covers it.
#[test]
fn a_day_whose_file_was_deleted_is_not_treated_as_a_day_without_reads() {
    let judged = |state: &Path| said_at_the_end(state)[0].2;
    let [ignored, not_newest, undecided] =
        [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]].map(|counts| expect("", None, counts).2);
    for (reads, version_1, want) in [
        // The crawler fetched version 1 twice, the second time less than a day before the request.
        (&[("1", HOUR), ("1", DAY + 20 * HOUR)][..], 0..2 * DAY + HOUR, not_newest),
        // Version 1 was live for two hours, and the crawler fetched it in this time.
        (&[("2", 20 * HOUR), ("1", DAY + 20 * HOUR)], DAY + 19 * HOUR..DAY + 21 * HOUR, not_newest),
        // The crawler fetched version 1 in the last seconds of the day before the request.
        (&[("1", HOUR), ("1", 2 * DAY - TICK)], 0..2 * DAY + HOUR, not_newest),
        (&[("1", HOUR)], 0..2 * DAY + HOUR, ignored),
    ] {
        let folder = tempfile::tempdir().unwrap();
        days_with(folder.path(), reads, version_1);
        assert_eq!(judged(folder.path()), want, "{reads:?}");
        let second = folder.path().join("board/shop").join(super::row::date_of(START + DAY) + ".jsonl");
        assert_eq!(second.exists(), reads.len() > 1, "{reads:?}");
        if second.exists() {
            std::fs::remove_file(second).unwrap();
            assert_eq!(judged(folder.path()), undecided, "{reads:?}");
        }
    }
}

/// A process writes every minute. A day's file must still contain only one line for the watch.
#[test]
fn adjacent_watches_of_one_process_are_merged_in_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let board = played(Some(folder.path()));
    assert!(rows(&board).watches.len() < 2 * 7 + 2, "{:?}", rows(&board).watches);
    let gaps = super::watch::gaps(&rows(&board).watches, &[]);
    assert_eq!(gaps.len(), 2, "only the time before and after the week: {gaps:?}");
}

/// Another site may have served another version on a newly added host.
#[test]
fn a_newly_added_host_creates_a_gap_in_the_evidence() {
    for (has_new_hosts, ignored) in [(false, 1), (true, 0)] {
        let board = Board::new(settings(true, 1), None, START + DAY);
        for now in (START + DAY..START + 2 * DAY).step_by(TICK as usize) {
            let counts = match now - START - DAY {
                HOUR => vec![read_of("2", now)],
                7200 => vec![counted(now, ("crawler", ClaimResult::Verified), What::Private)],
                _ => Vec::new(),
            };
            let has_new_hosts = has_new_hosts && now == START + DAY + HOUR + MINUTE;
            board.add(now, [SiteUpdate { has_new_hosts, ..moment(now, counts) }]);
        }
        let judged = said(&[rows(&board)], Evidence::Complete)[0].2;
        assert_eq!((judged.ignored, judged.undecided), (ignored, 1 - ignored));
    }
}

/// Returns a board that has counted up to `second`. A crawler fetched version 2 a minute earlier.
fn read_before(second: Second, state: &Path, is_written: bool) -> Board {
    let board = Board::new(settings(true, 1), Some(state), START + DAY);
    for now in second - HOUR..=second {
        let reads = if now == second - MINUTE { vec![read_of("2", now)] } else { Vec::new() };
        board.add(now, [moment(now, reads)]);
    }
    if is_written {
        board.write(second).unwrap();
    }
    board
}

/// In the second in which a host is added, a crawler may fetch another version from the previous
/// server of the host, and then send a request to this process. The request must not count against
/// the crawler, even if the records of this second are already written.
#[test]
fn requests_in_the_second_of_a_host_addition_do_not_count_against_a_crawler() {
    let comes = START + DAY + HOUR;
    for (has_new_hosts, is_written, ignored) in [(false, false, 1), (false, true, 1), (true, false, 0), (true, true, 0)]
    {
        let folder = tempfile::tempdir().unwrap();
        let board = read_before(comes, folder.path(), is_written);
        let request = vec![counted(comes, ("crawler", ClaimResult::Verified), What::Private)];
        board.add(comes + 1, [SiteUpdate { has_new_hosts, ..moment(comes + 1, request) }]);
        for now in comes + 2..comes + MINUTE {
            board.add(now, [moment(now, Vec::new())]);
        }
        let judged = || said(&[rows(&board)], Evidence::Complete)[0].2;
        let want = JudgedCounts { ignored, undecided: 1 - ignored, ..JudgedCounts::default() };
        assert_eq!(judged(), want, "{has_new_hosts} {is_written}, held");
        board.write(comes + MINUTE).unwrap();
        assert_eq!(judged(), want, "{has_new_hosts} {is_written}, written");
    }
}

/// A site is removed and added again within two seconds. Another server may have responded in
/// between.
#[test]
fn requests_in_the_second_of_a_site_removal_do_not_count_against_a_crawler() {
    let goes = START + DAY + HOUR;
    for is_written in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let board = read_before(goes, folder.path(), is_written);
        board.add(goes + 1, []);
        board.write(goes + 1).unwrap();
        let request = vec![counted(goes, ("crawler", ClaimResult::Verified), What::Private)];
        board.add(goes + 2, [moment(goes + 2, request)]);
        board.write(goes + 2).unwrap();
        let judged = said(&[rows(&board)], Evidence::Complete)[0].2;
        assert_eq!((judged.ignored, judged.undecided), (0, 1), "{is_written}");
    }
}

/// While a site is not served here, another server may respond for it.
#[test]
fn a_site_that_is_added_again_has_a_gap_without_a_known_version() {
    for (writes, goes) in [(false, MINUTE), (true, 2 * HOUR), (false, 3)] {
        let board = Board::new(settings(true, 1), None, START);
        let until = START + 20 * MINUTE;
        let serve = |now| board.add(now, [moment(now, Vec::new())]);
        (START..=until).map(serve).for_each(|_| {});
        board.write(until).unwrap();
        board.add(until + 1, []);
        assert!(board.served_sites().is_empty(), "a site that is not served is not shown");
        if writes {
            board.write(until + 1).unwrap();
        }
        let back = until + goes;
        (back..back + MINUTE).map(serve).for_each(|_| {});
        let rows = board.rows("shop", START, back + MINUTE);
        let gaps = super::watch::gaps(&rows.watches, &[]);
        let gap = gaps.iter().find(|gap| gap.to == back).expect("a gap");
        assert_eq!((gap.version.as_deref(), board.served_sites().len()), (None, 1));
    }
}

/// Returns the rows of a replica as another replica receives them, serialized and parsed again.
fn answered(board: &Board, replica: usize, now: Second) -> ReplicaAnswer<ReplicaRows> {
    let heard = vec!["web-0".to_owned(), "web-1".to_owned()];
    let (name, process) = (format!("web-{replica}"), replica.to_string());
    let rows = ReplicaRows { replica: name, process, heard, ..board.rows_of(&BoardQuery::default(), now) };
    let rows = serde_json::from_str(&serde_json::to_string(&rows).unwrap()).unwrap();
    ReplicaAnswer { replica: format!("10.0.0.{replica}:9145"), answer: Some(rows), error: None }
}

fn boards(until: Second) -> [Board; 2] {
    [0, 1].map(|replica| {
        let board = Board::new(settings(true, 2), None, START);
        play(&board, replica, START, until);
        board
    })
}

fn crawler<'b>(report: &'b BoardReport, name: &str) -> &'b CrawlerBoard {
    report.sites[0].crawlers.iter().find(|of| of.crawler == name && of.identity == "verified").unwrap()
}

/// A fetch on one replica counts for requests on another. The rows that replicas exchange must be
/// enough to build the board of all replicas.
#[test]
fn rows_of_all_replicas_combine_into_the_board_of_one_process() {
    let now = START + 84 * HOUR;
    let boards = boards(now);
    let [first, second] = [0, 1].map(|replica| answered(&boards[replica], replica, now));
    // The second replica is also reachable at another address. It must be counted only once.
    let again = answered(&boards[1], 1, now);
    let report = join(vec![first, second, again], &BoardQuery::default(), now);
    assert_eq!((report.counted_replicas, report.replicas, report.sees_all), (2, 2, true));
    assert_eq!(report.notes[0], "Counted: 2 of 2 replicas.");
    assert!(report.notes[1..].iter().all(|note| note.contains("There is no state_dir")), "{:?}", report.notes);
    let split = crawler(&report, "split");
    assert_eq!((split.word.as_deref(), split.judged.ignored), (Some("ignores"), 3));
    let whole = boards.each_ref().map(|board| board.rows("shop", START, now));
    let whole = sum_up("shop", &whole, Period::day(now), Evidence::Complete, Some("2"));
    let text = |crawlers: &[CrawlerBoard]| serde_json::to_string_pretty(crawlers).unwrap();
    assert_eq!(text(&report.sites[0].crawlers), text(&whole.crawlers));
    // Rows from before the period must contain only fetches.
    let mut rows = answered(&boards[0], 0, now).answer.unwrap().sites.remove("shop").unwrap();
    rows.rows.retain(|key, _| key.begin + HOUR <= Period::day(now).from - HOUR);
    assert!(!rows.rows.is_empty());
    for (key, row) in rows.rows {
        assert!(!row.reads.is_empty() && row.cases.is_empty() && row.lines.is_empty(), "{key:?} {row:?}");
    }
}

#[test]
fn a_missing_replica_is_named_and_no_crawler_is_reported_as_ignoring_rules() {
    let now = START + 45 * HOUR;
    let boards = boards(now);
    let both = join([0, 1].map(|at| answered(&boards[at], at, now)).into(), &BoardQuery::default(), now);
    assert_eq!(crawler(&both, "ignorer").word.as_deref(), Some("ignores"));
    let second = |answer: Option<ReplicaRows>, error: Option<&str>| ReplicaAnswer {
        replica: "10.0.0.1:9145".to_owned(),
        answer,
        error: error.map(str::to_owned),
    };
    let mut damaged = answered(&boards[1], 1, now).answer.unwrap();
    let rows = damaged.sites.get_mut("shop").unwrap();
    let key = RowKey { begin: hour_of(now), crawler: "x".repeat(2000), ..RowKey::default() };
    rows.rows.insert(key, Row::default());
    // The unreachable replica is also known by name. It must not be reported twice.
    let answers = vec![answered(&boards[0], 0, now), second(None, Some("NOT REACHED: gone"))];
    let notes = join(answers, &BoardQuery::default(), now).notes;
    assert!(!notes.iter().any(|note| note.contains("web-1")), "{notes:?}");
    // If there are more names than unreachable addresses, it is unknown which name has which
    // address.
    let mut first = answered(&boards[0], 0, now);
    first.answer.iter_mut().for_each(|rows| rows.heard.push("web-2".to_owned()));
    let report = join(vec![first, second(None, Some("NOT REACHED: gone"))], &BoardQuery::default(), now);
    assert_eq!(report.replicas, 3);
    let want = "Not counted: 1 of the replicas web-1, web-2, which do not answer at any address in fleet.replicas.";
    assert_eq!(report.notes[1..3], ["Not counted: 10.0.0.1:9145: NOT REACHED: gone.", want]);
    for (other, why) in [
        (Some(second(None, Some("NOT REACHED: gone"))), "Not counted: 10.0.0.1:9145: NOT REACHED: gone."),
        (Some(second(Some(damaged), None)), "Not counted: 10.0.0.1:9145: damaged rows."),
        (None, "Not counted: web-1: this replica does not answer at any address in fleet.replicas."),
    ] {
        let answers = [answered(&boards[0], 0, now)].into_iter().chain(other).collect();
        let report = join(answers, &BoardQuery::default(), now);
        assert_eq!((report.counted_replicas, report.replicas), (1, 2), "{why}");
        assert_eq!(report.notes[0], "Counted: 1 of 2 replicas.");
        assert!(report.notes.iter().any(|note| note == why), "{why}: {:?}", report.notes);
        let ignorer = crawler(&report, "ignorer");
        assert_eq!((ignorer.word.as_deref(), ignorer.judged.ignored), (None, 0), "{why}");
    }
}
