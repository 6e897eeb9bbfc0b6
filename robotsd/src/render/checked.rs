//! A robots.txt with its findings, as every format takes it.

use tower_robots::check::{Fix, Report};
use tower_robots::rules::RobotsTxt;

/// A file and what was found in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked<'a> {
    /// What to call the file; may hold anything.
    pub(crate) name: &'a str,
    pub(crate) robots: &'a RobotsTxt,
    pub(crate) report: &'a Report,
}

impl<'a> Checked<'a> {
    /// The fix of a finding, by its place in the report.
    pub(crate) fn fix_of(&self, finding: usize) -> Option<&'a Fix> {
        self.report.fixes().get(finding)
    }
}
