//! Details of a crawler in the HTML report: the senders of its requests, and the deciding rules
//! with their paths.

use askama::Template;

use super::rows::{ImpostorRow, RuleRows};
use super::{Report, ReportedCrawler};
use crate::commands::replay::tally::RequestTally;
use crate::html::{ChartPart, CrawlerGroup, CrawlerLine, counted, filters, grouped, markup, value_of};

#[derive(Template)]
#[template(path = "commands/replay/report/details.html")]
struct Details<'a> {
    facts: Vec<(&'static str, String)>,
    by_rule: &'a RuleRows,
}

pub(super) fn lines(report: &Report) -> Vec<CrawlerLine> {
    let crawlers = report.crawlers.iter().map(|row| crawler(report, row));
    crawlers.chain(report.impostors.iter().map(|row| impostor(report, row))).collect()
}

fn crawler(report: &Report, row: &ReportedCrawler) -> CrawlerLine {
    let category = row.category.map_or(row.class.as_str(), |category| category.as_str());
    let group = row.category.map_or(CrawlerGroup::Unknown, |category| CrawlerGroup::of_category(category.as_str()));
    let share = |share: &RequestTally| match (share.requests, row.identity.is_checked) {
        (_, false) => "not checked".to_owned(),
        (requests, true) => format!("{} ({} disallowed)", grouped(requests), grouped(share.disallowed)),
    };
    let read = match row.tally.robots_txt {
        0 => "never fetched".to_owned(),
        times => format!("fetched {}", counted(times, "time")),
    };
    let of_crawler = [
        ("Category", category.to_owned()),
        ("robots.txt", read),
        ("From addresses of its operator", share(&row.identity.verified)),
        ("Could be from anyone", share(&row.identity.claimed)),
    ];
    line(report, (group, row.name.clone()), &row.tally, of_crawler, &row.by_rule)
}

fn impostor(report: &Report, row: &ImpostorRow) -> CrawlerLine {
    let addresses = row.addresses_in_words(usize::MAX);
    let (name, from) = (format!("Impostors of {}", row.crawler), [("From", addresses)]);
    line(report, (CrawlerGroup::Impostors, name), &row.tally, from, &row.by_rule)
}

fn line<const N: usize>(
    report: &Report,
    (group, name): (CrawlerGroup, String),
    tally: &RequestTally,
    more: [(&'static str, String); N],
    by_rule: &RuleRows,
) -> CrawlerLine {
    let RequestTally { requests, allowed, disallowed, not_blamed, shut, opened, .. } = *tally;
    let change = |count| report.is_compared().then_some(count);
    let counts = [
        ("Allowed", Some(allowed)),
        ("Disallowed", Some(disallowed)),
        ("Before --effective-from", Some(not_blamed).filter(|count| *count > 0)),
        ("Newly disallowed", change(shut)),
        ("Newly allowed", change(opened)),
    ];
    let counts = counts.into_iter().filter_map(|(name, count)| Some((name, grouped(count?))));
    let harm = if report.is_compared() { (shut, "newly disallowed") } else { (disallowed, "disallowed") };
    let value = value_of(harm, requests);
    let value = if opened > 0 { format!("{value}, {} newly allowed", grouped(opened)) } else { value };
    let details = markup(&Details { facts: more.into_iter().chain(counts).collect(), by_rule });
    CrawlerLine { group, name, badge: None, parts: parts(tally, group.disallowed(), report), value, details }
}

/// Returns the segments of a bar. The first segment represents the requests that the file disallows
/// or that the change affects.
fn parts(of: &RequestTally, harm: &'static str, report: &Report) -> Vec<ChartPart> {
    match report.is_compared() {
        false => vec![(harm, of.disallowed), ("early", of.not_blamed), ("allowed", of.allowed)],
        true => {
            let kept = of.disallowed.saturating_sub(of.shut) + of.not_blamed;
            vec![
                (harm, of.shut),
                ("opened", of.opened),
                ("early", kept),
                ("allowed", of.allowed.saturating_sub(of.opened)),
            ]
        }
    }
}
