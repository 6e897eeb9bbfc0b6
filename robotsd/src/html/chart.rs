//! Charts of counts: bars, and columns over time with their axes.
//!
//! They are SVG whose lengths are attributes in percent, so no policy of a page has to allow inline styles, and the text beside them is
//! as large as any other. Colours are classes of the style sheet. Every number is text too, or the title of its column.

use std::fmt::Write as _;

use super::{Escaped, counted, grouped, moment};

/// A part of a bar or column: the class that colours it, and its count.
pub(crate) type ChartPart = (&'static str, u64);

/// The shortest part that is seen, in percent.
const SHORTEST: f64 = 0.4;

/// The meaning of colours.
pub(super) fn legend<'a>(meanings: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut out = "<p class=\"key\">".to_owned();
    for (class, meaning) in meanings {
        // Writing to a string does not fail, here and below.
        let _ = write!(out, "<span><i class=\"{class}\"></i>{}</span> ", Escaped(meaning));
    }
    out + "</p>\n"
}

/// Figures with a title above and a note below each.
pub(crate) fn cards<'a>(figures: impl IntoIterator<Item = (&'a str, String, String)>) -> String {
    let mut out = "<div class=\"cards\">\n".to_owned();
    for (title, figure, note) in figures {
        let (title, figure, note) = (Escaped(title), Escaped(&figure), Escaped(&note));
        let _ = writeln!(out, "<div class=\"card\"><span>{title}</span><b>{figure}</b><small>{note}</small></div>");
    }
    out + "</div>\n"
}

/// Facts with their names, which are markup.
pub(crate) fn facts<'a>(facts: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let mut out = "<dl class=\"facts\">".to_owned();
    for (name, markup) in facts.into_iter().filter(|(_, markup)| !markup.is_empty()) {
        let _ = write!(out, "<div><dt>{name}</dt><dd>{markup}</dd></div>");
    }
    out + "</dl>\n"
}

/// Lines with bars of one scale: a name, which is markup, the parts of its bar, and a text with its numbers.
pub(crate) fn bars(lines: &[(String, Vec<ChartPart>, String)]) -> String {
    let most = lines.iter().map(|(_, parts, _)| sum(parts)).max().unwrap_or(0);
    let mut out = "<ul class=\"bars\">\n".to_owned();
    for (name, parts, value) in lines {
        let (bar, value) = (bar(parts, most), Escaped(value));
        let _ = writeln!(
            out,
            "<li class=\"line\"><span class=\"name\">{name}</span>{bar}<span class=\"value\">{value}</span></li>"
        );
    }
    out + "</ul>\n"
}

/// A bar, where one of `most` takes the whole length.
pub(super) fn bar(parts: &[ChartPart], most: u64) -> String {
    let mut out = "<svg class=\"bar\" aria-hidden=\"true\">".to_owned();
    let mut x = 0.0;
    for (class, count) in parts.iter().filter(|(_, count)| *count > 0) {
        let width = of_hundred(*count, most);
        let _ = write!(out, "<rect class=\"{class}\" x=\"{x:.2}%\" width=\"{width:.2}%\" height=\"100%\"/>");
        x += width;
    }
    out + "</svg>"
}

/// Counts over time: columns of one length each.
#[derive(Debug)]
pub(crate) struct TimeChart {
    /// The first second of the first column, and the seconds of each.
    pub(crate) first: i64,
    pub(crate) step: i64,
    /// Parts of each column, the lowest first, and its text.
    pub(crate) columns: Vec<(Vec<ChartPart>, String)>,
}

