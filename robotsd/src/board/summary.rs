//! Builds the board of a site from its rows.
//!
//! The rows may come from one process or several. A request is judged by all fetches of robots.txt
//! that any of these processes recorded or may have missed.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use tower_robots::agent::Registry;
use tower_robots::live::Content;
use tower_robots::rules::Access;

use super::day::DayRows;
use super::judgement::{Gap, ReadJudgement, Reader, Reading, judge};
use super::recorder::{self, cut};
use super::referrals::{OperatorBalance, TakenPages};
use super::report::{CrawlerBoard, JudgedCounts, LastRead, LineBoard, LineCrawler, NeverHit, SiteBoard, TrendBar};
use super::row::{ClaimResult, DAY, HOUR, LineHits, Row, Second, day_of, hour_of, written};
use super::watch::gaps;

/// Maximum number of robots.txt lines in the report of a site.
const MAX_LINES: usize = 50;

/// The period of a report: whole hours or whole days, including the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Period {
    pub(crate) from: Second,
    pub(crate) to: Second,
    pub(crate) step: Second,
}

/// Whether the rows contain every fetch of robots.txt. If fetches may be missing, no crawler is
/// reported as ignoring robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    Complete,
    /// Fetches may be missing, because a cache or another replica may also serve the robots.txt.
    Partial,
}

impl Period {
    /// Returns the last 24 hours, with one bar per hour.
    pub(crate) const fn day(now: Second) -> Self {
        Self { from: hour_of(now).saturating_sub(23 * HOUR), to: now, step: HOUR }
    }

    /// Returns the last `count` days, with one bar per day.
    pub(crate) const fn days(now: Second, count: Second) -> Self {
        Self { from: day_of(now).saturating_sub((count - 1) * DAY), to: now, step: DAY }
    }

    /// Reports whether the hour or day that starts at `begin` overlaps the period.
    const fn has(&self, begin: Second, length: Second) -> bool {
        begin.saturating_add(length) > self.from && begin <= self.to
    }

    const fn bars(&self) -> usize {
        ((self.to - self.from) / self.step + 1) as usize
    }
}

/// Builds the board of a site from the rows of each process that serves it. The first row
/// should be older than the period, because earlier fetches of robots.txt are needed to judge the
/// requests in the period.
pub(crate) fn sum_up(
    site: &str,
    processes: &[DayRows],
    period: Period,
    evidence: Evidence,
    live: Option<&str>,
) -> SiteBoard {
    let rows = SiteRows::of(processes, period);
    // With partial evidence, no crawler is reported as ignoring robots.txt. The periods in
    // `unseen`, which could only excuse a crawler, are therefore not needed.
    let is_complete = evidence == Evidence::Complete;
    let gaps = |process: &DayRows| {
        let unseen = process.unseen.iter().filter(|_| is_complete);
        gaps(&process.watches, &process.lost.iter().chain(unseen).cloned().collect::<Vec<_>>())
    };
    let gaps: Vec<Gap> = processes.iter().flat_map(gaps).collect();
    let is_here = |rows: &Vec<CrawlerRow<'_>>| rows.iter().any(|row| row.is_counted);
    let here = rows.by_crawler.iter().filter(|(_, rows)| is_here(rows));
    let mut boards: Vec<CrawlerBoard> = here
        .map(|((crawler, identity), own)| {
            let (crawler, identity) = (*crawler, *identity);
            Crawler { crawler, identity, own, rows: &rows, gaps: &gaps }.sum_up(period, evidence, live)
        })
        .collect();
    boards.sort_by(|one, other| {
        let weight = |board: &CrawlerBoard| (board.disallowed, board.allowed, board.reads);
        weight(other).cmp(&weight(one)).then_with(|| one.crawler.cmp(&other.crawler))
    });
    SiteBoard { site: site.to_owned(), crawlers: boards, lines: lines(&rows), ..SiteBoard::default() }
}

