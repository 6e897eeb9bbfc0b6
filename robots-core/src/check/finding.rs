//! Findings of lints about places in a file, and the collector that lints report them to.

use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use super::quote::Quoted;
use crate::keywords;

/// Severity of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Severity {
    /// Worth knowing; often intended.
    Note,
    /// Some crawlers read the line differently than it looks, or it does more than most files want.
    Warning,
    /// The line does not do what it says.
    Error,
}

/// Something that a lint found, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Finding {
    /// Permanent kebab-case code of the lint; see [`lint`](super::Lint::of_code()).
    pub code: &'static str,
    /// Severity.
    pub severity: Severity,
    /// Line where the finding begins, from 1.
    pub line: usize,
    /// Byte of the line where the finding begins, from 1; a byte order mark does not count.
    pub column: usize,
    /// Byte range of the file that the finding is about; may be empty, and never extends past the
    /// end of the file.
    pub span: Range<usize>,
    /// The crawler that the finding is about, or the first of several: its name in the file or the
    /// registry, without control characters. `None` if the finding is about the file or every
    /// agent.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub agent: Option<Box<str>>,
    /// The problem, in one line without control characters.
    pub message: String,
    /// The correction, in one line without control characters.
    pub help: Option<String>,
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
    /// Maximum number of findings of one lint in a [`Report`](super::Report), unless
    /// [`Options::findings_per_lint`](super::Options::findings_per_lint) sets another. The rest are
    /// only counted. Bounds the cost of a garbage file.
    pub const MAX_PER_LINT: usize = 100;
}

/// Formats the finding as `line:column: severity: message`, ready to follow a path and a colon.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, severity, message, .. } = self;
        write!(f, "{line}:{column}: {severity}: {message}")
    }
}

/// The findings of one lint. Past the limit, findings are only counted and their messages never
/// formatted.
pub(super) struct Sink {
    pub(super) code: &'static str,
    pub(super) severity: Severity,
    /// Severity that is configured for every finding of the lint.
    pub(super) forced: Option<Severity>,
    pub(super) file_length: usize,
    /// Maximum number of findings that are kept.
    pub(super) most: usize,
    /// Ranges where the file itself turns the lint off.
    pub(super) allowed: Vec<Range<usize>>,
    /// Ranges of the lines that the lint skips.
    pub(super) left_out: Rc<[Range<usize>]>,
    pub(super) findings: Vec<Finding>,
    pub(super) omitted: [usize; 3],
}

/// A finding just reported; a help line can be added to it.
pub(super) struct ReportedFinding<'s>(Option<&'s mut Finding>);

impl Sink {
    /// Reports a finding with the severity of the lint.
    pub(super) fn report(&mut self, span: Range<usize>, message: impl fmt::Display) -> ReportedFinding<'_> {
        self.report_at(self.severity, span, message)
    }

    /// Reports a finding with another severity than the lint usually has.
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
        if self.findings.len() >= self.most {
            self.omitted[severity as usize] += 1;
            return ReportedFinding(None);
        }
        let end = span.end.min(self.file_length);
        let finding = Finding {
            code: self.code,
            severity,
            // The report fills in line and column once the findings are sorted.
            line: 0,
            column: 0,
            span: span.start.min(end)..end,
            agent: None,
            message: message.to_string(),
            help: None,
        };
        self.findings.push(finding);
        ReportedFinding(self.findings.last_mut())
    }

    fn is_allowed(&self, at: usize) -> bool {
        // The ranges are in the order of the file and do not overlap.
        let is_in = |ranges: &[Range<usize>]| {
            let next = ranges.partition_point(|range| range.end < at);
            ranges.get(next).is_some_and(|range| range.start <= at)
        };
        is_in(&self.allowed) || is_in(&self.left_out)
    }
}

impl ReportedFinding<'_> {
    /// Sets the crawler that the finding is about, or the first of several.
    pub(super) fn of_agent(mut self, name: &[u8]) -> Self {
        if let Some(finding) = &mut self.0 {
            finding.agent = Some(Quoted(name).to_string().trim_matches('"').into());
        }
        self
    }

    /// Sets the help line: how to correct the problem.
    pub(super) fn help(self, help: impl fmt::Display) {
        if let Some(finding) = self.0 {
            finding.help = Some(help.to_string());
        }
    }

    /// Sets the help line if the finding is kept; for help that is too expensive to compute
    /// otherwise.
    pub(super) fn help_with(self, help: impl FnOnce() -> Option<String>) {
        if let Some(finding) = self.0 {
            finding.help = help();
        }
    }
}
