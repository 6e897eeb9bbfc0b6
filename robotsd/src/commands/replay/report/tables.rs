//! The table of crawlers, and a section for each crawler whose requests are disallowed or change.
//!
//! In a narrow window each row of a table becomes a block, with the heads of the columns before the cells (`data-label`).

use std::io::{self, Write};

use super::contents::Report;
use super::log_gaps::lacks_names;
use super::rule_rows::{RuleRow, RuleRows};
use crate::html::escaped::Escaped;
use crate::html::figures::{counted, grouped};

pub(super) fn write(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if lacks_names(report) {
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

fn crawlers(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let mut heads = vec!["Requests", "Verified", "Allowed", "Disallowed"];
    if report.totals.outcomes.not_blamed > 0 {
        heads.push("Counted apart");
    }
    if report.is_compared() {
        heads.extend(["Shut out", "Let in"]);
    }
    heads.push("robots.txt fetched");
    out.write_all(
        b"<section id=\"crawlers\"><h2>Crawlers</h2>\n<table class=\"stacked\"><thead><tr>\
          <th scope=\"col\">Crawler</th><th scope=\"col\">Category</th>",
    )?;
    for head in &heads {
        write!(out, "<th scope=\"col\" class=\"n\">{head}</th>")?;
    }
    out.write_all(b"</tr></thead><tbody>\n")?;
    for (at, row) in report.crawlers.iter().enumerate() {
        let category = row.category.map_or(row.class.as_str(), |category| category.as_str());
        let name = Escaped(&row.name);
        out.write_all(b"<tr><th scope=\"row\">")?;
        if row.by_rule.rules.is_empty() {
            write!(out, "{name}")?;
        } else {
            write!(out, "<a href=\"#crawler-{at}\">{name}</a>")?;
        }
        write!(out, "</th><td data-label=\"Category\">{category}</td>")?;
        for head in &heads {
            let value = match *head {
                "Requests" => grouped(row.counts.requests),
                "Verified" => grouped(row.identity.verified.requests),
                "Allowed" => grouped(row.counts.outcomes.allowed),
                "Disallowed" => grouped(row.counts.outcomes.disallowed),
                "Counted apart" => grouped(row.counts.outcomes.not_blamed),
                "Shut out" => grouped(row.counts.outcomes.shut),
                "Let in" => grouped(row.counts.outcomes.opened),
                _ if row.counts.robots_txt == 0 => "never".to_owned(),
                _ => grouped(row.counts.robots_txt),
            };
            write!(out, "<td class=\"n\" data-label=\"{head}\">{value}</td>")?;
        }
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
