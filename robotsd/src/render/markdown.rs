//! Findings as Markdown, for the comment on a change.

use std::io::{self, Write};

use tower_robots::check::{Lint, Severity, lint};

use super::answer_finding::{AnswerFinding, Checked};
use super::printable::printable;

pub(super) fn write(out: &mut impl Write, checked: Checked<'_>) -> io::Result<()> {
    let name = code(&printable(checked.name));
    let counts = Severity::ALL.map(|severity| (severity, checked.report.count(severity)));
    if checked.report.is_clean() {
        return writeln!(out, "{name}: nothing found\n");
    }
    writeln!(out, "{name}: {}\n", found(counts))?;
    writeln!(out, "| line | | finding |\n| --- | --- | --- |")?;
    for finding in checked.report {
        let (line, code, help) = (finding.line.to_string(), finding.code, finding.help.as_deref());
        row(out, &line, finding.severity, code, lint(code).map(Lint::url), &finding.message, help)?;
    }
    match checked.report.omitted() {
        0 => writeln!(out),
        omitted => writeln!(out, "\n{omitted} more findings of these kinds are not shown\n"),
    }
}

/// A table of the findings about an answer; nothing where there are none.
pub(super) fn write_answer(out: &mut impl Write, name: &str, findings: &[AnswerFinding]) -> io::Result<()> {
    if findings.is_empty() {
        return Ok(());
    }
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let counts = Severity::ALL.map(|severity| (severity, count(severity)));
    writeln!(out, "{} answers: {}\n", code(&printable(name)), found(counts))?;
    writeln!(out, "| URL | | finding |\n| --- | --- | --- |")?;
    for AnswerFinding { requested, code: name, severity, message, help, url, .. } in findings {
        row(out, &code(requested), *severity, name, Some(url.clone()), message, help.as_deref())?;
    }
    writeln!(out)
}

/// As in `1 error, 2 notes`.
fn found(counts: [(Severity, usize); 3]) -> String {
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let words = counts.map(|(severity, count)| format!("{count} {severity}{}", if count == 1 { "" } else { "s" }));
    words.collect::<Vec<_>>().join(", ")
}

fn row(
    out: &mut impl Write,
    place: &str,
    severity: Severity,
    name: &str,
    url: Option<String>,
    message: &str,
    help: Option<&str>,
) -> io::Result<()> {
    let link = url.map_or_else(|| name.to_owned(), |url| format!("[{name}]({url})"));
    let help = help.map_or_else(String::new, |help| format!("<br>help: {}", code(help)));
    writeln!(out, "| {place} | {severity} {link} | {}{help} |", code(message))
}

/// Backticks in a row that are shown: readers of Markdown know no fence that is much longer.
const MOST_BACKTICKS: usize = 16;

/// A text as code, in a cell of a table: nothing in it is markup, the name of a person, or a link, and it can be copied.
pub(crate) fn code(text: &str) -> String {
    let (mut shown, mut run, mut longest) = (String::with_capacity(text.len()), 0, 0);
    for char in text.chars() {
        run = if char == '`' { run + 1 } else { 0 };
        longest = longest.max(run.min(MOST_BACKTICKS));
        match char {
            '`' if run == MOST_BACKTICKS + 1 => shown.push('…'),
            '`' if run > MOST_BACKTICKS => {}
            '|' => shown.push_str("\\|"),
            _ => shown.push(char),
        }
    }
    if shown.is_empty() {
        // Two backticks would begin code.
        shown.push(' ');
    }
    let fence = "`".repeat(longest + 1);
    let space = if shown.starts_with('`') || shown.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{shown}{space}{fence}")
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
        assert!(text.starts_with("`robots.txt`: 1 error\n\n| line | | finding |\n"), "{text}");
        let want = "| 2 | error [path-without-slash](https://docs.rs/tower-robots/latest/tower_robots/docs/lints/#path-without-slash) \
                    | `\"private/\" begins with neither \"/\" nor \"*\": it matches no path`<br>help: `write \"/private/\"` |";
        assert_eq!(row, want);
        assert_eq!(written("robots.txt", b"User-agent: *\nDisallow: /private/\n"), "`robots.txt`: nothing found\n\n");
    }

    #[test]
    fn what_a_file_holds_is_code() {
        assert_eq!(code("a @team | b"), "`a @team \\| b`");
        assert_eq!(code("a``b`c"), "```a``b`c```");
        assert_eq!(code("`a"), "`` `a ``");
        assert_eq!(code(""), "` `");
        let (ticks, fence) = ("`".repeat(16), "`".repeat(17));
        assert_eq!(code(&ticks), format!("{fence} {ticks} {fence}"));
        assert_eq!(code(&format!("{}@team", "`".repeat(400))), format!("{fence} {ticks}…@team {fence}"));
        let text = written("a|b`c.txt", b"User-agent: *\nDisallow: @team <img src=x> | [a](b) ``c` https://x.test\n");
        for row in text.lines().filter(|line| line.starts_with("| 2 |")) {
            assert_eq!(row.replace("\\|", "").matches('|').count(), 4, "{row}");
            // Outside of code there is nothing of the file.
            let outside: String = row.split("```").step_by(2).flat_map(|part| part.split('`').step_by(2)).collect();
            assert!(!outside.contains('@') && !outside.contains("<img"), "{row}");
        }
    }
}
