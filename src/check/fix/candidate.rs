//! Edits that may correct findings, before they are judged.

use std::collections::HashMap;

use crate::check::edit::Edit;
use crate::check::finding::Finding;
use crate::check::fixable_file::FixableFile;
use crate::check::fixes::Safety;
use crate::check::lint::Lint;
use crate::check::lints::{fix_of, lints};
use crate::check::options::Options;
use crate::rules::RobotsTxt;

/// Edits for one finding, or for several that the same edits correct.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// Their places in the report; never empty.
    pub(super) findings: Vec<usize>,
    pub(super) code: &'static str,
    /// In the order of the file.
    pub(super) edits: Vec<Edit>,
    pub(super) is_choice: bool,
    pub(super) safety: Safety,
}

impl Candidate {
    /// Those of these findings of a file that have edits, in their order.
    pub(super) fn all(robots: &RobotsTxt, findings: &[Finding], options: &Options) -> Vec<Self> {
        let codes: Vec<&str> = lints().iter().map(Lint::code).collect();
        let file = FixableFile::new(robots, options.site(), &codes);
        let mut candidates: Vec<Self> = Vec::new();
        let mut known: HashMap<(&'static str, Vec<Edit>), usize> = HashMap::new();
        for (place, finding) in findings.iter().enumerate() {
            let Some(fix) = fix_of(finding.code()) else { continue };
            let Some(mut edits) = (fix.edits)(&file, finding).filter(|edits| !edits.is_empty()) else { continue };
            edits.sort_unstable();
            edits.dedup();
            if edits.windows(2).any(|pair| pair[0].conflicts(&pair[1])) {
                continue;
            }
            let at = *known.entry((fix.code, edits.clone())).or_insert(candidates.len());
            match candidates.get_mut(at) {
                Some(same) => same.findings.push(place),
                None => candidates.push(Self {
                    findings: vec![place],
                    code: fix.code,
                    edits,
                    is_choice: fix.is_choice,
                    safety: Safety::Unsafe,
                }),
            }
        }
        candidates
    }
}
