//! The report as one page with charts: no scripts, nothing to load, legible in the dark and in the light.
//!
//! Logs hold text of unknown clients; all of it goes through [`Escaped`]. The one style sheet is allowed by its hash. Each number is
//! text, or the title of its column.

use std::io::{self, Write};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::rows::{COUNTED_TOGETHER, SuspectRow};
use super::{Report, ReportedCrawler, Suspect, details, history, log_gaps, other_requests};
use crate::commands::replay::paces::PaceCount;
use crate::commands::replay::tally::RequestTally;
use crate::html::{
    ChartPart, Escaped, STYLE, TimeChart, bars, cards, counted, crawler_lines, grouped, moment, percent, period,
};

/// Crawlers in a list.
const LISTED: usize = 20;

pub(in crate::commands::replay) fn write(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let title = match &report.against {
        Some(against) => format!("changing {} to {against}", report.robots),
        None => report.robots.clone(),
    };
    let style = format!("\n{STYLE}");
    let hash = BASE64_STANDARD.encode(hmac_sha256::Hash::hash(style.as_bytes()));
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{hash}'\">\n\
         <title>Replay: {}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n",
        Escaped(&title)
    )?;
    head(out, report, &title)?;
    engines(out, report)?;
    suspects(out, report)?;
    suspect_paths(out, report)?;
    over_time(out, report)?;
    by_crawler(out, report)?;
    history::balances_html(out, &report.given_back)?;
    split(out, report)?;
    paces(out, report)?;
    foot(out, report)?;
    out.write_all(b"</main>\n</body>\n</html>\n")
}

fn head(out: &mut impl Write, report: &Report, title: &str) -> io::Result<()> {
    writeln!(out, "<h1>What {} would have done</h1>", Escaped(title))?;
    history::html(out, report.history.as_ref())?;
    write!(out, "<p class=\"sub\">{}", counted(report.requests, "request"))?;
    if let (Some(first), Some(last)) = (report.first, report.last) {
        write!(out, ", {}", period(first, last))?;
    }
    writeln!(out, ", from {}</p>", Escaped(&report.logs.join(", ")))?;
    let headlines: Vec<_> = report.headlines().map(|line| format!("<li>{}</li>\n", Escaped(&line))).collect();
    if !headlines.is_empty() {
        writeln!(out, "<ul class=\"lead\">{}</ul>", headlines.concat())?;
    }
    let totals = &report.totals;
    let (crawlers, outcomes) = (totals.crawler_requests, &totals.outcomes);
    let share = |part, whole, of| format!("{} {of}", percent(part, whole));
    let as_said = str::to_owned;
    let mut figures = vec![
        ("Requests by crawlers", crawlers, share(crawlers, report.requests, "of all requests")),
        ("Disallowed", outcomes.disallowed, share(outcomes.disallowed, crawlers, "of those")),
    ];
    if report.is_compared() {
        figures.push(("Shut out by the change", outcomes.shut, as_said("were allowed before")));
        figures.push(("Let in by the change", outcomes.opened, as_said("were disallowed before")));
    }
    let tagged = format!("{} of search engines only tagged: let pass, marked", grouped(report.total.would_tag));
    figures.push(("Refused by mode = \"refuse\"", report.total.would_refuse, tagged));
    if outcomes.not_blamed > 0 {
        figures.push(("Counted apart", outcomes.not_blamed, as_said("came before --effective-from")));
    }
    let impostors = report.identity.split.impostors.requests;
    if impostors > 0 {
        figures.push(("Requests by impostors", impostors, as_said("under a crawler's name, counted apart")));
    }
    figures.push(("Probably people", report.suspect_human_count as u64, as_said("who send a crawler's name")));
    out.write_all(cards(figures.into_iter().map(|(title, figure, note)| (title, grouped(figure), note))).as_bytes())?;
    for gap in log_gaps(report) {
        writeln!(out, "<p class=\"warn\">{}.</p>", Escaped(&gap))?;
    }
    Ok(())
}

