//! Charts of plain HTML: they are as wide as the page, and their text is as large as any other.
//!
//! Colours come from the page's style sheet, so that they follow its theme. Each number is text, or the title of its bar.

use std::io::{self, Write};

use super::contents::{CrawlerRow, HourRow};
use crate::commands::replay::hours::HourCounts;
use crate::html::escaped::Escaped;
use crate::html::figures::{counted, grouped, moment, percent};

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
pub(super) fn change(out: &mut impl Write, rows: &[&CrawlerRow]) -> io::Result<()> {
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
pub(super) fn changed_hours(out: &mut impl Write, hours: &[HourRow]) -> io::Result<()> {
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
