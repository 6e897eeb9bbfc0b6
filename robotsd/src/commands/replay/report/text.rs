//! The report for a terminal.
//!
//! `text.txt` is the template. Text from a log is escaped, because it could otherwise add lines to
//! the report.

use askama::Template;

use super::rows::{ImpostorRow, RuleRow, RuleRows};
use super::{Report, ReportedCrawler, more_crawlers};
use crate::commands::output::filters;
use crate::html::grouped;
use crate::render::{printable, truncated};

/// Maximum number of crawlers that are shown; a final line contains the totals for all other
/// crawlers.
const MAX_CRAWLERS: usize = 25;

const MAX_DETAILED: usize = 5;

/// Width of a bar, in columns.
const BAR: usize = 20;

const MAX_RULES: usize = 8;
const MAX_PATTERNS: usize = 5;

/// Maximum number of crawlers whose impostors are shown.
const MAX_IMPOSTORS: usize = 10;
/// Maximum number of impostors' addresses that are shown per crawler.
const MAX_ADDRESSES: usize = 5;
/// Maximum number of crawlers whose impostors are shown with rules and paths.
const DETAILED_IMPOSTORS: usize = 3;

#[derive(Template)]
#[template(path = "commands/replay/report/text.txt", whitespace = "preserve")]
pub(in crate::commands::replay) struct TextReport<'a> {
    pub(in crate::commands::replay) report: &'a Report,
}

impl TextReport<'_> {
    fn crawlers(&self) -> impl Iterator<Item = &ReportedCrawler> {
        self.report.crawlers.iter().take(MAX_CRAWLERS)
    }

    fn more_crawlers(&self) -> Option<String> {
        more_crawlers(self.report.crawlers.iter().skip(MAX_CRAWLERS).map(|row| row.tally.requests))
    }

    fn detailed(&self) -> impl Iterator<Item = &ReportedCrawler> {
        self.report.crawlers.iter().filter(|row| !row.by_rule.rules.is_empty()).take(MAX_DETAILED)
    }

    fn more_impostors(&self) -> Option<String> {
        more_crawlers(self.report.impostors.iter().skip(MAX_IMPOSTORS).map(|row| row.tally.requests))
    }

    fn detailed_impostors(&self) -> impl Iterator<Item = &ImpostorRow> {
        self.report.impostors.iter().filter(|row| !row.by_rule.rules.is_empty()).take(DETAILED_IMPOSTORS)
    }

    fn width(&self) -> usize {
        self.crawlers().map(|row| printable(&row.name).chars().count()).max().unwrap_or(0).clamp(7, 32)
    }

    fn name(&self, row: &ReportedCrawler) -> String {
        let (name, width) = (printable(&row.name), self.width());
        if name.chars().count() > width { truncated(&name, width - 1) } else { name }
    }

    /// Draws disallowed requests as a dark bar, followed by allowed requests as a light bar.
    fn bar(&self, row: &ReportedCrawler) -> String {
        let most = self.crawlers().map(|row| row.tally.requests).max().unwrap_or(1);
        // The bar of a nonzero count is at least one column wide.
        let columns = |count: u64| {
            let exact = count as f64 / most.max(1) as f64 * BAR as f64;
            if count == 0 { 0 } else { (exact.round() as usize).clamp(1, BAR) }
        };
        let all = columns(row.tally.requests);
        let dark = columns(row.tally.disallowed).min(all);
        format!("{}{}{}", "█".repeat(dark), "░".repeat(all - dark), " ".repeat(BAR - all))
    }

    fn others_disallowed(&self) -> u64 {
        self.report.others.iter().map(|row| row.disallowed).sum()
    }
}

fn verified(row: &ReportedCrawler) -> String {
    if row.identity.is_checked { grouped(row.identity.verified.requests) } else { "-".to_owned() }
}

fn reads(row: &ReportedCrawler) -> String {
    match row.tally.robots_txt {
        0 => "never fetched".to_owned(),
        1 => "fetched once".to_owned(),
        times => format!("fetched {} times", grouped(times)),
    }
}

fn other_paths(rule: &RuleRow) -> Option<(u64, u64)> {
    let rest = rule.paths.iter().skip(MAX_PATTERNS).map(|path| path.requests);
    others(rest, rule.other_paths, rule.other_paths_requests)
}

fn other_rules(by_rule: &RuleRows) -> Option<(u64, u64)> {
    let rest = by_rule.rules.iter().skip(MAX_RULES).map(|rule| rule.requests);
    others(rest, by_rule.other_rules, by_rule.other_rules_requests)
}

/// Returns the number of rows that are not shown, and the number of their requests. `rest` contains
/// the numbers of requests of the rows beyond the display limit. `others` is the number of rows
/// that the report does not contain, and `of_others` is the number of their requests.
fn others(rest: impl ExactSizeIterator<Item = u64>, others: u64, of_others: u64) -> Option<(u64, u64)> {
    let count = rest.len() as u64 + others;
    (count > 0).then(|| (count, rest.sum::<u64>() + of_others))
}
