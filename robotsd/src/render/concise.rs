//! Findings as a line each, as editors and other programs find their places.

use std::io::{self, Write};

use tower_robots::check::{Finding, Safety};

use super::answer_finding::AnswerFinding;
use super::checked::Checked;
use super::printable::printable;

/// A finding on a line of its own, as `file:line:column: severity: message`.
pub(crate) fn finding_line(file: &str, finding: &Finding) -> String {
    format!("{}:{finding}", printable(file.as_bytes()))
}

pub(super) fn write_answer(out: &mut impl Write, findings: &[AnswerFinding]) -> io::Result<()> {
    findings.iter().try_for_each(|finding| writeln!(out, "{finding}"))
}

pub(super) fn write(out: &mut impl Write, checked: Checked<'_>) -> io::Result<()> {
    for (at, finding) in checked.report.findings().iter().enumerate() {
        let is_fixed = checked.fix_of(at).is_some_and(|fix| fix.safety() == Safety::Safe);
        let hint = if is_fixed { " [--fix]" } else { "" };
        writeln!(out, "{} [{}]{hint}", finding_line(checked.name, finding), finding.code())?;
    }
    match checked.report.omitted() {
        0 => Ok(()),
        omitted => {
            let name = printable(checked.name.as_bytes());
            writeln!(out, "{name}: {omitted} more findings of these kinds are not shown")
        }
    }
}
