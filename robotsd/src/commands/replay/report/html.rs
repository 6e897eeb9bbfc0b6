//! The report as one page with charts: no scripts, nothing to load, legible in the dark and in the light.
//!
//! `page.html` is the page, and here is what it asks for. Logs hold text of unknown clients; the template escapes all of it. The one style
//! sheet is allowed by its hash. Each number is text, or the title of its column.

use askama::Template;
use askama::filters::Safe;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::{Report, details};
use crate::commands::replay::tally::RequestTally;
use crate::html::{ChartPart, Markup, STYLE, TimeChart, bar, crawler_lines, filters, grouped, moment};

/// Crawlers in a list.
const LISTED: usize = 20;

/// Columns of the chart over time, at most.
const COLUMNS: i64 = 72;

#[derive(Template)]
#[template(path = "commands/replay/report/page.html")]
struct ReplayPage<'a> {
    report: &'a Report,
    title: String,
    style: Markup,
    style_hash: String,
}

pub(in crate::commands::replay) fn page(report: &Report) -> String {
    let title = match &report.against {
        Some(against) => format!("changing {} to {against}", report.robots),
        None => report.robots.clone(),
    };
    let style = format!("\n{STYLE}");
    let style_hash = BASE64_STANDARD.encode(hmac_sha256::Hash::hash(style.as_bytes()));
    ReplayPage { report, title, style: Safe(style), style_hash }.to_string()
}

impl ReplayPage<'_> {
    /// Every crawler with its bar, which opens to its rules; where two files are compared, with what the change does.
    fn crawlers(&self) -> Option<Markup> {
        let lines = details::lines(self.report);
        let (harm, kept) = match self.report.is_compared() {
            true => ("shut out", "disallowed by both, or before --effective-from"),
            false => ("disallowed", "disallowed, but before --effective-from"),
        };
        (!lines.is_empty()).then(|| crawler_lines(&lines, harm, &[("opened", "let in"), ("early", kept)]))
    }

    /// Requests of crawlers over time, with the title of the chart and what it counts; where two files are compared, those that change,
    /// and no column where none does.
    fn over_time(&self) -> Option<(&'static str, &'static str, TimeChart)> {
        let report = self.report;
        let (first, last) = (report.hours.first()?.start, report.hours.last()?.start);
        if report.is_compared() && report.totals.tally.shut + report.totals.tally.opened == 0 {
            return Some(("The change", "", TimeChart { first, step: 3600, columns: Vec::new() }));
        }
        let hours = ((last - first) / 3600 + COLUMNS) / COLUMNS;
        // Columns that a day consists of, or days, and the first begins with one.
        let step = [1, 2, 3, 4, 6, 12].into_iter().find(|step| *step >= hours).unwrap_or((hours + 23) / 24 * 24) * 3600;
        let first = first.div_euclid(step) * step;
        let mut sums = vec![RequestTally::default(); usize::try_from((last - first) / step + 1).unwrap_or(1)];
        for hour in &report.hours {
            if let Some(sum) = usize::try_from((hour.start - first) / step).ok().and_then(|at| sums.get_mut(at)) {
                *sum += hour.tally;
            }
        }
        // Those of search engines at the bottom.
        let column = |sum: &RequestTally| -> (Vec<ChartPart>, String) {
            if report.is_compared() {
                let engines = sum.shut_search_engines;
                let parts = [("engine", engines), ("disallowed", sum.shut - engines), ("opened", sum.opened)];
                let (shut, engines, opened) = (grouped(sum.shut), grouped(engines), grouped(sum.opened));
                let text = format!("{shut} shut out, {engines} of them of search engines, {opened} let in");
                return (parts.to_vec(), text);
            }
            let engines = sum.disallowed_search_engines;
            let others = sum.disallowed - engines;
            let parts =
                [("engine", engines), ("disallowed", others), ("early", sum.not_blamed), ("allowed", sum.allowed)];
            (parts.to_vec(), format!("{} allowed, {} disallowed", grouped(sum.allowed), grouped(sum.disallowed)))
        };
        let with_time = |(at, sum): (usize, &RequestTally)| {
            let (parts, text) = column(sum);
            (parts, format!("{} UTC: {text}", moment(first + step * at as i64)))
        };
        let chart = TimeChart { first, step, columns: sums.iter().enumerate().map(with_time).collect() };
        Some(if report.is_compared() {
            ("The change, over time", "Requests that the change shuts out or lets in", chart)
        } else {
            ("Over time", "Requests by crawlers", chart)
        })
    }

    /// The part of a sender in requests under crawlers' names.
    fn bar_of(&self, share: &RequestTally) -> Markup {
        let most = self.report.identity.shares().map(|(share, _)| share.requests).max().unwrap_or(0);
        bar(&[("disallowed", share.disallowed), ("allowed", share.requests - share.disallowed)], most)
    }
}
