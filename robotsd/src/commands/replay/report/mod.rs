//! The report of a replay as text, JSON or HTML. This module counts, sorts and redacts the data of
//! the report.

mod details;
mod history;
pub(super) mod html;
mod rows;
pub(super) mod text;

use std::collections::BTreeMap;

use serde::Serialize;
use tower_robots::agent::{Category, Class};

use self::history::PastJudgements;
use self::rows::{ImpostorRow, RuleRows, SenderSplit, Senders, text_of};
use super::counts::{ReplayCounts, ReplayPlan};
use super::crawler_rows::ReplayRow;
use super::rule_paths::Effect;
use super::tally::RequestTally;
use crate::board::OperatorBalance;
use crate::html::{counted, grouped, percent, period};

const MAX_HEADLINES: usize = 3;

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) logs: Vec<String>,
    pub(crate) robots: String,
    pub(crate) against: Option<String>,
    pub(crate) requests: u64,
    /// Number of requests for hosts of other sites. No other count includes these requests.
    other_hosts: u64,
    /// Number of requests without a host in the log. The other counts include these requests, too.
    without_host: u64,
    #[serde(skip)]
    host_notes: Vec<String>,
    pub(crate) unread_lines: u64,
    unread_samples: Vec<String>,
    /// Number of requests without a User-Agent. If the log does not contain User-Agents, this is
    /// the number of all requests.
    nameless: u64,
    timeless: u64,
    /// Whether a `Crawl-delay` limits the rate of any counted request.
    #[serde(skip)]
    has_limit: bool,
    /// Time of the first request, in seconds since 1970.
    first: Option<i64>,
    last: Option<i64>,
    totals: CrawlerTotals,
    pub(crate) search_engines_shut_out: Vec<String>,
    identity: Senders,
    crawlers: Vec<ReportedCrawler>,
    impostors: Vec<ImpostorRow>,
    others: Vec<ClassRow>,
    hours: Vec<HourRow>,
    /// Numbers of disallowed requests that the mode `refuse` would refuse, by the status of the
    /// response. Responses of an upstream have the key "upstream".
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    refusals: BTreeMap<String, u64>,
    /// Pages that an operator's crawlers fetched, and visitors that the operator's services
    /// referred. Operators without a service that refers visitors are left out.
    given_back: Vec<OperatorBalance>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<PastJudgements>,
}

#[derive(Debug, Serialize)]
struct ReportedCrawler {
    name: String,
    class: Class,
    category: Option<Category>,
    #[serde(skip)]
    is_index_engine: bool,
    #[serde(flatten)]
    tally: RequestTally,
    /// Numbers of requests that name this crawler, by kind of sender. The other counts of this row
    /// do not include requests of impostors.
    identity: SenderSplit,
    #[serde(flatten)]
    by_rule: RuleRows,
}

/// Totals over all crawlers, without requests of impostors.
#[derive(Debug, Serialize)]
struct CrawlerTotals {
    crawler_requests: u64,
    #[serde(flatten)]
    tally: RequestTally,
}

#[derive(Debug, Serialize)]
struct HourRow {
    /// Beginning of the hour, in seconds since 1970.
    start: i64,
    #[serde(flatten)]
    tally: RequestTally,
}

#[derive(Debug, Serialize)]
struct ClassRow {
    class: Class,
    requests: u64,
    disallowed: u64,
}

