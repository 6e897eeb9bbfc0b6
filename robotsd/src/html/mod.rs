//! Common parts of robotsd's pages, which are askama templates. The pages of `commands::replay` and
//! of the board extend `base.html`.
//!
//! Each HTML file is next to the code that fills it in. [`Escape`] escapes everything that a
//! template prints except [`Markup`], which is the output of other templates, charts and the style
//! sheet.

mod chart;
mod crawlers;

use std::fmt;

use askama::Template;
use askama::filters::{Escaper, Safe};
use indicatif::HumanCount;

pub(crate) use self::chart::{ChartPart, TimeChart, bar};
pub(crate) use self::crawlers::{CrawlerGroup, CrawlerLine, crawler_lines, value_of};

use crate::date;

pub(crate) const STYLE: &str = include_str!("style.css");

pub(crate) type Markup = Safe<String>;

pub(crate) fn markup(template: &impl Template) -> Markup {
    Safe(template.to_string())
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Escape;

impl Escaper for Escape {
    fn write_escaped_str<W: fmt::Write>(&self, mut page: W, text: &str) -> fmt::Result {
        for char in text.chars() {
            match char {
                '&' => page.write_str("&amp;")?,
                '<' => page.write_str("&lt;")?,
                '>' => page.write_str("&gt;")?,
                '"' => page.write_str("&quot;")?,
                '\'' => page.write_str("&#39;")?,
                '\\' => page.write_str("\\")?,
                // Control characters are escaped, because control characters for bidirectional text
                // could make a path look like another path.
                _ => write!(page, "{}", char.escape_debug())?,
            }
        }
        Ok(())
    }
}

#[expect(unreachable_pub, reason = "the macro `filter_fn` generates public methods of private types")]
pub(crate) mod filters {
    use askama::{PrimitiveType, Values, filter_fn};

    #[filter_fn]
    pub(crate) fn grouped(number: impl PrimitiveType<Value: TryInto<u64>>, _: &dyn Values) -> askama::Result<String> {
        Ok(super::grouped(number.get().try_into().unwrap_or(u64::MAX)))
    }

    #[filter_fn]
    pub(crate) fn counted(
        number: impl PrimitiveType<Value: TryInto<u64>>,
        _: &dyn Values,
        what: &str,
    ) -> askama::Result<String> {
        Ok(super::counted(number.get().try_into().unwrap_or(u64::MAX), what))
    }

    #[filter_fn]
    pub(crate) fn minute(written: impl AsRef<str>, _: &dyn Values) -> askama::Result<String> {
        Ok(super::minute(written.as_ref()))
    }
}

/// Formats `1234567` as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    HumanCount(number).to_string()
}

pub(crate) fn counted(number: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Formats a share in percent, with one decimal below 10 %.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 || part == 0 {
        return "0 %".to_owned();
    }
    let share = 100.0 * part as f64 / whole as f64;
    if share < 0.1 {
        "< 0.1 %".to_owned()
    } else if share < 9.95 {
        format!("{share:.1} %")
    } else if share >= 99.5 && part < whole {
        "> 99 %".to_owned()
    } else {
        format!("{share:.0} %")
    }
}

/// Formats a time as `2024-02-29 22:59`, in UTC.
pub(crate) fn moment(seconds: i64) -> String {
    let Ok(seconds) = u64::try_from(seconds) else { return "before 1970".to_owned() };
    let time = std::time::UNIX_EPOCH.checked_add(std::time::Duration::from_secs(seconds));
    let Some(time) = time else { return "after 9999".to_owned() };
    minute(&date::rfc3339(time))
}

/// Shortens a formatted time with seconds to the form `2026-11-22 12:16`.
pub(crate) fn minute(written: &str) -> String {
    written.get(..16).unwrap_or(written).replace('T', " ")
}

