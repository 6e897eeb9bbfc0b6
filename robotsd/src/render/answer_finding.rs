//! The objects that are rendered: a checked file with its findings, and findings about the answer of a server, which
//! have a URL in place of a file and a line.

use std::collections::HashSet;
use std::{fmt, ptr};

use serde::Serialize;
use tower_robots::check::{Finding, Fix, Report, Severity};
use tower_robots::rules::RobotsTxt;

use super::printable::printable;

/// A lint of answers, as data.
#[derive(Debug)]
pub(crate) struct AnswerLint {
    /// Permanent, in kebab-case.
    pub(crate) code: &'static str,
    /// That of most of its findings.
    pub(crate) severity: Severity,
    /// Its finding, in a few words.
    pub(crate) summary: &'static str,
    /// Why that matters, in one paragraph.
    pub(crate) why: &'static str,
}

/// Something that was found about the answer of a URL, as text that prints. In JSON the URL stands for a file.
#[derive(Clone, Debug, Serialize, derive_more::Display)]
#[display("{requested}: {severity}: {message} [{code}]")]
pub(crate) struct AnswerFinding {
    /// The URL that was requested first.
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
    /// Its row of the table of all of them, in the documentation of the newest version.
    pub(crate) fn url(&self) -> String {
        format!("https://docs.rs/robotsd/latest/robotsd/docs/answers/#{}", self.code)
    }
}

impl AnswerFinding {
    /// A finding of the lint's severity. The message may hold what a server sent.
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

    /// How many there are of each severity, in the order of [`Severity::ALL`].
    pub(crate) fn count(findings: &[Self]) -> [usize; 3] {
        Severity::ALL.map(|severity| findings.iter().filter(|finding| finding.severity == severity).count())
    }

    pub(crate) fn severity_is(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }

    /// The correction.
    pub(crate) fn help(self, help: &str) -> Self {
        Self { help: Some(printable(help)), ..self }
    }
}

/// Octets of edits that are written with each of the findings that they correct; longer ones stand with the first alone. A fix may
/// correct every finding and change every line, and the product of the two has no bound.
const MOST_REPEATED: usize = 4 << 10;

/// The octets of an edit besides its text.
const EDIT: usize = 32;

/// A file and its findings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked<'a> {
    /// The name of the file; may hold anything.
    pub(crate) name: &'a str,
    pub(crate) robots: &'a RobotsTxt,
    pub(crate) report: &'a Report,
}

impl<'a> Checked<'a> {
    /// The fix of a finding, by its place in the report.
    pub(crate) fn fix_of(&self, finding: usize) -> Option<&'a Fix> {
        self.report.fixes.get(finding)
    }

    /// The sentence about findings that the report only counts; none where it holds all.
    pub(super) fn omitted(&self) -> Option<String> {
        let omitted = self.report.omitted();
        (omitted > 0).then(|| format!("{omitted} more findings of these kinds are not shown"))
    }

    /// The findings, each with the fix that is written with it.
    pub(crate) fn findings(self) -> impl Iterator<Item = (&'a Finding, Option<&'a Fix>)> {
        let mut written: HashSet<*const Fix> = HashSet::new();
        self.report.findings.iter().enumerate().map(move |(at, finding)| {
            let fix = self.fix_of(at).filter(|fix| written.insert(ptr::from_ref(fix)) || is_short(fix));
            (finding, fix)
        })
    }
}

fn is_short(fix: &Fix) -> bool {
    fix.edits.iter().map(|edit| EDIT + edit.replacement.len()).sum::<usize>() <= MOST_REPEATED
}
