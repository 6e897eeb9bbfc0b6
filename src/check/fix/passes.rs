//! A file with its fixes made: as many as do not touch each other at a time, until there are no more.

use super::candidate::Candidate;
use super::proof::{Prover, apart};
use crate::check::edit::Edit;
use crate::check::finding::Finding;
use crate::check::fixes::{Fixes, Safety};
use crate::check::options::Options;
use crate::check::report::Report;
use crate::check::run::check;
use crate::rules::RobotsTxt;

/// How often a file is looked at again for fixes that the ones before left or made possible.
pub const MAX_FIX_PASSES: usize = 10;

/// Findings of one lint that are corrected.
const MOST_FINDINGS: usize = 100_000;

/// Octets that a file may become longer by, in which a new line for each of many findings has room.
const MOST_GROWTH: usize = 1 << 20;

/// A file with its fixes made, and what is left of its findings.
#[derive(Clone, Debug)]
pub struct FixedFile {
    robots: RobotsTxt,
    applied: Vec<AppliedFix>,
    report: Report,
}

/// A finding that was corrected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedFix {
    finding: Finding,
    safety: Safety,
}

/// Corrects the findings of a file: those with a safe fix, and with [`Safety::Unsafe`] then those with any.
///
/// What is left are findings without a fix, those whose fix is unsafe, and those past [`MAX_FIX_PASSES`].
///
/// ```
/// use tower_robots::check::{Options, Safety, fix};
/// use tower_robots::rules::RobotsTxt;
///
/// let robots = RobotsTxt::parse(&b"User-agent: *\r\nDissallow: /p\r\nDisallow: b # all\r\n"[..]);
/// let fixed = fix(&robots, &Options::new(), Safety::Safe);
/// assert_eq!(&**fixed.robots().bytes(), b"User-agent: *\r\nDisallow: /p\r\nDisallow: b # all\r\n");
/// assert_eq!((fixed.applied().len(), fixed.report().findings().len()), (1, 1));
/// let fixed = fix(&robots, &Options::new(), Safety::Unsafe);
/// assert_eq!(&**fixed.robots().bytes(), b"User-agent: *\r\nDisallow: /p\r\nDisallow: /b # all\r\n");
/// ```
#[must_use]
pub fn fix(robots: &RobotsTxt, options: &Options, most: Safety) -> FixedFile {
    let every = options.clone().findings_per_lint(MOST_FINDINGS);
    let longest = robots.bytes().len() + MOST_GROWTH;
    let mut file = robots.clone();
    let mut applied = Vec::new();
    let mut left = None;
    for _ in 0..MAX_FIX_PASSES {
        let report = check(&file, &every);
        let prover = Prover::new(&file, &every);
        let candidates = prover.judge(Candidate::all(&file, report.findings(), &every));
        let of = |safety: Safety| -> Vec<usize> {
            (0..candidates.len()).filter(|at| candidates[*at].safety == safety).collect()
        };
        let mut chosen = prover.apply_together(&candidates, &of(Safety::Safe));
        if chosen.is_empty() && most == Safety::Unsafe {
            chosen = apart(&candidates, &of(Safety::Unsafe));
        }
        let edits = chosen.iter().flat_map(|at| &candidates[*at].edits);
        let after = Edit::apply(file.bytes(), edits);
        if chosen.is_empty() || after.len() > longest {
            left = Some((report, candidates));
            break;
        }
        let corrected = chosen.iter().flat_map(|at| {
            let Candidate { findings, safety, .. } = &candidates[*at];
            findings.iter().map(|place| AppliedFix { finding: report.findings()[*place].clone(), safety: *safety })
        });
        applied.extend(corrected);
        file = RobotsTxt::parse(after);
    }
    let report = check(&file, options);
    let fixes = match left {
        Some((every, candidates)) if every.findings() == report.findings() => Fixes::judged(candidates),
        _ => Fixes::of(&file, &report, options),
    };
    FixedFile { robots: file, applied, report: report.fixed_by(fixes) }
}

impl FixedFile {
    /// The file as it is now.
    #[must_use]
    pub const fn robots(&self) -> &RobotsTxt {
        &self.robots
    }

    /// The findings that were corrected, in passes, each in the order of the file that it looked at.
    #[must_use]
    pub fn applied(&self) -> &[AppliedFix] {
        &self.applied
    }

    /// What is left, with its fixes.
    #[must_use]
    pub const fn report(&self) -> &Report {
        &self.report
    }
}

impl AppliedFix {
    /// The finding, with its place in the file that its pass looked at.
    #[must_use]
    pub const fn finding(&self) -> &Finding {
        &self.finding
    }

    /// Whether the fix was safe.
    #[must_use]
    pub const fn safety(&self) -> Safety {
        self.safety
    }
}
