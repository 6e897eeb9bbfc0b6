//! What a report holds: counted, sorted and redacted.

use serde::Serialize;
use tower_robots::agent::{Category, Class};
use tower_robots::rules::{Group, RobotsTxt};

use crate::commands::replay::counts::{ReplayCounts, ReplayPlan, ReplayRow};

/// Suspects, crawlers, paths and lines that are shown; JSON has all crawlers.
const SUSPECTS: usize = 20;
pub(super) const PATHS: usize = 10;

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) logs: Vec<String>,
    pub(crate) robots: String,
    pub(crate) against: Option<String>,
    pub(crate) requests: u64,
    pub(crate) unread_lines: u64,
    pub(super) unread_samples: Vec<String>,
    /// Requests without a User-Agent: all of them where the format lacks it.
    pub(super) nameless: u64,
    /// Seconds since 1970.
    pub(super) first: Option<i64>,
    pub(super) last: Option<i64>,
    pub(super) totals: Totals,
    /// People who may be refused.
    pub(crate) suspect_humans: Vec<Suspect>,
    pub(crate) suspect_human_count: usize,
    /// Search engines with an index that people use, from whom the change takes paths that they requested.
    pub(crate) search_engines_shut_out: Vec<String>,
    pub(super) crawlers: Vec<CrawlerRow>,
    /// Agents that are no crawlers, by class.
    pub(super) others: Vec<ClassRow>,
    /// Requests of crawlers by the hour: seconds since 1970, allowed, disallowed.
    pub(super) hours: Vec<(i64, u64, u64)>,
}

/// Sums over all crawlers.
#[derive(Debug, Default, Serialize)]
pub(super) struct Totals {
    pub(super) crawler_requests: u64,
    pub(super) allowed: u64,
    pub(super) disallowed: u64,
    /// Under the file that is compared with.
    pub(super) disallowed_before: Option<u64>,
    pub(super) shut: u64,
    pub(super) opened: u64,
    pub(super) not_blamed: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Suspect {
    pub(super) address: String,
    pub(super) claims: String,
    pub(super) disallowed: u64,
    pub(super) target: String,
}

#[derive(Debug, Serialize)]
pub(super) struct CrawlerRow {
    pub(super) name: String,
    pub(super) class: Class,
    pub(super) category: Option<Category>,
    pub(super) requests: u64,
    pub(super) allowed: u64,
    pub(super) disallowed: u64,
    pub(super) disallowed_before: Option<u64>,
    pub(super) shut: u64,
    pub(super) opened: u64,
    pub(super) not_blamed: u64,
    pub(super) robots_txt: u64,
    pub(super) paths: Vec<(String, u64)>,
    pub(super) rules: Vec<RuleRow>,
}

#[derive(Debug, Serialize)]
pub(super) struct RuleRow {
    pub(super) line: usize,
    pub(super) pattern: String,
    pub(super) requests: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct ClassRow {
    pub(super) class: Class,
    pub(super) requests: u64,
    pub(super) disallowed: u64,
}

/// What the files are called.
#[derive(Debug)]
pub(crate) struct ReportNames {
    pub(crate) logs: Vec<String>,
    pub(crate) robots: String,
    pub(crate) against: Option<String>,
}

impl Report {
    pub(crate) fn new(names: ReportNames, plan: &ReplayPlan, counts: &ReplayCounts) -> Self {
        let compared = plan.evaluators.len() > 1;
        let robots = plan.evaluators.last().map(|evaluator| evaluator.robots());
        let mut rows: Vec<&ReplayRow> = counts.rows.iter().collect();
        let harm = |row: &ReplayRow| if compared { row.shut + row.opened } else { row.disallowed[0] };
        let is_engine_shut_out = |row: &ReplayRow| compared && row.is_index_engine && row.shut > 0;
        rows.sort_by(|a, b| {
            is_engine_shut_out(b)
                .cmp(&is_engine_shut_out(a))
                .then(harm(b).cmp(&harm(a)))
                .then(b.requests.cmp(&a.requests))
                .then_with(|| a.name.cmp(&b.name))
        });
        let crawlers: Vec<_> =
            rows.iter().filter(|row| row.is_crawler).map(|row| CrawlerRow::new(row, compared, robots)).collect();
        let last = usize::from(compared);
        let others = rows.iter().filter(|row| !row.is_crawler).map(|row| ClassRow {
            class: row.class,
            requests: row.requests,
            disallowed: row.disallowed[last],
        });
        let suspects = counts.visitors.suspects();
        Self {
            logs: names.logs,
            robots: names.robots,
            against: names.against,
            requests: counts.requests,
            unread_lines: counts.unread,
            unread_samples: counts.samples.iter().map(|line| text_of(&plan.privacy.line(line))).collect(),
            nameless: counts.nameless,
            first: counts.first,
            last: counts.last,
            totals: Totals::of(&crawlers, compared),
            suspect_human_count: suspects.len(),
            suspect_humans: suspects
                .into_iter()
                .take(SUSPECTS)
                .map(|visitor| Suspect {
                    address: plan.privacy.address(&visitor.address),
                    claims: visitor.claims.clone(),
                    disallowed: visitor.disallowed,
                    target: text_of(&plan.privacy.target(&visitor.target)),
                })
                .collect(),
            search_engines_shut_out: rows
                .iter()
                .filter(|row| is_engine_shut_out(row))
                .map(|row| row.name.clone())
                .collect(),
            crawlers,
            others: others.collect(),
            hours: counts
                .hours
                .iter()
                .map(|(hour, [allowed, disallowed])| (hour * 3600, *allowed, *disallowed))
                .collect(),
        }
    }

    pub(super) const fn is_compared(&self) -> bool {
        self.against.is_some()
    }
}

impl CrawlerRow {
    fn new(row: &ReplayRow, compared: bool, robots: Option<&RobotsTxt>) -> Self {
        let disallowed = row.disallowed[usize::from(compared)];
        let pattern = |line: usize| {
            let mut rules = robots.into_iter().flat_map(RobotsTxt::groups).flat_map(Group::rules);
            rules.find(|rule| rule.line() == line).map_or_else(String::new, |rule| text_of(rule.pattern()))
        };
        Self {
            name: row.name.clone(),
            class: row.class,
            category: row.category,
            requests: row.requests,
            allowed: row.requests - disallowed,
            disallowed,
            disallowed_before: compared.then_some(row.disallowed[0]),
            shut: row.shut,
            opened: row.opened,
            not_blamed: row.early,
            robots_txt: row.robots_txt,
            paths: row.paths.sorted(PATHS).into_iter().map(|(path, times)| (text_of(path), times)).collect(),
            rules: row
                .lines
                .sorted(PATHS)
                .into_iter()
                .map(|(line, requests)| RuleRow { line: *line, pattern: pattern(*line), requests })
                .collect(),
        }
    }
}

impl Totals {
    fn of(crawlers: &[CrawlerRow], compared: bool) -> Self {
        let sum = |count: fn(&CrawlerRow) -> u64| crawlers.iter().map(count).sum::<u64>();
        Self {
            crawler_requests: sum(|row| row.requests),
            allowed: sum(|row| row.allowed),
            disallowed: sum(|row| row.disallowed),
            disallowed_before: compared.then(|| sum(|row| row.disallowed_before.unwrap_or(0))),
            shut: sum(|row| row.shut),
            opened: sum(|row| row.opened),
            not_blamed: sum(|row| row.not_blamed),
        }
    }
}

fn text_of(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}
