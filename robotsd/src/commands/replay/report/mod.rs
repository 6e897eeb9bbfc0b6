//! What came of a replay, as it may be shown: counted, sorted, redacted.

mod chart;
mod escaped;
mod html;
mod json;
mod text;

use std::io::{self, Write};

use serde::Serialize;
use tower_robots::agent::{Category, Class};
use tower_robots::rules::{Group, RobotsTxt};

use super::counts::{ReplayCounts, ReplayPlan, ReplayRow};
use crate::date;

/// Suspects, crawlers, paths and lines that are shown; JSON has all crawlers.
const SUSPECTS: usize = 20;
const PATHS: usize = 10;

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ReportForm {
    /// Bars in the terminal
    Text,
    /// One JSON object
    Json,
    /// A page that needs nothing else
    Html,
}

#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) logs: Vec<String>,
    pub(super) robots: String,
    pub(super) against: Option<String>,
    pub(super) requests: u64,
    pub(super) unread_lines: u64,
    unread_samples: Vec<String>,
    /// Requests without a User-Agent: all of them where the format lacks it.
    nameless: u64,
    /// Seconds since 1970.
    first: Option<i64>,
    last: Option<i64>,
    totals: Totals,
    /// People who may be refused.
    pub(super) suspect_humans: Vec<Suspect>,
    pub(super) suspect_human_count: usize,
    crawlers: Vec<CrawlerRow>,
    /// Agents that are no crawlers, by class.
    others: Vec<ClassRow>,
    /// Requests of crawlers by the hour: seconds since 1970, allowed, disallowed.
    hours: Vec<(i64, u64, u64)>,
}

/// Sums over all crawlers.
#[derive(Debug, Default, Serialize)]
struct Totals {
    crawler_requests: u64,
    allowed: u64,
    disallowed: u64,
    /// Under the file that is compared with.
    disallowed_before: Option<u64>,
    shut: u64,
    opened: u64,
    not_blamed: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Suspect {
    address: String,
    claims: String,
    disallowed: u64,
    target: String,
}

#[derive(Debug, Serialize)]
struct CrawlerRow {
    name: String,
    class: Class,
    category: Option<Category>,
    requests: u64,
    allowed: u64,
    disallowed: u64,
    disallowed_before: Option<u64>,
    shut: u64,
    opened: u64,
    not_blamed: u64,
    robots_txt: u64,
    paths: Vec<(String, u64)>,
    rules: Vec<RuleRow>,
}

#[derive(Debug, Serialize)]
struct RuleRow {
    line: usize,
    pattern: String,
    requests: u64,
}

#[derive(Debug, Serialize)]
struct ClassRow {
    class: Class,
    requests: u64,
    disallowed: u64,
}

/// What the files are called.
#[derive(Debug)]
pub(super) struct ReportNames {
    pub(super) logs: Vec<String>,
    pub(super) robots: String,
    pub(super) against: Option<String>,
}

impl Report {
    pub(super) fn new(names: ReportNames, plan: &ReplayPlan, counts: &ReplayCounts) -> Self {
        let compared = plan.evaluators.len() > 1;
        let robots = plan.evaluators.last().map(|evaluator| evaluator.robots());
        let mut rows: Vec<&ReplayRow> = counts.rows.iter().collect();
        let harm = |row: &ReplayRow| if compared { row.shut + row.opened } else { row.disallowed[0] };
        rows.sort_by(|a, b| harm(b).cmp(&harm(a)).then(b.requests.cmp(&a.requests)).then_with(|| a.name.cmp(&b.name)));
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
            crawlers,
            others: others.collect(),
            hours: counts
                .hours
                .iter()
                .map(|(hour, [allowed, disallowed])| (hour * 3600, *allowed, *disallowed))
                .collect(),
        }
    }

    pub(super) fn write(&self, out: &mut impl Write, form: ReportForm) -> io::Result<()> {
        match form {
            ReportForm::Text => text::write(out, self),
            ReportForm::Json => json::write(out, self),
            ReportForm::Html => html::write(out, self),
        }
    }

    const fn is_compared(&self) -> bool {
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

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 line`, `2 lines`.
fn counted(number: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// A share in percent with a digit that still says something.
fn percent(part: u64, whole: u64) -> String {
    if whole == 0 || part == 0 {
        return "0 %".to_owned();
    }
    let share = 100.0 * part as f64 / whole as f64;
    if share < 0.1 {
        "< 0.1 %".to_owned()
    } else if share < 10.0 {
        format!("{share:.1} %")
    } else {
        format!("{share:.0} %")
    }
}

/// A moment as `2024-02-29 22:59` in UTC.
fn moment(seconds: i64) -> String {
    let Ok(seconds) = u64::try_from(seconds) else { return "before 1970".to_owned() };
    let time = std::time::UNIX_EPOCH.checked_add(std::time::Duration::from_secs(seconds));
    let Some(time) = time else { return "after 9999".to_owned() };
    let text = date::rfc3339(time);
    text.get(..16).map_or_else(String::new, |text| text.replace('T', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_for_people() {
        for (number, want) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), want);
        }
        for (part, whole, want) in
            [(0, 0, "0 %"), (1, 10_000, "< 0.1 %"), (1, 100, "1.0 %"), (1, 3, "33 %"), (5, 5, "100 %")]
        {
            assert_eq!(percent(part, whole), want);
        }
        assert_eq!(moment(1_709_247_599), "2024-02-29 22:59");
    }
}
