//! Findings as a line each, as editors and other programs find their places.

use std::io::{self, Write};

use tower_robots::check::Finding;

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
    for finding in checked.report {
        writeln!(out, "{} [{}]", finding_line(checked.name, finding), finding.code())?;
    }
    match checked.report.omitted() {
        0 => Ok(()),
        omitted => {
            let name = printable(checked.name.as_bytes());
            writeln!(out, "{name}: {omitted} more findings of these kinds are not shown")
        }
    }
}
