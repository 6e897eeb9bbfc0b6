//! A problem at a place of a text file that a person writes, such as the config.

use std::fmt;
use std::io::Write;
use std::ops::Range;

use tower_robots::check::Severity;

use super::printable::printable;
use super::snippet::{Colour, LineSnippet};

/// A problem, the place it has in a file, and the line there.
#[derive(Clone, Debug)]
pub(crate) struct Diagnostic {
    severity: Severity,
    message: String,
    help: Option<String>,
    /// The file, printable.
    name: String,
    place: (usize, usize),
    line: String,
    span: Range<usize>,
}

impl Diagnostic {
    /// A problem of these octets of a text; of a span over several lines the first is shown.
    pub(crate) fn new(severity: Severity, name: &str, text: &str, span: &Range<usize>, message: &str) -> Self {
        let start = floor(text, span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |end| end + 1);
        let line = text[line_start..].split('\n').next().unwrap_or_default().trim_end_matches('\r');
        let inside = |at: usize| at.saturating_sub(line_start).min(line.len());
        let number = text[..line_start].matches('\n').count() + 1;
        let column = text[line_start..start].chars().count() + 1;
        Self {
            severity,
            message: message.to_owned(),
            help: None,
            name: printable(name.as_bytes()),
            place: (number, column),
            line: line.to_owned(),
            span: inside(start)..inside(floor(text, span.end.max(start))),
        }
    }

    /// What would be right.
    pub(crate) fn help(self, help: Option<String>) -> Self {
        Self { help, ..self }
    }

    pub(crate) const fn severity(&self) -> Severity {
        self.severity
    }

    /// The line of the file with a caret, as for a finding.
    pub(crate) fn snippet(&self, colour: Colour) -> String {
        // A message may hold what stands in the file, which is escaped in it already.
        let (message, help) =
            (printable(self.message.as_bytes()), self.help.as_deref().map(|help| printable(help.as_bytes())));
        let snippet = LineSnippet {
            severity: self.severity,
            code: None,
            message: &message,
            help: help.as_deref(),
            name: &self.name,
            place: self.place,
            line: self.line.as_bytes(),
            span: self.span.clone(),
        };
        snippet.render(colour)
    }
}

/// On one line, for the log: `file:line:column: message; help`.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.place;
        write!(f, "{}:{line}:{column}: {}", self.name, self.message)?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

/// Writes each with its snippet to standard error.
pub(crate) fn complain_at<'a>(diagnostics: impl IntoIterator<Item = &'a Diagnostic>) {
    let mut out = std::io::stderr().lock();
    let colour = Colour::of(&out);
    for diagnostic in diagnostics {
        // Where standard error is closed, the exit code remains.
        let _ = writeln!(out, "{}\n", diagnostic.snippet(colour));
    }
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_shown_with_its_line_and_said_on_one() {
        let text = "a = 1\nmode = \"strict\"\r\nb = 2\n";
        let problem =
            Diagnostic::new(Severity::Error, "r.toml", text, &(13..21), "no such mode").help(Some("off".into()));
        assert_eq!(problem.to_string(), "r.toml:2:8: no such mode; off");
        let want =
            "error: no such mode\n --> r.toml:2:8\n  |\n2 | mode = \"strict\"\n  |        ^^^^^^^^\n  |\n  = help: off";
        assert_eq!(problem.snippet(Colour::Plain), want);
    }

    #[test]
    fn any_span_of_any_text_can_be_shown() {
        let text = "\u{f6} = \"x\u{1b}\"\n\n[table]\nkey = 1";
        for start in 0..text.len() + 2 {
            for end in [0, start, start + 1, start + 9, usize::MAX] {
                let problem = Diagnostic::new(Severity::Warning, "a\nb", text, &(start..end), "x\u{1b}y");
                let shown = problem.snippet(Colour::Plain);
                assert!(shown.chars().all(|char| char == '\n' || !char.is_control()), "{shown:?}");
            }
        }
        assert!(
            Diagnostic::new(Severity::Error, "e", "", &(0..0), "m")
                .snippet(Colour::Plain)
                .starts_with("error: m\n --> e:1:1")
        );
    }
}
