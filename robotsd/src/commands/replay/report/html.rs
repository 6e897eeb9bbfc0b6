//! The report as one page: no scripts, nothing to load, legible in the dark and in the light.
//!
//! Logs hold text of unknown clients; all of it goes through [`Escaped`].

use std::io::{self, Write};

use super::contents::Report;
use super::log_gaps::{has_others, log_gaps};
use super::others::other_requests;
use super::pace_rows::COUNTED_TOGETHER;
use super::{chart, senders_html, tables, warnings};
use crate::html::STYLE;
use crate::html::escaped::Escaped;
use crate::html::figures::{counted, grouped, percent, period};

/// Crawlers in a chart.
const CHARTED: usize = 20;

pub(super) fn write(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let title = match &report.against {
        Some(against) => format!("changing {} to {against}", report.robots),
        None => report.robots.clone(),
    };
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>Replay: {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
        Escaped(&title)
    )?;
    head(out, report, &title)?;
    warnings::write(out, report)?;
    senders_html::suspect_paths(out, report)?;
    senders_html::split(out, report)?;
    charts(out, report)?;
    tables::write(out, report)?;
    paces(out, report)?;
    senders_html::impostors(out, report)?;
    foot(out, report)?;
    out.write_all(b"</main>\n</body>\n</html>\n")
}

fn head(out: &mut impl Write, report: &Report, title: &str) -> io::Result<()> {
    writeln!(out, "<h1>What {} would have done</h1>", Escaped(title))?;
    write!(out, "<p class=\"sub\">{}", counted(report.requests, "request"))?;
    if let (Some(first), Some(last)) = (report.first, report.last) {
        write!(out, ", {}", period(first, last))?;
    }
    writeln!(out, ", from {}</p>", Escaped(&report.logs.join(", ")))?;
    let totals = &report.totals;
    out.write_all(b"<div class=\"cards\">\n")?;
    card(
        out,
        "Requests by crawlers",
        totals.crawler_requests,
        &share(totals.crawler_requests, report.requests, "of all requests"),
    )?;
    card(
        out,
        "Disallowed",
        totals.outcomes.disallowed,
        &share(totals.outcomes.disallowed, totals.crawler_requests, "of those"),
    )?;
    if report.is_compared() {
        card(out, "Shut out by the change", totals.outcomes.shut, "were allowed before")?;
        card(out, "Let in by the change", totals.outcomes.opened, "were disallowed before")?;
    } else {
        card(
            out,
            "Allowed",
            totals.outcomes.allowed,
            &share(totals.outcomes.allowed, totals.crawler_requests, "of those"),
        )?;
    }
    if totals.outcomes.not_blamed > 0 {
        card(out, "Counted apart", totals.outcomes.not_blamed, "came before --effective-from")?;
    }
    if report.identity.split.impostors.requests > 0 {
        let note = "under a crawler's name, counted apart";
        card(out, "Requests by impostors", report.identity.split.impostors.requests, note)?;
    }
    card(out, "Suspected people", report.suspect_human_count as u64, "under a crawler's name")?;
    out.write_all(b"</div>\n")?;
    for gap in log_gaps(report) {
        writeln!(out, "<p class=\"warn\">{}.</p>", Escaped(&gap))?;
    }
    Ok(())
}

/// Crawlers that came sooner than their delay lets them.
fn paces(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.paces.is_empty() {
        return Ok(());
    }
    let file = report.against.as_ref().unwrap_or(&report.robots);
    out.write_all(b"<section><h2>Faster than asked</h2>\n<ul>\n")?;
    for row in report.paces.iter().take(CHARTED) {
        let (name, file) = (Escaped(&row.name), Escaped(file));
        writeln!(out, "<li>{name}: {} <small>{file}:{}</small></li>", row.sentence(), row.line)?;
    }
    let more = report.paces.len().saturating_sub(CHARTED);
    if more > 0 {
        writeln!(out, "<li>and {}</li>", counted(more as u64, "more crawler"))?;
    }
    out.write_all(b"</ul>\n")?;
    if report.paces.iter().any(|row| row.without_address > 0) {
        writeln!(out, "<p>{COUNTED_TOGETHER}.</p>")?;
    }
    out.write_all(b"</section>\n")
}

