//! The report as one page with charts: no scripts, nothing to load, legible in the dark and in the light.
//!
//! Logs hold text of unknown clients; all of it goes through [`Escaped`]. Charts are plain HTML: they are as wide as the page, and
//! their text is as large as any other. Colours come from the page's style sheet, so that they follow its theme. Each number is
//! text, or the title of its bar.

use std::io::{self, Write};

use super::rows::{COUNTED_TOGETHER, RequestCounts, RequestOutcomes};
use super::{CrawlerRow, HourRow, Report, log_gaps, more_crawlers, other_requests};
use super::{history, tables};
use crate::commands::replay::tally::RequestTally;
use crate::html::{Escaped, STYLE, counted, grouped, moment, percent, period};

/// Crawlers in a chart.
const CHARTED: usize = 20;

pub(in crate::commands::replay) fn write(out: &mut impl Write, report: &Report) -> io::Result<()> {
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
    history::html(out, report.history.as_ref(), &report.given_back)?;
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
    let (crawlers, outcomes) = (totals.crawler_requests, &totals.outcomes);
    let share = |part, whole, of| format!("{} {of}", percent(part, whole));
    let as_said = str::to_owned;
    let mut cards = vec![
        ("Requests by crawlers", crawlers, share(crawlers, report.requests, "of all requests")),
        ("Disallowed", outcomes.disallowed, share(outcomes.disallowed, crawlers, "of those")),
    ];
    if report.is_compared() {
        cards.push(("Shut out by the change", outcomes.shut, as_said("were allowed before")));
        cards.push(("Let in by the change", outcomes.opened, as_said("were disallowed before")));
    } else {
        cards.push(("Allowed", outcomes.allowed, share(outcomes.allowed, crawlers, "of those")));
    }
    if outcomes.not_blamed > 0 {
        cards.push(("Counted apart", outcomes.not_blamed, as_said("came before --effective-from")));
    }
    let impostors = report.identity.split.impostors.requests;
    if impostors > 0 {
        cards.push(("Requests by impostors", impostors, as_said("under a crawler's name, counted apart")));
    }
    cards.push(("Suspected people", report.suspect_human_count as u64, as_said("under a crawler's name")));
    out.write_all(b"<div class=\"cards\">\n")?;
    for (title, number, note) in cards {
        let (number, note) = (grouped(number), Escaped(&note));
        writeln!(out, "<div class=\"card\"><span>{title}</span><b>{number}</b><small>{note}</small></div>")?;
    }
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

/// Requests by crawler and over time; first what a change changes.
fn charts(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.crawlers.is_empty() {
        return Ok(());
    }
    if report.is_compared() {
        change(out, report)?;
    }
    let disallowed = format!("disallowed by {}", report.against.as_ref().unwrap_or(&report.robots));
    let early = (report.totals.outcomes.not_blamed > 0).then_some(("early", "disallowed, but before --effective-from"));
    let meanings = [("disallowed", disallowed.as_str())].into_iter().chain(early).chain([("allowed", "allowed")]);
    let parts =
        |of: &RequestOutcomes| [("disallowed", of.disallowed), ("early", of.not_blamed), ("allowed", of.allowed)];
    let value = |row: &CrawlerRow| {
        let RequestCounts { requests, outcomes, .. } = row.counts;
        match outcomes.disallowed {
            0 => counted(requests, "request"),
            disallowed => format!("{}, {} disallowed", counted(requests, "request"), percent(disallowed, requests)),
        }
    };
    by_crawler(out, "By crawler", meanings, &report.crawlers.iter().collect::<Vec<_>>(), parts, value)?;
    if report.is_compared() || report.hours.is_empty() {
        return Ok(());
    }
    out.write_all(b"<section><h2>Over time</h2>\n")?;
    let parts =
        |sum: &RequestTally| [("disallowed", sum.disallowed), ("early", sum.not_blamed), ("allowed", sum.allowed())];
    let title =
        |sum: &RequestTally| format!("{} allowed, {} disallowed", grouped(sum.allowed()), grouped(sum.disallowed));
    columns(out, &report.hours, "Requests of crawlers", parts, title)?;
    out.write_all(b"</section>\n")
}

/// What the change changes, by crawler and over time.
fn change(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let parts = |of: &RequestOutcomes| [("disallowed", of.shut), ("opened", of.opened)];
    let changed: Vec<_> = report.crawlers.iter().filter(|row| sum(parts(&row.counts.outcomes)) > 0).collect();
    if changed.is_empty() {
        return out.write_all(b"<section><h2>The change</h2>\n<p>No request is judged differently.</p></section>\n");
    }
    let value = |row: &CrawlerRow| {
        let RequestOutcomes { shut, opened, .. } = row.counts.outcomes;
        format!("{} shut out, {} let in", grouped(shut), grouped(opened))
    };
    let meanings = [("disallowed", "shut out"), ("opened", "let in")];
    by_crawler(out, "The change, by crawler", meanings, &changed, parts, value)?;
    if report.hours.is_empty() {
        return Ok(());
    }
    out.write_all(b"<section><h2>The change, over time</h2>\n")?;
    key(out, [("engine", "search engines shut out"), ("disallowed", "other crawlers shut out"), ("opened", "let in")])?;
    // Those of search engines at the bottom.
    let parts = |sum: &RequestTally| {
        let others = sum.shut - sum.shut_search_engines;
        [("engine", sum.shut_search_engines), ("disallowed", others), ("opened", sum.opened)]
    };
    let title = |sum: &RequestTally| {
        let engines = grouped(sum.shut_search_engines);
        format!("{} shut out, {engines} of them of search engines, {} let in", grouped(sum.shut), grouped(sum.opened))
    };
    columns(out, &report.hours, "Requests that the change shuts out or lets in", parts, title)?;
    out.write_all(b"</section>\n")
}

/// What the colours of a chart mean.
fn key<'a>(out: &mut impl Write, meanings: impl IntoIterator<Item = (&'a str, &'a str)>) -> io::Result<()> {
    out.write_all(b"<p class=\"key\">")?;
    for (class, meaning) in meanings {
        write!(out, "<span><i class=\"{class}\"></i>{}</span> ", Escaped(meaning))?;
    }
    out.write_all(b"</p>\n")
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
        let [address, claims, target] = [&suspect.address, &suspect.claims, &suspect.target].map(|text| Escaped(text));
        let disallowed = grouped(suspect.disallowed);
        writeln!(
            out,
            "<tr><th scope=\"row\">{address}</th><td data-label=\"Claims to be\">{claims}</td>\
             <td class=\"n\" data-label=\"Disallowed\">{disallowed}</td><td data-label=\"Such as\"><code>{target}</code></td></tr>"
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

fn sum<const N: usize>(parts: Parts<N>) -> u64 {
    parts.iter().map(|(_, count)| count).sum()
}

/// A section with a bar for each crawler, and in a line what is left of them.
fn by_crawler<'a, const N: usize>(
    out: &mut impl Write,
    title: &str,
    meanings: impl IntoIterator<Item = (&'a str, &'a str)>,
    rows: &[&CrawlerRow],
    parts: impl Fn(&RequestOutcomes) -> Parts<N>,
    value: impl Fn(&CrawlerRow) -> String,
) -> io::Result<()> {
    writeln!(out, "<section><h2>{title}</h2>")?;
    key(out, meanings)?;
    let (shown, rest) = rows.split_at(rows.len().min(CHARTED));
    let height = |row: &&CrawlerRow| sum(parts(&row.counts.outcomes));
    let most = shown.iter().map(height).max().unwrap_or(0);
    out.write_all(b"<ul class=\"bars\">\n")?;
    for row in shown {
        write!(out, "<li><span>{}</span><span class=\"bar\">", Escaped(&row.name))?;
        for (class, count) in parts(&row.counts.outcomes).into_iter().filter(|(_, count)| *count > 0) {
            write!(out, "<i class=\"{class}\" style=\"width:{:.2}%\"></i>", of_hundred(count, most))?;
        }
        writeln!(out, "</span><span class=\"value\">{}</span></li>", Escaped(&value(row)))?;
    }
    out.write_all(b"</ul>\n")?;
    if let Some(more) = more_crawlers(rest.iter().map(height)) {
        writeln!(out, "<p class=\"sub\">and {more}</p>")?;
    }
    out.write_all(b"</section>\n")
}

/// Requests of crawlers over time, as columns.
fn columns<const N: usize>(
    out: &mut impl Write,
    hours: &[HourRow],
    label: &str,
    parts: impl Fn(&RequestTally) -> Parts<N>,
    title: impl Fn(&RequestTally) -> String,
) -> io::Result<()> {
    let (Some(first), Some(last)) = (hours.first(), hours.last()) else { return Ok(()) };
    let (first, last) = (first.start, last.start);
    let step = (((last - first) / 3600 + 1) + COLUMNS - 1) / COLUMNS * 3600;
    let mut sums = vec![RequestTally::default(); usize::try_from((last - first) / step + 1).unwrap_or(1)];
    for hour in hours {
        if let Some(sum) = usize::try_from((hour.start - first) / step).ok().and_then(|at| sums.get_mut(at)) {
            sum.add(&hour.tally);
        }
    }
    let most = sums.iter().map(|hours| sum(parts(hours))).max().unwrap_or(0);
    let every = if step == 3600 { "hour".to_owned() } else { format!("{} hours", step / 3600) };
    let (start, end) = (moment(first), moment(last + 3600));
    writeln!(out, "<figure><p class=\"most\">{} in the busiest {every}</p>", counted(most, "request"))?;
    let label = format!("{label}, from {start} to {end} UTC, at most {} in {every}", grouped(most));
    writeln!(out, "<div class=\"columns\" role=\"img\" aria-label=\"{label}\">")?;
    for (at, hours) in sums.iter().enumerate() {
        let from = moment(first + step * at as i64);
        write!(out, "<span title=\"{from} UTC: {}\">", title(hours))?;
        for (class, count) in parts(hours).into_iter().rev().filter(|(_, count)| *count > 0) {
            write!(out, "<i class=\"{class}\" style=\"height:{:.2}%\"></i>", of_hundred(count, most))?;
        }
        out.write_all(b"</span>\n")?;
    }
    writeln!(out, "</div>\n<figcaption><span>{start} UTC</span><span>{end} UTC</span></figcaption></figure>")
}

fn of_hundred(count: u64, most: u64) -> f64 {
    100.0 * count as f64 / most.max(1) as f64
}
