//! Findings for people: as snippets of the file with carets, like messages of compilers, or as one
//! line per finding.

use std::io::{self, IsTerminal, Write};
use std::ops::Range;

use annotate_snippets::renderer::DEFAULT_LINE_NUM_STYLE;
use annotate_snippets::{AnnotationKind, Group, Level, Message, Renderer, Snippet, Title};
use tower_robots::check::{Finding, Fix, Safety, Severity};
use tower_robots::rules::Line;

use super::checked::Checked;
use super::printable::{printable, printable_with_span};

pub(super) fn write(out: &mut impl Write, colour: Colour, checked: Checked<'_>) -> io::Result<()> {
    let name = printable(checked.name);
    // Findings are sorted by line, so one pass over the lines of the file is enough.
    let mut lines = checked.robots.lines().peekable();
    for (at, finding) in checked.report.findings.iter().enumerate() {
        while lines.next_if(|line| line.number < finding.line).is_some() {}
        let Some(line) = lines.peek() else { break };
        writeln!(out, "{}\n", render(colour, &name, line, finding, checked.fix_of(at)))?;
    }
    checked.omitted().map_or(Ok(()), |omitted| writeln!(out, "{name}: {omitted}\n"))
}

/// Writes one finding, without the blank line that separates findings.
pub(crate) fn write_one(out: &mut impl Write, checked: Checked<'_>, finding: &Finding) -> io::Result<()> {
    let colour = Colour::of(&io::stdout());
    let name = printable(checked.name);
    match checked.robots.lines().nth(finding.line.saturating_sub(1)) {
        Some(line) => {
            let at = checked.report.findings.iter().position(|other| std::ptr::eq(other, finding));
            writeln!(out, "{}", render(colour, &name, &line, finding, at.and_then(|at| checked.fix_of(at))))
        }
        None => Ok(()),
    }
}

fn render(colour: Colour, name: &str, line: &Line<'_>, finding: &Finding, fix: Option<&Fix>) -> String {
    let inside = |at: usize| at.saturating_sub(line.range.start).min(line.bytes().len());
    let snippet = LineSnippet {
        severity: finding.severity,
        code: Some(finding.code),
        message: &finding.message,
        help: finding.help.as_deref(),
        fix: fix.map(|fix| fix.safety),
        name,
        place: (finding.line, finding.column),
        line: line.bytes(),
        span: inside(finding.span.start)..inside(finding.span.end),
    };
    snippet.render(colour)
}

/// Maximum number of bytes of a line that a snippet shows; longer lines are cut around the part
/// that the message is about.
const MAX_SHOWN_BYTES: usize = 120;

/// Number of bytes that a cut line contains before the part that the message is about.
const BYTES_BEFORE_SPAN: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Plain,
    Styled,
}

#[derive(Debug)]
pub(super) struct LineSnippet<'a> {
    pub(super) severity: Severity,
    pub(super) code: Option<&'a str>,
    pub(super) message: &'a str,
    pub(super) help: Option<&'a str>,
    /// Safety of the fix, if `--fix` can correct the finding.
    pub(super) fix: Option<Safety>,
    pub(super) name: &'a str,
    /// Line and column, both from 1.
    pub(super) place: (usize, usize),
    /// The line without its line end. The line may contain any bytes.
    pub(super) line: &'a [u8],
    /// Byte range of `line` that the message is about.
    pub(super) span: Range<usize>,
}

impl Colour {
    /// Returns `Styled` for a terminal, unless `NO_COLOR` is set.
    pub(crate) fn of(output: &impl IsTerminal) -> Self {
        let may_style = std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
        if may_style && output.is_terminal() { Self::Styled } else { Self::Plain }
    }
}

impl LineSnippet<'_> {
    pub(super) fn render(&self, colour: Colour) -> String {
        let (line, column) = self.place;
        let title = level(self.severity).primary_title(self.message);
        let title = self.code.into_iter().fold(title, Title::id);
        let help = self.help.map(help);
        let (excerpt, span) = excerpt(self.line, &self.span);
        let snippet = Snippet::source(excerpt).line_start(line).annotation(AnnotationKind::Primary.span(span));
        let fix = self.fix.map(|safety| {
            Level::HELP.with_name("fix").message(match safety {
                Safety::Safe => "--fix corrects the line, and changes nothing for crawlers that read the line",
                _ => "--fix --unsafe-fixes corrects the line, and changes what some crawlers may fetch",
            })
        });
        let group = Group::with_title(title).element(snippet).elements(help).elements(fix);
        let text = renderer(colour).render(&[group]);
        // The column of the renderer would be wrong, because the excerpt may start in the middle of
        // the line and may contain escapes. Therefore, line and column are inserted here.
        let (title, snippet) = text.split_once('\n').unwrap_or((&text, ""));
        let (arrow, indent) = (place_arrow(colour), line.to_string().len());
        format!("{title}\n{:indent$}{arrow} {}:{line}:{column}\n{snippet}", "", self.name)
    }
}

pub(super) fn renderer(colour: Colour) -> Renderer {
    match colour {
        Colour::Plain => Renderer::plain(),
        Colour::Styled => Renderer::styled(),
    }
}