/// A section of items that are markup, some of all of a kind, with words above them; none where there are none.
fn listing(
    out: &mut impl Write,
    (class, title, above): (&str, &str, &str),
    items: impl Iterator<Item = String>,
    (all, what): (usize, &str),
) -> io::Result<()> {
    let items: Vec<_> = items.take(LISTED).map(|item| format!("<li>{item}</li>\n")).collect();
    let more = all.saturating_sub(items.len()) as u64;
    let more = if more > 0 { format!("<li>and {}</li>\n", counted(more, what)) } else { String::new() };
    match items.is_empty() {
        true => Ok(()),
        false => writeln!(
            out,
            "<section class=\"{class}\"><h2>{title}</h2>\n<p>{above}</p>\n<ul>\n{}{more}</ul></section>",
            items.concat()
        ),
    }
}

/// Crawlers that came sooner than their delay lets them.
fn paces(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let file = Escaped(report.against.as_ref().unwrap_or(&report.robots));
    let is_together = report.paces.iter().any(|row| row.paced.without_address > 0);
    let above = if is_together { COUNTED_TOGETHER } else { "" };
    let item =
        |row: &PaceCount| format!("{}: {} <small>{file}:{}</small>", Escaped(&row.crawler), row.sentence(), row.line);
    listing(out, ("", "Faster than asked", above), report.paces.iter().map(item), (report.paces.len(), "more crawler"))
}

/// Every crawler with its bar, which opens to its rules; where two files are compared, with what the change does.
fn by_crawler(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let lines = details::lines(report);
    if lines.is_empty() {
        let none = if report.lacks_names() { "" } else { "<p>The logs hold no request by a crawler.</p>\n" };
        return out.write_all(none.as_bytes());
    }
    out.write_all(b"<section><h2>By crawler</h2>\n<p class=\"sub\">Each opens to its rules and paths; a * stands for what varies.</p>\n")?;
    let (harm, kept) = match report.is_compared() {
        true => ("shut out", "disallowed by both, or before --effective-from"),
        false => ("disallowed", "disallowed, but before --effective-from"),
    };
    out.write_all(crawler_lines(&lines, harm, &[("opened", "let in"), ("early", kept)]).as_bytes())?;
    out.write_all(b"</section>\n")
}

/// Columns of the chart over time, at most.
const COLUMNS: i64 = 72;

/// Requests of crawlers over time; where two files are compared, those that change.
fn over_time(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let (Some(first), Some(last)) = (report.hours.first(), report.hours.last()) else { return Ok(()) };
    if report.is_compared() && report.totals.outcomes.shut + report.totals.outcomes.opened == 0 {
        return out.write_all(b"<section><h2>The change</h2>\n<p>No request is judged differently.</p></section>\n");
    }
    let (first, last) = (first.start, last.start);
    let hours = ((last - first) / 3600 + COLUMNS) / COLUMNS;
    // Columns that a day consists of, or days, and the first begins with one.
    let step = [1, 2, 3, 4, 6, 12].into_iter().find(|step| *step >= hours).unwrap_or((hours + 23) / 24 * 24) * 3600;
    let first = first.div_euclid(step) * step;
    let mut sums = vec![RequestTally::default(); usize::try_from((last - first) / step + 1).unwrap_or(1)];
    for hour in &report.hours {
        if let Some(sum) = usize::try_from((hour.start - first) / step).ok().and_then(|at| sums.get_mut(at)) {
            sum.add(&hour.tally);
        }
    }
    // Those of search engines at the bottom.
    let column = |sum: &RequestTally| -> (Vec<ChartPart>, String) {
        if report.is_compared() {
            let engines = sum.shut_search_engines;
            let parts = [("engine", engines), ("disallowed", sum.shut - engines), ("opened", sum.opened)];
            let (shut, engines, opened) = (grouped(sum.shut), grouped(engines), grouped(sum.opened));
            return (parts.to_vec(), format!("{shut} shut out, {engines} of them of search engines, {opened} let in"));
        }
        let engines = sum.disallowed_search_engines;
        let others = sum.disallowed - engines;
        let parts =
            [("engine", engines), ("disallowed", others), ("early", sum.not_blamed), ("allowed", sum.allowed())];
        (parts.to_vec(), format!("{} allowed, {} disallowed", grouped(sum.allowed()), grouped(sum.disallowed)))
    };
    let with_time = |(at, sum): (usize, &RequestTally)| {
        let (parts, text) = column(sum);
        (parts, format!("{} UTC: {text}", moment(first + step * at as i64)))
    };
    let chart = TimeChart { first, step, columns: sums.iter().enumerate().map(with_time).collect() };
    let (title, what) = if report.is_compared() {
        ("The change, over time", "Requests that the change shuts out or lets in")
    } else {
        ("Over time", "Requests by crawlers")
    };
    writeln!(out, "<section><h2>{title}</h2>\n{}</section>", chart.markup(what))
}

