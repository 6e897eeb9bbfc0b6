//! The report as one page with charts: no scripts, nothing to load, legible in the dark and in the light.
//!
//! Logs hold text of unknown clients; all of it goes through [`Escaped`]. The one style sheet is allowed by its hash. Each number is
//! text, or the title of its column.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::rows::{COUNTED_TOGETHER, SuspectRow};
use super::{Report, ReportedCrawler, Suspect, details, history, log_gaps, other_requests};
use crate::board::given_back;
use crate::commands::replay::paces::PaceCount;
use crate::commands::replay::tally::RequestTally;
use crate::html::{
    ChartPart, Escaped, STYLE, TimeChart, bars, cards, counted, crawler_lines, grouped, moment, percent, period,
};

/// Crawlers in a list.
const LISTED: usize = 20;

pub(in crate::commands::replay) fn page(report: &Report) -> String {
    let title = match &report.against {
        Some(against) => format!("changing {} to {against}", report.robots),
        None => report.robots.clone(),
    };
    let style = format!("\n{STYLE}");
    let hash = BASE64_STANDARD.encode(hmac_sha256::Hash::hash(style.as_bytes()));
    let begin = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{hash}'\">\n\
         <title>Replay: {}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n",
        Escaped(&title)
    );
    let sections = [engines, suspects, suspect_paths, over_time, by_crawler, balances, split, paces, foot];
    let sections: String = sections.into_iter().map(|section| section(report)).collect();
    [&begin, &head(report, &title), &sections, "</main>\n</body>\n</html>\n"].concat()
}

