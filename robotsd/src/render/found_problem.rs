//! Problems in configs, in files of sites and in responses of servers. Commands report them as
//! snippets, lines, JSON and annotations. A problem that many sites share is written only once.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;

use annotate_snippets::{Group, Origin};
use serde::Serialize;
use tower_robots::check::{Finding, Lint, Severity};

use super::checked::Checked;
use super::printable::{complain, printable, styled_stderr, write_json};
use super::secrets::{mask_passwords, mask_secret};
use super::text::{Colour, LineSnippet, help, level, renderer};

/// Problems that at least this many sites share are written only once.
const MIN_SHARED_SITES: usize = 4;

/// Maximum number of further affected sites that a message for people lists.
const MAX_NAMED: usize = 8;

#[derive(Debug)]
pub(crate) struct AnswerLint {
    pub(crate) code: &'static str,
    pub(crate) severity: Severity,
    pub(crate) summary: &'static str,
    pub(crate) why: &'static str,
}

/// A problem with the config, the files of a site, or the responses of servers. `Display` writes
/// problems of files on one line, for the log: `file:line:column: message; help`.
#[derive(Clone, Debug, Serialize, derive_more::Display)]
#[display(
    "{}:{}:{}: {message}{}",
    file.as_deref().unwrap_or_default(), line.unwrap_or_default(), column.unwrap_or_default(),
    help.as_ref().map(|help| format!("; {help}")).unwrap_or_default()
)]
pub(crate) struct FoundProblem {
    /// Name of the file. For a response, the requested URL before any redirect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    pub(crate) severity: Severity,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<&'static str>,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) help: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sites: Vec<String>,
    /// Key for comparing problems. The same problem has the same key for every site.
    #[serde(skip)]
    key: String,
    /// The message for people, on one line. This message is used if there is no line of a file to
    /// show.
    #[serde(skip)]
    text: String,
    /// The line with the problem, if the file is one that people write, such as a config.
    #[serde(skip)]
    shown: Option<ShownLine>,
    #[serde(skip)]
    pub(super) lint: Option<&'static AnswerLint>,
}

/// The line with a problem, without secrets, and the byte range of the problem.
#[derive(Clone, Debug, Default)]
struct ShownLine {
    line: String,
    span: Range<usize>,
}

impl AnswerLint {
    pub(crate) fn url(&self) -> String {
        format!("https://docs.rs/robotsd/latest/robotsd/docs/answers/#{}", self.code)
    }
}

impl FoundProblem {
    pub(crate) fn new(severity: Severity, text: impl Into<String>) -> Self {
        let text = text.into();
        let (message, key) = (text.clone(), text.clone());
        let (file, line, column, code, help, url, sites, shown, lint) = Default::default();
        Self { file, line, column, severity, code, message, help, url, sites, key, text, shown, lint }
    }

    /// Creates a problem for a byte range of `text`. If the range spans several lines, only the
    /// first line is shown.
    pub(crate) fn at(severity: Severity, name: &str, text: &str, span: &Range<usize>, message: &str) -> Self {
        let start = char_boundary_before(text, span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |end| end + 1);
        let line = text[line_start..].split('\n').next().unwrap_or_default().trim_end_matches('\r');
        let line = mask_secret(line);
        let inside = |at: usize| char_boundary_before(&line, at.saturating_sub(line_start));
        let number = text[..line_start].matches('\n').count() + 1;
        let column = text[line_start..start].chars().count() + 1;
        let span = inside(start)..inside(char_boundary_before(text, span.end.max(start)));
        Self {
            file: Some(printable(name)),
            line: Some(number),
            column: Some(column),
            shown: Some(ShownLine { line, span }),
            ..Self::new(severity, mask_passwords(message))
        }
    }

    /// Creates a problem for the response of a server, with the severity of the lint. The message
    /// may contain text from the server.
    pub(crate) fn answer(lint: &'static AnswerLint, requested: &dyn fmt::Display, message: &str) -> Self {
        Self {
            file: Some(printable(requested.to_string())),
            code: Some(lint.code),
            url: Some(lint.url()),
            lint: Some(lint),
            ..Self::new(lint.severity, printable(message))
        }
    }

    pub(crate) fn finding(file: &str, finding: &Finding, text: String) -> Self {
        Self {
            file: Some(printable(file)),
            line: Some(finding.line),
            column: Some(finding.column),
            code: Some(finding.code),
            message: finding.message.clone(),
            help: finding.help.clone(),
            url: Lint::of_code(finding.code).map(Lint::url),
            key: format!("{finding} [{}]", finding.code),
            ..Self::new(finding.severity, text)
        }
    }

