//! Many answers at once: crawlers × URLs, as CSV for programs and spreadsheets, or as a matrix for people.

use std::io::{self, Write};

use tower_robots::rules::{Access, Rule};

use super::explanation::Explanation;
use crate::render::printable;
use crate::target_url::TargetUrl;

/// The least width of a column of the matrix: that of `no (12345)`. No name is cut, or two columns might look the same.
const LEAST_WIDTH: usize = 9;

/// Writes a cell and what follows it. A cell that a spreadsheet would take for a formula begins with an apostrophe.
fn cell(out: &mut impl Write, text: &str, end: &str) -> io::Result<()> {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let guarded = if is_formula { format!("'{text}") } else { text.to_owned() };
    if guarded.contains(['"', ',', ';', '\n', '\r', '\'']) {
        write!(out, "\"{}\"{end}", guarded.replace('"', "\"\""))
    } else {
        write!(out, "{guarded}{end}")
    }
}

/// The columns of the rows of [`csv_row`].
pub(super) fn csv_head(out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"url,crawler,access,line,rule,group\r\n")
}

/// A row for one crawler and one URL (RFC 4180).
pub(super) fn csv_row(
    out: &mut impl Write,
    url: &TargetUrl<'_>,
    crawler: &str,
    answer: &Explanation<'_>,
) -> io::Result<()> {
    let rule = decider(answer);
    let group = answer.verdict.and_then(|verdict| verdict.group());
    let names = group.map_or_else(String::new, |group| {
        group.names().map(|name| printable(name.value())).collect::<Vec<_>>().join(" ")
    });
    cell(out, &printable(url.as_bytes()), ",")?;
    cell(out, crawler, ",")?;
    cell(out, answer.access.as_str(), ",")?;
    cell(out, &rule.map_or_else(String::new, |rule| rule.line().to_string()), ",")?;
    cell(out, &rule.map_or_else(String::new, |rule| printable(rule.pattern())), ",")?;
    cell(out, &names, "\r\n")
}

/// The names of the crawlers above the rows of [`matrix_row`].
pub(super) fn matrix_head<'n>(out: &mut impl Write, crawlers: impl IntoIterator<Item = &'n str>) -> io::Result<()> {
    for name in crawlers {
        write!(out, "{:width$}  ", printable(name.as_bytes()), width = width(name))?;
    }
    writeln!(out, "URL")
}

/// A row for one URL, which stands last: a list is answered while it is read, and its widest URL is not known.
pub(super) fn matrix_row<'n, 'e: 'n>(
    out: &mut impl Write,
    url: &TargetUrl<'_>,
    answers: impl IntoIterator<Item = (&'n str, &'n Explanation<'e>)>,
) -> io::Result<()> {
    for (name, answer) in answers {
        let text = match (answer.access, decider(answer)) {
            (Access::Allow, _) => "yes".to_owned(),
            (Access::Disallow, Some(rule)) => format!("no ({})", rule.line()),
            (Access::Disallow, None) => "no".to_owned(),
        };
        write!(out, "{text:width$}  ", width = width(name))?;
    }
    writeln!(out, "{}", printable(url.as_bytes()))
}

fn width(name: &str) -> usize {
    printable(name.as_bytes()).chars().count().max(LEAST_WIDTH)
}

fn decider<'e>(answer: &Explanation<'e>) -> Option<Rule<'e>> {
    answer.verdict.and_then(|verdict| verdict.rule()).filter(|rule| !rule.pattern().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula_and_none_ends_early() {
        let written = |text: &str| {
            let mut out = Vec::new();
            cell(&mut out, text, "").expect("a vector takes all");
            String::from_utf8(out).expect("text")
        };
        for (text, want) in [
            ("/a?b=c", "/a?b=c"),
            ("/a,b\"c", "\"/a,b\"\"c\""),
            ("=HYPERLINK(1)", "\"'=HYPERLINK(1)\""),
            ("@bot", "\"'@bot\""),
            ("-1+1", "\"'-1+1\""),
            ("+x", "\"'+x\""),
            ("", ""),
        ] {
            assert_eq!(written(text), want, "{text}");
        }
    }
}
