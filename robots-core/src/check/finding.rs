//! Findings of lints, and their collector.

use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use super::quote::Quoted;
use crate::keywords;

/// Severity of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Severity {
    /// An effect that is often intended but worth knowing.
    Note,
    /// Some crawlers probably interpret the line differently than intended, or the line has a
    /// larger effect than most sites want.
    Warning,
    /// The line does not have the effect that it seems to have.
    Error,
}

/// A problem that a lint found, and its position in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Finding {
    /// Permanent code of the lint, in kebab-case. [`Lint::of_code`](super::Lint::of_code()) returns
    /// the lint.
    pub code: &'static str,
    /// Severity of this finding.
    pub severity: Severity,
    /// Line where the finding begins, from 1.
    pub line: usize,
    /// Column where the finding begins, in bytes from 1. A byte order mark is not counted.
    pub column: usize,
    /// Byte range of the finding in the file. It may be empty, and never extends past the end of
    /// the file.
    pub span: Range<usize>,
    /// Name of the crawler that the finding is about, as in the file or the registry, without
    /// control characters. If the finding is about several crawlers, this is the name of the first
    /// one. `None` if the finding is not about particular crawlers.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub agent: Option<Box<str>>,
    /// The problem, in one line without control characters.
    pub message: String,
    /// How to correct the problem, in one line without control characters.
    pub help: Option<String>,
    /// Number of another line that the message refers to, from 1. For example, this line contains
    /// the rule that takes precedence over the reported rule.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub related_line: Option<usize>,
}

impl Severity {
    /// All severities, the worst first.
    pub const ALL: [Self; 3] = [Self::Error, Self::Warning, Self::Note];
}

keywords!(Severity, "a severity", {
    Note = "note",
    Warning = "warning",
    Error = "error",
});

impl Finding {
    /// Default maximum number of findings per lint and severity in a [`Report`](super::Report).
    /// [`Options::findings_per_lint`](super::Options::findings_per_lint) changes this limit.
    /// Findings beyond the limit are only counted, to bound the cost of files full of garbage.
    pub const MAX_PER_LINT: usize = 100;
}

/// Writes the finding as `line:column: severity: message`. A caller can write the path of the file
/// and a colon before the finding.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, severity, message, .. } = self;
        write!(f, "{line}:{column}: {severity}: {message}")
    }
}

/// The findings of one lint. Findings beyond the limit are only counted, without formatting their
/// messages.
pub(super) struct Sink {
    pub(super) code: &'static str,
    pub(super) severity: Severity,
    /// Severity that the options set for all findings of the lint.
    pub(super) forced: Option<Severity>,
    pub(super) file_length: usize,
    /// Maximum number of findings that are stored for each severity.
    pub(super) most: usize,
    /// Byte ranges of the lines for which comments turn the lint off.
    pub(super) allowed: Vec<Range<usize>>,
    /// Byte ranges of the lines that the lint does not check, because they contain several
    /// directives.
    pub(super) left_out: Rc<[Range<usize>]>,
    pub(super) findings: Vec<Finding>,
    /// Numbers of stored findings by severity.
    pub(super) stored: [usize; 3],
    pub(super) omitted: [usize; 3],
}

/// A finding that was just reported; `None` if it was not stored. The methods add details to the
/// finding.
pub(super) struct ReportedFinding<'s>(Option<&'s mut Finding>);

impl Sink {
    pub(super) fn report(&mut self, span: Range<usize>, message: impl fmt::Display) -> ReportedFinding<'_> {
        self.report_at(self.severity, span, message)
    }

    pub(super) fn report_at(
        &mut self,
        severity: Severity,
        span: Range<usize>,
        message: impl fmt::Display,
    ) -> ReportedFinding<'_> {
        if self.is_allowed(span.start) {
            return ReportedFinding(None);
        }
        let severity = self.forced.unwrap_or(severity);
        let stored = &mut self.stored[severity as usize];
        if *stored >= self.most {
            self.omitted[severity as usize] += 1;
            return ReportedFinding(None);
        }
        *stored += 1;
        let end = span.end.min(self.file_length);
        let finding = Finding {
            code: self.code,
            severity,
            // The report sets line and column after it has sorted the findings.
            line: 0,
            column: 0,
            span: span.start.min(end)..end,
            agent: None,
            message: message.to_string(),
            help: None,
            related_line: None,
        };
        self.findings.push(finding);
        ReportedFinding(self.findings.last_mut())
    }

    fn is_allowed(&self, at: usize) -> bool {
        // In both lists, the ranges are in the order of the file and do not overlap.
        let is_in = |ranges: &[Range<usize>]| {
            let next = ranges.partition_point(|range| range.end < at);
            ranges.get(next).is_some_and(|range| range.start <= at)
        };
        is_in(&self.allowed) || is_in(&self.left_out)
    }
}

impl ReportedFinding<'_> {
    /// Sets the crawler that the finding is about. If the finding is about several crawlers,
    /// callers pass the first one.
    pub(super) fn of_agent(mut self, name: &[u8]) -> Self {
        if let Some(finding) = &mut self.0 {
            finding.agent = Some(Quoted(name).to_string().trim_matches('"').into());
        }
        self
    }

    pub(super) fn related_to(mut self, line: usize) -> Self {
        if let Some(finding) = &mut self.0 {
            finding.related_line = Some(line);
        }
        self
    }

    pub(super) fn help(self, help: impl fmt::Display) {
        if let Some(finding) = self.0 {
            finding.help = Some(help.to_string());
        }
    }

    /// Sets a help line that is expensive to compute. `help` is called only if the finding is
    /// stored.
    pub(super) fn help_with(self, help: impl FnOnce() -> Option<String>) {
        if let Some(finding) = self.0 {
            finding.help = help();
        }
    }
}