    /// Counts problems by severity, in the order of [`Severity::ALL`].
    pub(crate) fn count(problems: &[Self]) -> [usize; 3] {
        Severity::ALL.map(|severity| problems.iter().filter(|problem| problem.severity == severity).count())
    }

    pub(crate) fn severity_is(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }

    pub(crate) fn help(self, help: &str) -> Self {
        Self { help: Some(mask_passwords(&printable(help))), ..self }
    }

    /// Sets the affected site. Removes the name of the site from the key, because other sites may
    /// have the same problem.
    pub(crate) fn of_site(self, site: &str) -> Self {
        let key = self.key.replacen(&format!("{site:?}"), "", 1);
        Self { text: format!("site {site:?}: {}", self.text), sites: vec![site.to_owned()], key, ..self }
    }

    /// Renders the problem like a finding, with the line of the file and a caret.
    pub(crate) fn snippet(&self, colour: Colour) -> String {
        // The message may contain text from the file. Quoted text in the message is already
        // escaped, and `printable` escapes everything else.
        let (message, help) = (printable(&self.message), self.help.as_deref().map(printable));
        let ShownLine { line, span } = self.shown.clone().unwrap_or_default();
        let snippet = LineSnippet {
            severity: self.severity,
            code: None,
            message: &message,
            help: help.as_deref(),
            fix: None,
            name: self.file.as_deref().unwrap_or_default(),
            place: (self.line.unwrap_or(1), self.column.unwrap_or(1)),
            line: line.as_bytes(),
            span,
        };
        snippet.render(colour)
    }
}

