//! Findings as workflow commands: GitHub shows them beside the lines of a pull request.

use std::io::{self, Write};

use tower_robots::check::{Lint, Severity, lint};

use super::answer_finding::AnswerFinding;
use super::{Checked, printable};

pub(super) fn write(out: &mut impl Write, checked: Checked<'_>) -> io::Result<()> {
    let file = property(&printable(checked.name));
    for finding in checked.report {
        let (line, column, code) = (finding.line, finding.column, finding.code);
        let place = format!("file={file},line={line},col={column},title={code}");
        let (help, url) = (finding.help.as_deref(), lint(code).map(Lint::url));
        annotate(out, finding.severity, &place, &finding.message, help, url.as_deref())?;
    }
    match checked.report.omitted() {
        0 => Ok(()),
        omitted => writeln!(out, "::notice file={file}::{omitted} more findings of these kinds are not shown"),
    }
}

/// An answer is beside no line, so the message names it.
pub(super) fn write_answer(out: &mut impl Write, findings: &[AnswerFinding]) -> io::Result<()> {
    findings.iter().try_for_each(|finding| {
        let AnswerFinding { requested, code, severity, message, help, url, .. } = finding;
        let message = format!("{requested}: {message}");
        annotate(out, *severity, &format!("title={code}"), &message, help.as_deref(), Some(url))
    })
}

fn annotate(
    out: &mut impl Write,
    severity: Severity,
    properties: &str,
    message: &str,
    help: Option<&str>,
    url: Option<&str>,
) -> io::Result<()> {
    let help = help.map_or_else(String::new, |help| format!("%0Ahelp: {}", data(help)));
    let see = url.map_or_else(String::new, |url| format!("%0Asee {}", data(url)));
    writeln!(out, "::{} {properties}::{}{help}{see}", command(severity), data(message))
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