/// Formats a period as two times, or as one time if the period begins and ends in the same minute.
pub(crate) fn period(first: i64, last: i64) -> String {
    let (from, to) = (moment(first), moment(last));
    if from == to { format!("{from} UTC") } else { format!("{from} to {to} UTC") }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn themes() -> Vec<HashMap<&'static str, &'static str>> {
        let blocks = STYLE.split(":root {").skip(1).map(|rest| rest.split('}').next().unwrap_or_default());
        let colours = |block: &'static str| block.split(';').filter_map(|line| line.trim().split_once(": "));
        blocks.map(|block| colours(block).collect()).collect()
    }

    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let value = u8::from_str_radix(&colour[at..at + 2], 16).expect("two digits");
            let value = f64::from(value) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// WCAG 2.2 requires these contrasts for text (1.4.3) and for graphics (1.4.11).
    #[test]
    fn the_colours_of_both_themes_have_enough_contrast() {
        let themes = themes();
        assert_eq!((themes.len(), STYLE.matches("prefers-color-scheme: dark").count()), (2, 1));
        for theme in themes {
            for text in ["--ink", "--soft", "--link"] {
                for ground in ["--paper", "--card", "--warn"] {
                    let contrast = contrast(theme[text], theme[ground]);
                    assert!(contrast >= 4.5, "{text} on {ground}: {contrast:.2}");
                }
            }
            let badge = contrast(theme["--paper"], theme["--engine"]);
            assert!(badge >= 4.5, "text of a badge on --engine: {badge:.2}");
            for drawn in ["--allowed", "--disallowed", "--opened", "--engine", "--early", "--warn-line"] {
                let contrast = contrast(theme[drawn], theme["--paper"]);
                assert!(contrast >= 3.0, "{drawn}: {contrast:.2}");
            }
        }
    }

    /// If an element were wider than the screen of a phone, the page would scroll horizontally.
    #[test]
    fn the_style_contains_rules_that_make_pages_fit_a_narrow_window() {
        assert!(
            !STYLE.contains("min-width: 4") && !STYLE.contains("overflow-x") && !STYLE.contains("nowrap;\n  width")
        );
        let narrow = STYLE.split_once("@media (max-width:").expect("a style for narrow windows").1;
        for rule in [
            ".stacked td::before { content: attr(data-label)",
            ".bars .line { grid-template-columns: minmax(0, 1fr) auto",
        ] {
            assert!(narrow.contains(rule), "{rule}");
        }
    }

    #[test]
    fn hostile_strings_are_escaped_in_html() {
        let hostile = "<script>alert('1')</script>\"&\u{202e}\u{1b}\\";
        let want = "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot;&amp;\\u{202e}\\u{1b}\\";
        let mut text = String::new();
        Escape.write_escaped_str(&mut text, hostile).unwrap();
        assert_eq!(text, want);
    }

    /// Templates escape everything except [`Markup`].
    #[test]
    fn no_template_turns_escaping_off() {
        let files = walkdir::WalkDir::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).into_iter().flatten();
        let is_template =
            |file: &walkdir::DirEntry| file.path().extension().is_some_and(|of| of == "html" || of == "txt");
        let templates: Vec<_> = files.filter(is_template).map(walkdir::DirEntry::into_path).collect();
        assert!(templates.len() > 5, "{templates:?}");
        for template in templates {
            let text = std::fs::read_to_string(&template).unwrap();
            let mut filters = text.split('|').skip(1).map(str::trim_start);
            let turns_off = |filter: &str| ["safe", "escape", "e "].iter().any(|off| filter.starts_with(off));
            assert!(!filters.any(turns_off), "{}", template.display());
        }
    }

    #[test]
    fn numbers_percentages_and_times_are_formatted_for_people() {
        for (number, want) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), want);
        }
        for (part, whole, want) in [
            (0, 0, "0 %"),
            (1, 10_000, "< 0.1 %"),
            (1, 100, "1.0 %"),
            (996, 10_000, "10 %"),
            (1, 3, "33 %"),
            (999, 1000, "> 99 %"),
            (5, 5, "100 %"),
        ] {
            assert_eq!(percent(part, whole), want);
        }
        assert_eq!(moment(1_709_247_599), "2024-02-29 22:59");
        assert_eq!(period(1_709_247_599, 1_709_247_600), "2024-02-29 22:59 to 2024-02-29 23:00 UTC");
        assert_eq!(period(1_709_247_598, 1_709_247_599), "2024-02-29 22:59 UTC");
    }
}