fn head(report: &Report, title: &str) -> String {
    let judgements = report.history.as_ref().map(history::html).unwrap_or_default();
    let mut out = format!("<h1>What {} would have done</h1>\n{judgements}", Escaped(title));
    let times = report.first.zip(report.last).map(|(first, last)| format!(", {}", period(first, last)));
    let (requests, logs) = (counted(report.requests, "request"), report.logs.join(", "));
    let _ = writeln!(out, "<p class=\"sub\">{requests}{}, from {}</p>", times.unwrap_or_default(), Escaped(&logs));
    let headlines: String = report.headlines().map(|line| format!("<li>{}</li>\n", Escaped(&line))).collect();
    if !headlines.is_empty() {
        let _ = writeln!(out, "<ul class=\"lead\">{headlines}</ul>");
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
    out += &cards(figures.into_iter().map(|(title, figure, note)| (title, grouped(figure), note)));
    out.extend(log_gaps(report).map(|gap| format!("<p class=\"warn\">{}.</p>\n", Escaped(&gap))));
    out
}

fn balances(report: &Report) -> String {
    given_back("What crawling gives back", &report.given_back)
}

/// A section of items that are markup, some of all of a kind, with words above them; none where there are none.
fn listing(
    (class, title, above): (&str, &str, &str),
    items: impl Iterator<Item = String>,
    (all, what): (usize, &str),
) -> String {
    let items: Vec<_> = items.take(LISTED).map(|item| format!("<li>{item}</li>\n")).collect();
    let more = all.saturating_sub(items.len()) as u64;
    let more = if more > 0 { format!("<li>and {}</li>\n", counted(more, what)) } else { String::new() };
    if items.is_empty() {
        return more;
    }
    let items = items.concat();
    format!("<section class=\"{class}\"><h2>{title}</h2>\n<p>{above}</p>\n<ul>\n{items}{more}</ul></section>\n")
}

/// Crawlers that came sooner than their delay lets them.
fn paces(report: &Report) -> String {
    let file = Escaped(report.against.as_ref().unwrap_or(&report.robots));
    let is_together = report.paces.iter().any(|row| row.paced.without_address > 0);
    let above = if is_together { COUNTED_TOGETHER } else { "" };
    let item =
        |row: &PaceCount| format!("{}: {} <small>{file}:{}</small>", Escaped(&row.crawler), row.sentence(), row.line);
    listing(("", "Faster than asked", above), report.paces.iter().map(item), (report.paces.len(), "more crawler"))
}

/// Every crawler with its bar, which opens to its rules; where two files are compared, with what the change does.
fn by_crawler(report: &Report) -> String {
    let lines = details::lines(report);
    if lines.is_empty() {
        let none = if report.lacks_names() { "" } else { "<p>The logs hold no request by a crawler.</p>\n" };
        return none.to_owned();
    }
    let (harm, kept) = match report.is_compared() {
        true => ("shut out", "disallowed by both, or before --effective-from"),
        false => ("disallowed", "disallowed, but before --effective-from"),
    };
    let lines = crawler_lines(&lines, harm, &[("opened", "let in"), ("early", kept)]);
    let above = "Each opens to its rules and paths; a * stands for what varies.";
    format!("<section><h2>By crawler</h2>\n<p class=\"sub\">{above}</p>\n{lines}</section>\n")
}

/// Columns of the chart over time, at most.
const COLUMNS: i64 = 72;

/// Requests of crawlers over time; where two files are compared, those that change.
fn over_time(report: &Report) -> String {
    let (Some(first), Some(last)) = (report.hours.first(), report.hours.last()) else { return String::new() };
    if report.is_compared() && report.totals.outcomes.shut + report.totals.outcomes.opened == 0 {
        return "<section><h2>The change</h2>\n<p>No request is judged differently.</p></section>\n".to_owned();
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
    format!("<section><h2>{title}</h2>\n{}</section>\n", chart.markup(what))
}

/// Crawlers whose claims fail because of the path, as it seems.
fn suspect_paths(report: &Report) -> String {
    let suspects = &report.identity.suspect_paths;
    let above = "These have no address of their operator, and nothing shows that the log has the addresses of clients. A proxy that is \
                 missing in <code>trusted_proxies</code> does that, so they count as claimed, not as impostors.";
    let item = |suspect: &SuspectRow| {
        let more = if suspect.other_addresses > 0 { ", \u{2026}" } else { "" };
        let (requests, addresses) = (counted(suspect.requests, "request"), suspect.addresses.join(", "));
        format!("{}: {requests} from {}{more}", Escaped(&suspect.crawler), Escaped(&addresses))
    };
    listing(("warn", "Suspect path", above), suspects.iter().map(item), (suspects.len(), "more crawler"))
}

/// Whose requests they are, and why some could be anyone's.
fn split(report: &Report) -> String {
    let identity = &report.identity;
    let Some(evidence) = identity.evidence() else { return String::new() };
    let share = |(share, whose): (&RequestTally, &str)| {
        let parts = vec![("disallowed", share.disallowed), ("allowed", share.requests - share.disallowed)];
        let (requests, disallowed) = (grouped(share.requests), grouped(share.disallowed));
        (format!("{requests} {whose}"), parts, format!("{disallowed} disallowed"))
    };
    let (evidence, shares) = (Escaped(&evidence), bars(&identity.shares().map(share).collect::<Vec<_>>()));
    let reason = |(reason, requests): (String, u64)| {
        format!("<li>{}: {}</li>\n", counted(requests, "request"), Escaped(&reason))
    };
    let mut reasons: String = identity.reasons().into_iter().map(reason).collect();
    if !reasons.is_empty() {
        reasons = format!("<p class=\"sub\">Why requests could be anyone's:</p>\n<ul>\n{reasons}</ul>\n");
    }
    format!("<section><h2>Who sent them</h2>\n<p class=\"sub\">Checked {evidence}.</p>\n{shares}{reasons}</section>\n")
}

fn foot(report: &Report) -> String {
    let mut out = "<footer>\n".to_owned();
    if let Some(others) = other_requests(&report.others).filter(|_| report.has_others()) {
        let _ = writeln!(out, "<p>Requests that are not of crawlers: {others}.</p>");
    }
    if report.unread_lines > 0 {
        let _ = writeln!(out, "<p>{} could not be read, such as:</p>", counted(report.unread_lines, "line"));
        out.extend(report.unread_samples.iter().map(|line| format!("<p><code>{}</code></p>\n", Escaped(line))));
    }
    out + "<p>Crawlers are identified by what they claim, which is checked as far as evidence goes. The counts of paths add up to those of their rules; where a crawler \
          requested very many paths, a * may hold some requests of a path that is listed as well.</p>\n</footer>\n"
}

fn engines(report: &Report) -> String {
    let names = &report.search_engines_shut_out;
    let above = "The change disallows paths that these search engines requested. Such pages may leave the index.";
    let item = |row: &ReportedCrawler| {
        format!("{}: {} shut out", Escaped(&row.name), counted(row.counts.outcomes.shut, "request"))
    };
    let rows = report.crawlers.iter().filter(|row| names.contains(&row.name));
    listing(("warn", "Search engines are shut out", above), rows.map(item), (names.len(), "more engine"))
}

fn suspects(report: &Report) -> String {
    let above = "They have a crawler's name, but fetch styles, scripts and pictures with the site's own Referer, as browsers do. Some \
                 crawlers that render pages do so too: look before you refuse them.";
    let item = |suspect: &Suspect| {
        let [address, claims, target] = [&suspect.address, &suspect.claims, &suspect.target].map(|text| Escaped(text));
        let disallowed = grouped(suspect.disallowed);
        format!("{address} claims to be {claims}: {disallowed} disallowed, such as <code>{target}</code>")
    };
    let all = (report.suspect_human_count, "more visitor");
    listing(("warn", "These may be people", above), report.suspect_humans.iter().map(item), all)
}