/// Adds the comparison of fetched pages with referred visitors. Pages that impostors fetched are
/// not counted.
pub(crate) fn with_balance(site: SiteBoard, processes: &[DayRows], period: Period, registry: &Registry) -> SiteBoard {
    let own = site.crawlers.iter().filter(|crawler| crawler.identity != ClaimResult::Impostor.as_str());
    let taken = own.map(|crawler| {
        let (name, purpose) = (crawler.crawler.clone(), crawler.category.clone());
        (crawler.operator.as_str(), TakenPages { crawler: name, purpose, pages: crawler.pages })
    });
    let sent = processes.iter().flat_map(|process| process.visitors.in_hours(|hour| period.has(hour, HOUR)));
    let sent = sent.map(|(service, visitors)| (service.clone(), visitors));
    let given_back = OperatorBalance::all(taken.collect::<Vec<_>>(), sent, registry);
    SiteBoard { given_back, ..site }
}

/// Rows of a site, grouped by crawler and identity.
struct SiteRows<'r> {
    by_crawler: BTreeMap<(&'r str, ClaimResult), Vec<CrawlerRow<'r>>>,
    /// The crawlers of each operator, with their identities.
    by_operator: BTreeMap<&'r str, BTreeSet<(&'r str, ClaimResult)>>,
}

/// The row of a crawler for one hour or day.
#[derive(Clone, Copy)]
struct CrawlerRow<'r> {
    begin: Second,
    row: &'r Row,
    /// Whether the row is in the period of the report. Earlier rows contribute only their fetches
    /// of robots.txt.
    is_counted: bool,
}

impl<'r> SiteRows<'r> {
    fn of(processes: &'r [DayRows], period: Period) -> Self {
        let mut rows = Self { by_crawler: BTreeMap::new(), by_operator: BTreeMap::new() };
        for process in processes {
            let days = process.days.iter().map(|(key, row)| (key, row, DAY));
            for (key, row, length) in days.chain(process.rows.iter().map(|(key, row)| (key, row, HOUR))) {
                let of = (&*key.crawler, key.identity);
                let is_counted = period.has(key.begin, length);
                rows.by_crawler.entry(of).or_default().push(CrawlerRow { begin: key.begin, row, is_counted });
                if !row.operator.is_empty() {
                    rows.by_operator.entry(&row.operator).or_default().insert(of);
                }
            }
        }
        rows
    }

    /// Returns the crawlers whose fetches of robots.txt may affect the verdict about this crawler,
    /// including the crawler itself.
    fn of_same_operator(&self, crawler: &'r str, operator: &str) -> BTreeSet<(&'r str, ClaimResult)> {
        let own = [ClaimResult::Verified, ClaimResult::Claimed].map(|identity| (crawler, identity));
        let others = self.by_operator.get(operator).into_iter().flatten().copied();
        others.chain(own).filter(|(_, identity)| *identity != ClaimResult::Impostor).collect()
    }
}

struct Crawler<'r> {
    crawler: &'r str,
    identity: ClaimResult,
    own: &'r [CrawlerRow<'r>],
    rows: &'r SiteRows<'r>,
    gaps: &'r [Gap],
}

