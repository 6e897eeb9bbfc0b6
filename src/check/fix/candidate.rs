//! Edits that may correct findings, before they are judged.

use std::collections::HashMap;

use crate::check::edit::Edit;
use crate::check::file_kind::FileKind;
use crate::check::finding::Finding;
use crate::check::fixable_file::FixableFile;
use crate::check::fixes::Safety;
use crate::check::known_field::is_robots_txt;
use crate::check::lint::Lint;
use crate::check::lints::{fix_of, lints};
use crate::check::options::Options;
use crate::rules::{Line, RobotsTxt};

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
        // Some other text, such as a list of dependencies, would be commented out line by line.
        if FileKind::of(robots) == FileKind::Rules && !is_robots_txt(robots) && !robots.lines().any(is_exported) {
            return candidates;
        }
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

/// Whether a line is a field between quotes, or in columns, as a spreadsheet exports it.
fn is_exported(line: Line<'_>) -> bool {
    let text = line.bytes().trim_ascii_start();
    let text = text.strip_prefix(b"\"").or_else(|| text.strip_prefix(b"'")).unwrap_or(text);
    ["user-agent", "disallow"].iter().any(|name| {
        text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
            && matches!(text[name.len()..].trim_ascii_start(), [b':' | b';' | b',' | b'|' | b'=', ..])
    })
}
