//! A problem at a position in a file that people write, such as the config.

use std::io::Write;
use std::ops::Range;

use tower_robots::check::Severity;

use super::printable::{printable, styled_stderr};
use super::text::{Colour, LineSnippet};

/// URL prefixes of stores; such a URL may contain a password.
const STORE_SCHEMES: [&str; 2] = ["redis://", "rediss://"];

/// A problem, its position in a file, and the line at this position. Its `Display` form is one
/// line, for the log: `file:line:column: message; help`.
#[derive(Clone, Debug, derive_more::Display)]
#[display("{name}:{}:{}: {message}{}", place.0, place.1, help.as_ref().map(|help| format!("; {help}")).unwrap_or_default())]
pub(crate) struct Diagnostic {
    pub(crate) severity: Severity,
    pub(super) message: String,
    pub(super) help: Option<String>,
    /// The name of the file, in printable form.
    pub(super) name: String,
    pub(super) place: (usize, usize),
    line: String,
    span: Range<usize>,
    /// The site that the problem concerns, if other sites may have the same problem.
    pub(super) site: Option<String>,
}

impl Diagnostic {
    /// Creates a problem for a byte range of `text`. If the range spans several lines, the first is
    /// shown.
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
            message: without_passwords(message),
            help: None,
            name: printable(name),
            place: (number, column),
            span: inside(start)..inside(floor(text, span.end.max(start))),
            line,
            site: None,
        }
    }

    /// Returns the line of a syntax error, masked from the first position where a password may
    /// begin. The rest is masked as a whole, because the error may be in the password, so that its
    /// end is unknown.
    fn without_secret(line: &str) -> String {
        let of_store = line.match_indices("store").find_map(|(at, key)| {
            let is_part = line[..at].ends_with(|before: char| before.is_alphanumeric() || matches!(before, '_' | '-'));
            let value = line[at + key.len()..].trim_start_matches(['"', '\'']).trim_start().strip_prefix('=')?;
            let value = value.trim_start().trim_start_matches(['"', '\'']);
            let hidden = STORE_SCHEMES.into_iter().find_map(|scheme| value.strip_prefix(scheme));
            (!is_part).then(|| line.len() - hidden.unwrap_or(value).len())
        });
        let of_login = line.match_indices("://").find_map(|(at, slashes)| {
            let login = at + slashes.len();
            line[login..].rsplit_once('@').filter(|(login, _)| login.contains(':')).map(|_| login)
        });
        let of_scheme = STORE_SCHEMES.into_iter().find_map(|scheme| Some(line.find(scheme)? + scheme.len()));
        match of_store.into_iter().chain(of_login).chain(of_scheme).min() {
            Some(shown) if shown < line.len() => format!("{}***", &line[..shown]),
            _ => line.to_owned(),
        }
    }

    /// Sets the help text with the correction.
    pub(crate) fn help(self, help: Option<String>) -> Self {
        Self { help: help.as_deref().map(without_passwords), ..self }
    }

    pub(crate) fn of_site(self, site: Option<String>) -> Self {
        Self { site, ..self }
    }

    /// Renders the problem with its line of the file and a caret, like a finding.
    pub(crate) fn snippet(&self, colour: Colour) -> String {
        // The message may quote the file; quotes are already escaped.
        let (message, help) = (printable(&self.message), self.help.as_deref().map(printable));
        let snippet = LineSnippet {
            severity: self.severity,
            code: None,
            message: &message,
            help: help.as_deref(),
            fix: None,
            name: &self.name,
            place: self.place,
            line: self.line.as_bytes(),
            span: self.span.clone(),
        };
        snippet.render(colour)
    }
}

/// Writes each problem with its snippet to standard error.
pub(crate) fn complain_at<'a>(diagnostics: impl IntoIterator<Item = &'a Diagnostic>) {
    let mut out = styled_stderr();
    let colour = Colour::of(&std::io::stderr());
    for diagnostic in diagnostics {
        // If standard error is closed, the exit status still reports the failure.
        let _ = writeln!(out, "{}\n", diagnostic.snippet(colour));
    }
}

