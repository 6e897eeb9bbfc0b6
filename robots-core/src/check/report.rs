//! The report: all findings about a file, in the order of the file.

use std::ops::Range;
use std::rc::Rc;

use super::checked_file::{Allowed, CheckedFile};
use super::directives::{is_named, joined_lines};
use super::file_kind::FileKind;
use super::finding::{Finding, Severity, Sink};
use super::fixes::Fixes;
use super::lint::{Lint, Pass};
use super::options::{Level, Options};
use crate::rules::{Line, LineKind, RobotsTxt};

const SUMMARISED: usize = 3;

/// The findings about a file, as [`check`](super::check()) returns them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Report {
    /// The findings, sorted by their start; at most
    /// [`Options::findings_per_lint`](super::Options::findings_per_lint) per lint and severity.
    pub findings: Vec<Finding>,
    pub(super) omitted: [usize; 3],
    /// For each lint code, the numbers of omitted findings by severity.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) omitted_of: Vec<(&'static str, [usize; 3])>,
    /// Fixes of the findings; empty unless [`Report::with_fixes`] was called.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub fixes: Fixes,
}

impl Report {
    pub(super) fn new(robots: &RobotsTxt, sinks: Vec<Sink>) -> Self {
        let mut report = Self::default();
        for sink in sinks {
            let Sink { code, findings, omitted, .. } = sink;
            if omitted != [0; 3] {
                report.omitted_of.push((code, omitted));
            }
            report.findings.extend(findings);
            for (total, more) in report.omitted.iter_mut().zip(omitted) {
                *total += more;
            }
        }
        // The sort is stable, so findings with the same start stay in the order of the table of
        // lints.
        report.findings.sort_by_key(|finding| finding.span.start);
        locate(robots, &mut report.findings);
        report
    }

    /// Checks a file like [`check`], but stops and returns `None` if `goes_on` returns false. For
    /// example, an editor can stop the check of a file that has changed since the check began.
    #[doc(hidden)]
    pub fn of_while(robots: &RobotsTxt, options: &Options, goes_on: &dyn Fn() -> bool) -> Option<Self> {
        run_lints(robots, options, |_| true, goes_on)
    }

    /// Returns the severity of the worst finding; `None` if there are no findings.
    pub fn worst(&self) -> Option<Severity> {
        Severity::ALL.into_iter().find(|severity| self.count(*severity) > 0)
    }

    /// Counts the findings of this severity, including omitted findings.
    pub fn count(&self, severity: Severity) -> usize {
        let held = self.findings.iter().filter(|finding| finding.severity == severity).count();
        held + self.omitted[severity as usize]
    }

    /// Counts the findings of one lint and severity, including omitted findings.
    pub fn count_of(&self, code: &str, severity: Severity) -> usize {
        let is_one = |finding: &&Finding| finding.code == code && finding.severity == severity;
        let omitted =
            self.omitted_of.iter().filter(|(of, _)| *of == code).map(|(_, omitted)| omitted[severity as usize]);
        self.findings.iter().filter(is_one).count() + omitted.sum::<usize>()
    }

    /// Returns the errors and then the warnings, each in the order of the file. Show these findings
    /// to the person who publishes the file.
    #[doc(hidden)]
    pub fn faults(&self) -> impl Iterator<Item = &Finding> {
        let of = |severity| self.findings.iter().filter(move |finding| finding.severity == severity);
        of(Severity::Error).chain(of(Severity::Warning))
    }

    /// Returns one line with the numbers of errors and warnings and the first three of
    /// [`Report::faults`]: `1 error and 2 warnings: 2:11: error: …; 4:1: warning: …; …`. If all
    /// findings have the same severity, the severity is written only once:
    /// `2 warnings: 4:1: …; 7:1: …`. `None` if there are neither errors nor warnings.
    pub fn summary(&self) -> Option<String> {
        let counted = |severity: Severity| match self.count(severity) {
            0 => None,
            1 => Some(format!("1 {severity}")),
            count => Some(format!("{count} {severity}s")),
        };
        let counts: Vec<_> = [Severity::Error, Severity::Warning].into_iter().filter_map(counted).collect();
        if counts.is_empty() {
            return None;
        }
        let total = self.count(Severity::Error) + self.count(Severity::Warning);
        let show = |finding: &Finding| match counts.len() {
            1 => format!("{}:{}: {}", finding.line, finding.column, finding.message),
            _ => finding.to_string(),
        };
        let shown: Vec<_> = self.faults().take(SUMMARISED).map(show).collect();
        let more = match total - shown.len() {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        Some(format!("{}: {}{more}", counts.join(" and "), shown.join("; ")))
    }

    /// Returns the number of findings that are not in the report, because there are too many
    /// findings of the same lint.
    #[doc(hidden)]
    pub fn omitted(&self) -> usize {
        self.omitted.iter().sum()
    }
}

impl<'a> IntoIterator for &'a Report {
    type Item = &'a Finding;
    type IntoIter = std::slice::Iter<'a, Finding>;

