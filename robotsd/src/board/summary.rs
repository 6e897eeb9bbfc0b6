//! From rows to what the board says of a site.
//!
//! One process is summed up as several are that were merged: each request is judged by the reads of all of them, and by what
//! each of them may have missed.

use std::collections::{BTreeMap, BTreeSet};

use super::history::DayRows;
use super::judgement::{Gap, Judgement, Reader, Reading, judge};
use super::moment::{DAY, HOUR, Second, day_of, hour_of, written};
use super::report::{CrawlerBoard, Judged, LastRead, LineBoard, LineCrawler, SiteBoard, TrendBar};
use super::row::{LineHits, Row, RowKey, Standing};
use super::watch::gaps;

/// Lines that are listed of a site.
const MOST_LINES: usize = 50;

/// The time that is counted: whole hours or whole days, the last of them under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Period {
    pub(crate) from: Second,
    pub(crate) to: Second,
    pub(crate) step: Second,
}

/// Whether requests can be held against a crawler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// Every read of robots.txt is among these rows.
    Complete,
    /// A cache may answer for the site, or another replica.
    Partial,
}

impl Period {
    /// The last 24 hours, as bars of an hour.
    pub(crate) const fn day(now: Second) -> Self {
        Self { from: hour_of(now).saturating_sub(23 * HOUR), to: now, step: HOUR }
    }

    /// The last days, as bars of a day.
    pub(crate) const fn days(now: Second, count: Second) -> Self {
        Self { from: day_of(now).saturating_sub((count - 1) * DAY), to: now, step: DAY }
    }

    const fn bars(&self) -> usize {
        ((self.to - self.from) / self.step + 1) as usize
    }
}

/// Sums a site up. `processes` are the rows of each process that serves it, which may begin before the period: what was read
/// earlier counts too.
pub(crate) fn sum_up(
    site: &str,
    processes: &[DayRows],
    period: Period,
    evidence: Evidence,
    live: Option<&str>,
) -> SiteBoard {
    let rows: Vec<(&RowKey, &Row)> = processes.iter().flat_map(|process| &process.rows).collect();
    let gaps: Vec<Gap> = processes.iter().flat_map(|process| gaps(&process.watches)).collect();
    let crawlers: BTreeSet<(&str, Standing)> = rows
        .iter()
        .filter(|(key, _)| key.hour + HOUR > period.from && key.hour <= period.to)
        .map(|(key, _)| (&*key.crawler, key.identity))
        .collect();
    let mut boards: Vec<CrawlerBoard> = crawlers
        .into_iter()
        .map(|(crawler, identity)| {
            Crawler { crawler, identity, rows: &rows, gaps: &gaps }.sum_up(period, evidence, live)
        })
        .collect();
    boards.sort_by(|one, other| {
        let weight = |board: &CrawlerBoard| (board.disallowed, board.allowed, board.reads);
        weight(other).cmp(&weight(one)).then_with(|| one.crawler.cmp(&other.crawler))
    });
    SiteBoard { site: site.to_owned(), crawlers: boards, lines: lines(&rows, period) }
}

/// One crawler among the rows of a site.
struct Crawler<'r> {
    crawler: &'r str,
    identity: Standing,
    rows: &'r [(&'r RowKey, &'r Row)],
    gaps: &'r [Gap],
}