fn share(part: u64, whole: u64, of: &str) -> String {
    format!("{} {of}", percent(part, whole))
}

fn card(out: &mut impl Write, title: &str, number: u64, note: &str) -> io::Result<()> {
    writeln!(
        out,
        "<div class=\"card\"><span>{title}</span><b>{}</b><small>{}</small></div>",
        grouped(number),
        Escaped(note)
    )
}

fn charts(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.crawlers.is_empty() {
        return Ok(());
    }
    if report.is_compared() {
        change(out, report)?;
    }
    let disallowed = format!("disallowed by {}", report.against.as_ref().unwrap_or(&report.robots));
    let early = (report.totals.outcomes.not_blamed > 0).then_some(("early", "disallowed, but before --effective-from"));
    out.write_all(b"<section><h2>By crawler</h2>\n")?;
    key(out, [("disallowed", disallowed.as_str())].into_iter().chain(early).chain([("allowed", "allowed")]))?;
    let (shown, rest) = report.crawlers.split_at(report.crawlers.len().min(CHARTED));
    chart::crawlers(out, shown)?;
    more_crawlers(out, rest.len(), rest.iter().map(|row| row.counts.requests).sum())?;
    out.write_all(b"</section>\n")?;
    if report.is_compared() || report.hours.is_empty() {
        return Ok(());
    }
    out.write_all(b"<section><h2>Over time</h2>\n")?;
    chart::hours(out, &report.hours)?;
    out.write_all(b"</section>\n")
}

/// What the change changes, by crawler and over time.
fn change(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let changed: Vec<_> =
        report.crawlers.iter().filter(|row| row.counts.outcomes.shut + row.counts.outcomes.opened > 0).collect();
    if changed.is_empty() {
        return out.write_all(b"<section><h2>The change</h2>\n<p>No request is judged differently.</p></section>\n");
    }
    out.write_all(b"<section><h2>The change, by crawler</h2>\n")?;
    key(out, [("disallowed", "shut out"), ("opened", "let in")])?;
    let (shown, rest) = changed.split_at(changed.len().min(CHARTED));
    chart::change(out, shown)?;
    more_crawlers(out, rest.len(), rest.iter().map(|row| row.counts.outcomes.shut + row.counts.outcomes.opened).sum())?;
    out.write_all(b"</section>\n")?;
    if report.hours.is_empty() {
        return Ok(());
    }
    out.write_all(b"<section><h2>The change, over time</h2>\n")?;
    key(out, [("engine", "search engines shut out"), ("disallowed", "other crawlers shut out"), ("opened", "let in")])?;
    chart::changed_hours(out, &report.hours)?;
    out.write_all(b"</section>\n")
}

/// What the colours of a chart mean.
fn key<'a>(out: &mut impl Write, parts: impl IntoIterator<Item = (&'a str, &'a str)>) -> io::Result<()> {
    out.write_all(b"<p class=\"key\">")?;
    for (class, meaning) in parts {
        write!(out, "<span><i class=\"{class}\"></i>{}</span> ", Escaped(meaning))?;
    }
    out.write_all(b"</p>\n")
}

fn more_crawlers(out: &mut impl Write, count: usize, requests: u64) -> io::Result<()> {
    if count == 0 {
        return Ok(());
    }
    let (crawlers, requests) = (counted(count as u64, "more crawler"), counted(requests, "request"));
    writeln!(out, "<p class=\"sub\">and {crawlers} with {requests}</p>")
}

fn foot(out: &mut impl Write, report: &Report) -> io::Result<()> {
    out.write_all(b"<footer>\n")?;
    if let Some(others) = other_requests(&report.others).filter(|_| has_others(report)) {
        writeln!(out, "<p>Requests that are not of crawlers: {others}.</p>")?;
    }
    if report.unread_lines > 0 {
        writeln!(out, "<p>{} could not be read, such as:</p>", counted(report.unread_lines, "line"))?;
        for line in &report.unread_samples {
            writeln!(out, "<p><code>{}</code></p>", Escaped(line))?;
        }
    }
    out.write_all(
        b"<p>Crawlers are identified by what they claim, which is checked as far as evidence goes. The counts of paths add up to those of their rules; where a crawler \
          requested very many paths, a * may hold some requests of a path that is listed as well.</p>\n</footer>\n",
    )
}
