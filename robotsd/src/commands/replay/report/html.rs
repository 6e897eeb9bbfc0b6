//! The report as one page: no scripts, nothing to load, legible in the dark and in the light.
//!
//! Logs hold text of unknown clients; all of it goes through [`Escaped`].

use std::io::{self, Write};

use super::chart;
use super::contents::{CrawlerRow, Report};
use super::escaped::Escaped;
use super::figures::{counted, grouped, moment, percent};

/// Crawlers in the chart, and those with a section of their own.
const CHARTED: usize = 20;
const DETAILED: usize = 12;
/// Rows of the table of crawlers.
const LISTED: usize = 200;

const STYLE: &str = include_str!("style.css");

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
    charts(out, report)?;
    table(out, report)?;
    for row in report.crawlers.iter().filter(|row| !row.rules.is_empty()).take(DETAILED) {
        details(out, report, row)?;
    }
    foot(out, report)?;
    out.write_all(b"</main>\n</body>\n</html>\n")
}

fn head(out: &mut impl Write, report: &Report, title: &str) -> io::Result<()> {
    writeln!(out, "<h1>What {} would have done</h1>", Escaped(title))?;
    write!(out, "<p class=\"sub\">{}", counted(report.requests, "request"))?;
    if let (Some(first), Some(last)) = (report.first, report.last) {
        write!(out, ", {} to {} UTC", moment(first), moment(last))?;
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
    card(out, "Disallowed", totals.disallowed, &share(totals.disallowed, totals.crawler_requests, "of those"))?;
    if report.is_compared() {
        card(out, "Shut out by the change", totals.shut, "were allowed before")?;
        card(out, "Let in by the change", totals.opened, "were disallowed before")?;
    } else {
        card(out, "Allowed", totals.allowed, &share(totals.allowed, totals.crawler_requests, "of those"))?;
    }
    if totals.not_blamed > 0 {
        card(out, "Counted apart", totals.not_blamed, "came before --effective-from")?;
    }
    card(out, "Suspected people", report.suspect_human_count as u64, "under a crawler's name")?;
    out.write_all(b"</div>\n")?;
    if report.requests > 0 && report.nameless == report.requests {
        out.write_all(b"<p class=\"warn\">No line has a User-Agent: agents cannot be identified.</p>\n")?;
    }
    Ok(())
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

fn engines(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.search_engines_shut_out.is_empty() {
        return Ok(());
    }
    out.write_all(
        b"<section class=\"warn\"><h2>Search engines are shut out</h2>\n<p>The change disallows paths that these search \
          engines requested. Such pages may leave the index.</p>\n<ul>\n",
    )?;
    for row in report.crawlers.iter().filter(|row| report.search_engines_shut_out.contains(&row.name)) {
        writeln!(out, "<li>{}: {} shut out</li>", Escaped(&row.name), counted(row.shut, "request"))?;
    }
    out.write_all(b"</ul></section>\n")
}

fn suspects(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.suspect_humans.is_empty() {
        return Ok(());
    }
    out.write_all(
        b"<section class=\"warn\"><h2>These may be people</h2>\n<p>They bear a crawler's name, but fetch styles, scripts \
          and pictures with the site's own Referer, as browsers do. Crawlers that render pages do so too: look before \
          you refuse them.</p>\n<div class=\"wide\"><table><thead><tr><th scope=\"col\">Network</th><th scope=\"col\">Claims to be</th>\
          <th scope=\"col\" class=\"n\">Disallowed</th><th scope=\"col\">Such as</th></tr></thead><tbody>\n",
    )?;
    for suspect in &report.suspect_humans {
        writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td><code>{}</code></td></tr>",
            Escaped(&suspect.address),
            Escaped(&suspect.claims),
            grouped(suspect.disallowed),
            Escaped(&suspect.target)
        )?;
    }
    out.write_all(b"</tbody></table></div></section>\n")
}

fn charts(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.crawlers.is_empty() {
        return Ok(());
    }
    let failed = |_| io::Error::other("a string could not grow");
    if report.is_compared() {
        let changed: Vec<_> = report.crawlers.iter().filter(|row| row.shut + row.opened > 0).take(CHARTED).collect();
        if changed.is_empty() {
            out.write_all(b"<section><h2>The change</h2>\n<p>No request is judged differently.</p></section>\n")?;
        } else {
            let bars = chart::change(&changed).map_err(failed)?;
            writeln!(
                out,
                "<section><h2>The change, by crawler</h2>\n<p class=\"key\"><i class=\"disallowed\"></i> shut out \
                 <i class=\"opened\"></i> let in</p>\n<div class=\"wide\">{bars}</div></section>"
            )?;
        }
    }
    let bars = chart::crawlers(&report.crawlers[..report.crawlers.len().min(CHARTED)]).map_err(failed)?;
    writeln!(
        out,
        "<section><h2>By crawler</h2>\n<p class=\"key\"><i class=\"disallowed\"></i> disallowed by {} \
         <i class=\"allowed\"></i> allowed</p>\n<div class=\"wide\">{bars}</div></section>",
        Escaped(report.against.as_ref().unwrap_or(&report.robots))
    )?;
    if report.hours.is_empty() {
        return Ok(());
    }
    let columns = chart::hours(&report.hours).map_err(failed)?;
    writeln!(out, "<section><h2>Over time</h2>\n<div class=\"wide\">{columns}</div></section>")
}

fn table(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.crawlers.is_empty() {
        return out.write_all(b"<p>No crawler came by.</p>\n");
    }
    let change = if report.is_compared() {
        "<th scope=\"col\" class=\"n\">Shut out</th><th scope=\"col\" class=\"n\">Let in</th>"
    } else {
        ""
    };
    writeln!(
        out,
        "<section><h2>Crawlers</h2>\n<div class=\"wide\"><table><thead><tr><th scope=\"col\">Crawler</th><th scope=\"col\">Category</th>\
         <th scope=\"col\" class=\"n\">Requests</th><th scope=\"col\" class=\"n\">Allowed</th><th scope=\"col\" class=\"n\">Disallowed</th>{change}\
         <th scope=\"col\" class=\"n\">robots.txt fetched</th></tr></thead><tbody>"
    )?;
    for row in report.crawlers.iter().take(LISTED) {
        let category = row.category.map_or(row.class.as_str(), |category| category.as_str());
        write!(
            out,
            "<tr><td>{}</td><td>{category}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>",
            Escaped(&row.name),
            grouped(row.requests),
            grouped(row.allowed),
            grouped(row.disallowed)
        )?;
        if report.is_compared() {
            write!(out, "<td class=\"n\">{}</td><td class=\"n\">{}</td>", grouped(row.shut), grouped(row.opened))?;
        }
        let fetched = if row.robots_txt == 0 { "never".to_owned() } else { grouped(row.robots_txt) };
        writeln!(out, "<td class=\"n\">{fetched}</td></tr>")?;
    }
    out.write_all(b"</tbody></table></div>\n")?;
    if report.crawlers.len() > LISTED {
        writeln!(out, "<p class=\"sub\">and {} more</p>", report.crawlers.len() - LISTED)?;
    }
    out.write_all(b"</section>\n")
}

fn details(out: &mut impl Write, report: &Report, row: &CrawlerRow) -> io::Result<()> {
    let what = if report.is_compared() { "what changes" } else { "what is disallowed" };
    writeln!(
        out,
        "<section><h2>{}: {what}</h2>\n<table><thead><tr><th scope=\"col\">Rule, and its paths</th>\
         <th scope=\"col\" class=\"n\">Requests</th></tr></thead><tbody>",
        Escaped(&row.name)
    )?;
    for rule in &row.rules {
        let (name, requests) = (Escaped(&rule.sentence()).to_string(), grouped(rule.requests));
        writeln!(out, "<tr><th scope=\"row\">{name}</th><td class=\"n\">{requests}</td></tr>")?;
        for path in &rule.paths {
            let (pattern, requests) = (Escaped(&path.pattern), grouped(path.requests));
            writeln!(out, "<tr><th scope=\"row\"><code>{pattern}</code></th><td class=\"n\">{requests}</td></tr>")?;
        }
    }
    out.write_all(b"</tbody></table></section>\n")
}

fn foot(out: &mut impl Write, report: &Report) -> io::Result<()> {
    out.write_all(b"<footer>\n")?;
    let classes: Vec<_> = report.others.iter().map(|row| format!("{} {}", grouped(row.requests), row.class)).collect();
    if !classes.is_empty() {
        writeln!(out, "<p>No crawlers: {}.</p>", Escaped(&classes.join(", ")))?;
    }
    if report.unread_lines > 0 {
        writeln!(out, "<p>{} could not be read, such as:</p>", counted(report.unread_lines, "line"))?;
        for line in &report.unread_samples {
            writeln!(out, "<p><code>{}</code></p>", Escaped(line))?;
        }
    }
    out.write_all(
        b"<p>Crawlers are identified by what they claim. The counts of paths add up to those of their rules; where a crawler \
          requested very many paths, a * may hold some requests of a path that is listed as well.</p>\n</footer>\n",
    )
}
