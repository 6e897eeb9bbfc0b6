//! One walk over a file for all lints.

use super::allowed::Allowed;
use super::checked_file::CheckedFile;
use super::file_kind::FileKind;
use super::lint::{Lint, Pass};
use super::lints::lints;
use super::options::Options;
use super::report::Report;
use super::sink::Sink;
use crate::rules::{LineKind, RobotsTxt};

/// Runs every lint that `options` leave on.
///
/// The cost grows with the size of the file, whatever its content.
#[must_use]
pub fn check(robots: &RobotsTxt, options: &Options) -> Report {
    check_lints(robots, options, |_| true)
}

/// Runs the lints of these codes alone.
pub(super) fn check_lints(robots: &RobotsTxt, options: &Options, is_run: impl Fn(&str) -> bool) -> Report {
    let codes: Vec<&str> = lints().iter().map(Lint::code).collect();
    let file = CheckedFile::new(robots, options.site(), &codes);
    let kind = FileKind::of(robots);
    let allowed = Allowed::of(robots);
    let (mut sinks, mut at_lines, mut at_fields) = (Vec::new(), Vec::new(), Vec::new());
    for lint in lints().iter().filter(|lint| is_run(lint.code) && !options.is_off(lint)) {
        let severity = options.severity(lint);
        let (length, most) = (robots.bytes().len(), options.most_findings());
        let mut sink = Sink::new(lint.code, lint.severity, severity, length, most, allowed.ranges(lint.code));
        match lint.pass {
            Pass::File(run) if kind == FileKind::Rules => run(&file, &mut sink),
            Pass::InsteadOfRules(of, run) if kind == of => run(&file, &mut sink),
            Pass::Line(run) if kind == FileKind::Rules => at_lines.push((run, sinks.len())),
            Pass::Field(run) if kind == FileKind::Rules => at_fields.push((run, sinks.len())),
            _ => continue,
        }
        sinks.push(sink);
    }
    for line in robots.lines() {
        let kind = line.kind();
        for (run, at) in &at_lines {
            run(&line, &kind, &mut sinks[*at]);
        }
        if let LineKind::Field(field) = &kind {
            for (run, at) in &at_fields {
                run(&file, field, &mut sinks[*at]);
            }
        }
    }
    Report::new(robots, sinks)
}
