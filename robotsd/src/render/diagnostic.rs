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
        let line = Self::without_secret(line);
        let inside = |at: usize| floor(&line, at.saturating_sub(line_start));
        let number = text[..line_start].matches('\n').count() + 1;
        let column = text[line_start..start].chars().count() + 1;
        Self {
            severity,
            message: message.to_owned(),
            help: None,
            name: printable(name.as_bytes()),
            place: (number, column),
            span: inside(start)..inside(floor(text, span.end.max(start))),
            line,
        }
    }

    /// The line, ended with stars where a URL with a password may begin: what is wrong with it may be where the password ends.
    fn without_secret(line: &str) -> String {
        let of_store = line.match_indices("store").find_map(|(at, key)| {
            let is_part = line[..at].ends_with(|before: char| before.is_alphanumeric() || matches!(before, '_' | '-'));
            let value = line[at + key.len()..].trim_start_matches(['"', '\'']).trim_start().strip_prefix('=')?;
            let value = value.trim_start().trim_start_matches(['"', '\'']);
            let hidden = ["redis://", "rediss://"].into_iter().find_map(|scheme| value.strip_prefix(scheme));
            (!is_part).then(|| line.len() - hidden.unwrap_or(value).len())
        });
        let of_login = line.match_indices("://").find_map(|(at, slashes)| {
            let login = at + slashes.len();
            line[login..].rsplit_once('@').filter(|(login, _)| login.contains(':')).map(|_| login)
        });
        match of_store.into_iter().chain(of_login).min() {
            Some(shown) if shown < line.len() => format!("{}***", &line[..shown]),
            _ => line.to_owned(),
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
    fn a_password_is_not_shown_however_it_is_written() {
        for line in [
            r#"store = "redis://u:hunter2@cache:port""#,
            r#"store = "u:hunter2@redis://cache""#,
            r#"store = "redis://u:hunter2"#,
            r#"store = 'redis://u:hunter2\u0040cache'"#,
            r#"rate = { batch = 0, "store" = "rediss://u:hunter2@cache" }"#,
            r#"rate.store="hunter2""#,
            r#"sotre = "redis://u:hunter2@cache""#,
        ] {
            let text = format!("a = 1\n{line}\n");
            for start in 0..text.len() {
                let problem = Diagnostic::new(Severity::Error, "r.toml", &text, &(start..text.len()), "wrong");
                assert!(!problem.snippet(Colour::Plain).contains("hunter2"), "{line}");
            }
        }
        for line in ["when_store = 1", "a = 'https://shop.example/a:b'", "# stores = 2 https://a.example (c@d.example)"]
        {
            assert_eq!(Diagnostic::without_secret(line), line);
        }
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
