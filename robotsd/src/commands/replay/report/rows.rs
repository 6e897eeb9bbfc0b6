//! Rows of a report: deciding rules with the paths of their requests, judgements of requests, and
//! senders.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;
use tower_robots::agent::UndecidedReason;
use tower_robots::rules::Group;

use crate::board::date_of;
use crate::commands::replay::counts::{ReplayCounts, ReplayPlan};
use crate::commands::replay::crawler_rows::{FailedClaims, ReplayRow};
use crate::commands::replay::redaction::ReportPrivacy;
use crate::commands::replay::rule_paths::{DecidingRule, Effect, PathTree, RulePaths};
use crate::commands::replay::tally::{AddressTally, RequestTally};
use crate::html::{counted, grouped};

const MAX_RULES: usize = 20;
const MAX_PATTERNS: usize = 10;

#[derive(Debug, Serialize)]
pub(super) struct RuleRows {
    pub(super) rules: Vec<RuleRow>,
    pub(super) other_rules: u64,
    pub(super) other_rules_requests: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct RuleRow {
    pub(super) effect: Effect,
    /// Name of the file that contains the rule: the last file or, for requests that the change
    /// allows, the first file.
    pub(super) file: String,
    /// `line` and `pattern` are `None` in the row that contains the sum for several rules. This row
    /// exists only if there are too many rules to list.
    pub(super) line: Option<usize>,
    pub(super) pattern: Option<String>,
    pub(super) requests: u64,
    pub(super) paths: Vec<PatternRow>,
    pub(super) other_paths: u64,
    pub(super) other_paths_requests: u64,
}

/// Number of requests with similar paths. In the pattern, `*` replaces the part that varies.
#[derive(Debug, Serialize)]
pub(super) struct PatternRow {
    pub(super) pattern: String,
    pub(super) requests: u64,
}

impl RuleRows {
    pub(super) fn new(rules: &RulePaths, plan: &ReplayPlan) -> Self {
        let rules = rules.sorted();
        let (shown, other) = rules.split_at(rules.len().min(MAX_RULES));
        Self {
            rules: shown.iter().map(|(rule, paths)| RuleRow::new(*rule, paths, plan)).collect(),
            other_rules: other.len() as u64,
            other_rules_requests: other.iter().map(|(_, paths)| paths.total).sum(),
        }
    }

