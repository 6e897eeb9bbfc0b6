//! What a report holds: counted, sorted and redacted.

use serde::Serialize;
use tower_robots::agent::{Category, Class};
use tower_robots::rules::{Group, RobotsTxt};

use crate::commands::replay::counts::{ReplayCounts, ReplayPlan};
use crate::commands::replay::hours::HourCounts;
use crate::commands::replay::path_tree::PathTree;
use crate::commands::replay::rows::ReplayRow;
use crate::commands::replay::rule_paths::{DecidingRule, Effect};
use crate::evaluator::Evaluator;

/// Suspects, rules of a crawler and patterns of a rule in a report.
const SUSPECTS: usize = 20;
const RULES: usize = 20;
const PATTERNS: usize = 10;

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
    /// Requests of crawlers by the hour.
    pub(super) hours: Vec<HourRow>,
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
    /// Rules that decide about its requests: those that disallow, or, where two files are compared, those of the change.
    pub(super) rules: Vec<RuleRow>,
    /// What is left of them.
    pub(super) other_rules: u64,
    pub(super) other_rules_requests: u64,
}

/// What one rule does to the requests of a crawler.
#[derive(Debug, Serialize)]
pub(super) struct RuleRow {
    pub(super) effect: Effect,
    /// The file it is in: the first where a change lets in.
    pub(super) file: String,
    /// Its line and pattern; `None` for rules that were too many to be told apart.
    pub(super) line: Option<usize>,
    pub(super) pattern: Option<String>,
    pub(super) requests: u64,
    /// Its requests by the pattern of their paths.
    pub(super) paths: Vec<PatternRow>,
    /// What is left of them.
    pub(super) other_paths: u64,
    pub(super) other_paths_requests: u64,
}

/// Requests whose paths are alike: `*` stands for what varies.
#[derive(Debug, Serialize)]
pub(super) struct PatternRow {
    pub(super) pattern: String,
    pub(super) requests: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct HourRow {
    /// Seconds since 1970.
    pub(super) start: i64,
    #[serde(flatten)]
    pub(super) counts: HourCounts,
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
        let files = Files::new(&names, plan);
        let mut rows: Vec<&ReplayRow> = counts.rows.iter().collect();
        let harm = |row: &ReplayRow| if compared { row.shut + row.opened } else { row.disallowed[0] };
        let is_engine_shut_out = |row: &ReplayRow| compared && row.agent.is_index_engine && row.shut > 0;
        rows.sort_by(|a, b| {
            is_engine_shut_out(b)
                .cmp(&is_engine_shut_out(a))
                .then(harm(b).cmp(&harm(a)))
                .then(b.requests.cmp(&a.requests))
                .then_with(|| a.agent.name.cmp(&b.agent.name))
        });
        let crawlers: Vec<_> =
            rows.iter().filter(|row| row.agent.is_crawler).map(|row| CrawlerRow::new(row, compared, &files)).collect();
        let last = usize::from(compared);
        let others = rows.iter().filter(|row| !row.agent.is_crawler).map(|row| ClassRow {
            class: row.agent.class,
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
                .map(|row| row.agent.name.clone())
                .collect(),
            crawlers,
            others: others.collect(),
            hours: counts.hours.sorted().map(|(start, counts)| HourRow { start, counts }).collect(),
        }
    }

    pub(super) const fn is_compared(&self) -> bool {
        self.against.is_some()
    }
}

/// The files that rules are in.
struct Files<'a> {
    first: (&'a str, Option<&'a RobotsTxt>),
    last: (&'a str, Option<&'a RobotsTxt>),
}

impl<'a> Files<'a> {
    fn new(names: &'a ReportNames, plan: &'a ReplayPlan) -> Self {
        let robots = |evaluator: Option<&'a Evaluator>| evaluator.map(Evaluator::robots);
        Self {
            first: (&names.robots, robots(plan.evaluators.first())),
            last: (names.against.as_ref().unwrap_or(&names.robots), robots(plan.evaluators.last())),
        }
    }
}

impl CrawlerRow {
    fn new(row: &ReplayRow, compared: bool, files: &Files<'_>) -> Self {
        let disallowed = row.disallowed[usize::from(compared)];
        let rules = row.rules.sorted();
        let (shown, other) = rules.split_at(rules.len().min(RULES));
        Self {
            name: row.agent.name.clone(),
            class: row.agent.class,
            category: row.agent.category,
            requests: row.requests,
            allowed: row.requests - disallowed - row.early,
            disallowed,
            disallowed_before: compared.then_some(row.disallowed[0]),
            shut: row.shut,
            opened: row.opened,
            not_blamed: row.early,
            robots_txt: row.robots_txt,
            rules: shown.iter().map(|(rule, paths)| RuleRow::new(*rule, paths, files)).collect(),
            other_rules: other.len() as u64,
            other_rules_requests: other.iter().map(|(_, paths)| paths.total()).sum(),
        }
    }
}

impl RuleRow {
    fn new(rule: DecidingRule, paths: &PathTree, files: &Files<'_>) -> Self {
        let (file, robots) = if rule.effect == Effect::LetIn { files.first } else { files.last };
        let mut rules = robots.into_iter().flat_map(RobotsTxt::groups).flat_map(Group::rules);
        let found = rule.line.and_then(|line| rules.find(|rule| rule.line() == line));
        let patterns = paths.patterns();
        let (shown, other) = patterns.split_at(patterns.len().min(PATTERNS));
        let row = |(pattern, requests): &(Vec<u8>, u64)| PatternRow { pattern: text_of(pattern), requests: *requests };
        Self {
            effect: rule.effect,
            file: file.to_owned(),
            line: rule.line,
            pattern: found.map(|rule| text_of(rule.pattern())),
            requests: paths.total(),
            paths: shown.iter().map(row).collect(),
            other_paths: other.len() as u64,
            other_paths_requests: other.iter().map(|(_, requests)| requests).sum(),
        }
    }

    /// What it does, and where it stands.
    pub(super) fn sentence(&self) -> String {
        let (effect, file) = (self.effect_words(), &self.file);
        match (self.line, &self.pattern) {
            (Some(line), Some(pattern)) => format!("{effect}{file}:{line}: disallow {pattern}"),
            _ => format!("{effect}{file}: other rules"),
        }
    }

    /// What stands before the rule.
    pub(super) const fn effect_words(&self) -> &'static str {
        match self.effect {
            Effect::Disallowed => "",
            Effect::ShutOut => "shut out by ",
            Effect::LetIn => "let in; was ",
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
