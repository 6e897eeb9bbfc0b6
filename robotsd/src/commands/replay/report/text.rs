//! The report for a terminal.

use std::io::{self, Write};

use super::rows::{COUNTED_TOGETHER, RuleRows, SuspectRow};
use super::{Report, ReportedCrawler, Suspect, history, log_gaps, more_crawlers, other_requests};
use crate::commands::replay::paces::PaceCount;
use crate::html::{counted, grouped, percent, period};
use crate::render::printable;

/// Crawlers that are shown; the rest are summed up.
const CRAWLERS: usize = 25;

/// Of those, how many with rules and paths.
const DETAILED: usize = 5;

/// Columns of a bar.
const BAR: usize = 20;

pub(in crate::commands::replay) fn write(out: &mut impl Write, report: &Report) -> io::Result<()> {
    report.history.iter().try_for_each(|history| history::text(out, history))?;
    head(out, report)?;
    engines(out, report)?;
    suspects(out, report)?;
    suspect_paths(out, report)?;
    crawlers(out, report)?;
    details(out, report)?;
    paces(out, report)?;
    impostors(out, report)?;
    reasons(out, report)?;
    balances(out, report)?;
    others(out, report)
}

fn head(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.requests == 0 && report.unread_lines == 0 {
        return writeln!(out, "the logs hold no request");
    }
    write!(out, "{}", counted(report.requests, "request"))?;
    if let (Some(first), Some(last)) = (report.first, report.last) {
        write!(out, ", {}", period(first, last))?;
    }
    writeln!(out)?;
    if report.unread_lines > 0 {
        writeln!(out, "{} could not be read, such as:", counted(report.unread_lines, "line"))?;
        for line in &report.unread_samples {
            writeln!(out, "    {}", printable(line))?;
        }
    }
    for gap in log_gaps(report) {
        writeln!(out, "{gap}")?;
    }
    let totals = &report.totals;
    let (robots, requests) = (printable(&report.robots), totals.crawler_requests);
    if report.requests == 0 || report.lacks_names() {
        return Ok(());
    }
    if requests == 0 {
        return writeln!(out, "the logs hold no request by a crawler");
    }
    let by_crawlers = format!("{} by crawlers", counted(requests, "request"));
    match (&report.against, totals.outcomes.disallowed_before) {
        (Some(against), Some(before)) => {
            let (before, are) = (grouped(before), are(before));
            writeln!(out, "{before} of {by_crawlers} {are} disallowed by {robots},")?;
            let (shut, opened) = (grouped(totals.outcomes.shut), grouped(totals.outcomes.opened));
            let against = printable(against);
            let disallowed = grouped(totals.outcomes.disallowed);
            writeln!(out, "{disallowed} by {against}: {shut} newly, and {opened} no longer")?;
            if totals.outcomes.shut + totals.outcomes.opened == 0 {
                writeln!(out, "no request is judged differently")?;
            }
        }
        _ => {
            let share = percent(totals.outcomes.disallowed, requests);
            let (disallowed, are) = (grouped(totals.outcomes.disallowed), are(totals.outcomes.disallowed));
            writeln!(out, "{disallowed} of {by_crawlers} ({share}) {are} disallowed by {robots}")?;
        }
    }
    if totals.outcomes.not_blamed > 0 {
        let before = counted(totals.outcomes.not_blamed, "more disallowed request");
        writeln!(out, "{before} came before --effective-from")?;
    }
    report.if_refused().into_iter().try_for_each(|line| writeln!(out, "{line}"))?;
    report.headlines().try_for_each(|line| writeln!(out, "  {}", printable(line)))?;
    split(out, report)
}

/// Items below a title, some of all of a kind; nothing where there are none.
fn listing(
    out: &mut impl Write,
    title: &str,
    items: impl Iterator<Item = String>,
    (all, what): (usize, &str),
) -> io::Result<()> {
    let items: Vec<_> = items.collect();
    if !items.is_empty() {
        writeln!(out, "\n{title}")?;
        items.iter().try_for_each(|item| writeln!(out, "  {item}"))?;
    }
    match all.saturating_sub(items.len()) {
        0 => Ok(()),
        more => writeln!(out, "  and {}", counted(more as u64, what)),
    }
}

/// Crawlers that came sooner than their delay lets them.
fn paces(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let file = printable(report.against.as_ref().unwrap_or(&report.robots));
    let rows = report.paces.iter().take(CRAWLERS);
    let width = rows.clone().map(|row| row.crawler.chars().count()).max().unwrap_or(0);
    let item =
        |row: &PaceCount| format!("{:width$}  {} ({file}:{})", printable(&row.crawler), row.sentence(), row.line);
    listing(out, "faster than asked", rows.map(item), (report.paces.len(), "more crawler"))?;
    let is_together = report.paces.iter().any(|row| row.paced.without_address > 0);
    if is_together { writeln!(out, "  {COUNTED_TOGETHER}") } else { Ok(()) }
}

