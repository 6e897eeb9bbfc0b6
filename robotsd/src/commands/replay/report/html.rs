//! The report as one page with charts: no scripts, nothing to load, legible in the dark and in the light.
//!
//! Logs hold text of unknown clients; all of it goes through [`Escaped`]. Charts are plain HTML: they are as wide as the page, and
//! their text is as large as any other. Colours come from the page's style sheet, so that they follow its theme. Each number is
//! text, or the title of its bar.

use std::io::{self, Write};

use super::contents::{CrawlerRow, HourRow, Report, log_gaps, other_requests};
use super::rows::COUNTED_TOGETHER;
use super::tables;
use crate::commands::replay::tally::HourCounts;
use crate::html::{Escaped, STYLE, counted, grouped, moment, percent, period};

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
    engines(out, report)?;
    suspects(out, report)?;
    tables::suspect_paths(out, report)?;
    tables::split(out, report)?;
    charts(out, report)?;
    tables::write(out, report)?;
    paces(out, report)?;
    tables::impostors(out, report)?;
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
        let (name, file) = (Escaped(&row.crawler), Escaped(file));
        writeln!(out, "<li>{name}: {} <small>{file}:{}</small></li>", row.sentence(), row.line)?;
    }
    let more = report.paces.len().saturating_sub(CHARTED);
    if more > 0 {
        writeln!(out, "<li>and {}</li>", counted(more as u64, "more crawler"))?;
    }
    out.write_all(b"</ul>\n")?;
    if report.paces.iter().any(|row| row.paced.without_address > 0) {
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
    crawlers(out, shown)?;
    more_crawlers(out, rest.len(), rest.iter().map(|row| row.counts.requests).sum())?;
    out.write_all(b"</section>\n")?;
    if report.is_compared() || report.hours.is_empty() {
        return Ok(());
    }
    out.write_all(b"<section><h2>Over time</h2>\n")?;
    hours(out, &report.hours)?;
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
    change_by_crawler(out, shown)?;
    more_crawlers(out, rest.len(), rest.iter().map(|row| row.counts.outcomes.shut + row.counts.outcomes.opened).sum())?;
    out.write_all(b"</section>\n")?;
    if report.hours.is_empty() {
        return Ok(());
    }
    out.write_all(b"<section><h2>The change, over time</h2>\n")?;
    key(out, [("engine", "search engines shut out"), ("disallowed", "other crawlers shut out"), ("opened", "let in")])?;
    changed_hours(out, &report.hours)?;
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
    if let Some(others) = other_requests(&report.others).filter(|_| report.has_others()) {
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

fn engines(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.search_engines_shut_out.is_empty() {
        return Ok(());
    }
    out.write_all(
        b"<section class=\"warn\"><h2>Search engines are shut out</h2>\n<p>The change disallows paths that these search \
          engines requested. Such pages may leave the index.</p>\n<ul>\n",
    )?;
    for row in report.crawlers.iter().filter(|row| report.search_engines_shut_out.contains(&row.name)) {
        writeln!(out, "<li>{}: {} shut out</li>", Escaped(&row.name), counted(row.counts.outcomes.shut, "request"))?;
    }
    out.write_all(b"</ul></section>\n")
}

fn suspects(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.suspect_humans.is_empty() {
        return Ok(());
    }
    out.write_all(
        b"<section class=\"warn\"><h2>These may be people</h2>\n<p>They have a crawler's name, but fetch styles, scripts \
          and pictures with the site's own Referer, as browsers do. Some crawlers that render pages do so too: look \
          before you refuse them.</p>\n<table class=\"stacked\"><thead><tr><th scope=\"col\">Network</th>\
          <th scope=\"col\">Claims to be</th><th scope=\"col\" class=\"n\">Disallowed</th>\
          <th scope=\"col\">Such as</th></tr></thead><tbody>\n",
    )?;
    for suspect in &report.suspect_humans {
        writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td data-label=\"Claims to be\">{}</td>\
             <td class=\"n\" data-label=\"Disallowed\">{}</td><td data-label=\"Such as\"><code>{}</code></td></tr>",
            Escaped(&suspect.address),
            Escaped(&suspect.claims),
            grouped(suspect.disallowed),
            Escaped(&suspect.target)
        )?;
    }
    out.write_all(b"</tbody></table>\n")?;
    let more = report.suspect_human_count.saturating_sub(report.suspect_humans.len());
    if more > 0 {
        writeln!(out, "<p>and {}</p>", counted(more as u64, "more visitor"))?;
    }
    out.write_all(b"</section>\n")
}

/// Columns of the chart over time, at most.
const COLUMNS: i64 = 72;

/// Parts of a bar or column: the class that colours it, and its requests.
type Parts<const N: usize> = [(&'static str, u64); N];

/// Requests of each crawler, allowed and disallowed, as bars.
pub(super) fn crawlers(out: &mut impl Write, rows: &[CrawlerRow]) -> io::Result<()> {
    let most = rows.iter().map(|row| row.counts.requests).max().unwrap_or(0);
    out.write_all(b"<ul class=\"bars\">\n")?;
    for row in rows {
        let value = match row.counts.outcomes.disallowed {
            0 => counted(row.counts.requests, "request"),
            disallowed => {
                format!(
                    "{}, {} disallowed",
                    counted(row.counts.requests, "request"),
                    percent(disallowed, row.counts.requests)
                )
            }
        };
        let parts = [
            ("disallowed", row.counts.outcomes.disallowed),
            ("early", row.counts.outcomes.not_blamed),
            ("allowed", row.counts.outcomes.allowed),
        ];
        bar(out, &row.name, parts, most, &value)?;
    }
    out.write_all(b"</ul>\n")
}

/// Requests of each crawler that a change shuts out and lets in, as bars.
pub(super) fn change_by_crawler(out: &mut impl Write, rows: &[&CrawlerRow]) -> io::Result<()> {
    let most = rows.iter().map(|row| row.counts.outcomes.shut + row.counts.outcomes.opened).max().unwrap_or(0);
    out.write_all(b"<ul class=\"bars\">\n")?;
    for row in rows {
        let value =
            format!("{} shut out, {} let in", grouped(row.counts.outcomes.shut), grouped(row.counts.outcomes.opened));
        bar(
            out,
            &row.name,
            [("disallowed", row.counts.outcomes.shut), ("opened", row.counts.outcomes.opened)],
            most,
            &value,
        )?;
    }
    out.write_all(b"</ul>\n")
}

fn bar<const N: usize>(out: &mut impl Write, name: &str, parts: Parts<N>, most: u64, value: &str) -> io::Result<()> {
    write!(out, "<li><span>{}</span><span class=\"bar\">", Escaped(name))?;
    for (class, count) in parts.into_iter().filter(|(_, count)| *count > 0) {
        write!(out, "<i class=\"{class}\" style=\"width:{:.2}%\"></i>", of_hundred(count, most))?;
    }
    writeln!(out, "</span><span class=\"value\">{}</span></li>", Escaped(value))
}

/// Requests of crawlers over time, allowed and disallowed, as columns.
pub(super) fn hours(out: &mut impl Write, hours: &[HourRow]) -> io::Result<()> {
    let parts =
        |sum: &HourCounts| [("disallowed", sum.disallowed), ("early", sum.not_blamed), ("allowed", sum.allowed)];
    let title = |sum: &HourCounts| format!("{} allowed, {} disallowed", grouped(sum.allowed), grouped(sum.disallowed));
    columns(out, hours, "Requests of crawlers", parts, title)
}

/// Requests of crawlers over time that a change shuts out and lets in, as columns; those of search engines at the bottom.
fn changed_hours(out: &mut impl Write, hours: &[HourRow]) -> io::Result<()> {
    let parts = |sum: &HourCounts| {
        let others = sum.shut - sum.shut_search_engines;
        [("engine", sum.shut_search_engines), ("disallowed", others), ("opened", sum.opened)]
    };
    let title = |sum: &HourCounts| {
        let engines = grouped(sum.shut_search_engines);
        format!("{} shut out, {engines} of them of search engines, {} let in", grouped(sum.shut), grouped(sum.opened))
    };
    columns(out, hours, "Requests that the change shuts out or lets in", parts, title)
}

fn columns<const N: usize>(
    out: &mut impl Write,
    hours: &[HourRow],
    label: &str,
    parts: impl Fn(&HourCounts) -> Parts<N>,
    title: impl Fn(&HourCounts) -> String,
) -> io::Result<()> {
    let (Some(first), Some(last)) = (hours.first(), hours.last()) else { return Ok(()) };
    let (first, last) = (first.start, last.start);
    let step = (((last - first) / 3600 + 1) + COLUMNS - 1) / COLUMNS * 3600;
    let mut sums = vec![HourCounts::default(); usize::try_from((last - first) / step + 1).unwrap_or(1)];
    for hour in hours {
        if let Some(sum) = usize::try_from((hour.start - first) / step).ok().and_then(|at| sums.get_mut(at)) {
            sum.add(hour.counts);
        }
    }
    let height = |sum: &HourCounts| parts(sum).iter().map(|(_, count)| count).sum::<u64>();
    let most = sums.iter().map(height).max().unwrap_or(0);
    let every = if step == 3600 { "hour".to_owned() } else { format!("{} hours", step / 3600) };
    writeln!(
        out,
        "<figure><p class=\"most\">{} in the busiest {every}</p>\n\
         <div class=\"columns\" role=\"img\" aria-label=\"{label}, from {} to {} UTC, at most {} in {every}\">",
        counted(most, "request"),
        moment(first),
        moment(last + 3600),
        grouped(most)
    )?;
    for (at, sum) in sums.iter().enumerate() {
        let from = moment(first + step * at as i64);
        write!(out, "<span title=\"{from} UTC: {}\">", title(sum))?;
        for (class, count) in parts(sum).into_iter().rev().filter(|(_, count)| *count > 0) {
            write!(out, "<i class=\"{class}\" style=\"height:{:.2}%\"></i>", of_hundred(count, most))?;
        }
        out.write_all(b"</span>\n")?;
    }
    writeln!(
        out,
        "</div>\n<figcaption><span>{} UTC</span><span>{} UTC</span></figcaption></figure>",
        moment(first),
        moment(last + 3600)
    )
}

fn of_hundred(count: u64, most: u64) -> f64 {
    100.0 * count as f64 / most.max(1) as f64
}