/// Crawlers whose claims fail because of the path, as it seems.
fn suspect_paths(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let suspects = &report.identity.suspect_paths;
    let above = "These have no address of their operator, and nothing shows that the log has the addresses of clients. A proxy that is \
                 missing in <code>trusted_proxies</code> does that, so they count as claimed, not as impostors.";
    let item = |suspect: &SuspectRow| {
        let more = if suspect.other_addresses > 0 { ", \u{2026}" } else { "" };
        let (requests, addresses) = (counted(suspect.requests, "request"), suspect.addresses.join(", "));
        format!("{}: {requests} from {}{more}", Escaped(&suspect.crawler), Escaped(&addresses))
    };
    listing(out, ("warn", "Suspect path", above), suspects.iter().map(item), (suspects.len(), "more crawler"))
}

/// Whose requests they are, and why some could be anyone's.
fn split(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let identity = &report.identity;
    let Some(evidence) = identity.evidence() else { return Ok(()) };
    writeln!(out, "<section><h2>Who sent them</h2>\n<p class=\"sub\">Checked {}.</p>", Escaped(&evidence))?;
    let share = |(share, whose): (&RequestTally, &str)| {
        let parts = vec![("disallowed", share.disallowed), ("allowed", share.requests - share.disallowed)];
        let (requests, disallowed) = (grouped(share.requests), grouped(share.disallowed));
        (format!("{requests} {whose}"), parts, format!("{disallowed} disallowed"))
    };
    out.write_all(bars(&identity.shares().map(share).collect::<Vec<_>>()).as_bytes())?;
    let reasons = identity.reasons();
    if !reasons.is_empty() {
        out.write_all(b"<p class=\"sub\">Why requests could be anyone's:</p>\n<ul>\n")?;
        for (reason, requests) in reasons {
            writeln!(out, "<li>{}: {}</li>", counted(requests, "request"), Escaped(&reason))?;
        }
        out.write_all(b"</ul>\n")?;
    }
    out.write_all(b"</section>\n")
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
    let names = &report.search_engines_shut_out;
    let above = "The change disallows paths that these search engines requested. Such pages may leave the index.";
    let item = |row: &ReportedCrawler| {
        format!("{}: {} shut out", Escaped(&row.name), counted(row.counts.outcomes.shut, "request"))
    };
    let rows = report.crawlers.iter().filter(|row| names.contains(&row.name));
    listing(out, ("warn", "Search engines are shut out", above), rows.map(item), (names.len(), "more engine"))
}

fn suspects(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let above = "They have a crawler's name, but fetch styles, scripts and pictures with the site's own Referer, as browsers do. Some \
                 crawlers that render pages do so too: look before you refuse them.";
    let item = |suspect: &Suspect| {
        let [address, claims, target] = [&suspect.address, &suspect.claims, &suspect.target].map(|text| Escaped(text));
        let disallowed = grouped(suspect.disallowed);
        format!("{address} claims to be {claims}: {disallowed} disallowed, such as <code>{target}</code>")
    };
    let all = (report.suspect_human_count, "more visitor");
    listing(out, ("warn", "These may be people", above), report.suspect_humans.iter().map(item), all)
}