pub(super) fn level(severity: Severity) -> Level<'static> {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    }
}

pub(super) fn help(text: &str) -> Message<'_> {
    Level::HELP.message(text)
}

fn place_arrow(colour: Colour) -> String {
    match colour {
        Colour::Plain => "-->".to_owned(),
        Colour::Styled => format!("{DEFAULT_LINE_NUM_STYLE}-->{DEFAULT_LINE_NUM_STYLE:#}"),
    }
}

/// Returns the part of a line that is shown, and the range of `span` within this part.
fn excerpt(bytes: &[u8], span: &Range<usize>) -> (String, Range<usize>) {
    let window = window(bytes, span.start);
    let end = span.end.clamp(window.start, window.end);
    let (text, span) = printable_with_span(&bytes[window.clone()], span.start - window.start..end - window.start);
    let head = if window.start > 0 { "…" } else { "" };
    let tail = if window.end < bytes.len() { "…" } else { "" };
    ([head, &text, tail].concat(), head.len() + span.start..head.len() + span.end)
}

/// Returns the byte range of a line that is shown: it contains the byte at `at`, and is cut only
/// between characters.
fn window(bytes: &[u8], at: usize) -> Range<usize> {
    if bytes.len() <= MAX_SHOWN_BYTES {
        return 0..bytes.len();
    }
    let start = at.saturating_sub(BYTES_BEFORE_SPAN).min(bytes.len() - MAX_SHOWN_BYTES);
    // In UTF-8, bytes of the form 10xxxxxx continue a character. A character has at most three
    // continuation bytes.
    let between = |from: usize| {
        (from.saturating_sub(3)..=from).rev().find(|at| bytes.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80))
    };
    let start = between(start).unwrap_or(start);
    let end = between(start + MAX_SHOWN_BYTES).unwrap_or(start + MAX_SHOWN_BYTES);
    start..end
}

pub(crate) fn finding_line(file: &str, finding: &Finding) -> String {
    format!("{}:{finding}", printable(file))
}

pub(super) fn write_concise(out: &mut impl Write, checked: Checked<'_>) -> io::Result<()> {
    for (at, finding) in checked.report.findings.iter().enumerate() {
        let is_fixed = checked.fix_of(at).is_some_and(|fix| fix.safety == Safety::Safe);
        let hint = if is_fixed { " [--fix]" } else { "" };
        writeln!(out, "{} [{}]{hint}", finding_line(checked.name, finding), finding.code)?;
    }
    checked.omitted().map_or(Ok(()), |omitted| writeln!(out, "{}: {omitted}", printable(checked.name)))
}

#[cfg(test)]
mod tests {
    use tower_robots::check::{Options, check};
    use tower_robots::rules::RobotsTxt;

    use super::*;

    fn rendered(name: &str, file: &[u8], colour: Colour) -> String {
        rendered_with(name, file, colour, &Options::new())
    }

    fn rendered_with(name: &str, file: &[u8], colour: Colour, options: &Options) -> String {
        let robots = RobotsTxt::parse(file);
        let report = check(&robots, options);
        let mut out = Vec::new();
        write(&mut out, colour, Checked { name, robots: &robots, report: &report }).expect("a vector takes all");
        String::from_utf8(out).expect("the output is UTF-8")
    }

    #[test]
    fn a_finding_is_rendered_as_a_snippet_with_caret_and_help() {
        let want = r#"error[path-without-slash]: "private/" begins with neither "/" nor "*", so it matches no path
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
    fn tabs_and_unprintable_bytes_do_not_misalign_the_caret() {
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
    fn the_output_contains_no_control_characters_of_the_input() {
        let file = b"\x1b]0;x\x07\nUser-agent: \xc2\x9b31m\0\x80\nDisallow \x08: \xff\xfe\r\x0b\x7f: x";
        let text = rendered("a\x1b[31m\nb", file, Colour::Plain);
        assert!(text.chars().all(|char| char == '\n' || !char.is_control()), "{text:?}");
        assert!(!rendered("x", file, Colour::Plain).contains('\x1b'));
        assert!(rendered("x", file, Colour::Styled).contains("\x1b["));
    }

    #[test]
    fn the_bad_example_of_every_lint_is_rendered_with_its_code_and_a_caret() {
        for lint in tower_robots::check::Lint::all() {
            let text = rendered_with("robots.txt", &lint.bad.bytes(), Colour::Plain, &lint.example_options());
            assert!(text.contains(&format!("[{}]: ", lint.code)) && text.contains('^'), "{text}");
        }
    }

    #[test]
    fn the_shown_part_of_a_line_never_splits_a_character() {
        let line = "\u{f6}".repeat(500);
        for at in 0..line.len() {
            let shown = window(line.as_bytes(), at);
            assert!(line.get(shown.clone()).is_some() && shown.contains(&(at / 2 * 2)), "{at}: {shown:?}");
        }
        assert_eq!(window(&[0x80; 500], 250).len(), MAX_SHOWN_BYTES);
        assert_eq!(window(&[b'a'; 500], 500), 380..500);
    }
}
