//! The rows of a report: the rules that decide about requests with the paths of these requests, what became of
//! requests, and those that came too soon.

use serde::Serialize;
use tower_robots::rules::Group;

use crate::commands::replay::counts::ReplayPlan;
use crate::commands::replay::rule_paths::{DecidingRule, Effect, PathTree, RulePaths};
use crate::commands::replay::tally::RequestTally;

/// Rules, and patterns of a rule in a report.
const RULES: usize = 20;
const PATTERNS: usize = 10;

/// The rules that decide about requests: those that disallow, or, where two files are compared, those of the change.
#[derive(Debug, Serialize)]
pub(super) struct RuleRows {
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
    /// Its line and pattern; `None` for rules that were too many to be distinguished.
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

impl RuleRows {
    pub(super) fn new(rules: &RulePaths, plan: &ReplayPlan) -> Self {
        let rules = rules.sorted();
        let (shown, other) = rules.split_at(rules.len().min(RULES));
        Self {
            rules: shown.iter().map(|(rule, paths)| RuleRow::new(*rule, paths, plan)).collect(),
            other_rules: other.len() as u64,
            other_rules_requests: other.iter().map(|(_, paths)| paths.total).sum(),
        }
    }
}

impl RuleRow {
    fn new(rule: DecidingRule, paths: &PathTree, plan: &ReplayPlan) -> Self {
        let (file, evaluator) = match (rule.effect, &plan.against) {
            (Effect::LetIn, _) | (_, None) => (&plan.robots, plan.evaluators.first()),
            (_, Some(against)) => (against, plan.evaluators.last()),
        };
        let mut rules = evaluator.into_iter().flat_map(|evaluator| evaluator.robots().groups()).flat_map(Group::rules);
        let found = rule.line.and_then(|line| rules.find(|rule| rule.line() == line));
        let patterns = paths.patterns();
        let (shown, other) = patterns.split_at(patterns.len().min(PATTERNS));
        let row = |(pattern, requests): &(Vec<u8>, u64)| PatternRow { pattern: text_of(pattern), requests: *requests };
        Self {
            effect: rule.effect,
            file: file.clone(),
            line: rule.line,
            pattern: found.map(|rule| text_of(rule.pattern())),
            requests: paths.total,
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

pub(super) fn text_of(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

/// Requests under one name: of a crawler, or of its impostors.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct RequestCounts {
    pub(super) requests: u64,
    #[serde(flatten)]
    pub(super) outcomes: RequestOutcomes,
    pub(super) robots_txt: u64,
}

/// Sums over all crawlers, without impostors.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct TotalCounts {
    pub(super) crawler_requests: u64,
    #[serde(flatten)]
    pub(super) outcomes: RequestOutcomes,
}

/// How many requests met which end.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct RequestOutcomes {
    pub(super) allowed: u64,
    pub(super) disallowed: u64,
    /// Under the file that is compared with.
    pub(super) disallowed_before: Option<u64>,
    pub(super) shut: u64,
    pub(super) opened: u64,
    pub(super) not_blamed: u64,
}

impl RequestCounts {
    pub(super) fn of(tally: &RequestTally, plan: &ReplayPlan) -> Self {
        let (requests, robots_txt) = (tally.requests, tally.robots_txt);
        Self { requests, outcomes: RequestOutcomes::of(tally, plan), robots_txt }
    }
}

impl RequestOutcomes {
    pub(super) fn of(tally: &RequestTally, plan: &ReplayPlan) -> Self {
        Self {
            allowed: tally.allowed(),
            disallowed: tally.disallowed,
            disallowed_before: plan.is_compared().then_some(tally.disallowed_before),
            shut: tally.shut,
            opened: tally.opened,
            not_blamed: tally.not_blamed,
        }
    }
}

/// What to know about requests whose client's address the log lacks.
pub(super) const COUNTED_TOGETHER: &str =
    "requests without the address of a client in the log count together; a server counts each address by itself";
