//! Charts as SVG, drawn here: a page that needs no script can be kept, mailed and read anywhere.
//!
//! Colours come from the page's style sheet, so that they follow its theme.

use std::fmt::{self, Write};

use super::contents::{CrawlerRow, HourRow};
use super::escaped::Escaped;
use super::figures::{grouped, moment, percent};

/// Columns of the chart over time, at most.
const COLUMNS: i64 = 96;

const WIDTH: f64 = 960.0;
const LABEL: f64 = 190.0;
const VALUE: f64 = 150.0;
const ROW: f64 = 26.0;

/// Requests of each crawler, allowed and disallowed, as bars.
pub(super) fn crawlers(rows: &[CrawlerRow]) -> Result<String, fmt::Error> {
    let most = rows.iter().map(|row| row.requests).max().unwrap_or(0).max(1) as f64;
    let room = WIDTH - LABEL - VALUE;
    let mut svg = String::new();
    let height = rows.len() as f64 * ROW;
    writeln!(
        svg,
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Requests of each crawler, allowed and disallowed\">"
    )?;
    for (at, row) in rows.iter().enumerate() {
        let top = at as f64 * ROW;
        let middle = top + ROW / 2.0 + 4.5;
        let all = (row.requests as f64 / most * room).max(1.0);
        // What is disallowed at all is seen.
        let part = row.disallowed as f64 / row.requests.max(1) as f64;
        let dark = if row.disallowed == 0 { 0.0 } else { (all * part).max(2.0).min(all) };
        let name: String = row.name.chars().take(24).collect();
        writeln!(
            svg,
            "<g><title>{}: {} requests, {} disallowed</title>",
            Escaped(&row.name),
            grouped(row.requests),
            grouped(row.disallowed)
        )?;
        writeln!(svg, "<text x=\"{}\" y=\"{middle}\" class=\"end\">{}</text>", LABEL - 10.0, Escaped(&name))?;
        let bar = |svg: &mut String, class: &str, x: f64, width: f64| {
            writeln!(
                svg,
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{}\" width=\"{width:.1}\" height=\"{}\" rx=\"2\"/>",
                top + 4.0,
                ROW - 8.0
            )
        };
        if dark > 0.0 {
            bar(&mut svg, "disallowed", LABEL, dark)?;
        }
        if all - dark >= 0.5 {
            bar(&mut svg, "allowed", LABEL + dark, all - dark)?;
        }
        let share =
            if row.disallowed == 0 { String::new() } else { format!(" ({})", percent(row.disallowed, row.requests)) };
        writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{middle}\">{}{share}</text></g>",
            LABEL + all + 8.0,
            grouped(row.requests)
        )?;
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

/// Requests of each crawler that a change shuts out and lets in, as bars.
pub(super) fn change(rows: &[&CrawlerRow]) -> Result<String, fmt::Error> {
    let most = rows.iter().map(|row| row.shut + row.opened).max().unwrap_or(0).max(1) as f64;
    let room = WIDTH - LABEL - 2.0 * VALUE;
    let mut svg = String::new();
    let height = rows.len() as f64 * ROW;
    writeln!(
        svg,
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Requests of each crawler that the change shuts \
         out and lets in\">"
    )?;
    for (at, row) in rows.iter().enumerate() {
        let top = at as f64 * ROW;
        let middle = top + ROW / 2.0 + 4.5;
        let name: String = row.name.chars().take(24).collect();
        let said = format!("{} shut out, {} let in", grouped(row.shut), grouped(row.opened));
        writeln!(svg, "<g><title>{}: {said}</title>", Escaped(&row.name))?;
        writeln!(svg, "<text x=\"{}\" y=\"{middle}\" class=\"end\">{}</text>", LABEL - 10.0, Escaped(&name))?;
        let mut x = LABEL;
        for (class, count) in [("disallowed", row.shut), ("opened", row.opened)] {
            if count == 0 {
                continue;
            }
            // What changes at all is seen.
            let width = (count as f64 / most * room).max(2.0);
            writeln!(
                svg,
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{}\" width=\"{width:.1}\" height=\"{}\" rx=\"2\"/>",
                top + 4.0,
                ROW - 8.0
            )?;
            x += width;
        }
        writeln!(svg, "<text x=\"{:.1}\" y=\"{middle}\">{said}</text></g>", x + 8.0)?;
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

/// Requests of crawlers over time, allowed and disallowed, as columns.
pub(super) fn hours(hours: &[HourRow]) -> Result<String, fmt::Error> {
    const HEIGHT: f64 = 170.0;
    const BASE: f64 = 140.0;
    let (Some(first), Some(last)) = (hours.first(), hours.last()) else { return Ok(String::new()) };
    let (first, last) = (&first.start, &last.start);
    let step = (((last - first) / 3600 + 1) + COLUMNS - 1) / COLUMNS * 3600;
    let count = ((last - first) / step + 1).max(1);
    let mut columns = vec![(0_u64, 0_u64); usize::try_from(count).unwrap_or(1)];
    for HourRow { start, counts } in hours {
        if let Some(column) = usize::try_from((start - first) / step).ok().and_then(|at| columns.get_mut(at)) {
            column.0 += counts.allowed;
            column.1 += counts.disallowed;
        }
    }
    let most = columns.iter().map(|(allowed, disallowed)| allowed + disallowed).max().unwrap_or(0).max(1);
    let left = 64.0;
    let wide = ((WIDTH - left) / count as f64).min(48.0);
    let mut svg = String::new();
    writeln!(svg, "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Requests of crawlers over time\">")?;
    for part in [0.0, 0.5, 1.0] {
        let y = BASE - part * (BASE - 12.0);
        writeln!(svg, "<line class=\"grid\" x1=\"{left}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>")?;
        let value = grouped((most as f64 * part).round() as u64);
        writeln!(svg, "<text class=\"end\" x=\"{}\" y=\"{:.1}\">{value}</text>", left - 8.0, y + 4.0)?;
    }
    for (at, (allowed, disallowed)) in columns.iter().enumerate() {
        let x = left + at as f64 * wide;
        let tall = |count: u64| count as f64 / most as f64 * (BASE - 12.0);
        let (low, high) = (tall(*disallowed), tall(*allowed));
        let from = first + step * at as i64;
        writeln!(
            svg,
            "<g><title>{} UTC: {} allowed, {} disallowed</title>",
            moment(from),
            grouped(*allowed),
            grouped(*disallowed)
        )?;
        let gap = if wide > 4.0 { 1.5 } else { 0.3 };
        for (class, y, height) in [("disallowed", BASE - low, low), ("allowed", BASE - low - high, high)] {
            if height > 0.0 {
                writeln!(
                    svg,
                    "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\"/>",
                    wide - gap
                )?;
            }
        }
        svg.push_str("</g>\n");
    }
    let end = left + wide * count as f64;
    writeln!(svg, "<text x=\"{left}\" y=\"{}\">{}</text>", BASE + 20.0, moment(*first))?;
    if end - left > 320.0 {
        writeln!(svg, "<text class=\"end\" x=\"{end:.1}\" y=\"{}\">{}</text>", BASE + 20.0, moment(*last))?;
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}
