//! The record of a problem that a command reports: of a config, of a file that a site serves, or of
//! a server's response. It also writes problems in the formats of `config check`. A problem shared
//! by many sites is written once.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};

use serde::Serialize;
use tower_robots::check::{Finding, Lint, Severity};

use super::diagnostic::{Diagnostic, complain_at};
use super::formats::{data, property};
use super::printable::{complain, printable, write_json};

/// Minimum number of sites with the same problem for writing the problem only once.
const MANY: usize = 4;

/// Maximum number of further sites to name in a message for people.
const NAMED: usize = 8;

/// A lint for servers' responses.
#[derive(Debug)]
pub(crate) struct AnswerLint {
    /// A permanent code, in kebab-case.
    pub(crate) code: &'static str,
    /// The usual severity of the lint's findings.
    pub(crate) severity: Severity,
    /// A short description of the finding.
    pub(crate) summary: &'static str,
    /// Why such a finding matters, in one paragraph.
    pub(crate) why: &'static str,
}

/// A problem of a config, of a file that a site serves, or of a server's response.
#[derive(Clone, Debug, Serialize, derive_more::Display)]
#[display("{}: {severity}: {message} [{}]", file.as_deref().unwrap_or_default(), code.unwrap_or_default())]
pub(crate) struct FoundProblem {
    /// The file. For a response: the requested URL, before any redirect.
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
    /// The page that explains the lint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<String>,
    /// The sites that have the problem.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sites: Vec<String>,
    /// Key that identifies the problem. The same problem of another site has the same key.
    #[serde(skip)]
    key: String,
    /// The message for people, in one line, if there is no line of the config to show.
    #[serde(skip)]
    text: String,
    #[serde(skip)]
    at: Option<Box<Diagnostic>>,
    /// The lint for responses that found the problem.
    #[serde(skip)]
    pub(super) lint: Option<&'static AnswerLint>,
}

impl AnswerLint {
    /// Returns the URL of the lint's row in the table of the newest documentation.
    pub(crate) fn url(&self) -> String {
        format!("https://docs.rs/robotsd/latest/robotsd/docs/answers/#{}", self.code)
    }
}

impl FoundProblem {
    /// Creates a problem without a position.
    pub(crate) fn new(severity: Severity, text: impl Into<String>) -> Self {
        let text = text.into();
        let (message, key) = (text.clone(), text.clone());
        let (file, line, column, code, help, url, sites, at, lint) = Default::default();
        Self { file, line, column, severity, code, message, help, url, sites, key, text, at, lint }
    }

    /// Creates a problem of a server's response, with the lint's severity. The message may quote
    /// what a server sent.
    pub(crate) fn answer(lint: &'static AnswerLint, requested: &dyn fmt::Display, message: &str) -> Self {
        Self {
            file: Some(printable(requested.to_string())),
            code: Some(lint.code),
            url: Some(lint.url()),
            lint: Some(lint),
            ..Self::new(lint.severity, printable(message))
        }
    }

    /// Creates a problem from a finding; `text` is the message for people.
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

    /// Returns the number of problems of each severity, in the order of [`Severity::ALL`].
    pub(crate) fn count(problems: &[Self]) -> [usize; 3] {
        Severity::ALL.map(|severity| problems.iter().filter(|problem| problem.severity == severity).count())
    }

    pub(crate) fn severity_is(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }

    /// Sets the help text with the correction.
    pub(crate) fn help(self, help: &str) -> Self {
        Self { help: Some(printable(help)), ..self }
    }

    pub(crate) fn of_site(self, site: &str) -> Self {
        Self { text: format!("site {site:?}: {}", self.text), sites: vec![site.to_owned()], ..self }
    }
}

impl From<Diagnostic> for FoundProblem {
    fn from(at: Diagnostic) -> Self {
        let own = at.site.as_ref().map(|site| format!("{site:?}"));
        let key = own.map(|own| at.message.replacen(&own, "", 1)).unwrap_or_default();
        Self {
            file: Some(at.name.clone()),
            line: Some(at.place.0),
            column: Some(at.place.1),
            help: at.help.clone(),
            sites: at.site.clone().into_iter().collect(),
            key,
            at: Some(Box::new(at.clone())),
            ..Self::new(at.severity, at.message)
        }
    }
}

/// Output format of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ProblemFormat {
    /// Lines of the files, for people, on standard error
    Text,
    /// One JSON object per line for each problem
    Json,
    /// Annotations for GitHub Actions
    Github,
}

/// Writes problems in the order of `problems`. A problem shared by many sites is written once, with
/// all sites.
pub(crate) fn write_problems(out: &mut impl Write, form: ProblemFormat, problems: Vec<FoundProblem>) -> io::Result<()> {
    let (mut first, mut groups) = (HashMap::new(), Vec::<Vec<FoundProblem>>::new());
    for problem in problems {
        // Problems are joined only if they belong to different sites.
        let key = (problem.severity, problem.key.clone());
        let group = problem.sites.first().map(|_| *first.entry(key).or_insert(groups.len()));
        let is_other = |group: &&mut Vec<FoundProblem>| group.last().is_some_and(|other| other.sites != problem.sites);
        match group.and_then(|group| groups.get_mut(group)).filter(is_other) {
            Some(group) => group.push(problem),
            None => groups.push(vec![problem]),
        }
    }
    for mut group in groups {
        if group.len() >= MANY {
            let others: Vec<_> = group.drain(1..).flat_map(|other| other.sites).collect();
            group[0].sites.extend(others);
        }
        group.into_iter().try_for_each(|problem| write(out, form, problem))?;
    }
    Ok(())
}

fn write(out: &mut impl Write, form: ProblemFormat, mut problem: FoundProblem) -> io::Result<()> {
    let others = problem.sites.get(1..).unwrap_or_default();
    let mut names: Vec<_> = others.iter().take(NAMED).map(printable).collect();
    if names.len() < others.len() {
        names.push("…".to_owned());
    }
    let same = (!others.is_empty())
        .then(|| format!("{} more sites have the same problem: {}", others.len(), names.join(", ")));
    match form {
        ProblemFormat::Json => write_json(out, &problem)?,
        ProblemFormat::Github => {
            same.iter().for_each(|same| problem.message += &format!("\n{same}"));
            annotation(out, &problem)?;
        }
        ProblemFormat::Text => {
            match &problem.at {
                Some(at) => complain_at([&**at]),
                None => complain(&problem.text),
            }
            same.iter().for_each(|same| complain(&format_args!("  {same}")));
        }
    }
    Ok(())
}

/// Writes a problem as a workflow command of GitHub. If the problem has a line, the annotation is
/// shown there. A URL has no line, so the message begins with it.
pub(super) fn annotation(out: &mut impl Write, problem: &FoundProblem) -> io::Result<()> {
    let FoundProblem { file, line, column, severity, code, message, help, url, .. } = problem;
    let (place, subject) = match (file, line.zip(*column)) {
        (Some(file), Some((line, column))) => {
            (Some(format!("file={},line={line},col={column}", property(file))), String::new())
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
    let help = help.as_ref().map_or_else(String::new, |help| format!("%0Ahelp: {}", data(help)));
    let see = url.as_ref().map_or_else(String::new, |url| format!("%0Asee {}", data(url)));
    writeln!(out, "::{command} {}::{}{}{help}{see}", properties.join(","), data(&subject), data(message))
}