    /// Lists up to two patterns of rules with this effect, such as `/cart/ and /sale`, and states
    /// the number of the other rules. `None` if no rule has this effect.
    pub(super) fn patterns(&self, effect: Effect) -> Option<String> {
        let mut patterns =
            self.rules.iter().filter(|rule| rule.effect == effect).filter_map(|rule| rule.pattern.as_ref());
        let shown: Vec<_> = patterns.by_ref().take(2).map(String::as_str).collect();
        let more = patterns.count() as u64 + if shown.is_empty() { 0 } else { self.other_rules };
        match (shown.is_empty(), more) {
            (true, _) => None,
            (false, 0) => Some(shown.join(" and ")),
            (false, more) => Some(format!("{} and {}", shown.join(", "), counted(more, "more rule"))),
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
        let (shown, other) = patterns.split_at(patterns.len().min(MAX_PATTERNS));
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

    pub(super) fn sentence(&self) -> String {
        let (effect, file) = (self.effect_text(), &self.file);
        match (self.line, &self.pattern) {
            (Some(line), Some(pattern)) => format!("{effect}{file}:{line}: disallow {pattern}"),
            _ => format!("{effect}{file}: other rules"),
        }
    }

    pub(super) const fn effect_text(&self) -> &'static str {
        match self.effect {
            Effect::Disallowed => "",
            Effect::ShutOut => "newly disallowed by ",
            Effect::LetIn => "no longer disallowed by ",
        }
    }
}

pub(super) fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const MAX_ADDRESSES: usize = 20;
const SUSPECT_ADDRESSES: usize = 3;

#[derive(Debug, Serialize)]
pub(super) struct Senders {
    /// Date of the oldest address list that was used.
    pub(super) lists_of: Option<String>,
    lists: Vec<ListRow>,
    /// Look-ups of reverse DNS names; `None` if names were not looked up.
    pub(super) names: Option<NamesRow>,
    #[serde(flatten)]
    pub(super) split: SenderSplit,
    pub(super) suspect_paths: Vec<SuspectRow>,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct SenderSplit {
    #[serde(skip)]
    pub(super) is_checked: bool,
    pub(super) verified: RequestTally,
    pub(super) claimed: RequestTally,
    /// Number of claims that are neither verified nor refuted, by reason. The names of the reasons
    /// are the same as in robotsd's log.
    pub(super) claimed_because: BTreeMap<&'static str, u64>,
    /// The requests of impostors. No other count includes these requests.
    pub(super) impostors: RequestTally,
}

#[derive(Debug, Serialize)]
struct ListRow {
    url: String,
    origin: &'static str,
    date: String,
    prefixes: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct NamesRow {
    pub(super) looked_up: usize,
    left_out: usize,
}

/// A crawler with suspect claims: the log suggests that the requests did not come from the
/// crawler's operator, but the log may not contain the addresses of clients.
#[derive(Debug, Serialize)]
pub(super) struct SuspectRow {
    pub(super) crawler: String,
    pub(super) requests: u64,
    pub(super) addresses: Vec<String>,
    pub(super) other_addresses: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct ImpostorRow {
    pub(super) crawler: String,
    #[serde(flatten)]
    pub(super) tally: RequestTally,
    pub(super) addresses: Vec<AddressRow>,
    /// Number of addresses that are not listed. If there are very many addresses, this number is
    /// too low, because not all addresses are counted.
    pub(super) other_addresses: u64,
    pub(super) other_addresses_requests: u64,
    #[serde(flatten)]
    pub(super) by_rule: RuleRows,
}

#[derive(Debug, Serialize)]
pub(super) struct AddressRow {
    pub(super) address: String,
    #[serde(flatten)]
    pub(super) tally: AddressTally,
}

impl Senders {
    pub(super) fn new(plan: &ReplayPlan, counts: &ReplayCounts) -> Self {
        let checked = counts.rows.iter().filter(|row| row.is_checked);
        let lists = plan.evidence.lists_of(checked.map(|row| row.agent.name.as_str()));
        Self {
            lists_of: lists.iter().map(|list| list.best.date).min().map(format_day),
            lists: lists
                .iter()
                .map(|list| ListRow {
                    url: list.url.clone(),
                    origin: list.best.copy.origin,
                    date: format_day(list.best.date),
                    prefixes: list.best.copy.list.prefixes,
                })
                .collect(),
            names: (plan.evidence.answers.as_ref())
                .map(|answers| NamesRow { looked_up: answers.outcomes.len(), left_out: answers.left_out }),
            split: SenderSplit::of(counts.rows.iter().filter(|row| row.agent.is_crawler)),
            suspect_paths: counts.suspects.iter().map(|suspect| SuspectRow::new(suspect, plan.privacy)).collect(),
        }
    }

    pub(super) fn evidence(&self) -> Option<String> {
        let names = self.names.as_ref().map(|names| names.looked_up).filter(|looked_up| *looked_up > 0);
        let lists = self.lists_of.iter().map(|day| format!("the published lists from {day}"));
        let parts: Vec<_> = lists.chain(names.map(|_| "the host names of addresses".to_owned())).collect();
        (!parts.is_empty()).then(|| format!("against {}", parts.join(" and ")))
    }

    pub(super) fn shares(&self) -> impl Iterator<Item = (&RequestTally, &'static str)> {
        let SenderSplit { verified, claimed, impostors, .. } = &self.split;
        let impostors = (impostors.requests > 0)
            .then_some((impostors, "came from addresses that do not belong to the operators of the crawlers"));
        [
            (verified, "came from addresses that the operators of the crawlers publish"),
            (claimed, "could be from anyone"),
        ]
        .into_iter()
        .chain(impostors)
    }

    pub(super) fn reasons(&self) -> Vec<(String, u64)> {
        let mut reasons: Vec<_> = self.split.claimed_because.iter().collect();
        reasons.sort_by_key(|(_, requests)| std::cmp::Reverse(**requests));
        reasons.into_iter().map(|(reason, requests)| (self.reason_text(reason), *requests)).collect()
    }

