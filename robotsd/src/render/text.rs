//! Findings as snippets of the file with carets, as compilers show them.

use std::io::{self, Write};

use annotate_snippets::{Group, Origin};
use tower_robots::check::{Finding, Fix, Safety};
use tower_robots::rules::Line;

use super::answer_finding::AnswerFinding;
use super::checked::Checked;
use super::printable::printable;
use super::snippet::{Colour, LineSnippet, help, level, renderer};

pub(super) fn write(out: &mut impl Write, colour: Colour, checked: Checked<'_>) -> io::Result<()> {
    let name = printable(checked.name.as_bytes());
    // Findings are sorted, so one walk over the lines finds the line of each.
    let mut lines = checked.robots.lines().peekable();
    for (at, finding) in checked.report.findings().iter().enumerate() {
        while lines.next_if(|line| line.number() < finding.line()).is_some() {}
        let Some(line) = lines.peek() else { break };
        writeln!(out, "{}\n", render(colour, &name, line, finding, checked.fix_of(at)))?;
    }
    if checked.report.omitted() > 0 {
        writeln!(out, "{name}: {} more findings of these kinds are not shown\n", checked.report.omitted())?;
    }
    Ok(())
}

/// Writes one finding, without the blank line that keeps it apart from the next.
pub(super) fn write_one(
    out: &mut impl Write,
    colour: Colour,
    checked: Checked<'_>,
    finding: &Finding,
) -> io::Result<()> {
    let name = printable(checked.name.as_bytes());
    match checked.robots.lines().nth(finding.line().saturating_sub(1)) {
        Some(line) => {
            let at = checked.report.findings().iter().position(|other| std::ptr::eq(other, finding));
            writeln!(out, "{}", render(colour, &name, &line, finding, at.and_then(|at| checked.fix_of(at))))
        }
        None => Ok(()),
    }
}

/// Writes findings about an answer, with a blank line behind each.
pub(super) fn write_answer(out: &mut impl Write, colour: Colour, findings: &[AnswerFinding]) -> io::Result<()> {
    for finding in findings {
        let title = level(finding.severity()).primary_title(finding.message()).id(finding.lint().code);
        let group =
            Group::with_title(title).element(Origin::path(finding.url())).elements(finding.help_text().map(help));
        writeln!(out, "{}\n", renderer(colour).render(&[group]))?;
    }
    Ok(())
}

fn render(colour: Colour, name: &str, line: &Line<'_>, finding: &Finding, fix: Option<&Fix>) -> String {
    let inside = |at: usize| at.saturating_sub(line.range().start).min(line.bytes().len());
    let snippet = LineSnippet {
        severity: finding.severity(),
        code: Some(finding.code()),
        message: finding.message(),
        help: finding.help(),
        is_fixed: fix.is_some_and(|fix| fix.safety() == Safety::Safe),
        name,
        place: (finding.line(), finding.column()),
        line: line.bytes(),
        span: inside(finding.span().start)..inside(finding.span().end),
    };
    snippet.render(colour)
}

#[cfg(test)]
mod tests {
    use tower_robots::check::{Options, check};
    use tower_robots::rules::RobotsTxt;

    use super::*;

    fn rendered(name: &str, file: &[u8], colour: Colour) -> String {
        let robots = RobotsTxt::parse(file);
        let report = check(&robots, &Options::new());
        let mut out = Vec::new();
        write(&mut out, colour, Checked { name, robots: &robots, report: &report }).expect("a vector takes all");
        String::from_utf8(out).expect("the output is UTF-8")
    }

    #[test]
    fn a_finding_is_a_snippet_with_caret_and_help() {
        let want = r#"error[path-without-slash]: "private/" begins with neither "/" nor "*": it matches no path
 --> robots.txt:2:12
  |
2 | Disallow:  private/
  |            ^^^^^^^^
  |
  = help: write "/private/"

"#;
        assert_eq!(rendered("robots.txt", b"User-agent: *\nDisallow:  private/\n", Colour::Plain), want);
    }

    #[test]
    fn a_tab_and_what_does_not_print_keep_the_caret_in_place() {
        let text = rendered("robots.txt", b"User-agent: *\nDisallow:\t\x1b\xff/\n", Colour::Plain);
        assert!(text.contains("2 | Disallow:    \\u{1b}\\xff/\n  |              ^^^^^^^^^^^\n"), "{text}");
    }

    #[test]
    fn a_long_line_is_cut_around_the_finding() {
        let file = [&b"User-agent: *\nDisallow: "[..], &[b'x'; 20_000], b" y"].concat();
        let text = rendered("robots.txt", &file, Colour::Plain);
        assert!(text.lines().all(|line| line.chars().count() < 200), "{text}");
        assert!(text.contains(" --> robots.txt:2:16664"), "{text}");
        assert!(text.contains("2 | …xxx") && text.contains("xxx…\n"), "{text}");
    }

    #[test]
    fn nothing_raw_reaches_the_output() {
        let file = b"\x1b]0;x\x07\nUser-agent: \xc2\x9b31m\0\x80\nDisallow \x08: \xff\xfe\r\x0b\x7f: x";
        let text = rendered("a\x1b[31m\nb", file, Colour::Plain);
        assert!(text.chars().all(|char| char == '\n' || !char.is_control()), "{text:?}");
        assert!(!rendered("x", file, Colour::Plain).contains('\x1b'));
        assert!(rendered("x", file, Colour::Styled).contains("\x1b["));
    }

    #[test]
    fn every_example_renders() {
        for lint in tower_robots::check::lints() {
            let robots = RobotsTxt::parse(lint.bad_example().bytes().into_owned());
            let report = check(&robots, &lint.example_options());
            let mut out = Vec::new();
            let checked = Checked { name: "robots.txt", robots: &robots, report: &report };
            write(&mut out, Colour::Plain, checked).expect("a vector takes all");
            let text = String::from_utf8(out).expect("the output is UTF-8");
            assert!(text.contains(&format!("[{}]: ", lint.code())) && text.contains('^'), "{text}");
        }
    }
}
