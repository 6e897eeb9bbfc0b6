//! Findings as people and programs read them: snippets, lines, JSON, Markdown, annotations, SARIF.
//!
//! Nothing of a robots.txt or of a path reaches the output raw: control characters would be commands to a terminal
//! and to the log of a CI run.

mod answer_finding;
mod checked;
mod concise;
mod diagnostic;
mod github;
mod json;
mod markdown;
mod printable;
mod sarif;
mod shell_word;
mod snippet;
mod text;

use std::io::{self, Write};

use tower_robots::check::Finding;

pub(crate) use self::answer_finding::{AnswerFinding, AnswerLint};
pub(crate) use self::checked::Checked;
pub(crate) use self::concise::finding_line;
pub(crate) use self::diagnostic::{Diagnostic, complain_at};
pub(crate) use self::markdown::code as markdown_code;
pub(crate) use self::printable::printable;
pub(crate) use self::sarif::SarifLog;
pub(crate) use self::shell_word::shell_word;
pub(crate) use self::snippet::Colour;

/// How findings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FindingFormat {
    /// A snippet of the file for each finding.
    Text(Colour),
    /// A line for each finding.
    Concise,
    /// A table in Markdown.
    Markdown,
    /// A JSON object a line for each finding.
    Json,
    /// Workflow commands, which GitHub shows beside the line.
    Github,
}

/// Writes one finding about a file as a snippet of it.
pub(crate) fn snippet(out: &mut impl Write, colour: Colour, checked: Checked<'_>, finding: &Finding) -> io::Result<()> {
    text::write_one(out, colour, checked, finding)
}

/// Writes every finding about a file.
pub(crate) fn findings(out: &mut impl Write, form: FindingFormat, checked: Checked<'_>) -> io::Result<()> {
    match form {
        FindingFormat::Text(colour) => text::write(out, colour, checked),
        FindingFormat::Concise => concise::write(out, checked),
        FindingFormat::Markdown => markdown::write(out, checked),
        FindingFormat::Json => json::write(out, checked),
        FindingFormat::Github => github::write(out, checked),
    }
}

/// Writes the findings about the answers of a URL's host.
pub(crate) fn answer_findings(
    out: &mut impl Write,
    form: FindingFormat,
    name: &str,
    findings: &[AnswerFinding],
) -> io::Result<()> {
    match form {
        FindingFormat::Text(colour) => text::write_answer(out, colour, findings),
        FindingFormat::Concise => concise::write_answer(out, findings),
        FindingFormat::Markdown => markdown::write_answer(out, name, findings),
        FindingFormat::Json => json::write_answer(out, findings),
        FindingFormat::Github => github::write_answer(out, findings),
    }
}