    fn reason_text(&self, reason: &str) -> String {
        use UndecidedReason as Reason;
        let rdns = if self.names.is_none() { "; --rdns looks up the names of addresses" } else { "" };
        let words = match reason.parse::<UndecidedReason>() {
            Err(_) => "the operators publish no complete lists of addresses, or the crawlers fetch pages for people",
            Ok(Reason::Address) => "the log does not contain complete public addresses for these requests",
            Ok(Reason::Stale) => match &self.lists_of {
                Some(day) => {
                    return format!(
                        "the operators' lists (from {day} or later) do not contain the addresses, but earlier lists \
                         may have contained them at the time of the requests{rdns}"
                    );
                }
                None => {
                    "the addresses have other DNS names now, but may have had names of the operators at the time of \
                     the requests"
                }
            },
            Ok(Reason::NotLoaded) => return format!("no copy of the operator's list is available{rdns}"),
            Ok(Reason::Busy) => "the DNS names of these addresses were not looked up",
            Ok(Reason::UnprovenResolver) => {
                "the resolver confirmed no address of the operator, so its other answers prove nothing"
            }
            Ok(Reason::Timeout | Reason::ResolverFailure | Reason::Truncated) => "the resolver gave no complete answer",
            Ok(Reason::SuspectPath) => "so many addresses failed the check that they may belong to a proxy",
            Ok(_) => reason,
        };
        words.to_owned()
    }
}

impl SenderSplit {
    pub(super) fn of<'r>(rows: impl IntoIterator<Item = &'r ReplayRow>) -> Self {
        let mut split = Self::default();
        for row in rows {
            split.is_checked |= row.is_checked;
            split.verified += row.verified;
            split.claimed += row.claimed;
            row.failed.iter().for_each(|failed| split.impostors += failed.tally);
            for (reason, requests) in &row.undecided {
                *split.claimed_because.entry(*reason).or_default() += requests;
            }
        }
        split
    }
}

impl ImpostorRow {
    /// Returns the impostors of every crawler, sorted by the number of disallowed requests or, in a
    /// comparison, by the number of requests with different verdicts. The largest number comes
    /// first.
    pub(super) fn all(counts: &ReplayCounts, plan: &ReplayPlan) -> Vec<Self> {
        let failed = |row: &ReplayRow| Some(Self::new(&row.agent.name, row.failed.as_deref()?, plan));
        let mut rows: Vec<_> = counts.rows.iter().filter_map(failed).collect();
        let harm = |row: &Self| {
            let RequestTally { shut, opened, disallowed, .. } = row.tally;
            if plan.is_compared() { shut + opened } else { disallowed }
        };
        rows.sort_by_cached_key(|row| (std::cmp::Reverse((harm(row), row.tally.requests)), row.crawler.clone()));
        rows
    }

    fn new(crawler: &str, failed: &FailedClaims, plan: &ReplayPlan) -> Self {
        let mut addresses = shown(&failed.addresses.sorted(), plan.privacy);
        let rest = addresses.split_off(addresses.len().min(MAX_ADDRESSES));
        let rest_requests = rest.iter().map(|row| row.tally.requests).sum::<u64>();
        Self {
            crawler: crawler.to_owned(),
            tally: failed.tally,
            addresses,
            other_addresses: rest.len() as u64,
            other_addresses_requests: rest_requests + failed.addresses.dropped.requests,
            by_rule: RuleRows::new(&failed.rules, plan),
        }
    }

    pub(super) fn addresses_in_words(&self, most: usize) -> String {
        let (shown, rest) = self.addresses.split_at(most.min(self.addresses.len()));
        let rest = rest.iter().map(|row| row.tally.requests).sum::<u64>() + self.other_addresses_requests;
        let rest = (rest > 0).then(|| format!("others ({})", grouped(rest)));
        let shown = shown.iter().map(|row| format!("{} ({})", row.address, grouped(row.tally.requests)));
        shown.chain(rest).collect::<Vec<_>>().join(", ")
    }
}

impl SuspectRow {
    fn new((crawler, failed): &(String, FailedClaims), privacy: ReportPrivacy) -> Self {
        let mut addresses = shown(&failed.addresses.sorted(), privacy);
        let rest = addresses.split_off(addresses.len().min(SUSPECT_ADDRESSES));
        Self {
            crawler: crawler.clone(),
            requests: failed.tally.requests,
            addresses: addresses.into_iter().map(|row| row.address).collect(),
            other_addresses: rest.len() as u64,
        }
    }
}

/// Returns the addresses for the report, sorted by the number of requests, largest first. Several
/// addresses may share a row, because addresses are redacted.
fn shown(addresses: &[(IpAddr, AddressTally)], privacy: ReportPrivacy) -> Vec<AddressRow> {
    let mut tallies = BTreeMap::<String, AddressTally>::new();
    for (address, tally) in addresses {
        *tallies.entry(privacy.address(*address)).or_default() += *tally;
    }
    let mut rows: Vec<_> = tallies.into_iter().map(|(address, tally)| AddressRow { address, tally }).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.tally.requests));
    rows
}

fn format_day(seconds: i64) -> String {
    date_of(u64::try_from(seconds).unwrap_or(0))
}
