//! A checked file with its findings.

use std::collections::HashSet;
use std::ptr;

use tower_robots::check::{Finding, Fix, Report};
use tower_robots::rules::RobotsTxt;

/// Maximum size, in bytes, of a fix that is repeated with each finding that it corrects. A larger
/// fix is written only with the first of these findings. A large fix may correct every finding and
/// change every line, so repeating it could make the output very large.
const MAX_REPEATED_BYTES: usize = 4 << 10;

/// Estimated size of an edit without its replacement, in bytes.
const EDIT_BYTES: usize = 32;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked<'a> {
    /// Name of the file, which may contain any characters.
    pub(crate) name: &'a str,
    pub(crate) robots: &'a RobotsTxt,
    pub(crate) report: &'a Report,
}

impl<'a> Checked<'a> {
    /// Returns the fix of a finding, by the finding's index in the report.
    pub(crate) fn fix_of(&self, finding: usize) -> Option<&'a Fix> {
        self.report.fixes.get(finding)
    }

    /// Returns a sentence about the findings that the report only counts; `None` if the report
    /// lists all findings.
    pub(super) fn omitted(&self) -> Option<String> {
        let omitted = self.report.omitted();
        (omitted > 0).then(|| format!("{omitted} more findings of these kinds are not shown"))
    }

    /// Returns the findings, each with its fix. A fix above [`MAX_REPEATED_BYTES`] is returned only
    /// with the first finding that it corrects.
    pub(crate) fn findings(self) -> impl Iterator<Item = (&'a Finding, Option<&'a Fix>)> {
        let mut written: HashSet<*const Fix> = HashSet::new();
        self.report.findings.iter().enumerate().map(move |(at, finding)| {
            let fix = self.fix_of(at).filter(|fix| written.insert(ptr::from_ref(fix)) || is_short(fix));
            (finding, fix)
        })
    }
}

fn is_short(fix: &Fix) -> bool {
    fix.edits.iter().map(|edit| EDIT_BYTES + edit.replacement.len()).sum::<usize>() <= MAX_REPEATED_BYTES
}
