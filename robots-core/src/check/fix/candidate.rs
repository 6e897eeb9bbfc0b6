//! Candidates: edits that may correct findings. The prover has not checked these edits yet.

use std::collections::HashMap;

use crate::check::Lint;
use crate::check::checked_file::CheckedFile;
use crate::check::file_kind::FileKind;
use crate::check::finding::Finding;
use crate::check::fixes::{Edit, Safety};
use crate::check::lint::LintFix;
use crate::check::options::Options;
use crate::rules::{Line, RobotsTxt, starts_with};

/// Maximum number of lines in a file that is fixed. Longer files get no fixes, because fixing takes
/// about a hundred bytes of memory per line. Only files with very short lines exceed the limit.
const MAX_LINES: usize = 1 << 21;

/// The edits for one finding, or for several findings that need the same edits.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// Indexes of the findings in the report; at least one.
    pub(super) findings: Vec<usize>,
    pub(super) code: &'static str,
    /// The edits in the order of the file.
    pub(super) edits: Vec<Edit>,
    pub(super) is_choice: bool,
    pub(super) safety: Safety,
}

impl Candidate {
    pub(super) fn all(robots: &RobotsTxt, findings: &[Finding], options: &Options) -> Vec<Self> {
        if robots.lines().nth(MAX_LINES).is_some() {
            return Vec::new();
        }
        let codes: Vec<&str> = Lint::all().iter().map(|lint| lint.code).collect();
        let file = CheckedFile::new(robots, &options.site, &codes);
        let mut candidates: Vec<Self> = Vec::new();
        // A file that is not a robots.txt, such as a list of dependencies, is not fixed, because
        // the fixes would only turn each line into a comment.
        if FileKind::of(robots) == FileKind::OtherText && !robots.lines().any(is_exported) {
            return candidates;
        }
        // The values of both maps are indexes of `candidates`. In `shared`, the key contains the
        // result of `LintFix::shared`, which is equal for findings with the same edits. In `known`,
        // the key contains the edits themselves.
        let mut shared: HashMap<(&'static str, usize), Option<usize>> = HashMap::new();
        let mut known: HashMap<(&'static str, Vec<Edit>), usize> = HashMap::new();
        for (place, finding) in findings.iter().enumerate() {
            let code = finding.code;
            let Some(fix) = Lint::of_code(code).and_then(|lint| lint.fix.as_ref()) else { continue };
            let key = fix.shared.and_then(|shared| shared(&file, finding)).map(|key| (code, key));
            let at = match key.and_then(|key| shared.get(&key)) {
                Some(at) => *at,
                None => {
                    let edits = edits(&file, fix, finding);
                    let at = edits.as_ref().map(|edits| match key {
                        Some(_) => candidates.len(),
                        None => *known.entry((code, edits.clone())).or_insert(candidates.len()),
                    });
                    if let Some((at, edits)) = at.zip(edits)
                        && at == candidates.len()
                    {
                        candidates.push(Self {
                            findings: Vec::new(),
                            code,
                            edits,
                            is_choice: fix.is_choice,
                            safety: Safety::Unsafe,
                        });
                    }
                    shared.extend(key.map(|key| (key, at)));
                    at
                }
            };
            if let Some(at) = at {
                candidates[at].findings.push(place);
            }
        }
        candidates
    }
}

/// Returns the edits for a finding, in the order of the file. `None` if there are no edits, or if
/// they conflict with each other.
fn edits(file: &CheckedFile<'_>, fix: &LintFix, finding: &Finding) -> Option<Vec<Edit>> {
    let mut edits = (fix.edits)(file, finding).filter(|edits| !edits.is_empty())?;
    edits.sort_unstable();
    edits.dedup();
    let is_conflict = |pair: &[Edit]| pair[0].conflicts(&pair[1]);
    (!edits.windows(2).any(is_conflict)).then_some(edits)
}

/// Reports whether a line looks like a field that a spreadsheet exported: in quotes, or with the
/// name and the value in separate columns.
fn is_exported(line: Line<'_>) -> bool {
    let text = line.bytes().trim_ascii_start();
    let text = text.strip_prefix(b"\"").or_else(|| text.strip_prefix(b"'")).unwrap_or(text);
    ["user-agent", "disallow"].iter().any(|name| {
        starts_with(text, name.as_bytes())
            && matches!(text[name.len()..].trim_ascii_start(), [b':' | b';' | b',' | b'|' | b'=', ..])
    })
}
