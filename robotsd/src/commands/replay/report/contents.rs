//! What a report holds: counted, sorted and redacted.

use serde::Serialize;
use tower_robots::agent::{Category, Class};

use super::rows::{RequestCounts, RequestOutcomes, RobotsFiles, RuleRows, TotalCounts, text_of};
use super::senders::{ImpostorRow, SenderSplit, Senders};
use crate::commands::replay::counts::{ReplayCounts, ReplayPlan};
use crate::commands::replay::paces::PaceCount;
use crate::commands::replay::rows::ReplayRow;
use crate::commands::replay::tally::{HourCounts, RequestTally};
use crate::html::grouped;

/// Suspects in a report.
const SUSPECTS: usize = 20;

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) logs: Vec<String>,
    pub(crate) robots: String,
    pub(crate) against: Option<String>,
    pub(crate) requests: u64,
    /// Requests for hosts of other sites, which are in no other count, and requests without a host, which are.
    pub(super) other_hosts: u64,
    pub(super) without_host: u64,
    #[serde(skip)]
    pub(super) host_notes: Vec<String>,
    pub(crate) unread_lines: u64,
    pub(super) unread_samples: Vec<String>,
    /// Requests without a User-Agent: all of them where the format lacks it.
    pub(super) nameless: u64,
    /// Requests whose time cannot be read.
    pub(super) timeless: u64,
    /// Seconds since 1970.
    pub(super) first: Option<i64>,
    pub(super) last: Option<i64>,
    pub(super) totals: TotalCounts,
    /// People who may be refused.
    pub(crate) suspect_humans: Vec<Suspect>,
    pub(crate) suspect_human_count: usize,
    /// Search engines with an index that people use, from whom the change takes paths that they requested.
    pub(crate) search_engines_shut_out: Vec<String>,
    /// Who sent requests under crawlers' names.
    pub(super) identity: Senders,
    pub(super) crawlers: Vec<CrawlerRow>,
    /// What was requested under crawlers' names by others.
    pub(super) impostors: Vec<ImpostorRow>,
    /// Crawlers of which requests came sooner than their delay lets them, the most first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) paces: Vec<PaceCount>,
    /// Whether the lines of a log are not in the order of their times, so that the paces say little.
    pub(super) out_of_order: bool,
    /// Agents that are no crawlers, by class.
    pub(super) others: Vec<ClassRow>,
    /// Requests of crawlers by the hour.
    pub(super) hours: Vec<HourRow>,
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
    #[serde(flatten)]
    pub(super) counts: RequestCounts,
    /// Who sent requests under its name. Those of impostors are not in the other counts of this row.
    pub(super) identity: SenderSplit,
    #[serde(flatten)]
    pub(super) by_rule: RuleRows,
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