fn balances(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let rows = report.given_back.iter().take(history::SHOWN);
    let items = rows.map(|balance| format!("{}: {}", printable(&balance.operator), printable(balance.sentence())));
    listing(out, "what crawling gives back, by operator", items, (0, ""))
}

const fn are(count: u64) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

fn engines(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let title = "the change shuts search engines out of paths that they requested: these pages may leave the index";
    let rows = report.crawlers.iter().filter(|row| report.search_engines_shut_out.contains(&row.name));
    let item = |row: &ReportedCrawler| {
        format!("{:24} {:>8} shut out", printable(&row.name), grouped(row.counts.outcomes.shut))
    };
    listing(out, title, rows.map(item), (0, ""))
}

fn suspects(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let title = match report.suspect_human_count {
        1 => "1 visitor under a crawler's name may be a person: it fetches assets as browsers do".to_owned(),
        count => {
            let count = grouped(count as u64);
            format!("{count} visitors under crawlers' names may be people: they fetch assets as browsers do")
        }
    };
    let item = |suspect: &Suspect| {
        let [address, claims, target] = [&suspect.address, &suspect.claims, &suspect.target].map(printable);
        format!("{address:20} {claims:24} {:>8} disallowed, such as {target}", grouped(suspect.disallowed))
    };
    listing(out, &title, report.suspect_humans.iter().map(item), (report.suspect_human_count, "more visitor"))
}

fn crawlers(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.crawlers.is_empty() {
        return Ok(());
    }
    let rows = &report.crawlers[..report.crawlers.len().min(CRAWLERS)];
    let width = rows.iter().map(|row| printable(&row.name).chars().count()).max().unwrap_or(0).clamp(7, 32);
    let most = rows.iter().map(|row| row.counts.requests).max().unwrap_or(1);
    let (second, third) = if report.is_compared() { ("shut out", "let in") } else { ("disallowed", "share") };
    writeln!(
        out,
        "\n{:width$} {:>11} {:>9} {second:>11} {third:>8}  {:BAR$}  robots.txt",
        "crawler", "requests", "verified", "█ disallowed ░ not"
    )?;
    for row in rows {
        let name = cut(&printable(&row.name), width);
        let (second, third) = if report.is_compared() {
            (grouped(row.counts.outcomes.shut), grouped(row.counts.outcomes.opened))
        } else {
            (grouped(row.counts.outcomes.disallowed), percent(row.counts.outcomes.disallowed, row.counts.requests))
        };
        let read = match row.counts.robots_txt {
            0 => "never fetched".to_owned(),
            1 => "fetched once".to_owned(),
            times => format!("fetched {} times", grouped(times)),
        };
        let verified = if row.identity.is_checked { grouped(row.identity.verified.requests) } else { "-".to_owned() };
        let (requests, bar) = (grouped(row.counts.requests), bar(row, most));
        writeln!(out, "{name:width$} {requests:>11} {verified:>9} {second:>11} {third:>8}  {bar}  {read}")?;
    }
    let rest = report.crawlers[rows.len()..].iter().map(|row| row.counts.requests);
    more_crawlers(rest).map_or(Ok(()), |more| writeln!(out, "and {more}"))
}

/// A name in this many columns.
fn cut(name: &str, width: usize) -> String {
    if name.chars().count() <= width {
        return name.to_owned();
    }
    name.chars().take(width - 1).chain(['…']).collect()
}

/// Requests as a bar: disallowed ones dark, allowed ones light.
fn bar(row: &ReportedCrawler, most: u64) -> String {
    // A count above zero takes one column at least.
    let columns = |count: u64| {
        let exact = count as f64 / most.max(1) as f64 * BAR as f64;
        if count == 0 { 0 } else { (exact.round() as usize).clamp(1, BAR) }
    };
    let all = columns(row.counts.requests);
    let dark = columns(row.counts.outcomes.disallowed).min(all);
    format!("{}{}{}", "█".repeat(dark), "░".repeat(all - dark), " ".repeat(BAR - all))
}

fn details(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let mut rows = report.crawlers.iter().filter(|row| !row.by_rule.rules.is_empty()).take(DETAILED);
    rows.try_for_each(|row| rules(out, report, &row.name, &row.by_rule))
}

fn others(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let Some(others) = other_requests(&report.others).filter(|_| report.has_others()) else { return Ok(()) };
    writeln!(out, "\nrequests that are not of crawlers: {others}")?;
    let held: u64 = report.others.iter().map(|row| row.disallowed).sum();
    let because = "because the policy applies the rules for \"*\" to them";
    if held > 0 { writeln!(out, "of them {} {} disallowed, {because}", grouped(held), are(held)) } else { Ok(()) }
}

