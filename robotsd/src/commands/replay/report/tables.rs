//! The table of crawlers, and a section for each crawler whose requests are disallowed or change.
//!
//! In a narrow window each row of a table becomes a block, with the heads of the columns before the cells (`data-label`).

use std::io::{self, Write};

use super::contents::{CrawlerRow, Report, RuleRow};
use crate::html::escaped::Escaped;
use crate::html::figures::{counted, grouped};

pub(super) fn write(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.crawlers.is_empty() {
        return out.write_all(b"<p>The logs hold no request by a crawler.</p>\n");
    }
    crawlers(out, report)?;
    if report.crawlers.iter().all(|row| row.rules.is_empty()) {
        return Ok(());
    }
    let what = if report.is_compared() { "What changes" } else { "What is disallowed" };
    writeln!(out, "<section><h2>{what}, by rule and path</h2>\n<p class=\"sub\">A * stands for what varies.</p>")?;
    for (at, row) in report.crawlers.iter().enumerate().filter(|(_, row)| !row.rules.is_empty()) {
        details(out, at, row)?;
    }
    out.write_all(b"</section>\n")
}

fn crawlers(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let mut heads = vec!["Requests", "Allowed", "Disallowed"];
    if report.totals.not_blamed > 0 {
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
        if row.rules.is_empty() {
            write!(out, "{name}")?;
        } else {
            write!(out, "<a href=\"#crawler-{at}\">{name}</a>")?;
        }
        write!(out, "</th><td data-label=\"Category\">{category}</td>")?;
        for head in &heads {
            let value = match *head {
                "Requests" => grouped(row.requests),
                "Allowed" => grouped(row.allowed),
                "Disallowed" => grouped(row.disallowed),
                "Counted apart" => grouped(row.not_blamed),
                "Shut out" => grouped(row.shut),
                "Let in" => grouped(row.opened),
                _ if row.robots_txt == 0 => "never".to_owned(),
                _ => grouped(row.robots_txt),
            };
            write!(out, "<td class=\"n\" data-label=\"{head}\">{value}</td>")?;
        }
        out.write_all(b"</tr>\n")?;
    }
    out.write_all(b"</tbody></table></section>\n")
}

fn details(out: &mut impl Write, at: usize, row: &CrawlerRow) -> io::Result<()> {
    writeln!(
        out,
        "<h3 id=\"crawler-{at}\">{} <a href=\"#crawlers\">all crawlers</a></h3>\n<table class=\"rules\"><thead><tr>\
         <th scope=\"col\">Rule, and its paths</th><th scope=\"col\" class=\"n\">Requests</th></tr></thead><tbody>",
        Escaped(&row.name)
    )?;
    for rule in &row.rules {
        rule_rows(out, rule)?;
    }
    if row.other_rules > 0 {
        let name = counted(row.other_rules, "more rule");
        writeln!(out, "{}", line("rule", &name, row.other_rules_requests))?;
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