impl<'r> Crawler<'r> {
    fn sum_up(&self, period: Period, evidence: Evidence, live: Option<&str>) -> CrawlerBoard {
        let counted = || self.own.iter().filter(|row| row.is_counted);
        let mut board = CrawlerBoard {
            crawler: self.crawler.to_owned(),
            identity: self.identity.as_str().to_owned(),
            trend: vec![TrendBar::default(); period.bars()],
            ..CrawlerBoard::default()
        };
        let mut sum = Row::default();
        let mut lines: BTreeMap<LineKey<'_>, u64> = BTreeMap::new();
        for CrawlerRow { begin, row, .. } in counted() {
            if board.operator.is_empty() {
                board.operator.clone_from(&row.operator);
                board.category.clone_from(&row.category);
                sum.chain.clone_from(&row.chain);
            }
            board.allowed = board.allowed.saturating_add(row.allowed);
            board.disallowed = board.disallowed.saturating_add(row.disallowed);
            board.pages = board.pages.saturating_add(row.pages);
            board.done.merge(row.done);
            board.reads = row.reads.iter().fold(board.reads, |sum, read| sum.saturating_add(read.count));
            if let Some(bar) = board.trend.get_mut((begin.saturating_sub(period.from) / period.step) as usize) {
                bar.allowed = bar.allowed.saturating_add(row.allowed);
                bar.disallowed = bar.disallowed.saturating_add(row.disallowed);
            }
            for LineHits { version, line, pattern, hits } in &row.lines {
                let sum = lines.entry((version, *line, pattern)).or_default();
                *sum = sum.saturating_add(*hits);
            }
        }
        let cases = || counted().flat_map(|row| &row.row.cases);
        board.first_disallowed = cases().map(|case| case.first).min().map(written);
        board.last_disallowed = cases().map(|case| case.last).max().map(written);
        let worst = lines.into_iter().filter(|((_, line, _), _)| *line > 0).max_by_key(|(_, hits)| *hits);
        board.worst_line = worst.map(|(line, hits)| line_board(line, hits, Vec::new()));
        let last_read = self.own.iter().flat_map(|row| &row.row.reads).max_by_key(|read| read.last);
        board.last_read = last_read.map(|read| LastRead {
            when: written(read.last),
            version: read.version.clone(),
            is_newest: live.zip(read.version.as_deref()).map(|(live, read)| live == read),
        });
        let readings = self.readings(&board.operator, &sum.chain);
        if self.identity == ClaimResult::Verified {
            for case in cases() {
                let judged = &mut board.judged;
                let count = match (judge(case, &readings, self.gaps), evidence) {
                    (ReadJudgement::Ignored, Evidence::Complete) => &mut judged.ignored,
                    (ReadJudgement::Ignored, Evidence::Partial) | (ReadJudgement::Undecided, _) => {
                        &mut judged.undecided
                    }
                    (ReadJudgement::NotNewest, _) => &mut judged.not_newest,
                    (ReadJudgement::Unread, _) => &mut judged.unread,
                };
                *count = count.saturating_add(case.count);
            }
            // The rows of a damaged file may contain disallowed requests without the data to judge
            // them.
            let missing = board.disallowed.saturating_sub(board.judged.total());
            board.judged.undecided = board.judged.undecided.saturating_add(missing);
        }
        let has_read = readings.iter().any(|read| read.reader == Reader::Chain && read.version.is_some());
        match verdict(self.identity, &board, has_read, evidence) {
            Ok(word) => board.word = Some(word.to_owned()),
            Err(why) => board.no_word = Some(why.to_owned()),
        }
        board
    }

    /// Returns the fetches of robots.txt that decide how the crawler's requests are judged.
    fn readings(&self, operator: &str, chain: &[String]) -> Vec<Reading<'r>> {
        let mut readings = Vec::new();
        for of in self.rows.of_same_operator(self.crawler, operator) {
            let (crawler, identity) = of;
            for CrawlerRow { row, .. } in self.rows.by_crawler.get(&of).into_iter().flatten() {
                // The rows may name different operators, for example because the registry has
                // changed.
                if crawler != self.crawler && row.operator != operator {
                    continue;
                }
                let is_of_chain = crawler == self.crawler || row.chain.iter().any(|token| chain.contains(token));
                let is_proof = identity == ClaimResult::Verified && is_of_chain;
                let reader = if is_proof { Reader::Chain } else { Reader::Operator };
                readings.extend(row.reads.iter().map(|read| Reading {
                    origin: &read.origin,
                    version: read.version.as_deref(),
                    first: read.first,
                    last: read.last,
                    reader,
                }));
            }
        }
        readings
    }
}

/// Returns the verdict about a crawler, or the reason why there is no verdict.
fn verdict(
    identity: ClaimResult,
    board: &CrawlerBoard,
    has_read: bool,
    evidence: Evidence,
) -> Result<&'static str, &'static str> {
    match identity {
        ClaimResult::Claimed => return Err("not verified: anyone could have sent these requests"),
        ClaimResult::Impostor => return Err("an impostor, not the crawler that it claims to be"),
        ClaimResult::Verified => {}
    }
    let JudgedCounts { ignored, not_newest, unread, undecided } = board.judged;
    if ignored > 0 {
        return Ok("ignores");
    }
    if undecided > 0 {
        return Err(match evidence {
            Evidence::Partial => {
                "this report may lack fetches of robots.txt (see \"sees_all\" and \"replicas\" in [board])"
            }
            Evidence::Complete => "robotsd may have missed a fetch of robots.txt",
        });
    }
    if not_newest > 0 {
        return Ok("has not read the newest version");
    }
    if unread == 0 && !has_read && board.reads > 0 {
        return Err("it is not known which version of robots.txt it fetched");
    }
    if unread > 0 || !has_read {
        return Ok("no read seen here");
    }
    Ok("obeys")
}