/// How many rules are shown of a crawler, and how many patterns of a rule.
const RULES: usize = 8;
const PATTERNS: usize = 5;

/// The rules that decide about what is requested under a name, and its paths.
pub(super) fn rules(out: &mut impl Write, report: &Report, name: &str, by_rule: &RuleRows) -> io::Result<()> {
    let what = if report.is_compared() { "what changes" } else { "what is disallowed" };
    writeln!(out, "\n{}: {what}, by rule and path", printable(name))?;
    for rule in by_rule.rules.iter().take(RULES) {
        writeln!(out, "  {:>10}  {}", grouped(rule.requests), printable(rule.sentence()))?;
        for path in rule.paths.iter().take(PATTERNS) {
            writeln!(out, "  {:>10}    {}", grouped(path.requests), printable(&path.pattern))?;
        }
        let rest = rule.paths.iter().skip(PATTERNS).map(|path| path.requests);
        if let Some((requests, patterns)) = rest_of(rest, rule.other_paths, rule.other_paths_requests, "more pattern") {
            writeln!(out, "  {requests:>10}    of {patterns}")?;
        }
    }
    let rest = by_rule.rules.iter().skip(RULES).map(|rule| rule.requests);
    if let Some((requests, rules)) = rest_of(rest, by_rule.other_rules, by_rule.other_rules_requests, "more rule") {
        writeln!(out, "  {requests:>10}  by {rules}")?;
    }
    Ok(())
}

/// The requests of what is not shown, with what the report does not hold, and how many they are of; `None` where all is shown.
fn rest_of(
    rest: impl ExactSizeIterator<Item = u64>,
    others: u64,
    of_others: u64,
    what: &str,
) -> Option<(String, String)> {
    let count = rest.len() as u64 + others;
    (count > 0).then(|| (grouped(rest.sum::<u64>() + of_others), counted(count, what)))
}

/// Crawlers whose impostors are shown, addresses of each, and how many of them with rules and paths.
const IMPOSTORS: usize = 10;
const ADDRESSES: usize = 5;
const DETAILED_IMPOSTORS: usize = 3;

/// Whose requests they are.
pub(super) fn split(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let Some(evidence) = report.identity.evidence() else { return Ok(()) };
    writeln!(out, "{evidence}:")?;
    for (share, whose) in report.identity.shares() {
        let (harm, what) =
            if report.is_compared() { (share.shut, "newly disallowed") } else { (share.disallowed, "disallowed") };
        writeln!(out, "  {:>10}  {whose} ({} {what})", grouped(share.requests), grouped(harm))?;
    }
    Ok(())
}

/// Crawlers whose claims fail because of the path, as it seems.
fn suspect_paths(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let title = "suspect path: these have no address of their operator, and nothing shows that the log has the addresses of \
                 clients;\na proxy that is missing in trusted_proxies does that, so they count as claimed";
    let item = |suspect: &SuspectRow| {
        let more = if suspect.other_addresses > 0 { ", …" } else { "" };
        let (requests, addresses) = (counted(suspect.requests, "request"), suspect.addresses.join(", "));
        format!("{:24} {requests:>18} from {}{more}", printable(&suspect.crawler), printable(&addresses))
    };
    listing(out, title, report.identity.suspect_paths.iter().map(item), (0, ""))
}

/// Requests of impostors.
pub(super) fn impostors(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.impostors.is_empty() {
        return Ok(());
    }
    let third = if report.is_compared() { "shut out" } else { "disallowed" };
    writeln!(out, "\n{:24} {:>11} {third:>11}  from", "impostors of", "requests")?;
    for row in report.impostors.iter().take(IMPOSTORS) {
        let harm = if report.is_compared() { row.counts.outcomes.shut } else { row.counts.outcomes.disallowed };
        let (requests, harm) = (grouped(row.counts.requests), grouped(harm));
        let (crawler, from) = (printable(&row.crawler), printable(row.addresses_in_words(ADDRESSES)));
        writeln!(out, "{crawler:24} {requests:>11} {harm:>11}  {from}")?;
    }
    let rest = report.impostors.get(IMPOSTORS..).unwrap_or_default().iter().map(|row| row.counts.requests);
    if let Some(more) = more_crawlers(rest) {
        writeln!(out, "and of {more}")?;
    }
    let mut rows = report.impostors.iter().filter(|row| !row.by_rule.rules.is_empty()).take(DETAILED_IMPOSTORS);
    rows.try_for_each(|row| rules(out, report, &format!("impostors of {}", row.crawler), &row.by_rule))
}

/// Why requests could be anyone's.
fn reasons(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let reasons = report.identity.reasons().into_iter();
    let items = reasons.map(|(reason, requests)| format!("{:>10}  {reason}", grouped(requests)));
    listing(out, "why requests could be anyone's", items, (0, ""))
}
