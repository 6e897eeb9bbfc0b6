//! Findings as workflow commands: GitHub shows them beside the lines of a pull request.

use std::io::{self, Write};

use tower_robots::check::{Severity, lint};

use super::answer_finding::AnswerFinding;
use super::{Checked, printable};

pub(super) fn write(out: &mut impl Write, checked: Checked<'_>) -> io::Result<()> {
    let file = property(&printable(checked.name.as_bytes()));
    for finding in checked.report {
        let command = command(finding.severity);
        let (line, column, code) = (finding.line, finding.column, finding.code);
        write!(out, "::{command} file={file},line={line},col={column},title={code}::{}", data(&finding.message))?;
        if let Some(help) = finding.help.as_deref() {
            write!(out, "%0Ahelp: {}", data(help))?;
        }
        match lint(code) {
            Some(lint) => writeln!(out, "%0Asee {}", data(&lint.url()))?,
            None => writeln!(out)?,
        }
    }
    match checked.report.omitted() {
        0 => Ok(()),
        omitted => writeln!(out, "::notice file={file}::{omitted} more findings of these kinds are not shown"),
    }
}

/// An answer is beside no line, so the message names it.
pub(super) fn write_answer(out: &mut impl Write, findings: &[AnswerFinding]) -> io::Result<()> {
    findings.iter().try_for_each(|finding| {
        let (command, code) = (command(finding.severity()), finding.lint().code);
        write!(out, "::{command} title={code}::{}: {}", data(finding.url()), data(finding.message()))?;
        if let Some(help) = finding.help_text() {
            write!(out, "%0Ahelp: {}", data(help))?;
        }
        writeln!(out, "%0Asee {}", data(&finding.lint().url()))
    })
}

const fn command(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    }
}

/// Escapes the text of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a command, which also ends at a comma or a colon.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use tower_robots::check::{Options, check};
    use tower_robots::rules::RobotsTxt;

    use super::*;

    #[test]
    fn what_ends_a_command_is_escaped() {
        let robots = RobotsTxt::parse(&b"User-agent: *\nDisallow: 100%\n"[..]);
        let report = check(&robots, &Options::new());
        let mut out = Vec::new();
        write(&mut out, Checked { name: "a,b:c\n", robots: &robots, report: &report }).expect("a vector takes all");
        let want = "::error file=a%2Cb%3Ac\\n,line=2,col=11,title=path-without-slash::\"100%25\" begins with neither \
                    \"/\" nor \"*\": it matches no path%0Ahelp: write \"/100%25\"%0Asee https://docs.rs/tower-robots/latest/tower_robots/docs/lints/#path-without-slash\n";
        assert_eq!(String::from_utf8_lossy(&out), want);
    }
}
