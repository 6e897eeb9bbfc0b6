//! The two kinds of results that this module renders: a checked file with its findings, and
//! findings about a server's response, which have a URL instead of a file and line.

use std::collections::HashSet;
use std::{fmt, ptr};

use serde::Serialize;
use tower_robots::check::{Finding, Fix, Report, Severity};
use tower_robots::rules::RobotsTxt;

use super::printable::printable;

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

/// A finding about a server's response. All its strings are printable. In JSON, the key `file`
/// contains the URL.
#[derive(Clone, Debug, Serialize, derive_more::Display)]
#[display("{requested}: {severity}: {message} [{code}]")]
pub(crate) struct AnswerFinding {
    /// The requested URL, before any redirect.
    #[serde(rename = "file")]
    pub(super) requested: String,
    pub(crate) code: &'static str,
    pub(crate) severity: Severity,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) help: Option<String>,
    /// The page that explains the lint.
    pub(super) url: String,
    #[serde(skip)]
    pub(super) lint: &'static AnswerLint,
}

impl AnswerLint {
    /// Returns the URL of the lint's row in the table of the newest documentation.
    pub(crate) fn url(&self) -> String {
        format!("https://docs.rs/robotsd/latest/robotsd/docs/answers/#{}", self.code)
    }
}

impl AnswerFinding {
    /// Creates a finding with the lint's severity. The message may quote what a server sent.
    pub(crate) fn new(lint: &'static AnswerLint, requested: &dyn fmt::Display, message: &str) -> Self {
        Self {
            requested: printable(requested.to_string()),
            code: lint.code,
            severity: lint.severity,
            message: printable(message),
            help: None,
            url: lint.url(),
            lint,
        }
    }

    /// Returns the number of findings of each severity, in the order of [`Severity::ALL`].
    pub(crate) fn count(findings: &[Self]) -> [usize; 3] {
        Severity::ALL.map(|severity| findings.iter().filter(|finding| finding.severity == severity).count())
    }

    pub(crate) fn severity_is(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }

    /// Sets the help text with the correction.
    pub(crate) fn help(self, help: &str) -> Self {
        Self { help: Some(printable(help)), ..self }
    }
}

/// Maximum size, in bytes, of a fix that is written with every finding that it corrects. A larger
/// fix is written only with the first of these findings. One fix may correct every finding and
/// change every line, so repeating it could make the output arbitrarily large.
const MAX_REPEATED_BYTES: usize = 4 << 10;

/// Estimated size of an edit without its replacement, in bytes.
const EDIT: usize = 32;

/// A file and its findings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked<'a> {
    /// The name of the file; may contain any characters.
    pub(crate) name: &'a str,
    pub(crate) robots: &'a RobotsTxt,
    pub(crate) report: &'a Report,
}

impl<'a> Checked<'a> {
    /// Returns the fix of a finding, by the finding's index in the report.
    pub(crate) fn fix_of(&self, finding: usize) -> Option<&'a Fix> {
        self.report.fixes.get(finding)
    }

    /// Returns a sentence about findings that the report counts but does not contain; `None` if the
    /// report contains every finding.
    pub(super) fn omitted(&self) -> Option<String> {
        let omitted = self.report.omitted();
        (omitted > 0).then(|| format!("{omitted} more findings of these kinds are not shown"))
    }

    /// Returns the findings, each with its fix. A long fix is returned only with the first finding
    /// that it corrects.
    pub(crate) fn findings(self) -> impl Iterator<Item = (&'a Finding, Option<&'a Fix>)> {
        let mut written: HashSet<*const Fix> = HashSet::new();
        self.report.findings.iter().enumerate().map(move |(at, finding)| {
            let fix = self.fix_of(at).filter(|fix| written.insert(ptr::from_ref(fix)) || is_short(fix));
            (finding, fix)
        })
    }
}

fn is_short(fix: &Fix) -> bool {
    fix.edits.iter().map(|edit| EDIT + edit.replacement.len()).sum::<usize>() <= MAX_REPEATED_BYTES
}