/// Version, line number and pattern of a robots.txt line.
type LineKey<'r> = (&'r str, usize, &'r str);

fn line_board((version, line, pattern): LineKey<'_>, hits: u64, crawlers: Vec<LineCrawler>) -> LineBoard {
    LineBoard { version: version.to_owned(), line, pattern: pattern.to_owned(), hits, crawlers }
}

type HitsByCrawler<'r> = BTreeMap<(&'r str, ClaimResult), u64>;

/// Returns the lines that disallowed requests, the line with the most hits first.
fn lines(rows: &SiteRows<'_>) -> Vec<LineBoard> {
    let mut lines: BTreeMap<LineKey<'_>, HitsByCrawler<'_>> = BTreeMap::new();
    for (of, rows) in &rows.by_crawler {
        for LineHits { version, line, pattern, hits } in
            rows.iter().filter(|row| row.is_counted).flat_map(|row| &row.row.lines)
        {
            let sum = lines.entry((version, *line, pattern)).or_default().entry(*of).or_default();
            *sum = sum.saturating_add(*hits);
        }
    }
    let mut lines: Vec<LineBoard> = lines
        .into_iter()
        .map(|(line, crawlers)| {
            let hits = crawlers.values().fold(0, |sum: u64, hits| sum.saturating_add(*hits));
            let by = |((crawler, identity), hits): ((&str, ClaimResult), u64)| LineCrawler {
                crawler: crawler.to_owned(),
                identity: identity.as_str().to_owned(),
                hits,
            };
            let mut crawlers: Vec<_> = crawlers.into_iter().map(by).collect();
            crawlers.sort_by_key(|crawler| std::cmp::Reverse(crawler.hits));
            line_board(line, hits, crawlers)
        })
        .collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.hits));
    lines.truncate(MAX_LINES);
    lines
}

/// Maximum number of lines without a hit that a report lists.
const MAX_LISTED: usize = 50;

/// Finds lines that have not disallowed any request since `from`, or since the version went live if
/// that is later. With several replicas, the result is uncertain, because hits may be missing.
pub(super) fn never_hit(content: &Content, rows: &DayRows, from: Second, replicas: usize) -> NeverHit {
    let version = recorder::written(content.hash());
    let mut hit = HashSet::new();
    let since = since_live(rows, &version, from);
    // The time after the last watch is not a gap, because the watch for this time is still in
    // progress.
    let until = rows.watches.iter().map(|watch| watch.to).max().unwrap_or(Second::MAX);
    let mut is_certain =
        replicas == 1 && !gaps(&rows.watches, &rows.lost).iter().any(|gap| gap.to > since && gap.from < until);
    let hours = rows.rows.iter().map(|(key, row)| (key.begin + HOUR, row));
    let all = hours.chain(rows.days.iter().map(|(key, row)| (key.begin + DAY, row)));
    for (end, LineHits { version: of, line, .. }) in
        all.flat_map(|(end, row)| row.lines.iter().map(move |line| (end, line)))
    {
        if *line == 0 {
            // Hits that were added up for several lines may belong to any line of the version,
            // unless their hour or day ended before the version went live.
            is_certain &= end <= since;
        } else if *of == version {
            hit.insert(*line);
        }
    }
    let mut never = NeverHit { since: written(since), version: version.clone(), is_certain, ..NeverHit::default() };
    let rules = content.rules().document().groups().flat_map(|group| group.rules());
    for rule in rules.filter(|rule| rule.access() == Access::Disallow && !rule.pattern().is_empty()) {
        never.of += 1;
        if hit.contains(&rule.line()) {
            continue;
        }
        never.count += 1;
        if never.lines.len() < MAX_LISTED {
            let pattern = String::from_utf8_lossy(rule.pattern());
            never.lines.push(line_board((&version, rule.line(), cut(&pattern)), 0, Vec::new()));
        }
    }
    never
}

