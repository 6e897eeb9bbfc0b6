//! A robots.txt to what is wrong with it, before crawlers read it.
//!
//! [`check`] runs every [`Lint`] over a document and gathers their [`Finding`]s in a [`Report`]. A finding has a
//! permanent code, a severity, a place in the file, a message and often a help line. A lint says what crawlers make of
//! a line, not what somebody might have liked better: a clean ordinary file has no findings.
//!
//! [`diff`] says what a change of the file changes for whom, [`upheavals`] whether it closes or opens the site at large;
//! [`Expectations`] say what must stay.
//!
//! A comment `# robots-check: allow(code)` turns a lint off for its line, or for the next where it has a line to itself;
//! [`Options`] turn it off for the file or give it another severity.
//!
//! This room is pure: it reads no files and prints nothing.
//!
//! ```
//! use tower_robots::check::{Options, Severity, check};
//! use tower_robots::rules::RobotsTxt;
//!
//! let robots = RobotsTxt::parse(&b"User-agent: *\nDisallow: private/\n"[..]);
//! let report = check(&robots, &Options::new());
//! let finding = &report.findings()[0];
//! assert_eq!((finding.code(), finding.line(), finding.column()), ("path-without-slash", 2, 11));
//! assert_eq!(report.worst(), Some(Severity::Error));
//! ```

mod allowed;
pub(crate) mod content;
mod crawlers;
mod diff;
mod directives;
mod expectations;
mod finding;
mod lint;
mod lints;
mod options;
mod pattern;
mod quote;
mod report;
mod sink;

pub use self::diff::{
    Breach, Change, Decider, Diff, DiffOptions, Effect, Guard, MAX_CHANGES_PER_EFFECT, Subject, Upheaval, diff,
    upheavals,
};
pub use self::expectations::{Expectations, Outcome, Unmet};
pub use self::finding::{Finding, Severity};
pub use self::lint::{Example, Lint};
pub use self::lints::{lint, lints};
pub use self::options::Options;
pub use self::report::{MAX_FINDINGS_PER_LINT, Report};

use self::allowed::Allowed;
use self::lint::{Pass, Subject as Checked};
use self::sink::Sink;
use crate::rules::{LineKind, RobotsTxt};

/// Runs every lint that `options` leave on.
///
/// The cost grows with the size of the file, whatever its content.
#[must_use]
pub fn check(robots: &RobotsTxt, options: &Options) -> Report {
    let subject = Checked::new(robots, options);
    let allowed = Allowed::of(robots);
    let mut sinks: Vec<Sink> = lints()
        .iter()
        .filter(|lint| !options.is_off(lint))
        .filter(|lint| subject.content().is_for(lint))
        .map(|lint| Sink::new(lint, options.severity(lint), robots.bytes().len(), allowed.ranges(lint)))
        .collect();
    let (mut at_lines, mut at_fields) = (Vec::new(), Vec::new());
    for sink in &mut sinks {
        match sink.lint().pass {
            Pass::File(run) => run(&subject, sink),
            Pass::Line(run) => at_lines.push((run, sink)),
            Pass::Field(run) => at_fields.push((run, sink)),
        }
    }
    for line in robots.lines() {
        let kind = line.kind();
        for (run, sink) in &mut at_lines {
            run(&line, &kind, sink);
        }
        if let LineKind::Field(field) = &kind {
            for (run, sink) in &mut at_fields {
                run(&subject, field, sink);
            }
        }
    }
    Report::new(robots, sinks)
}
