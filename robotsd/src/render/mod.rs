//! Renders findings for people and programs: snippets, lines, JSON, Markdown, annotations, SARIF.
//!
//! Text from a robots.txt or a path is always escaped, because a terminal or a CI log would
//! interpret its control characters.

mod checked;
mod formats;
mod found_problem;
mod printable;
mod sarif;
mod secrets;
#[cfg(test)]
pub(crate) mod test_cases;
mod text;

use std::io::{self, Write};

pub(crate) use self::checked::Checked;
pub(crate) use self::formats::{code_span, csv_row, found, markdown_code, markdown_text};
pub(crate) use self::found_problem::{AnswerLint, FoundProblem, ProblemFormat, complain_at, write_problems};
pub(crate) use self::printable::{
    Printable, complain, grace_summary, is_displayed_unchanged, json_text, plural, printable, printable_path,
    shell_line, shell_word, short_hash, stderr, stdout, styled_stdout, truncated, write_json, write_pretty_json,
};
pub(crate) use self::sarif::SarifLog;
pub(crate) use self::secrets::mask_password;
pub(crate) use self::text::{Colour, finding_line, write_one as snippet};

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FindingFormat {
    /// Human-readable text with snippets of the file
    Text,
    #[allow(rustdoc::broken_intra_doc_links, reason = "this is the text of --help")]
    /// One line per finding: file:line:column: severity: message [code]
    Concise,
    /// One JSON object per line for each finding
    Json,
    /// Annotations for GitHub Actions
    Github,
    /// A Markdown table, for a comment on a pull request
    Markdown,
    /// One SARIF 2.1.0 document, for code scanning
    Sarif,
}

/// Writes every finding about a file. For SARIF, adds the findings to the final document.
pub(crate) fn findings(
    out: &mut impl Write,
    form: FindingFormat,
    sarif: &mut SarifLog,
    checked: Checked<'_>,
) -> io::Result<()> {
    match form {
        FindingFormat::Text => text::write(out, Colour::of(&io::stdout()), checked),
        FindingFormat::Concise => text::write_concise(out, checked),
        FindingFormat::Json => formats::json(out, checked),
        FindingFormat::Github => found_problem::github(out, checked),
        FindingFormat::Markdown => formats::markdown(out, checked),
        FindingFormat::Sarif => {
            sarif.add(checked);
            Ok(())
        }
    }
}

pub(crate) fn answer_findings(
    out: &mut impl Write,
    form: FindingFormat,
    sarif: &mut SarifLog,
    name: &str,
    findings: &[FoundProblem],
) -> io::Result<()> {
    match form {
        FindingFormat::Text => found_problem::write_answers(out, findings),
        FindingFormat::Concise => found_problem::write_concise_answers(out, findings),
        FindingFormat::Json => findings.iter().try_for_each(|finding| write_json(out, finding)),
        FindingFormat::Github => findings.iter().try_for_each(|finding| found_problem::annotation(out, finding)),
        FindingFormat::Markdown => formats::markdown_answers(out, name, findings),
        FindingFormat::Sarif => {
            sarif.add_answer(findings);
            Ok(())
        }
    }
}