impl Crawler<'_> {
    fn sum_up(&self, period: Period, evidence: Evidence, live: Option<&str>) -> CrawlerBoard {
        let own = |(key, _): &&(&RowKey, &Row)| key.crawler == self.crawler && key.identity == self.identity;
        let within = |(key, _): &&(&RowKey, &Row)| key.hour + HOUR > period.from && key.hour <= period.to;
        let all: Vec<_> = self.rows.iter().filter(own).collect();
        let counted: Vec<_> = all.iter().copied().filter(|row| within(row)).collect();
        let mut board = CrawlerBoard {
            crawler: self.crawler.to_owned(),
            identity: self.identity.as_str().to_owned(),
            trend: vec![TrendBar::default(); period.bars()],
            ..CrawlerBoard::default()
        };
        let mut sum = Row::default();
        let mut lines: BTreeMap<(&str, usize, &str), u64> = BTreeMap::new();
        for (key, row) in &counted {
            if board.operator.is_empty() {
                board.operator.clone_from(&row.operator);
                board.category.clone_from(&row.category);
                sum.chain.clone_from(&row.chain);
            }
            board.allowed += row.allowed;
            board.disallowed += row.disallowed;
            board.done.merge(row.done);
            board.reads += row.reads.iter().map(|read| read.count).sum::<u64>();
            if let Some(bar) = board.trend.get_mut((key.hour.saturating_sub(period.from) / period.step) as usize) {
                bar.allowed += row.allowed;
                bar.disallowed += row.disallowed;
            }
            for LineHits { version, line, pattern, hits } in &row.lines {
                *lines.entry((version, *line, pattern)).or_default() += hits;
            }
        }
        let cases = || counted.iter().flat_map(|(_, row)| &row.cases);
        board.first_disallowed = cases().map(|case| case.first).min().map(written);
        board.last_disallowed = cases().map(|case| case.last).max().map(written);
        let worst = lines.into_iter().filter(|((_, line, _), _)| *line > 0).max_by_key(|(_, hits)| *hits);
        board.worst_line = worst.map(|((version, line, pattern), hits)| LineBoard {
            version: version.to_owned(),
            line,
            pattern: pattern.to_owned(),
            hits,
            crawlers: Vec::new(),
        });
        let last_read = all.iter().flat_map(|(_, row)| &row.reads).max_by_key(|read| read.last);
        board.last_read = last_read.map(|read| LastRead {
            when: written(read.last),
            version: read.version.clone(),
            is_newest: live.zip(read.version.as_deref()).map(|(live, read)| live == read),
        });
        if self.identity == Standing::Verified {
            let readings = self.readings(&board.operator, &sum.chain);
            for case in cases() {
                let judged = &mut board.judged;
                match (judge(case, &readings, self.gaps), evidence) {
                    (Judgement::Ignored, Evidence::Complete) => judged.ignored += case.count,
                    (Judgement::Ignored, Evidence::Partial) | (Judgement::Undecided, _) => {
                        judged.undecided += case.count
                    }
                    (Judgement::NotNewest, _) => judged.not_newest += case.count,
                    (Judgement::Unread, _) => judged.unread += case.count,
                }
            }
            // Requests that no case stands for, from a file that lost it.
            board.judged.undecided += board.disallowed.saturating_sub(board.judged.total());
        }
        let has_read = readings_of_chain(self, &board.operator, &sum.chain);
        match word(self.identity, &board, has_read, evidence) {
            Ok(word) => board.word = Some(word.to_owned()),
            Err(why) => board.no_word = Some(why.to_owned()),
        }
        board
    }

    /// The reads that the crawler's requests are judged by.
    fn readings(&self, operator: &str, chain: &[String]) -> Vec<Reading<'_>> {
        let mut readings = Vec::new();
        for (key, row) in self.rows {
            let is_own = key.crawler == self.crawler;
            let is_of_operator = is_own || !operator.is_empty() && row.operator == operator;
            if key.identity == Standing::Impostor || !is_of_operator {
                continue;
            }
            let is_of_chain = is_own || row.chain.iter().any(|token| chain.contains(token));
            let is_proof = key.identity == Standing::Verified && is_of_chain;
            let reader = if is_proof { Reader::Chain } else { Reader::Operator };
            readings.extend(row.reads.iter().map(|read| Reading {
                origin: &read.origin,
                version: read.version.as_deref(),
                first: read.first,
                last: read.last,
                reader,
            }));
        }
        readings
    }
}

fn readings_of_chain(crawler: &Crawler<'_>, operator: &str, chain: &[String]) -> bool {
    let readings = crawler.readings(operator, chain);
    readings.iter().any(|reading| reading.reader == Reader::Chain && reading.version.is_some())
}

/// The one word about a crawler, or why there is none.
fn word(
    identity: Standing,
    board: &CrawlerBoard,
    has_read: bool,
    evidence: Evidence,
) -> Result<&'static str, &'static str> {
    match identity {
        Standing::Claimed => return Err("not verified: its requests may be anybody's"),
        Standing::Impostor => return Err("not the crawler it claims to be"),
        Standing::Verified => {}
    }
    let Judged { ignored, not_newest, unread, undecided } = board.judged;
    if ignored > 0 {
        return Ok("ignores");
    }
    if undecided > 0 {
        return Err(match evidence {
            Evidence::Partial => "not every read is seen here ([board] sees_all, replicas)",
            Evidence::Complete => "a read may have been missed",
        });
    }
    if not_newest > 0 {
        return Ok("has not read the newest version");
    }
    if unread > 0 || !has_read {
        return Ok("no read seen here");
    }
    Ok("obeys")
}

type HitsByCrawler<'r> = BTreeMap<(&'r str, Standing), u64>;

/// The lines of a site by hits, with who met them.
fn lines(rows: &[(&RowKey, &Row)], period: Period) -> Vec<LineBoard> {
    let mut lines: BTreeMap<(&str, usize, &str), HitsByCrawler<'_>> = BTreeMap::new();
    for (key, row) in rows.iter().filter(|(key, _)| key.hour + HOUR > period.from && key.hour <= period.to) {
        for LineHits { version, line, pattern, hits } in &row.lines {
            let of = lines.entry((version, *line, pattern)).or_default();
            *of.entry((&key.crawler, key.identity)).or_default() += hits;
        }
    }
    let mut lines: Vec<LineBoard> = lines
        .into_iter()
        .map(|((version, line, pattern), crawlers)| {
            let hits = crawlers.values().sum();
            let mut crawlers: Vec<LineCrawler> = crawlers
                .into_iter()
                .map(|((crawler, identity), hits)| LineCrawler {
                    crawler: crawler.to_owned(),
                    identity: identity.as_str().to_owned(),
                    hits,
                })
                .collect();
            crawlers.sort_by_key(|crawler| std::cmp::Reverse(crawler.hits));
            LineBoard { version: version.to_owned(), line, pattern: pattern.to_owned(), hits, crawlers }
        })
        .collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.hits));
    lines.truncate(MOST_LINES);
    lines
}