    fn into_iter(self) -> Self::IntoIter {
        self.findings.iter()
    }
}

/// Sets the line and column of each finding. The findings must be sorted.
fn locate(robots: &RobotsTxt, findings: &mut [Finding]) {
    let mut findings = findings.iter_mut().peekable();
    let mut lines = robots.lines().peekable();
    while let Some(line) = lines.next() {
        // A finding within a line end belongs to the line before the line end.
        let next = lines.peek().map_or(usize::MAX, |next| next.range.start);
        while let Some(finding) = findings.next_if(|finding| finding.span.start < next) {
            finding.line = line.number;
            // A finding within the byte order mark gets column 1.
            finding.column = finding.span.start.saturating_sub(line.range.start) + 1;
        }
    }
}

/// Runs all lints that `options` do not turn off.
///
/// The cost is linear in the size of the file, whatever the file contains.
pub fn check(robots: &RobotsTxt, options: &Options) -> Report {
    check_lints(robots, options, |_| true)
}

pub(super) fn check_lints(robots: &RobotsTxt, options: &Options, is_run: impl Fn(&str) -> bool) -> Report {
    run_lints(robots, options, is_run, &|| true).unwrap_or_default()
}

const LINES_BETWEEN_CALLS: usize = 1 << 10;

/// Runs the lints that `is_run` selects by their code. `None` if `goes_on` returns false.
fn run_lints(
    robots: &RobotsTxt,
    options: &Options,
    is_run: impl Fn(&str) -> bool,
    goes_on: &dyn Fn() -> bool,
) -> Option<Report> {
    let codes: Vec<&str> = Lint::all().iter().map(|lint| lint.code).collect();
    let file = CheckedFile::new(robots, &options.site, &codes);
    let kind = FileKind::of(robots);
    let allowed = Allowed::of(robots);
    let joined = if kind.is_text() { joined(robots, &allowed, options) } else { Vec::new() };
    let left_out: Rc<[Range<usize>]> = joined.iter().map(|(line, _)| line.range.clone()).collect();
    let (mut sinks, mut at_lines, mut at_fields) = (Vec::new(), Vec::new(), Vec::new());
    for lint in Lint::all().iter().filter(|lint| is_run(lint.code)) {
        if !goes_on() {
            return None;
        }
        let forced = match options.level(lint) {
            Some(Level::Off) => continue,
            Some(Level::At(severity)) => Some(severity),
            None => None,
        };
        let mut sink = Sink {
            code: lint.code,
            severity: lint.severity,
            forced,
            file_length: robots.bytes().len(),
            most: options.most.unwrap_or(Finding::MAX_PER_LINT),
            allowed: allowed.ranges(lint.code),
            left_out: if matches!(lint.pass, Pass::Joined(_)) { Rc::default() } else { left_out.clone() },
            findings: Vec::new(),
            stored: [0; 3],
            omitted: [0; 3],
        };
        match lint.pass {
            Pass::File(run) if kind.is_text() => run(&file, &mut sink),
            Pass::OfKind(of, run) if kind == of => run(&file, &mut sink),
            Pass::Group(run) if kind.is_text() => robots.groups().for_each(|group| run(&file, group, &mut sink)),
            Pass::Name(run) if kind.is_text() => file.names().for_each(|name| run(&file, name, &mut sink)),
            Pass::Joined(run) if kind.is_text() => {
                joined.iter().for_each(|(line, second)| run(line, second.clone(), &mut sink));
            }
            Pass::Line(run) if kind.is_text() => at_lines.push((run, sinks.len())),
            Pass::Field(run) if kind.is_text() => at_fields.push((None, run, sinks.len())),
            Pass::Named(name, run) if kind.is_text() => at_fields.push((Some(name), run, sinks.len())),
            _ => continue,
        }
        sinks.push(sink);
    }
    for line in robots.lines() {
        if line.number % LINES_BETWEEN_CALLS == 0 && !goes_on() {
            return None;
        }
        let kind = line.kind();
        for (run, at) in &at_lines {
            run(&line, &kind, &mut sinks[*at]);
        }
        if let LineKind::Field(field) = &kind {
            for (name, run, at) in &at_fields {
                if name.is_none_or(|name| is_named(field, name)) {
                    run(&file, field, &mut sinks[*at]);
                }
            }
        }
    }
    Some(Report::new(robots, sinks))
}

/// Returns the lines that contain several directives, each with the range of the second directive's
/// name. Leaves out lines where a comment turns `several-directives` off.
fn joined<'r>(robots: &'r RobotsTxt, allowed: &Allowed<'_>, options: &Options) -> Vec<(Line<'r>, Range<usize>)> {
    let is_of_joined = |lint: &&Lint| matches!(lint.pass, Pass::Joined(_));
    let is_on = |lint: &&Lint| !matches!(options.level(lint), Some(Level::Off));
    let Some(lint) = Lint::all().iter().find(is_of_joined).filter(is_on) else { return Vec::new() };
    let off = allowed.ranges(lint.code);
    joined_lines(robots).filter(|(line, _)| !off.contains(&line.range)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Options, check};

    #[test]
    fn a_summary_has_the_counts_and_the_worst_three_with_their_lines() {
        let summary = |file: &[u8]| check(&RobotsTxt::parse(file), &Options::new()).summary();
        assert_eq!(summary(b"User-agent: *\nDisallow: /b\n"), None);
        let file = b"User-agent: *\nDisallow: /b\nSitemap: /x\nDisalow: /b\nDisallow: c\nDisallow: d\nDisallow: e\n";
        let found = summary(file).expect("faults");
        assert!(found.starts_with("3 errors and 2 warnings: 5:11: error: "), "{found}");
        assert!(found.contains("; 6:11: error: ") && found.ends_with("; and 2 more"), "{found}");
        let found = summary(b"User-agent: *\nDisallow: /backup/x.sql\n").expect("a warning");
        assert!(found.starts_with("1 warning: 2:11: \"/backup/x.sql\" tells every reader"), "{found}");
    }
}
