//! Draws charts as SVG. Sizes are attributes, so that bars are visible even without the style
//! sheet. Every number is also in the text of the page or in the title of its column.

use std::fmt::Write as _;

use askama::filters::Safe;

use super::{Markup, moment};

/// A segment of a bar or column: its CSS class, which determines the colour, and its count.
pub(crate) type ChartPart = (&'static str, u64);

/// Minimum length of a visible segment, in percent of the length of the bar or column.
const MIN_PERCENT: f64 = 0.4;

/// Draws a bar. A count of `most` fills the whole length of the bar.
pub(crate) fn bar(parts: &[ChartPart], most: u64) -> Markup {
    let mut out = "<svg class=\"bar\" aria-hidden=\"true\">".to_owned();
    let mut x = 0.0;
    for (class, count) in parts.iter().filter(|(_, count)| *count > 0) {
        let width = percent_of(*count, most);
        // Writing to a string cannot fail, here and below.
        let _ = write!(out, "<rect class=\"{class}\" x=\"{x:.2}%\" width=\"{width:.2}%\" height=\"100%\"/>");
        x += width;
    }
    Safe(out + "</svg>")
}

#[derive(Debug)]
pub(crate) struct TimeChart {
    /// Beginning of the first column, as Unix time.
    pub(crate) first: i64,
    /// Length of each column, in seconds.
    pub(crate) step: i64,
    /// The columns, each with its segments from bottom to top and its title.
    pub(crate) columns: Vec<(Vec<ChartPart>, String)>,
}

impl TimeChart {
    pub(crate) fn column_length(&self) -> String {
        match self.step {
            3600 => "hour".to_owned(),
            86_400 => "day".to_owned(),
            step => format!("{} hours", step / 3600),
        }
    }

    /// Returns five time labels for the horizontal axis, from the first to the last.
    pub(crate) fn axis(&self) -> [String; 5] {
        let length = self.end() - self.first;
        std::array::from_fn(|part| {
            let at = moment(self.first + length * part as i64 / 4);
            // For long periods, all labels are dates. For short periods, the first and last labels
            // contain date and time, and the labels between them contain only the time.
            let (is_long, is_end) = (self.step >= 86_400 || length > 4 * 86_400, part % 4 == 0);
            let text = if is_long { at.get(..10) } else { at.get(if is_end { 5.. } else { 11.. }) };
            text.unwrap_or_default().to_owned()
        })
    }

    pub(crate) fn top(&self) -> u64 {
        round_above(self.most())
    }

    pub(crate) fn most(&self) -> u64 {
        self.columns.iter().map(|(parts, _)| sum(parts)).max().unwrap_or(0)
    }

    pub(crate) fn end(&self) -> i64 {
        self.first + self.step * self.columns.len() as i64
    }

    /// Draws the columns, and returns the drawing and the title of each column. A count of `top`
    /// fills the height of the chart.
    pub(crate) fn columns(&self, top: u64) -> impl Iterator<Item = (Markup, &String)> {
        let width = 100.0 / self.columns.len().max(1) as f64;
        self.columns.iter().enumerate().map(move |(at, (parts, title))| {
            let (x, width, mut y) = (width * (at as f64 + 0.08), width * 0.84, 100.0);
            let mut out = String::new();
            for (class, count) in parts.iter().filter(|(_, count)| *count > 0) {
                let height = percent_of(*count, top);
                y -= height;
                let place = format!("x=\"{x:.2}%\" y=\"{y:.2}%\" width=\"{width:.2}%\" height=\"{height:.2}%\"");
                let _ = write!(out, "<rect class=\"{class}\" {place}/>");
            }
            (Safe(out), title)
        })
    }
}

pub(super) fn sum(parts: &[ChartPart]) -> u64 {
    parts.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
}

fn percent_of(count: u64, most: u64) -> f64 {
    (100.0 * count as f64 / most.max(1) as f64).max(MIN_PERCENT)
}

/// Rounds up to a number that is easy to read. Half of this number, which labels the middle of the
/// axis, is easy to read, too.
fn round_above(most: u64) -> u64 {
    let powers = std::iter::successors(Some(1_u64), |power| power.checked_mul(10));
    let steps =
        powers.flat_map(|power| [10, 12, 16, 20, 30, 40, 60, 80].map(|tenths: u64| power.saturating_mul(tenths) / 10));
    steps.into_iter().find(|step| *step >= most).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use askama::Template;

    use super::*;
    use crate::html::filters;

    #[derive(Template)]
    #[template(
        ext = "html",
        source = "{% import \"html/parts.html\" as parts %}{{ parts::plot(chart, \"Requests\") }}"
    )]
    struct ChartPage {
        chart: TimeChart,
    }

    #[test]
    fn the_parts_of_a_bar_are_adjacent_and_small_parts_stay_visible() {
        let bar = bar(&[("disallowed", 1), ("early", 0), ("allowed", 999)], 2_000).to_string();
        let parts: Vec<_> = bar.split("<rect ").skip(1).map(|part| part.split(" height").next().unwrap()).collect();
        assert_eq!(
            parts,
            ["class=\"disallowed\" x=\"0.00%\" width=\"0.40%\"", "class=\"allowed\" x=\"0.40%\" width=\"49.95%\""]
        );
    }

    #[test]
    fn an_axis_ends_with_a_round_number() {
        for (most, want) in [(0, 1), (1, 1), (3, 3), (6, 6), (11, 12), (61, 80), (801, 1000), (u64::MAX, u64::MAX)] {
            assert_eq!(round_above(most), want);
        }
        let columns = vec![(vec![("allowed", 7)], "a & b".to_owned()), (vec![], String::new())];
        let chart = ChartPage { chart: TimeChart { first: 0, step: 3600, columns } }.to_string();
        for part in
            ["<span>8</span><span>4</span><span>0</span>", "at most 7 requests per hour", "<title>a &amp; b</title>"]
        {
            assert!(chart.contains(part), "{part}: {chart}");
        }
        assert!(chart.contains("y=\"12.50%\"") && chart.matches("<rect").count() == 1, "{chart}");
    }
}
