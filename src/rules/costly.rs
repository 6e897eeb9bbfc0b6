//! Rule sets whose verdicts can take long: recognised when they are compiled, for the check to report.
//!
//! The work of a verdict grows with the product of the wildcards and the path, up to a bound for each request. On paths made
//! for it, each wildcard costs some nanoseconds, and thousands of them reach the bound.

use super::document::RobotsTxt;

/// Wildcards of one pattern that no honest rule needs.
pub const MANY_WILDCARDS: usize = 16;

/// Wildcards of all rules for one crawler that cost about a tenth of a millisecond at worst.
pub const MANY_TOGETHER: usize = 10_000;

/// A rule, or the rules for one crawler, that can make a verdict slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costly {
    line: usize,
    kind: CostlyKind,
}

/// Why it is costly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CostlyKind {
    /// One pattern with more than [`MANY_WILDCARDS`]; how many it has.
    Pattern(usize),
    /// More than [`MANY_TOGETHER`] wildcards in the groups that apply to one crawler; how many they have.
    Groups(usize),
}

impl Costly {
    /// The line of the rule, or the first of the groups.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }

    /// Why it is costly.
    #[must_use]
    pub const fn kind(&self) -> CostlyKind {
        self.kind
    }
}

/// The costly patterns in the rules that end within the first `limit` octets, for sets of groups that apply together; in the
/// order of the file.
pub(super) fn find(document: &RobotsTxt, limit: usize, sets: &[Vec<usize>]) -> Vec<Costly> {
    let mut costly = Vec::new();
    let mut of_group = Vec::with_capacity(document.groups().len());
    for group in document.groups() {
        let mut together = 0;
        for rule in group.rules().take_while(|rule| rule.range().end <= limit) {
            let wildcards = wildcards(rule.pattern());
            if wildcards > MANY_WILDCARDS {
                costly.push(Costly { line: rule.line(), kind: CostlyKind::Pattern(wildcards) });
            }
            together += wildcards;
        }
        of_group.push(together);
    }
    let mut reported = vec![false; of_group.len()];
    for set in sets {
        let together = set.iter().map(|group| of_group[*group]).sum();
        if together > MANY_TOGETHER && !std::mem::replace(&mut reported[set[0]], true) {
            costly.push(Costly { line: document.group(set[0]).line(), kind: CostlyKind::Groups(together) });
        }
    }
    costly.sort_by_key(Costly::line);
    costly
}

/// How many runs of stars there are, but for one at the end.
fn wildcards(pattern: &[u8]) -> usize {
    pattern.windows(2).filter(|pair| pair[0] == b'*' && pair[1] != b'*').count()
}