impl TimeChart {
    /// With axes; `what` is counted.
    pub(crate) fn markup(&self, what: &str) -> String {
        let most = self.most();
        let top = round_above(most);
        let every = match self.step {
            3600 => "hour".to_owned(),
            86_400 => "day".to_owned(),
            step => format!("{} hours", step / 3600),
        };
        let end = self.first + self.step * self.columns.len() as i64;
        let (from, to, most) = (moment(self.first), moment(end), counted(most, "request"));
        let label = format!("{what}, from {from} to {to} UTC, at most {most} per {every}");
        let half = if top.is_multiple_of(2) { grouped(top / 2) } else { String::new() };
        let mut out = format!(
            "<figure><figcaption>{} per {every}, UTC</figcaption>\n<div class=\"plot\"><div class=\"y\" aria-hidden=\"true\">\
             <span>{}</span><span>{half}</span><span>0</span></div>\n{}\n<div class=\"x\" aria-hidden=\"true\">",
            Escaped(what),
            grouped(top),
            self.svg("columns", top, &label),
        );
        for part in 0..=4 {
            let at = moment(self.first + (end - self.first) * part / 4);
            // A day is enough where there are many, and an hour between the ends of a day.
            let (is_long, is_end) = (self.step >= 86_400 || end - self.first > 4 * 86_400, part % 4 == 0);
            let text = if is_long { at.get(..10) } else { at.get(if is_end { 5.. } else { 11.. }) };
            let _ = write!(out, "<span>{}</span>", text.unwrap_or_default());
        }
        out + "</div></div></figure>\n"
    }

    /// Small, without axes.
    pub(crate) fn small(&self) -> String {
        let most = self.most();
        self.svg("trend", most, &format!("at most {} in one column", counted(most, "request")))
    }

    fn most(&self) -> u64 {
        self.columns.iter().map(|(parts, _)| sum(parts)).max().unwrap_or(0)
    }

    fn svg(&self, class: &str, top: u64, label: &str) -> String {
        let mut out = format!("<svg class=\"{class}\" role=\"img\" aria-label=\"{}\">", Escaped(label));
        let width = 100.0 / self.columns.len().max(1) as f64;
        for (at, (parts, title)) in self.columns.iter().enumerate() {
            let x = width * (at as f64 + 0.08);
            let mut y = 100.0;
            let _ = write!(out, "\n<g><title>{}</title>", Escaped(title));
            for (class, count) in parts.iter().filter(|(_, count)| *count > 0) {
                let height = of_hundred(*count, top);
                y -= height;
                let _ = write!(
                    out,
                    "<rect class=\"{class}\" x=\"{x:.2}%\" y=\"{y:.2}%\" width=\"{:.2}%\" height=\"{height:.2}%\"/>",
                    width * 0.84
                );
            }
            out += "</g>";
        }
        out + "</svg>"
    }
}

/// All parts together.
pub(super) fn sum(parts: &[ChartPart]) -> u64 {
    parts.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
}

fn of_hundred(count: u64, most: u64) -> f64 {
    (100.0 * count as f64 / most.max(1) as f64).max(SHORTEST)
}

/// The next number that is easy to halve and to read.
fn round_above(most: u64) -> u64 {
    let powers = std::iter::successors(Some(1_u64), |power| power.checked_mul(10));
    let steps =
        powers.flat_map(|power| [10, 12, 16, 20, 30, 40, 60, 80].map(|tenths: u64| power.saturating_mul(tenths) / 10));
    steps.into_iter().find(|step| *step >= most).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_bar_stand_beside_each_other_and_small_ones_are_seen() {
        let bar = bar(&[("disallowed", 1), ("early", 0), ("allowed", 999)], 2_000);
        let parts: Vec<_> = bar.split("<rect ").skip(1).map(|part| part.split(" height").next().unwrap()).collect();
        assert_eq!(
            parts,
            ["class=\"disallowed\" x=\"0.00%\" width=\"0.40%\"", "class=\"allowed\" x=\"0.40%\" width=\"49.95%\""]
        );
    }

    #[test]
    fn an_axis_ends_with_a_number_that_people_read() {
        for (most, want) in [(0, 1), (1, 1), (3, 3), (6, 6), (11, 12), (61, 80), (801, 1000), (u64::MAX, u64::MAX)] {
            assert_eq!(round_above(most), want);
        }
        let columns = vec![(vec![("allowed", 7)], "a & b".to_owned()), (vec![], String::new())];
        let chart = TimeChart { first: 0, step: 3600, columns }.markup("Requests");
        for part in
            ["<span>8</span><span>4</span><span>0</span>", "at most 7 requests per hour", "<title>a &amp; b</title>"]
        {
            assert!(chart.contains(part), "{part}: {chart}");
        }
        assert!(chart.contains("y=\"12.50%\"") && chart.matches("<rect").count() == 1, "{chart}");
    }
}