/// Masks the passwords of URLs in `text`.
fn without_passwords(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = (&rest[..at], &rest[at + 3..]);
        let is_of_scheme = |octet: char| octet.is_ascii_alphanumeric() || matches!(octet, '+' | '-' | '.' | ':' | '@');
        let scheme = before.trim_end_matches(is_of_scheme).len();
        // A URL in quotes ends at the closing quote, any other at whitespace.
        let quote = before[..scheme].chars().next_back().filter(|quote| matches!(quote, '"' | '\'' | '`'));
        let (url, next) = after.split_at(end_of_value(after, quote));
        shown.push_str(&before[..scheme]);
        shown.push_str(&without_password(&before[scheme..], url));
        rest = next;
    }
    shown.push_str(rest);
    shown
}

fn end_of_value(text: &str, quote: Option<char>) -> usize {
    let mut is_escaped = false;
    let end = text.find(|octet: char| {
        let ends = quote.map_or_else(|| octet.is_whitespace(), |quote| octet == quote && !is_escaped);
        is_escaped = octet == '\\' && !is_escaped;
        ends
    });
    end.unwrap_or(text.len())
}

/// Returns a URL with the given scheme, with its password masked.
pub(crate) fn without_password(scheme: &str, url: &str) -> String {
    if scheme.contains('@') {
        // The text before the scheme is a user name and a password.
        return "***".to_owned();
    }
    if let Some((login, host)) = url.rsplit_once('@') {
        let Some((user, _)) = login.split_once(':') else { return format!("{scheme}://{url}") };
        return format!("{scheme}://{user}:***@{host}");
    }
    // The URL may be cut off before the "@". Then everything after the colon is masked, unless it
    // is a port.
    let is_of_store = scheme.starts_with("redis");
    match url.split_once(':').filter(|_| is_of_store && !url.starts_with('[')) {
        Some((user, rest)) if !rest.bytes().take_while(|octet| *octet != b'/').all(|octet| octet.is_ascii_digit()) => {
            format!("{scheme}://{user}:***")
        }
        _ => format!("{scheme}://{url}"),
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
            r#"rate = { cluster = true, "store" = "rediss://u:hunter2@cache" }"#,
            r#"rate.store="hunter2""#,
            r#"sotre = "redis://u:hunter2@cache""#,
        ] {
            let text = format!("a = 1\n{line}\n");
            for start in 0..text.len() {
                let problem = Diagnostic::new(Severity::Error, "r.toml", &text, &(start..text.len()), "wrong");
                assert!(!problem.snippet(Colour::Plain).contains("hunter2"), "{line}");
            }
        }
        for message in [
            r#"invalid type: string "redis://u:hunter2@cache", expected a table"#,
            r#""redis://u:hunter 2\"hunter2@cache" is not a value of mode"#,
            r#"write store = "redis://u:hunter2""#,
            "redis://u:hunter2@cache is no path; redis://v:hunter2@cache neither",
            r#"'rediss://u:hunter2\u0040cache'"#,
            r#""u:hunter2@redis://cache""#,
            r#"["http://u:hunter2@cache"]"#,
        ] {
            let problem = Diagnostic::new(Severity::Error, "r.toml", "", &(0..0), message).help(Some(message.into()));
            let shown = problem.to_string() + &problem.snippet(Colour::Plain);
            assert!(!shown.contains("hunter") && shown.contains("***"), "{shown}");
        }
        for message in [
            "write one such as \"redis://10.0.0.5:6379\", or \"rediss://robotsd@cache.internal:6380\" with TLS",
            "\"redis://[::1]:6379/0\" and 'https://shop.example/a:b' and \"rediss://\"",
        ] {
            assert_eq!(without_passwords(message), message);
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
