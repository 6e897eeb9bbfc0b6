//! Where a lint puts what it finds.

use std::fmt;
use std::ops::Range;

use super::finding::{Finding, Severity};
use super::lint::Lint;
use super::report::MAX_FINDINGS_PER_LINT;

/// The findings of one lint. Past the limit they are counted, and their messages never written.
pub(super) struct Sink {
    lint: &'static Lint,
    forced: Option<Severity>,
    file_length: usize,
    /// Where the file itself turns the lint off.
    allowed: Vec<Range<usize>>,
    findings: Vec<Finding>,
    omitted: [usize; 3],
}

/// A finding just reported, to which a help line can be added.
pub(super) struct Draft<'s>(Option<&'s mut Finding>);

impl Sink {
    pub(super) const fn new(
        lint: &'static Lint,
        forced: Option<Severity>,
        file_length: usize,
        allowed: Vec<Range<usize>>,
    ) -> Self {
        Self { lint, forced, file_length, allowed, findings: Vec::new(), omitted: [0; 3] }
    }

    pub(super) const fn lint(&self) -> &'static Lint {
        self.lint
    }

    /// Reports a finding with the severity of the lint.
    pub(super) fn report(&mut self, span: Range<usize>, message: fmt::Arguments<'_>) -> Draft<'_> {
        self.report_at(self.lint.severity, span, message)
    }

    /// Reports a finding that is better or worse than the lint usually is.
    pub(super) fn report_at(
        &mut self,
        severity: Severity,
        span: Range<usize>,
        message: fmt::Arguments<'_>,
    ) -> Draft<'_> {
        if self.is_allowed(span.start) {
            return Draft(None);
        }
        let severity = self.forced.unwrap_or(severity);
        if self.findings.len() >= MAX_FINDINGS_PER_LINT {
            self.omitted[severity as usize] += 1;
            return Draft(None);
        }
        let end = span.end.min(self.file_length);
        let finding = Finding {
            code: self.lint.code,
            severity,
            // The report finds these once the findings are sorted.
            line: 0,
            column: 0,
            span: span.start.min(end)..end,
            message: message.to_string(),
            help: None,
        };
        self.findings.push(finding);
        Draft(self.findings.last_mut())
    }

    fn is_allowed(&self, at: usize) -> bool {
        // The ranges are in the order of the file and apart from one another.
        let next = self.allowed.partition_point(|range| range.end < at);
        self.allowed.get(next).is_some_and(|range| range.start <= at)
    }

    pub(super) fn into_parts(self) -> (Vec<Finding>, [usize; 3]) {
        (self.findings, self.omitted)
    }
}

impl Draft<'_> {
    /// Says what would be right.
    pub(super) fn help(self, help: fmt::Arguments<'_>) {
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
