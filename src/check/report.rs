//! Every finding about a file, in the order of the file.

use super::finding::{Finding, Severity};
use super::fixes::Fixes;
use super::sink::Sink;
use crate::rules::RobotsTxt;

/// The findings of [`check`](super::check()).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Report {
    findings: Vec<Finding>,
    omitted: [usize; 3],
    /// The same, by the code of the lint.
    #[cfg_attr(feature = "serde", serde(skip))]
    omitted_of: Vec<(&'static str, [usize; 3])>,
    #[cfg_attr(feature = "serde", serde(skip))]
    fixes: Fixes,
}

impl Report {
    pub(super) fn new(robots: &RobotsTxt, sinks: Vec<Sink>) -> Self {
        let mut report = Self::default();
        for sink in sinks {
            let (code, findings, omitted) = sink.into_parts();
            if omitted != [0; 3] {
                report.omitted_of.push((code, omitted));
            }
            report.findings.extend(findings);
            for (total, more) in report.omitted.iter_mut().zip(omitted) {
                *total += more;
            }
        }
        // Stable: findings of one place stay in the order of the table of lints.
        report.findings.sort_by_key(|finding| finding.span.start);
        locate(robots, &mut report.findings);
        report
    }

    /// The findings, sorted by where they begin; at most as many of each lint as
    /// [`Options::findings_per_lint`](super::Options::findings_per_lint) says.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// How the findings can be corrected; nothing unless [`Report::with_fixes`] looked for it.
    #[must_use]
    pub const fn fixes(&self) -> &Fixes {
        &self.fixes
    }

    pub(super) fn fixed_by(self, fixes: Fixes) -> Self {
        Self { fixes, ..self }
    }

    /// The severity of the worst finding, or `None` where there is none.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        Severity::ALL.into_iter().find(|severity| self.count(*severity) > 0)
    }

    /// How many findings of this severity there are, those of [`Report::omitted`] included.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        let held = self.findings.iter().filter(|finding| finding.severity == severity).count();
        held + self.omitted[severity as usize]
    }

    /// How many findings of one lint and severity there are, those of [`Report::omitted`] included.
    #[must_use]
    pub fn count_of(&self, code: &str, severity: Severity) -> usize {
        let is_one = |finding: &&Finding| finding.code == code && finding.severity == severity;
        let omitted =
            self.omitted_of.iter().filter(|(of, _)| *of == code).map(|(_, omitted)| omitted[severity as usize]);
        self.findings.iter().filter(is_one).count() + omitted.sum::<usize>()
    }

    /// How many findings were counted and not kept.
    #[must_use]
    pub fn omitted(&self) -> usize {
        self.omitted.iter().sum()
    }

    /// Whether nothing was found.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

impl<'a> IntoIterator for &'a Report {
    type Item = &'a Finding;
    type IntoIter = std::slice::Iter<'a, Finding>;

    fn into_iter(self) -> Self::IntoIter {
        self.findings.iter()
    }
}

/// Gives sorted findings their line and column in one walk over the lines.
fn locate(robots: &RobotsTxt, findings: &mut [Finding]) {
    let mut findings = findings.iter_mut().peekable();
    let mut lines = robots.lines().peekable();
    while let Some(line) = lines.next() {
        // What stands in a line end belongs to the line it ends.
        let next = lines.peek().map_or(usize::MAX, |next| next.range().start);
        while let Some(finding) = findings.next_if(|finding| finding.span.start < next) {
            finding.line = line.number();
            // The octets of a byte order mark stand before the first line.
            finding.column = finding.span.start.saturating_sub(line.range().start) + 1;
        }
    }
}
