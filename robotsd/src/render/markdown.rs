//! Findings as Markdown, for the comment on a change.

use std::fmt::Write as _;
use std::io::{self, Write};

use tower_robots::check::{Finding, Severity, lint};

use super::checked::Checked;
use super::printable::printable;

pub(super) fn write(out: &mut impl Write, checked: Checked<'_>) -> io::Result<()> {
    let name = markdown_text(&printable(checked.name.as_bytes()));
    let counts = Severity::ALL.map(|severity| (severity, checked.report.count(severity)));
    let found: Vec<String> = counts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(severity, count)| format!("{count} {severity}{}", if *count == 1 { "" } else { "s" }))
        .collect();
    if found.is_empty() {
        return writeln!(out, "**{name}**: nothing found\n");
    }
    writeln!(out, "**{name}**: {}\n", found.join(", "))?;
    writeln!(out, "| line | | finding |\n| --- | --- | --- |")?;
    for finding in checked.report {
        row(out, finding)?;
    }
    match checked.report.omitted() {
        0 => writeln!(out),
        omitted => writeln!(out, "\n{omitted} more findings of these kinds are not shown\n"),
    }
}

fn row(out: &mut impl Write, finding: &Finding) -> io::Result<()> {
    let code = finding.code();
    let code = lint(code).map_or_else(|| code.to_owned(), |lint| format!("[{code}]({})", lint.url()));
    let help = finding.help().map_or_else(String::new, |help| format!("<br>help: {}", markdown_text(help)));
    let message = markdown_text(finding.message());
    writeln!(out, "| {} | {} {code} | {message}{help} |", finding.line(), finding.severity())
}

/// A text that nothing in Markdown reads as more than text: no markup, no column of a table, no name of a person.
fn markdown_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '@' | '#' | '<' | '>' | '&' | '|' | ':' => {
                let _ = write!(escaped, "&#{};", u32::from(char));
            }
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '~' | '!' => escaped.extend(['\\', char]),
            _ => escaped.push(char),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use tower_robots::check::{Options, check};
    use tower_robots::rules::RobotsTxt;

    use super::*;

    fn written(name: &str, file: &[u8]) -> String {
        let robots = RobotsTxt::parse(file);
        let report = check(&robots, &Options::new());
        let mut out = Vec::new();
        write(&mut out, Checked { name, robots: &robots, report: &report }).expect("a vector takes all");
        String::from_utf8(out).expect("the output is UTF-8")
    }

    #[test]
    fn a_finding_is_a_row_with_a_link() {
        let text = written("robots.txt", b"User-agent: *\nDisallow: private/\n");
        let row = text.lines().nth(4).expect("a row");
        assert!(text.starts_with("**robots.txt**: 1 error\n\n| line | | finding |\n"), "{text}");
        let want = "| 2 | error [path-without-slash](https://docs.rs/tower-robots/latest/tower_robots/docs/lints/#path-without-slash) \
                    | \"private/\" begins with neither \"/\" nor \"\\*\"&#58; it matches no path<br>help: write \"/private/\" |";
        assert_eq!(row, want);
        assert_eq!(written("robots.txt", b"User-agent: *\nDisallow: /private/\n"), "**robots.txt**: nothing found\n\n");
    }

    #[test]
    fn a_file_writes_no_markup() {
        let text = written("a|b`c.txt", b"User-agent: *\nDisallow: @team <img src=x> | [a](b) `c` https://x.test\n");
        for markup in ["@team", "<img", "[a]", "`c`", "://x"] {
            assert!(!text.contains(markup), "{text}");
        }
        assert!(
            text.lines().filter(|line| line.starts_with("| 2 |")).all(|row| row.matches('|').count() == 4),
            "{text}"
        );
    }
}