pub(crate) fn complain_at<'a>(problems: impl IntoIterator<Item = &'a FoundProblem>) {
    let mut out = styled_stderr();
    let colour = Colour::of(&io::stderr());
    for problem in problems {
        // Errors are ignored, because the exit status also reports the failure.
        let _ = writeln!(out, "{}\n", problem.snippet(colour));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ProblemFormat {
    /// Human-readable text with the lines of the files, on standard error
    Text,
    /// One JSON object per line for each problem
    Json,
    /// Annotations for GitHub Actions
    Github,
}

/// Writes the problems. If many sites share a problem, writes it once, with the names of all these
/// sites.
pub(crate) fn write_problems(out: &mut impl Write, form: ProblemFormat, problems: Vec<FoundProblem>) -> io::Result<()> {
    let (mut first, mut groups) = (HashMap::new(), Vec::<Vec<FoundProblem>>::new());
    for problem in problems {
        // Only problems of different sites are grouped.
        let key = (problem.severity, problem.key.clone());
        let group = problem.sites.first().map(|_| *first.entry(key).or_insert(groups.len()));
        let is_other = |group: &&mut Vec<FoundProblem>| group.last().is_some_and(|other| other.sites != problem.sites);
        match group.and_then(|group| groups.get_mut(group)).filter(is_other) {
            Some(group) => group.push(problem),
            None => groups.push(vec![problem]),
        }
    }
    for mut group in groups {
        if group.len() >= MIN_SHARED_SITES {
            let others: Vec<_> = group.drain(1..).flat_map(|other| other.sites).collect();
            group[0].sites.extend(others);
        }
        group.into_iter().try_for_each(|problem| write(out, form, problem))?;
    }
    Ok(())
}

fn write(out: &mut impl Write, form: ProblemFormat, mut problem: FoundProblem) -> io::Result<()> {
    let others = problem.sites.get(1..).unwrap_or_default();
    let mut names: Vec<_> = others.iter().take(MAX_NAMED).map(printable).collect();
    if names.len() < others.len() {
        names.push("…".to_owned());
    }
    let same = (!others.is_empty()).then(|| {
        format!("{count} more sites have the same problem: {names}", count = others.len(), names = names.join(", "))
    });
    match form {
        ProblemFormat::Json => write_json(out, &problem)?,
        ProblemFormat::Github => {
            same.iter().for_each(|same| problem.message += &format!("\n{same}"));
            annotation(out, &problem)?;
        }
        ProblemFormat::Text => {
            match &problem.shown {
                Some(_) => complain_at([&problem]),
                None => complain(&problem.text),
            }
            same.iter().for_each(|same| complain(&format_args!("  {same}")));
        }
    }
    Ok(())
}

pub(super) fn write_answers(out: &mut impl Write, findings: &[FoundProblem]) -> io::Result<()> {
    let colour = Colour::of(&io::stdout());
    for finding in findings {
        let title = level(finding.severity).primary_title(&*finding.message).id(finding.code.unwrap_or_default());
        let help = finding.help.as_deref().map(help);
        let requested = Origin::path(finding.file.as_deref().unwrap_or_default());
        let group = Group::with_title(title).element(requested).elements(help);
        writeln!(out, "{}\n", renderer(colour).render(&[group]))?;
    }
    Ok(())
}

pub(super) fn write_concise_answers(out: &mut impl Write, findings: &[FoundProblem]) -> io::Result<()> {
    findings.iter().try_for_each(|FoundProblem { file, severity, message, code, .. }| {
        let (url, code) = (file.as_deref().unwrap_or_default(), code.unwrap_or_default());
        writeln!(out, "{url}: {severity}: {message} [{code}]")
    })
}

/// Writes the findings about a file as workflow commands, which GitHub shows next to the lines of a
/// pull request.
pub(super) fn github(out: &mut impl Write, checked: Checked<'_>) -> io::Result<()> {
    for finding in checked.report {
        annotation(out, &FoundProblem::finding(checked.name, finding, String::new()))?;
    }
    let file = escape_property(&printable(checked.name));
    checked.omitted().map_or(Ok(()), |omitted| writeln!(out, "::notice file={file}::{omitted}"))
}

/// Writes a problem as a workflow command of GitHub. GitHub shows the annotation at the line of the
/// problem. A problem at a URL has no line, so the URL is written at the beginning of the message.
pub(super) fn annotation(out: &mut impl Write, problem: &FoundProblem) -> io::Result<()> {
    let FoundProblem { file, line, column, severity, code, message, help, url, .. } = problem;
    let (place, subject) = match (file, line.zip(*column)) {
        (Some(file), Some((line, column))) => {
            (Some(format!("file={},line={line},col={column}", escape_property(file))), String::new())
        }
        (Some(url), None) => (None, format!("{url}: ")),
        (None, _) => (None, String::new()),
    };
    let properties: Vec<_> = place.into_iter().chain(code.map(|code| format!("title={code}"))).collect();
    let command = match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    let help = help.as_ref().map_or_else(String::new, |help| format!("%0Ahelp: {}", escape_data(help)));
    let see_url = url.as_ref().map_or_else(String::new, |url| format!("%0Asee {}", escape_data(url)));
    writeln!(
        out,
        "::{command} {}::{}{}{help}{see_url}",
        properties.join(","),
        escape_data(&subject),
        escape_data(message)
    )
}

fn escape_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a workflow command. Commas and colons are escaped, too, because they would
/// end the property.
fn escape_property(text: &str) -> String {
    escape_data(text).replace(':', "%3A").replace(',', "%2C")
}

fn char_boundary_before(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_shown_with_its_source_line_or_as_a_single_line() {
        let text = "a = 1\nmode = \"strict\"\r\nb = 2\n";
        let problem = FoundProblem::at(Severity::Error, "r.toml", text, &(13..21), "no such mode").help("off");
        assert_eq!(problem.to_string(), "r.toml:2:8: no such mode; off");
        let want =
            "error: no such mode\n --> r.toml:2:8\n  |\n2 | mode = \"strict\"\n  |        ^^^^^^^^\n  |\n  = help: off";
        assert_eq!(problem.snippet(Colour::Plain), want);
    }

    #[test]
    fn a_password_is_hidden_in_snippets_and_messages_however_it_is_written() {
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
                let problem = FoundProblem::at(Severity::Error, "r.toml", &text, &(start..text.len()), "wrong");
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
            let problem = FoundProblem::at(Severity::Error, "r.toml", "", &(0..0), message).help(message);
            let shown = problem.to_string() + &problem.snippet(Colour::Plain);
            assert!(!shown.contains("hunter") && shown.contains("***"), "{shown}");
        }
        for message in [
            "write one such as \"redis://10.0.0.5:6379\", or \"rediss://robotsd@cache.internal:6380\" with TLS",
            "\"redis://[::1]:6379/0\" and 'https://shop.example/a:b' and \"rediss://\"",
        ] {
            assert_eq!(mask_passwords(message), message);
        }
        for line in ["when_store = 1", "a = 'https://shop.example/a:b'", "# stores = 2 https://a.example (c@d.example)"]
        {
            assert_eq!(mask_secret(line), line);
        }
    }

    #[test]
    fn any_span_can_be_shown_without_control_characters() {
        let text = "\u{f6} = \"x\u{1b}\"\n\n[table]\nkey = 1";
        for start in 0..text.len() + 2 {
            for end in [0, start, start + 1, start + 9, usize::MAX] {
                let problem = FoundProblem::at(Severity::Warning, "a\nb", text, &(start..end), "x\u{1b}y");
                let shown = problem.snippet(Colour::Plain);
                assert!(shown.chars().all(|char| char == '\n' || !char.is_control()), "{shown:?}");
            }
        }
        assert!(
            FoundProblem::at(Severity::Error, "e", "", &(0..0), "m")
                .snippet(Colour::Plain)
                .starts_with("error: m\n --> e:1:1")
        );
    }
}
