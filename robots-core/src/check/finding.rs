//! A lint's message about one place of the file, and where a lint puts what it finds.

use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use super::quote::Quoted;
use crate::keywords;

/// How bad a [`Finding`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Severity {
    /// Worth knowing; often meant that way.
    Note,
    /// Some crawlers read it otherwise than it looks, or it does more than most files want.
    Warning,
    /// It does not do what it says.
    Error,
}

/// Something that a lint found, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Finding {
    /// The permanent kebab-case code of the lint; see [`lint`](super::Lint::of_code()).
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The line it begins on, from 1.
    pub line: usize,
    /// The octet of the line it begins at, from 1; a byte order mark does not count.
    pub column: usize,
    /// The octets of the file it is about; may be empty, never reaches past the end of the file.
    pub span: Range<usize>,
    /// The crawler it is about, the first where it is about several: the name in the file or the registry, without control
    /// characters. None where it is about the file or every agent.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub agent: Option<Box<str>>,
    /// The fault, in one line without control characters.
    pub message: String,
    /// The correction, in one line without control characters.
    pub help: Option<String>,
}

impl Severity {
    /// Every severity, the worst first.
    pub const ALL: [Self; 3] = [Self::Error, Self::Warning, Self::Note];
}

keywords!(Severity, "a severity", {
    Note = "note",
    Warning = "warning",
    Error = "error",
});

impl Finding {
    /// How many findings of one lint a [`Report`](super::Report) holds unless
    /// [`Options::findings_per_lint`](super::Options::findings_per_lint) says otherwise; the rest are only counted. Bounds what a file of
    /// rubbish costs.
    pub const MAX_PER_LINT: usize = 100;
}

/// `line:column: severity: message`, ready to follow a path and a colon.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, severity, message, .. } = self;
        write!(f, "{line}:{column}: {severity}: {message}")
    }
}

/// The findings of one lint. Past the limit they are counted, and their messages never written.
pub(super) struct Sink {
    pub(super) code: &'static str,
    pub(super) severity: Severity,
    /// The severity that is configured for every finding.
    pub(super) forced: Option<Severity>,
    pub(super) file_length: usize,
    /// How many are kept.
    pub(super) most: usize,
    /// The ranges in which the file itself turns the lint off.
    pub(super) allowed: Vec<Range<usize>>,
    /// The lines that the lint leaves out.
    pub(super) left_out: Rc<[Range<usize>]>,
    pub(super) findings: Vec<Finding>,
    pub(super) omitted: [usize; 3],
}

/// A finding just reported, to which a help line can be added.
pub(super) struct ReportedFinding<'s>(Option<&'s mut Finding>);

impl Sink {
    /// Reports a finding with the severity of the lint.
    pub(super) fn report(&mut self, span: Range<usize>, message: impl fmt::Display) -> ReportedFinding<'_> {
        self.report_at(self.severity, span, message)
    }

    /// Reports a finding that is better or worse than the lint usually is.
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
            // The report finds these once the findings are sorted.
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
        // The ranges are in the order of the file and apart from one another.
        let is_in = |ranges: &[Range<usize>]| {
            let next = ranges.partition_point(|range| range.end < at);
            ranges.get(next).is_some_and(|range| range.start <= at)
        };
        is_in(&self.allowed) || is_in(&self.left_out)
    }
}

impl ReportedFinding<'_> {
    /// Says which crawler it is about, the first where it is about several.
    pub(super) fn of_agent(mut self, name: &[u8]) -> Self {
        if let Some(finding) = &mut self.0 {
            finding.agent = Some(Quoted(name).to_string().trim_matches('"').into());
        }
        self
    }

    /// Says what would be right.
    pub(super) fn help(self, help: impl fmt::Display) {
        if let Some(finding) = self.0 {
            finding.help = Some(help.to_string());
        }
    }

    /// Says what would be right, where that costs more to find out than findings that are not kept are worth.
    pub(super) fn help_with(self, help: impl FnOnce() -> Option<String>) {
        if let Some(finding) = self.0 {
            finding.help = help();
        }
    }
}
