//! One line of a file with a caret below the part that is meant, as compilers show it.

use std::io::IsTerminal;
use std::ops::Range;

use annotate_snippets::renderer::DEFAULT_LINE_NUM_STYLE;
use annotate_snippets::{AnnotationKind, Group, Level, Message, Renderer, Snippet};
use tower_robots::check::Severity;

use super::printable::printable_with_span;

/// Octets of a line that a snippet shows; a longer line is cut around its span.
const SHOWN: usize = 120;

/// How many of them stand before the span.
const BEFORE: usize = 40;

/// Whether escape sequences for colour may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Plain,
    Styled,
}

/// A message about a part of one line.
#[derive(Debug)]
pub(super) struct LineSnippet<'a> {
    pub(super) severity: Severity,
    pub(super) code: Option<&'a str>,
    pub(super) message: &'a str,
    pub(super) help: Option<&'a str>,
    /// Whether `--fix` corrects it.
    pub(super) is_fixed: bool,
    /// The file, printable.
    pub(super) name: &'a str,
    /// Line and column, both from 1.
    pub(super) place: (usize, usize),
    /// The line, without its end; it may hold any octet.
    pub(super) line: &'a [u8],
    /// What is meant, in the line.
    pub(super) span: Range<usize>,
}

impl Colour {
    /// Styled for a terminal, unless `NO_COLOR` is set.
    pub(crate) fn of(output: &impl IsTerminal) -> Self {
        let may_style = std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
        if may_style && output.is_terminal() { Self::Styled } else { Self::Plain }
    }
}

impl LineSnippet<'_> {
    pub(super) fn render(&self, colour: Colour) -> String {
        let (line, column) = self.place;
        let title = level(self.severity).primary_title(self.message);
        let title = match self.code {
            Some(code) => title.id(code),
            None => title,
        };
        let help = self.help.map(help);
        let excerpt = Excerpt::of(self.line, &self.span);
        let snippet =
            Snippet::source(excerpt.text).line_start(line).annotation(AnnotationKind::Primary.span(excerpt.span));
        let fix = self.is_fixed.then(|| {
            Level::HELP.with_name("fix").message("--fix corrects it, and changes nothing for crawlers that read it now")
        });
        let group = Group::with_title(title).element(snippet).elements(help).elements(fix);
        let text = renderer(colour).render(&[group]);
        // The renderer would count the column in what is shown, which may be a part of the line and has escapes in it.
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

/// What is shown of a line, and where the span is in it.
struct Excerpt {
    text: String,
    span: Range<usize>,
}

impl Excerpt {
    fn of(octets: &[u8], span: &Range<usize>) -> Self {
        let window = window(octets, span.start);
        let end = span.end.clamp(window.start, window.end);
        let (text, span) = printable_with_span(&octets[window.clone()], span.start - window.start..end - window.start);
        let head = if window.start > 0 { "…" } else { "" };
        let tail = if window.end < octets.len() { "…" } else { "" };
        Self { span: head.len() + span.start..head.len() + span.end, text: [head, &text, tail].concat() }
    }
}

/// The octets of a line to show, around the one at `at`, cut between characters.
fn window(octets: &[u8], at: usize) -> Range<usize> {
    if octets.len() <= SHOWN {
        return 0..octets.len();
    }
    let start = at.saturating_sub(BEFORE).min(octets.len() - SHOWN);
    // An octet of the form 10xxxxxx goes on with a character; there are at most three of them in one.
    let between = |from: usize| {
        (from.saturating_sub(3)..=from).rev().find(|at| octets.get(*at).is_none_or(|octet| octet & 0xC0 != 0x80))
    };
    let start = between(start).unwrap_or(start);
    let end = between(start + SHOWN).unwrap_or(start + SHOWN);
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_does_not_cut_characters() {
        let line = "\u{f6}".repeat(500);
        for at in 0..line.len() {
            let shown = window(line.as_bytes(), at);
            assert!(line.get(shown.clone()).is_some() && shown.contains(&(at / 2 * 2)), "{at}: {shown:?}");
        }
        assert_eq!(window(&[0x80; 500], 250).len(), SHOWN);
        assert_eq!(window(&[b'a'; 500], 500), 380..500);
    }
}
