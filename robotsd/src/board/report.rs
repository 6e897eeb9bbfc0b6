//! The report of the board, as returned by `/board.json`. The page, the table in the terminal and
//! `/board.csv` are generated from this report.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::referrals::OperatorBalance;
use super::row::{Done, MINUTE, Second};
use crate::html::{counted, grouped};
use crate::render::csv_row;

/// Response to `GET /board.json`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct BoardReport {
    pub(crate) when: String,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) step_seconds: u64,
    /// Whether the config states that every fetch of robots.txt reaches robotsd.
    pub(crate) sees_all: bool,
    /// Number of processes that serve the sites.
    pub(crate) replicas: usize,
    /// Number of processes whose counts the report contains.
    pub(crate) counted_replicas: usize,
    /// Sentences about counts that may be missing from the report.
    #[serde(default)]
    pub(crate) notes: Vec<String>,
    #[serde(default)]
    pub(crate) sites: Vec<SiteBoard>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SiteBoard {
    pub(crate) site: String,
    /// Recent traffic; `None` in the first seconds of a process, and if the report comes from files
    /// of other processes.
    pub(crate) traffic: Option<RecentTraffic>,
    /// Lines that disallowed no request; `None` if there is no live version, or more than one.
    pub(crate) never_hit: Option<NeverHit>,
    /// Crawlers, most disallowed requests first.
    pub(crate) crawlers: Vec<CrawlerBoard>,
    #[serde(default)]
    pub(crate) given_back: Vec<OperatorBalance>,
    pub(crate) lines: Vec<LineBoard>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct CrawlerBoard {
    pub(crate) crawler: String,
    /// Operator of the crawler; empty if the crawler is not registered.
    pub(crate) operator: String,
    /// Category of the crawler; empty if the crawler is not registered.
    pub(crate) category: String,
    /// Identity of the crawler's clients: `verified`, `claimed` (neither confirmed nor refuted) or
    /// `impostor`.
    pub(crate) identity: String,
    /// The verdict: `obeys`, `has not read the newest version`, `ignores` or `no read seen here`.
    pub(crate) word: Option<String>,
    /// Reason why there is no verdict.
    pub(crate) no_word: Option<String>,
    pub(crate) last_read: Option<LastRead>,
    pub(crate) reads: u64,
    pub(crate) allowed: u64,
    pub(crate) disallowed: u64,
    /// Pages that the crawler received: GET requests with a response of 2xx or 304, except requests
    /// for images and other page resources. 0 for an unregistered crawler.
    #[serde(default)]
    pub(crate) pages: u64,
    pub(crate) judged: JudgedCounts,
    pub(crate) done: Done,
    pub(crate) first_disallowed: Option<String>,
    pub(crate) last_disallowed: Option<String>,
    pub(crate) worst_line: Option<LineBoard>,
    /// Requests per hour or day, oldest first.
    pub(crate) trend: Vec<TrendBar>,
}

/// Traffic of a site in about the last minute, counted by this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecentTraffic {
    /// Length of the measured period, in seconds.
    pub(crate) seconds: u64,
    pub(crate) requests_per_minute: f64,
    /// Share of refused requests, from 0 to 1.
    pub(crate) refused_share: f64,
    /// 99th percentile of the decision time since the process started. Only one in 64 decisions is
    /// measured. `None` if no decision has been measured yet.
    pub(crate) decision_p99_seconds: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NeverHit {
    pub(crate) version: String,
    /// Time when the version went live, or the start of the period if that is later.
    pub(crate) since: String,
    /// Number of lines with a `Disallow` rule.
    pub(crate) of: usize,
    /// Number of lines with a `Disallow` rule that have no hits.
    pub(crate) count: usize,
    /// Whether the listed lines certainly have no hits. `false` if some hits are only known as a
    /// total of several lines, if counts are missing for part of the time, or if there are other
    /// replicas.
    pub(crate) is_certain: bool,
    pub(crate) lines: Vec<LineBoard>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JudgedCounts {
    /// Requests that the last fetched version disallows, and requests that were sent more than 24
    /// hours after the last fetch.
    pub(crate) ignored: u64,
    /// Requests that were sent at most 24 hours after the last fetch, which returned an older
    /// version that allows them.
    pub(crate) not_newest: u64,
    pub(crate) unread: u64,
    /// Number of requests that cannot be judged.
    pub(crate) undecided: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct LastRead {
    pub(crate) when: String,
    /// The fetched version; `None` if another server responded.
    pub(crate) version: Option<String>,
    /// Whether the fetched version is live; `None` if the live version is unknown.
    pub(crate) is_newest: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LineBoard {
    pub(crate) version: String,
    /// Line number; 0 for the total of several lines.
    pub(crate) line: usize,
    /// Pattern as written in robots.txt.
    pub(crate) pattern: String,
    pub(crate) hits: u64,
    /// Crawlers whose requests the line disallowed, most hits first. Empty in
    /// [`CrawlerBoard::worst_line`].
    #[serde(default)]
    pub(crate) crawlers: Vec<LineCrawler>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LineCrawler {
    pub(crate) crawler: String,
    pub(crate) identity: String,
    pub(crate) hits: u64,
}

/// Requests in one hour or day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrendBar {
    pub(crate) allowed: u64,
    pub(crate) disallowed: u64,
}

impl CrawlerBoard {
    pub(crate) const fn requests(&self) -> u64 {
        self.allowed.saturating_add(self.disallowed)
    }
}

impl JudgedCounts {
    pub(crate) const fn total(&self) -> u64 {
        self.ignored.saturating_add(self.not_newest).saturating_add(self.unread).saturating_add(self.undecided)
    }

    /// Describes the counts, in a form that continues a sentence after the words "disallowed
    /// requests", for example `10 sent although the crawler had read the rules that disallow them`.
    /// Returns `None` if all counts are 0.
    pub(crate) fn in_words(self) -> Option<String> {
        let parts = [
            (self.ignored, "sent although the crawler had read the rules that disallow them"),
            (self.not_newest, "allowed by the older version that the crawler had read"),
            (self.unread, "sent although no fetch of robots.txt was seen here"),
            (self.undecided, "without enough data for a judgement"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<_> = parts.map(|(count, what)| format!("{} {what}", grouped(*count))).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

impl RecentTraffic {
    pub(crate) fn rate(&self) -> String {
        let share = format!("{:.1} % refused", self.refused_share * 100.0);
        match self.requests_per_minute {
            rate if rate < 10.0 => format!("{rate:.1} per minute, {share}"),
            rate => format!("{} per minute, {share}", grouped(rate.round() as u64)),
        }
    }

    pub(crate) fn decision_p99(&self) -> Option<String> {
        Some(match self.decision_p99_seconds? {
            seconds if seconds < 1e-6 => format!("{:.0} ns", seconds * 1e9),
            seconds if seconds < 1e-3 => format!("{:.1} µs", seconds * 1e6),
            // The last bucket of the histogram contains all times from 1 ms.
            _ => "1 ms or more".to_owned(),
        })
    }
}

impl NeverHit {
    pub(crate) fn sentence(&self) -> String {
        let Self { count, of, .. } = *self;
        let since = self.since.get(..16).unwrap_or(&self.since).replace('T', " ");
        let lines = counted(of as u64, "Disallow line");
        if count == 0 {
            return format!("Since {since} UTC, each of {lines} has disallowed at least one request.");
        }
        let have = if count == 1 { "has" } else { "have" };
        let certain = if self.is_certain {
            ""
        } else {
            "; this may be wrong, because some lines share one count, or hits were not counted"
        };
        format!(
            "Since {since} UTC, {count} of {lines} {have} disallowed no request{certain}.",
            count = grouped(count as u64)
        )
    }
}

/// Time between two stored totals, in seconds.
const TOTALS_INTERVAL: Second = 5;

/// Totals of a site's traffic since the process started.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TrafficTotals {
    pub(crate) requests: u64,
    pub(crate) refused: u64,
    /// 99th percentile of the decision time, in seconds.
    pub(crate) decision_p99: Option<f64>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct TrafficWindow {
    totals: VecDeque<(Second, TrafficTotals)>,
}

impl TrafficWindow {
    pub(super) const fn is_due(at: Second) -> bool {
        at.is_multiple_of(TOTALS_INTERVAL)
    }

    pub(super) fn add(&mut self, now: Second, totals: TrafficTotals) {
        let continues = |(at, before): &(Second, TrafficTotals)| *at < now && before.requests <= totals.requests;
        if !self.totals.back().is_none_or(continues) {
            // If the time has not increased, the clock was set back. If the total has decreased,
            // another site now has this name.
            self.totals.clear();
        }
        self.totals.push_back((now, totals));
        while self.totals.front().is_some_and(|(at, _)| now - at > MINUTE) {
            self.totals.pop_front();
        }
    }

    /// Returns the traffic between the oldest and the newest stored total; `None` if fewer than two
    /// totals are stored.
    pub(super) fn traffic(&self) -> Option<RecentTraffic> {
        let ((since, first), (until, last)) = (self.totals.front()?, self.totals.back()?);
        let seconds = until - since;
        let (requests, refused) = (last.requests - first.requests, last.refused.saturating_sub(first.refused));
        (seconds > 0).then(|| RecentTraffic {
            seconds,
            requests_per_minute: requests as f64 * MINUTE as f64 / seconds as f64,
            refused_share: if requests == 0 { 0.0 } else { refused as f64 / requests as f64 },
            decision_p99_seconds: last.decision_p99,
        })
    }
}

/// Formats comma-separated values (RFC 4180), one line per crawler.
pub(crate) fn csv(report: &BoardReport) -> String {
    let head = csv_row(columns(&SiteBoard::default(), &CrawlerBoard::default()).map(|(name, _)| name.to_owned()));
    let row = |site: &SiteBoard, crawler: &CrawlerBoard| csv_row(columns(site, crawler).map(|(_, value)| value));
    let rows = |site: &SiteBoard| site.crawlers.iter().map(|crawler| row(site, crawler)).collect::<String>();
    head + &report.sites.iter().map(rows).collect::<String>()
}

fn columns(site: &SiteBoard, crawler: &CrawlerBoard) -> [(&'static str, String); 29] {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let number = |number: u64| number.to_string();
    let CrawlerBoard { judged, done, .. } = crawler;
    let read = crawler.last_read.as_ref();
    // Visitors are counted per operator, so the rows of all crawlers of an operator contain the
    // same number.
    let is_of = |balance: &&OperatorBalance| balance.operator == crawler.operator && !crawler.operator.is_empty();
    let balance = site.given_back.iter().find(is_of);
    let ratio = balance.and_then(|balance| balance.pages_per_visitor);
    let worst = crawler.worst_line.clone().unwrap_or_default();
    [
        ("site", site.site.clone()),
        ("crawler", crawler.crawler.clone()),
        ("operator", crawler.operator.clone()),
        ("category", crawler.category.clone()),
        ("identity", crawler.identity.clone()),
        ("word", text(&crawler.word)),
        ("last_read", read.map(|read| read.when.clone()).unwrap_or_default()),
        ("last_read_version", read.and_then(|read| read.version.clone()).unwrap_or_default()),
        ("reads", number(crawler.reads)),
        ("allowed", number(crawler.allowed)),
        ("disallowed", number(crawler.disallowed)),
        ("ignored", number(judged.ignored)),
        ("not_newest", number(judged.not_newest)),
        ("unread", number(judged.unread)),
        ("undecided", number(judged.undecided)),
        ("refused", number(done.refused)),
        ("tagged", number(done.tagged)),
        ("observed", number(done.observed)),
        ("passed", number(done.passed)),
        ("limited", number(done.limited)),
        ("first_disallowed", text(&crawler.first_disallowed)),
        ("last_disallowed", text(&crawler.last_disallowed)),
        ("worst_version", worst.version),
        ("worst_line", if worst.line > 0 { worst.line.to_string() } else { String::new() }),
        ("worst_pattern", worst.pattern),
        ("worst_hits", if worst.line > 0 { number(worst.hits) } else { String::new() }),
        ("pages", number(crawler.pages)),
        ("operator_visitors", balance.map(|balance| number(balance.visitors)).unwrap_or_default()),
        ("operator_pages_per_visitor", ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_decision_times_are_shown_in_readable_units() {
        let traffic = |rate, p99| RecentTraffic {
            seconds: 60,
            requests_per_minute: rate,
            refused_share: 0.125,
            decision_p99_seconds: p99,
        };
        assert_eq!(traffic(0.5, None).rate(), "0.5 per minute, 12.5 % refused");
        assert_eq!(traffic(12_345.0, None).rate(), format!("{} per minute, 12.5 % refused", grouped(12_345)));
        for (seconds, want) in [
            (None, None),
            (Some(2.5e-7), Some("250 ns")),
            (Some(2.5e-6), Some("2.5 µs")),
            (Some(1e-3), Some("1 ms or more")),
        ] {
            assert_eq!(traffic(1.0, seconds).decision_p99().as_deref(), want);
        }
    }

    #[test]
    fn every_csv_line_has_a_field_for_every_column() {
        let crawler = CrawlerBoard { crawler: "a".into(), ..CrawlerBoard::default() };
        let site =
            SiteBoard { site: "shop".into(), crawlers: vec![crawler], lines: Vec::new(), ..SiteBoard::default() };
        let text = csv(&BoardReport { sites: vec![site], ..BoardReport::default() });
        let columns: Vec<_> = text.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(columns, [29, 29]);
    }

    #[test]
    fn the_last_minute_is_counted_and_nothing_before_it() {
        let mut window = TrafficWindow::default();
        let mut add = |at, requests, refused| {
            window.add(at, TrafficTotals { requests, refused, decision_p99: Some(1e-6) });
            window.traffic().map(|now| (now.seconds, now.requests_per_minute, now.refused_share))
        };
        assert_eq!(add(1000, 5_000, 5_000), None);
        assert_eq!(add(1010, 5_100, 5_025), Some((10, 600.0, 0.25)));
        assert_eq!(add(1060, 5_100, 5_025), Some((60, 100.0, 0.25)));
        assert_eq!(add(1070, 5_150, 5_075), Some((60, 50.0, 1.0)));
        assert_eq!(add(1075, 5_150, 5_075), Some((15, 200.0, 1.0)), "requests between 1010 and 1060 are unknown");
        // The counters were reset.
        assert_eq!(add(1080, 3, 0), None);
        assert_eq!(add(1070, 4, 0), None, "the clock is set back");
        assert_eq!(add(1100, 4, 0), Some((30, 0.0, 0.0)));
    }
}