impl Report {
    pub(crate) fn new(plan: &ReplayPlan, counts: &ReplayCounts) -> Self {
        let compared = plan.is_compared();
        let mut rows: Vec<(&ReplayRow, RequestTally)> =
            counts.rows.iter().map(|row| (row, row.without_impostors())).collect();
        let harm = |own: &RequestTally| if compared { own.shut + own.opened } else { own.disallowed };
        let is_engine_shut_out =
            |(row, own): &(&ReplayRow, RequestTally)| compared && row.agent.is_index_engine && own.shut > 0;
        rows.sort_by_key(|row| {
            let (crawler, own) = row;
            let weight = (is_engine_shut_out(row), harm(own), own.requests);
            (std::cmp::Reverse(weight), crawler.agent.name.as_str())
        });
        // If only impostors used the name of a crawler, the crawler is listed with the impostors.
        let is_crawler = |(row, own): &&(&ReplayRow, RequestTally)| row.agent.is_crawler && own.requests > 0;
        let crawlers: Vec<_> =
            rows.iter().filter(is_crawler).map(|(row, own)| ReportedCrawler::new(row, own, plan)).collect();
        let mut total = RequestTally::default();
        rows.iter().filter(is_crawler).for_each(|(_, own)| total += *own);
        let others = rows.iter().filter(|(row, _)| !row.agent.is_crawler).map(|(row, own)| ClassRow {
            class: row.agent.class,
            requests: own.requests,
            disallowed: own.disallowed,
        });
        let impostors = ImpostorRow::all(counts, plan);
        Self {
            logs: plan.logs.clone(),
            robots: plan.robots.clone(),
            against: plan.against.clone(),
            requests: counts.requests,
            other_hosts: counts.hosts.other,
            without_host: counts.hosts.without_host,
            host_notes: plan.selection.notes(counts.hosts, counts.requests),
            unread_lines: counts.unread,
            unread_samples: counts.samples.iter().map(|line| text_of(&plan.privacy.line(line))).collect(),
            nameless: counts.nameless,
            timeless: counts.timeless,
            has_limit: counts.has_limit,
            first: counts.period.first,
            last: counts.period.last,
            totals: CrawlerTotals { crawler_requests: total.requests, tally: total },
            search_engines_shut_out: rows
                .iter()
                .filter(|row| is_engine_shut_out(row))
                .map(|(row, _)| row.agent.name.clone())
                .collect(),
            identity: Senders::new(plan, counts),
            crawlers,
            impostors,
            others: others.collect(),
            hours: counts.hours.sorted().map(|(start, tally)| HourRow { start, tally }).collect(),
            refusals: total.refusals.counts().collect(),
            given_back: history::balances(plan, counts),
            history: PastJudgements::new(plan, counts),
        }
    }

    const fn is_compared(&self) -> bool {
        self.against.is_some()
    }

    /// Returns the sentences of the headline, one per crawler. Search engines come first, followed
    /// by the other crawlers with the most disallowed requests or, in a comparison, the most
    /// requests with different verdicts. A crawler whose claims were checked but never verified
    /// comes last, because impostors may have sent all its requests.
    fn headlines(&self) -> impl Iterator<Item = String> {
        let harm = |row: &ReportedCrawler| {
            let (own, verified) = (&row.tally, &row.identity.verified);
            match self.is_compared() {
                false => (own.disallowed, verified.disallowed, Effect::Disallowed, "disallowed"),
                true if own.shut > 0 => (own.shut, verified.shut, Effect::ShutOut, "newly disallowed"),
                true => (own.opened, verified.opened, Effect::LetIn, "newly allowed"),
            }
        };
        let mut rows: Vec<_> = self.crawlers.iter().filter(|row| harm(row).0 > 0).collect();
        rows.sort_by_key(|row| {
            let (count, verified, ..) = harm(row);
            (row.identity.is_checked && verified == 0, !row.is_index_engine, std::cmp::Reverse(count))
        });
        rows.into_iter().take(MAX_HEADLINES).map(move |row| {
            let (count, verified, effect, what) = harm(row);
            let by = row.by_rule.patterns(effect).map(|patterns| format!(", by {patterns}")).unwrap_or_default();
            let verification_note = match count.saturating_sub(verified) {
                0 => String::new(),
                _ if !row.identity.is_checked => String::new(),
                _ if verified == 0 => "; none of these requests is verified".to_owned(),
                unproven => format!(
                    "; not verified: {unproven} of these {count} requests",
                    unproven = grouped(unproven),
                    count = grouped(count)
                ),
            };
            format!("{}: {} {what}{by}{verification_note}", row.name, percent(count, row.tally.requests))
        })
    }

