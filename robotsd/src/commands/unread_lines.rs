//! What crawlers do not read of a robots.txt, said by commands whose answers come from what they do read.

use std::collections::{HashMap, HashSet};

use tower_robots::check::Finding;
use tower_robots::rules::STANDARD_LIMIT;

use crate::evaluator::Evaluator;

/// Lints about a file in whose place a person sees more rules than crawlers do.
const OF_FILES: [&str; 3] = ["html-instead-of-text", "no-known-field", "over-500-kib"];

/// Those of them about a file that is no robots.txt.
const OF_OTHER_FILES: [&str; 2] = ["html-instead-of-text", "no-known-field"];

/// Lints about a line that crawlers ignore, or read otherwise than it looks, or that is for a crawler that does not exist.
const OF_LINES: [&str; 8] = [
    "not-a-field",
    "missing-colon",
    "misspelled-directive",
    "unknown-directive",
    "rule-before-group",
    "path-without-slash",
    "url-as-path",
    "unknown-crawler",
];

/// Whether a finding says that the file is something else: a page, or a message.
pub(in crate::commands) fn is_of_other_file(finding: &Finding) -> bool {
    OF_OTHER_FILES.contains(&finding.code)
}

/// The findings about the whole file. Only a file that may have one is checked: a check costs more than most answers.
pub(in crate::commands) fn of_file(evaluator: &Evaluator) -> Vec<Finding> {
    let robots = evaluator.robots();
    let is_suspect = robots.groups().len() == 0
        || robots.bytes().len() > STANDARD_LIMIT
        || robots.bytes().trim_ascii_start().first() == Some(&b'<');
    if is_suspect { findings(evaluator, &OF_FILES).collect() } else { Vec::new() }
}

/// The findings about lines of the new file that the old one does not have: no effect shows them.
pub(in crate::commands) fn added(old: &Evaluator, new: &Evaluator) -> Vec<Finding> {
    let found: Vec<Finding> = findings(new, &OF_LINES).collect();
    let places: HashSet<usize> = found.iter().map(|finding| finding.line).collect();
    let of_findings = new.robots().lines().filter(|line| places.contains(&line.number()));
    let mut added: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for line in of_findings {
        added.entry(line.bytes().trim_ascii()).or_default().push(line.number());
    }
    for known in old.robots().lines() {
        added.remove(known.bytes().trim_ascii());
    }
    let added: HashSet<usize> = added.into_values().flatten().collect();
    found.into_iter().filter(|finding| added.contains(&finding.line)).collect()
}

fn findings<'e>(evaluator: &'e Evaluator, codes: &'static [&'static str]) -> impl Iterator<Item = Finding> + 'e {
    evaluator.check().findings.iter().filter(|finding| codes.contains(&finding.code)).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lints_exist() {
        for code in OF_FILES.iter().chain(&OF_OTHER_FILES).chain(&OF_LINES) {
            assert!(tower_robots::check::lint(code).is_some(), "{code}");
        }
    }
}