/// Returns the time when the version last went live according to the watches, or `from` if that is
/// later.
fn since_live(rows: &DayRows, version: &str, from: Second) -> Second {
    let is_other = |other: &Option<String>| other.as_deref().is_some_and(|other| other != version);
    let replaced = rows.watches.iter().filter(|watch| is_other(&watch.version)).map(|watch| watch.to).max();
    let first = rows.watches.iter().filter(|watch| watch.version.as_deref() == Some(version));
    let first = first.map(|watch| watch.from).filter(|from| replaced.is_none_or(|replaced| *from >= replaced)).min();
    first.or(replaced).unwrap_or(from).max(from)
}

#[cfg(test)]
mod tests {
    use tower_robots::live::LiveRobots;

    use super::*;
    use crate::board::row::{ClaimResult, Row, RowKey};
    use crate::board::watch::Watch;

    #[test]
    fn lines_without_hits_since_the_version_went_live_are_listed() {
        let mut text = "User-agent: *\nDisallow: /a\nDisallow: /b\nAllow: /c\nDisallow:\n".to_owned();
        (0..60).for_each(|number| text += &format!("Disallow: /{number}\n"));
        let live = LiveRobots::text(text).open().unwrap();
        let content = live.with(|snapshot| snapshot.content.clone()).unwrap();
        let version = recorder::written(content.hash());
        let watch =
            |from, to, version: &str| Watch { from, to, version: Some(version.into()), process: 1, live_since: None };
        let mut row = Row::default();
        row.add_hits(&LineHits { version: version.clone(), line: 3, pattern: "/b".into(), hits: 2 });
        row.add_hits(&LineHits { version: "another".into(), line: 2, pattern: "/a".into(), hits: 2 });
        let key = RowKey { begin: 3_600, crawler: "a".into(), identity: ClaimResult::Claimed };
        let watches = vec![watch(10, 20, &version), watch(20, 30, "another"), watch(30, 40, &version)];
        let mut rows = DayRows { watches, rows: [(key.clone(), row)].into(), ..DayRows::default() };
        let never = never_hit(&content, &rows, 5, 1);
        assert_eq!((never.of, never.count, never.lines.len(), never.is_certain), (62, 61, MAX_LISTED, true));
        assert_eq!((never.lines[0].line, &*never.lines[0].pattern), (2, "/a"));
        assert_eq!(never.since, written(30));
        // Hits that were added up for several lines may belong to any line.
        let rest = LineHits { version: String::new(), line: 0, pattern: String::new(), hits: 1 };
        rows.rows.get_mut(&key).unwrap().lines.push(rest);
        assert!(!never_hit(&content, &rows, 5, 1).is_certain);
        // If the version went live during an hour, all hits of that hour may belong to its lines.
        for (begin, is_certain) in [(7_200, true), (7_199, false), (3_601, false)] {
            rows.watches = vec![watch(10, begin, "another"), watch(begin, 9_000, &version)];
            assert_eq!(never_hit(&content, &rows, 5, 1).is_certain, is_certain, "{begin}");
        }
    }

    /// Hits that were not recorded, or that another replica recorded, may belong to any line.
    #[test]
    fn the_list_of_lines_without_hits_is_uncertain_if_time_was_not_watched() {
        let live = LiveRobots::text("User-agent: *\nDisallow: /a\n").open().unwrap();
        let content = live.with(|snapshot| snapshot.content.clone()).unwrap();
        let version = recorder::written(content.hash());
        let watch = |from, to| Watch { from, to, version: Some(version.clone()), process: 1, live_since: None };
        let lost = |from, to| vec![super::super::watch::Lost { from, to }];
        for (watches, lost, replicas, is_certain) in [
            (vec![watch(10, 40)], vec![], 1, true),
            (vec![watch(10, 40)], vec![], 2, false),
            (vec![watch(10, 20), watch(30, 40)], vec![], 1, false),
            (vec![watch(10, 40)], lost(20, 30), 1, false),
            (vec![watch(10, 40)], lost(1, 5), 1, true),
        ] {
            let rows = DayRows { watches, lost, ..DayRows::default() };
            assert_eq!(never_hit(&content, &rows, 5, replicas).is_certain, is_certain, "{rows:?}");
        }
    }
}
