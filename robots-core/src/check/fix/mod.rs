//! Fixes findings: finds the edits for each finding, determines whether they are safe, and applies
//! them to the file.
//!
//! A fix is [`Safe`](super::Safety::Safe) if it removes the finding and the fixed file has the same
//! effect in every [`Reading`](crate::rules::Reading). The safety must be proved for each file,
//! because the effect of a fix depends on the file. For example, removing a `*` at the end of a
//! pattern changes nothing in most files, but in other files, it changes which of two rules
//! decides. There are two ways to prove that the effect is the same:
//!
//! - The original file and the fixed file have the same content in normal form
//!   (`effective_content`): the same rules for every name in every
//!   [`Reading`](crate::rules::Reading), and the same lines that are not rules. So every verdict is
//!   the same in every reading.
//! - In both files, all lines that are not rules are the same, and [`diff`](super::diff()) finds no
//!   changed path and no changed delay.
//!
//! Some findings have two possible corrections, and only the author knows the right one. An example
//! is a path that is both allowed and disallowed. The fix of such a finding is
//! [`Unsafe`](super::Safety::Unsafe) even if it does not change the effect, because a person must
//! choose. A lint has no fix if only a person can correct its findings.

mod candidate;
mod effective_content;
mod passes;

use self::candidate::Candidate;
use self::passes::{MAX_FINDINGS, Prover};
use super::finding::Finding;
use super::fixes::{Fix, Fixes};
use super::options::Options;
use super::report::{Report, check};
use crate::rules::RobotsTxt;

pub use self::passes::{FixedFile, fix};

impl Fixes {
    /// Finds the fix of every finding in a report. `options` must be the options of this report.
    ///
    /// ```
    /// use robots_core::check::{Fixes, Options, Safety, check};
    /// use robots_core::rules::RobotsTxt;
    ///
    /// let robots = RobotsTxt::parse(&b"User-agent: *\nDissallow: /private/\nDisallow: b\n"[..]);
    /// let report = check(&robots, &Options::new());
    /// let fixes = Fixes::of(&robots, &report, &Options::new());
    /// let safeties: Vec<_> = (0..2).map(|at| fixes.get(at).unwrap().safety).collect();
    /// assert_eq!(safeties, [Safety::Safe, Safety::Unsafe]);
    /// ```
    pub fn of(robots: &RobotsTxt, report: &Report, options: &Options) -> Self {
        let fixes_of = |report: &Report, options: &Options| {
            let candidates = Candidate::all(robots, &report.findings, options);
            Self::judged(Prover::new(robots, report, options).judge(candidates))
        };
        if report.omitted() == 0 {
            return fixes_of(report, options);
        }
        // The safety of a fix depends on all other fixes, including fixes of findings that the
        // report omits. So the fixes of all findings are examined together.
        let every = options.clone().findings_per_lint(MAX_FINDINGS);
        let whole = check(robots, &every);
        fixes_of(&whole, &every).of_some(&whole.findings, &report.findings)
    }

    fn judged(candidates: Vec<Candidate>) -> Self {
        let mut all = Self::default();
        for Candidate { findings, safety, edits, .. } in candidates {
            all.by_finding.extend(findings.into_iter().map(|finding| (finding, all.fixes.len())));
            all.fixes.push(Fix { safety, edits });
        }
        all
    }

    /// Returns only the fixes of the findings in `some`, which must be a subset of `all` in the
    /// same order.
    fn of_some(self, all: &[Finding], some: &[Finding]) -> Self {
        let mut all = all.iter().enumerate();
        let fix_of = |finding: &Finding| {
            let (place, _) = all.find(|(_, other)| *other == finding)?;
            self.by_finding.get(&place).copied()
        };
        let found: Vec<Option<usize>> = some.iter().map(fix_of).collect();
        let by_finding = found.into_iter().enumerate().filter_map(|(at, fix)| Some((at, fix?))).collect();
        Self { fixes: self.fixes, by_finding }
    }
}

impl Report {
    /// Adds the fix of each finding to the report ([`Report::fixes`]). `options` must be the
    /// options of this report.
    pub fn with_fixes(self, robots: &RobotsTxt, options: &Options) -> Self {
        Self { fixes: Fixes::of(robots, &self, options), ..self }
    }
}

#[cfg(test)]
mod tests;
