//! The table of crawlers, and a section for each crawler whose requests are disallowed or change.
//!
//! In a narrow window each row of a table becomes a block, with the heads of the columns before the cells (`data-label`).

use std::io::{self, Write};

use super::Report;
use super::rows::{RequestCounts, RequestOutcomes, RuleRow, RuleRows};
use crate::html::{Escaped, counted, grouped};

pub(super) fn write(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.lacks_names() {
        return Ok(());
    }
    if report.crawlers.is_empty() {
        return out.write_all(b"<p>The logs hold no request by a crawler.</p>\n");
    }
    crawlers(out, report)?;
    if report.crawlers.iter().all(|row| row.by_rule.rules.is_empty()) {
        return Ok(());
    }
    let what = if report.is_compared() { "What changes" } else { "What is disallowed" };
    writeln!(out, "<section><h2>{what}, by rule and path</h2>\n<p class=\"sub\">A * stands for what varies.</p>")?;
    for (at, row) in report.crawlers.iter().enumerate().filter(|(_, row)| !row.by_rule.rules.is_empty()) {
        details(out, &format!("crawler-{at}"), &row.name, ("crawlers", "all crawlers"), &row.by_rule)?;
    }
    out.write_all(b"</section>\n")
}

/// A column of numbers, and its value in a row.
type Column = (&'static str, fn(&RequestOutcomes) -> u64);

/// The columns of what became of requests.
fn outcome_columns(report: &Report, has_early: bool) -> Vec<Column> {
    let mut columns: Vec<Column> = vec![("Allowed", |of| of.allowed), ("Disallowed", |of| of.disallowed)];
    if report.totals.outcomes.not_blamed > 0 || has_early {
        columns.push(("Counted apart", |of| of.not_blamed));
    }
    if report.is_compared() {
        columns.push(("Shut out", |of| of.shut));
        columns.push(("Let in", |of| of.opened));
    }
    columns
}

fn number_head(out: &mut impl Write, head: &str) -> io::Result<()> {
    write!(out, "<th scope=\"col\" class=\"n\">{head}</th>")
}

fn number(out: &mut impl Write, head: &str, value: &str) -> io::Result<()> {
    write!(out, "<td class=\"n\" data-label=\"{head}\">{value}</td>")
}

/// The head of a row, which leads to the rules that decide about its requests, where there are any.
fn row_head(out: &mut impl Write, id: &str, name: &str, by_rule: &RuleRows) -> io::Result<()> {
    let name = Escaped(name);
    match by_rule.rules.is_empty() {
        true => write!(out, "<tr><th scope=\"row\">{name}</th>"),
        false => write!(out, "<tr><th scope=\"row\"><a href=\"#{id}\">{name}</a></th>"),
    }
}

fn crawlers(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let columns = outcome_columns(report, false);
    out.write_all(
        b"<section id=\"crawlers\"><h2>Crawlers</h2>\n<table class=\"stacked\"><thead><tr>\
          <th scope=\"col\">Crawler</th><th scope=\"col\">Category</th>",
    )?;
    let heads = ["Requests", "Verified"].into_iter().chain(columns.iter().map(|(head, _)| *head));
    heads.chain(["robots.txt fetched"]).try_for_each(|head| number_head(out, head))?;
    out.write_all(b"</tr></thead><tbody>\n")?;
    for (at, row) in report.crawlers.iter().enumerate() {
        let RequestCounts { requests, outcomes, robots_txt } = &row.counts;
        row_head(out, &format!("crawler-{at}"), &row.name, &row.by_rule)?;
        let category = row.category.map_or(row.class.as_str(), |category| category.as_str());
        write!(out, "<td data-label=\"Category\">{category}</td>")?;
        number(out, "Requests", &grouped(*requests))?;
        number(out, "Verified", &grouped(row.identity.verified.requests))?;
        columns.iter().try_for_each(|(head, value)| number(out, head, &grouped(value(outcomes))))?;
        let fetched = if *robots_txt == 0 { "never".to_owned() } else { grouped(*robots_txt) };
        number(out, "robots.txt fetched", &fetched)?;
        out.write_all(b"</tr>\n")?;
    }
    out.write_all(b"</tbody></table></section>\n")
}

/// The rules that decide about what is requested under a name, under a heading that leads back to a table.
pub(super) fn details(
    out: &mut impl Write,
    id: &str,
    name: &str,
    (table, back): (&str, &str),
    by_rule: &RuleRows,
) -> io::Result<()> {
    writeln!(
        out,
        "<h3 id=\"{id}\">{} <a href=\"#{table}\">{back}</a></h3>\n<table class=\"rules\"><thead><tr>\
         <th scope=\"col\">Rule, and its paths</th><th scope=\"col\" class=\"n\">Requests</th></tr></thead><tbody>",
        Escaped(name)
    )?;
    for rule in &by_rule.rules {
        rule_rows(out, rule)?;
    }
    if by_rule.other_rules > 0 {
        let name = counted(by_rule.other_rules, "more rule");
        writeln!(out, "{}", line("rule", &name, by_rule.other_rules_requests))?;
    }
    out.write_all(b"</tbody></table>\n")
}

fn rule_rows(out: &mut impl Write, rule: &RuleRow) -> io::Result<()> {
    let effect = rule.effect_words();
    let file = Escaped(&rule.file);
    let name = match (rule.line, &rule.pattern) {
        (Some(number), Some(pattern)) => {
            format!("{effect}<code>Disallow: {}</code> <small>{file}:{number}</small>", Escaped(pattern))
        }
        _ => format!("{effect}other rules <small>{file}</small>"),
    };
    writeln!(out, "{}", line("rule", &name, rule.requests))?;
    for path in &rule.paths {
        let name = format!("<code>{}</code>", Escaped(&path.pattern));
        writeln!(out, "{}", line("path", &name, path.requests))?;
    }
    if rule.other_paths > 0 {
        let name = counted(rule.other_paths, "more pattern");
        writeln!(out, "{}", line("path", &name, rule.other_paths_requests))?;
    }
    Ok(())
}

/// A row of a name, which is markup already, and a count.
fn line(class: &str, name: &str, requests: u64) -> String {
    format!("<tr class=\"{class}\"><th scope=\"row\">{name}</th><td class=\"n\">{}</td></tr>", grouped(requests))
}

/// Crawlers whose claims fail because of the path, as it seems.
pub(super) fn suspect_paths(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let suspects = &report.identity.suspect_paths;
    if suspects.is_empty() {
        return Ok(());
    }
    out.write_all(
        b"<section class=\"warn\"><h2>Suspect path</h2>\n<p>These have no address of their operator, and nothing shows that \
          the log has the addresses of clients. A proxy that is missing in <code>trusted_proxies</code> does that, so they \
          count as claimed, not as impostors.</p>\n<ul>\n",
    )?;
    for suspect in suspects {
        let more = if suspect.other_addresses > 0 { ", \u{2026}" } else { "" };
        let (requests, addresses) = (counted(suspect.requests, "request"), suspect.addresses.join(", "));
        writeln!(out, "<li>{}: {requests} from {}{more}</li>", Escaped(&suspect.crawler), Escaped(&addresses))?;
    }
    out.write_all(b"</ul></section>\n")
}

/// What is verified, claimed and an impostor's, and why claims are no more than that.
pub(super) fn split(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let identity = &report.identity;
    let Some(evidence) = identity.evidence() else { return Ok(()) };
    writeln!(
        out,
        "<section><h2>Who sent them</h2>\n<p class=\"sub\">As far as claims can be checked {}.</p>\n\
         <table class=\"stacked\"><thead><tr><th scope=\"col\">Sender</th><th scope=\"col\" class=\"n\">Requests</th>\
         <th scope=\"col\" class=\"n\">Disallowed</th></tr></thead><tbody>",
        Escaped(&evidence)
    )?;
    let split = &identity.split;
    for (name, share) in [
        ("Verified crawlers", split.verified),
        ("Only claimed", split.claimed),
        ("Impostors, counted in no other table", split.impostors),
    ] {
        write!(out, "<tr><th scope=\"row\">{name}</th>")?;
        number(out, "Requests", &grouped(share.requests))?;
        number(out, "Disallowed", &grouped(share.disallowed))?;
        out.write_all(b"</tr>\n")?;
    }
    out.write_all(b"</tbody></table>\n")?;
    let reasons = identity.reasons();
    if !reasons.is_empty() {
        out.write_all(b"<p class=\"sub\">Only claimed, because:</p>\n<ul>\n")?;
        for (reason, requests) in reasons {
            writeln!(out, "<li>{}: {}</li>", Escaped(&reason), counted(requests, "request"))?;
        }
        out.write_all(b"</ul>\n")?;
    }
    out.write_all(b"</section>\n")
}

/// What impostors did.
pub(super) fn impostors(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.impostors.is_empty() {
        return Ok(());
    }
    let columns = outcome_columns(report, report.impostors.iter().any(|row| row.counts.outcomes.not_blamed > 0));
    out.write_all(
        b"<section id=\"impostors\"><h2>Impostors</h2>\n<p class=\"sub\">Requests under a crawler's name from addresses that \
          are not its operator's. No crawler is blamed for them.</p>\n<table class=\"stacked\"><thead><tr>\
          <th scope=\"col\">Impostors of</th>",
    )?;
    let mut heads = ["Requests"].into_iter().chain(columns.iter().map(|(head, _)| *head));
    heads.try_for_each(|head| number_head(out, head))?;
    out.write_all(b"<th scope=\"col\">From</th></tr></thead><tbody>\n")?;
    for (at, row) in report.impostors.iter().enumerate() {
        row_head(out, &format!("impostor-{at}"), &row.crawler, &row.by_rule)?;
        number(out, "Requests", &grouped(row.counts.requests))?;
        columns.iter().try_for_each(|(head, value)| number(out, head, &grouped(value(&row.counts.outcomes))))?;
        writeln!(out, "<td data-label=\"From\">{}</td></tr>", Escaped(&row.addresses_in_words(usize::MAX)))?;
    }
    out.write_all(b"</tbody></table>\n")?;
    for (at, row) in report.impostors.iter().enumerate().filter(|(_, row)| !row.by_rule.rules.is_empty()) {
        let name = format!("Impostors of {}", row.crawler);
        details(out, &format!("impostor-{at}"), &name, ("impostors", "all impostors"), &row.by_rule)?;
    }
    out.write_all(b"</section>\n")
}