impl Report {
    pub(crate) fn new(plan: &ReplayPlan, counts: &ReplayCounts) -> Self {
        let compared = plan.evaluators.len() > 1;
        let files = RobotsFiles::of(plan);
        let mut rows: Vec<(&ReplayRow, RequestTally)> = counts.rows.iter().map(|row| (row, row.own())).collect();
        let harm = |own: &RequestTally| if compared { own.shut + own.opened } else { own.disallowed[0] };
        let is_engine_shut_out =
            |(row, own): &(&ReplayRow, RequestTally)| compared && row.agent.is_index_engine && own.shut > 0;
        rows.sort_by(|a, b| {
            is_engine_shut_out(b)
                .cmp(&is_engine_shut_out(a))
                .then(harm(&b.1).cmp(&harm(&a.1)))
                .then(b.1.requests.cmp(&a.1.requests))
                .then_with(|| a.0.agent.name.cmp(&b.0.agent.name))
        });
        // A name that impostors alone use is among theirs.
        let is_crawler = |(row, own): &&(&ReplayRow, RequestTally)| row.agent.is_crawler && own.requests > 0;
        let crawlers: Vec<_> =
            rows.iter().filter(is_crawler).map(|(row, own)| CrawlerRow::new(row, own, compared, &files)).collect();
        let total = rows.iter().filter(is_crawler).fold(RequestTally::default(), |total, (_, own)| total.with(own));
        let last = usize::from(compared);
        let others = rows.iter().filter(|(row, _)| !row.agent.is_crawler).map(|(row, own)| ClassRow {
            class: row.agent.class,
            requests: own.requests,
            disallowed: own.disallowed[last],
        });
        let impostors = ImpostorRow::all(counts, plan, compared, &files);
        let suspects = counts.visitors.suspects();
        Self {
            logs: plan.logs.clone(),
            robots: plan.robots.clone(),
            against: plan.against.clone(),
            requests: counts.requests,
            other_hosts: counts.hosts.other,
            without_host: counts.hosts.unnamed,
            host_notes: plan.selection.notes(counts.hosts, counts.requests),
            unread_lines: counts.unread,
            unread_samples: counts.samples.iter().map(|line| text_of(&plan.privacy.line(line))).collect(),
            nameless: counts.nameless,
            timeless: counts.timeless,
            first: counts.period.first,
            last: counts.period.last,
            totals: TotalCounts { crawler_requests: total.requests, outcomes: RequestOutcomes::of(&total, compared) },
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
                .map(|(row, _)| row.agent.name.clone())
                .collect(),
            identity: Senders::new(plan, counts, compared),
            crawlers,
            impostors,
            out_of_order: counts.paces.is_out_of_order(),
            paces: counts.paces.sorted().into_iter().cloned().collect(),
            others: others.collect(),
            hours: counts.hours.sorted().map(|(start, counts)| HourRow { start, counts }).collect(),
        }
    }

    pub(super) const fn is_compared(&self) -> bool {
        self.against.is_some()
    }

    /// Whether the log does not hold who sent its requests, or nobody said.
    pub(super) const fn lacks_names(&self) -> bool {
        self.requests > 0 && self.nameless == self.requests
    }

    /// Whether the requests that are not of crawlers are worth a line: those without any name are, where something of them is
    /// disallowed.
    pub(crate) fn has_others(&self) -> bool {
        !self.lacks_names() || self.others.iter().any(|row| row.disallowed > 0)
    }
}

impl CrawlerRow {
    fn new(row: &ReplayRow, own: &RequestTally, compared: bool, files: &RobotsFiles<'_>) -> Self {
        Self {
            name: row.agent.name.clone(),
            class: row.agent.class,
            category: row.agent.category,
            counts: RequestCounts::of(own, compared),
            identity: SenderSplit::of(row, compared),
            by_rule: RuleRows::new(&row.rules, files),
        }
    }
}

/// As sentences without a stop.
pub(super) fn log_gaps(report: &Report) -> impl Iterator<Item = String> + '_ {
    let nameless = report.lacks_names().then(|| {
        "no request has a User-Agent, or the log does not hold it, so crawlers cannot be told from others: the combined \
         format has it (W3C: cs(User-Agent))"
            .to_owned()
    });
    let untimed = match report.timeless {
        0 => None,
        all if all == report.requests => Some("all requests have".to_owned()),
        1 => Some("1 request has".to_owned()),
        some => Some(format!("{} requests have", grouped(some))),
    };
    let timeless = untimed.map(|lines| {
        format!("{lines} no time that can be read: what came faster than a Crawl-delay or before --effective-from is not known")
    });
    let unordered = report.out_of_order.then(|| {
        "the lines of a log are not in the order of their times: what came faster than a Crawl-delay is not known; sort them, the \
         earliest first"
            .to_owned()
    });
    report.host_notes.iter().cloned().chain(nameless).chain(timeless).chain(unordered)
}

/// Requests of agents that are no crawlers, as `115 by browsers, 2 by HTTP libraries`; `None` where there are none.
pub(super) fn other_requests(rows: &[ClassRow]) -> Option<String> {
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
    fn agents_that_are_no_crawlers_are_counted_by_what_they_are() {
        let row = |class, requests| ClassRow { class, requests, disallowed: 0 };
        let rows = [row(Class::Browser, 1150), row(Class::Library, 1)];
        assert_eq!(other_requests(&rows).as_deref(), Some("1,150 by browsers, 1 by HTTP libraries"));
        assert_eq!(other_requests(&[]), None);
    }
}
