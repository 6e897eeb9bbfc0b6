//! The report as one HTML page with charts. The page has no scripts, loads no other files, and
//! supports dark and light mode.
//!
//! `page.html` is the template. Logs contain text from unknown clients, so the template escapes
//! every value. The Content-Security-Policy of the page allows only the built-in style sheet,
//! identified by its hash. Each number in a chart is also in the text, or in the title of its
//! column.

use askama::Template;
use askama::filters::Safe;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::{Report, details};
use crate::commands::replay::tally::RequestTally;
use crate::html::{ChartPart, Markup, STYLE, TimeChart, bar, crawler_lines, filters, grouped, moment};

const MAX_LISTED: usize = 20;

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
    fn crawlers(&self) -> Option<Markup> {
        let lines = details::lines(self.report);
        let (harm, kept) = match self.report.is_compared() {
            true => ("newly disallowed", "disallowed by both files, or before --effective-from"),
            false => ("disallowed", "disallowed, but before --effective-from"),
        };
        (!lines.is_empty()).then(|| crawler_lines(&lines, harm, &[("opened", "newly allowed"), ("early", kept)]))
    }

    /// Returns the chart of crawlers' requests over time, with its title and a description of the
    /// counted requests. In a comparison, only requests with different verdicts are counted.
    fn over_time(&self) -> Option<(&'static str, &'static str, TimeChart)> {
        let report = self.report;
        let (first, last) = (report.hours.first()?.start, report.hours.last()?.start);
        if report.is_compared() && report.totals.tally.shut + report.totals.tally.opened == 0 {
            return Some(("The change", "", TimeChart { first, step: 3600, columns: Vec::new() }));
        }
        let hours = ((last - first) / 3600 + COLUMNS) / COLUMNS;
        // The period of a column is a multiple or a divisor of 24 hours. The first column begins at
        // a multiple of this period.
        let step = [1, 2, 3, 4, 6, 12].into_iter().find(|step| *step >= hours).unwrap_or((hours + 23) / 24 * 24) * 3600;
        let first = first.div_euclid(step) * step;
        let mut sums = vec![RequestTally::default(); usize::try_from((last - first) / step + 1).unwrap_or(1)];
        for hour in &report.hours {
            if let Some(sum) = usize::try_from((hour.start - first) / step).ok().and_then(|at| sums.get_mut(at)) {
                *sum += hour.tally;
            }
        }
        // Search engines are at the bottom of a column.
        let column = |sum: &RequestTally| -> (Vec<ChartPart>, String) {
            if report.is_compared() {
                let engines = sum.shut_search_engines;
                let parts = [("engine", engines), ("disallowed", sum.shut - engines), ("opened", sum.opened)];
                let (shut, engines, opened) = (grouped(sum.shut), grouped(engines), grouped(sum.opened));
                let text = format!("{shut} newly disallowed ({engines} from search engines), {opened} newly allowed");
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
            ("The change, over time", "Requests that the change newly disallows or allows", chart)
        } else {
            ("Over time", "Requests by crawlers", chart)
        })
    }

    fn bar_of(&self, share: &RequestTally) -> Markup {
        let most = self.report.identity.shares().map(|(share, _)| share.requests).max().unwrap_or(0);
        bar(&[("disallowed", share.disallowed), ("allowed", share.requests - share.disallowed)], most)
    }
}