    fn refusal_sentence(&self) -> Option<String> {
        let RequestTally { disallowed, would_refuse, would_tag, .. } = self.totals.tally;
        let passing = disallowed.saturating_sub(would_refuse + would_tag);
        let parts = [
            (would_tag, "only tagged, because search engines that people use are not refused by default"),
            (passing, "allowed by overrides"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let parts: String = parts.map(|(count, what)| format!("; {} would be {what}", grouped(*count))).collect();
        let is_usual = self.refusals.keys().all(|status| status == "403");
        let by_status = self.refusals.iter().filter(|_| !is_usual);
        let by_status: Vec<_> = by_status.map(|(status, count)| format!("{status}: {}", grouped(*count))).collect();
        let by_status = if is_usual { String::new() } else { format!(" ({})", by_status.join(", ")) };
        let refused = grouped(would_refuse);
        (disallowed > 0)
            .then(|| format!("with mode = \"refuse\", {refused} of these would be refused{by_status}{parts}"))
    }

    fn times(&self) -> Option<String> {
        self.first.zip(self.last).map(|(first, last)| period(first, last))
    }

    fn engines_shut_out(&self) -> Vec<&ReportedCrawler> {
        self.crawlers.iter().filter(|row| self.search_engines_shut_out.contains(&row.name)).collect()
    }

    const fn has_no_user_agents(&self) -> bool {
        self.requests > 0 && self.nameless == self.requests
    }

    /// Reports whether the requests of agents other than crawlers are shown. If no request has a
    /// User-Agent, the requests are shown only if a rule disallows some of them.
    pub(crate) fn has_others(&self) -> bool {
        !self.has_no_user_agents() || self.others.iter().any(|row| row.disallowed > 0)
    }

    fn others_in_words(&self) -> Option<String> {
        other_requests(&self.others).filter(|_| self.has_others())
    }
}

impl ReportedCrawler {
    fn new(row: &ReplayRow, own: &RequestTally, plan: &ReplayPlan) -> Self {
        Self {
            name: row.agent.name.clone(),
            class: row.agent.class,
            category: row.agent.category,
            is_index_engine: row.agent.is_index_engine,
            tally: *own,
            identity: SenderSplit::of([row]),
            by_rule: RuleRows::new(&row.rules, plan),
        }
    }
}

/// Describes the values that are missing in lines of the log. Each description is a sentence
/// without a full stop.
fn log_gaps(report: &Report) -> impl Iterator<Item = String> + '_ {
    let nameless = report.has_no_user_agents().then(|| {
        "no request has a User-Agent, or the log does not contain it, so crawlers cannot be recognised: use the \
         combined format (W3C: cs(User-Agent))"
            .to_owned()
    });
    let untimed = match report.timeless {
        0 => None,
        all if all == report.requests => Some("all requests lack".to_owned()),
        1 => Some("1 request lacks".to_owned()),
        some => Some(format!("{} requests lack", grouped(some))),
    };
    let timeless = untimed
        .map(|lines| format!("{lines} a readable time, so it is not known whether they came before --effective-from"));
    let uncounted = report.has_limit.then(|| {
        "requests that exceed a Crawl-delay are not counted here: a server with mode = \"observe\" in [site.rate] \
         measures them"
            .to_owned()
    });
    report.host_notes.iter().cloned().chain(nameless).chain(timeless).chain(uncounted)
}

/// Describes the crawlers that are not shown, such as `3 more crawlers with 1,200 requests`.
fn more_crawlers(requests: impl ExactSizeIterator<Item = u64>) -> Option<String> {
    let count = requests.len() as u64;
    (count > 0).then(|| format!("{} with {}", counted(count, "more crawler"), counted(requests.sum(), "request")))
}

/// Describes the requests of agents that are not crawlers, such as `115 by browsers, 2 by HTTP
/// libraries`.
fn other_requests(rows: &[ClassRow]) -> Option<String> {
    let by = |row: &ClassRow| {
        let agents = match row.class {
            Class::Empty => "without a User-Agent",
            Class::Browser => "by browsers",
            Class::Headless => "by headless browsers",
            Class::Library => "by HTTP libraries",
            Class::App => "by apps",
            Class::Infrastructure => "by infrastructure",
            _ => "by other programs",
        };
        format!("{} {agents}", grouped(row.requests))
    };
    (!rows.is_empty()).then(|| rows.iter().map(by).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_browsers_and_libraries_are_counted_by_class() {
        let row = |class, requests| ClassRow { class, requests, disallowed: 0 };
        let rows = [row(Class::Browser, 1150), row(Class::Library, 1)];
        assert_eq!(other_requests(&rows).as_deref(), Some("1,150 by browsers, 1 by HTTP libraries"));
        assert_eq!(other_requests(&[]), None);
    }
}
