//! What the page says first: search engines that are shut out, and suspected people.

use std::io::{self, Write};

use super::contents::Report;
use crate::html::escaped::Escaped;
use crate::html::figures::{counted, grouped};

pub(super) fn write(out: &mut impl Write, report: &Report) -> io::Result<()> {
    engines(out, report)?;
    suspects(out, report)
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
