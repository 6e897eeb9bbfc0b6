//! Writes the output about a site, in the requested format. The text format has one line for each
//! name of the site, and shows who may fetch the front page.

use std::fmt::Write as _;
use std::io::{self, Write};

use askama::Template;
use tower_robots::check::Severity;
use tower_robots::rules::Access;

use super::report::{AnswerSummary, CrawlerKind, FrontPage, FrontPageRow, LiveReport, SameFile};
use super::{LiveCheck, answers};
use crate::commands::check::summary::ShownNotes;
use crate::commands::check::{CheckOutput, Detail};
use crate::commands::output::filters;
use crate::evaluator::Evaluator;
use crate::fetch::{AnswerKind, CrawlerAccess, shown_url};
use crate::render::{self, AnswerFinding, Checked, FindingFormat, printable};

/// Maximum number of crawlers shown by name: of those that may fetch the page, and of those that
/// may not.
const NAMES: (usize, usize) = (6, 12);

#[derive(Template)]
#[template(path = "commands/check/live/answers.txt", whitespace = "preserve")]
struct AnswersText<'a> {
    report: &'a LiveReport,
}

impl AnswersText<'_> {
    /// Reports whether to leave out how crawlers interpret a response: a finding already explains
    /// it, or the file is not a robots.txt and so has no rules.
    fn is_said(&self, answer: &AnswerSummary) -> bool {
        let lint = answers::lint_of(answer.kind).map(|(lint, _)| lint.code);
        let is_other_file = || self.report.evaluator.as_ref().is_some_and(Evaluator::is_other_file);
        answer.kind.access() == CrawlerAccess::Rules && is_other_file()
            || self
                .report
                .findings
                .iter()
                .any(|finding| Some(finding.code) == lint && finding.severity != Severity::Note)
    }
}

/// Describes the response after the redirects.
fn outcome(answer: &AnswerSummary) -> String {
    match (answer.kind, &answer.detail) {
        (AnswerKind::Failed(_) | AnswerKind::Unreachable(_), Some(detail)) => detail.clone(),
        (kind, _) => kind.to_string(),
    }
}

/// Writes the number of notes that are not shown in full, and their codes.
fn write_counted(out: &mut impl Write, notes: &[AnswerFinding]) -> io::Result<()> {
    let mut codes: Vec<(&str, usize)> = Vec::new();
    for note in notes {
        match codes.iter_mut().find(|(code, _)| *code == note.code) {
            Some((_, count)) => *count += 1,
            None => codes.push((note.code, 1)),
        }
    }
    let codes: Vec<_> = codes.iter().map(|(code, count)| format!("{count} × {code}")).collect();
    match codes.is_empty() {
        true => Ok(()),
        false => writeln!(out, "notes about the answers (shown with --notes): {}\n", codes.join(", ")),
    }
}

/// Text that lists the crawlers that may fetch the front page, and those that may not.
#[derive(Template)]
#[template(path = "commands/check/live/front_page.txt", whitespace = "preserve")]
struct FrontPageText<'a> {
    report: &'a LiveReport,
}

/// Markdown table of the crawlers that may fetch the front page, and of those that may not.
#[derive(Template)]
#[template(path = "commands/check/live/front_page_markdown.txt", whitespace = "preserve")]
struct FrontPageMarkdown<'a> {
    report: &'a LiveReport,
}

/// Returns the URL of the front page.
fn front_page(report: &LiveReport) -> String {
    printable(report.name.trim_end_matches("robots.txt"))
}

/// Lists the crawlers of a kind that may fetch the page, and those that may not.
fn sides(page: &FrontPage, kind: CrawlerKind) -> (String, String) {
    let side = |access, shown| {
        let is_meant = |row: &&FrontPageRow| row.kind == kind && row.access == access;
        let rows: Vec<_> = page.rows.iter().filter(is_meant).collect();
        let name = |row: &&FrontPageRow| {
            let mut name = printable(&row.crawler);
            if let (Some(line), Access::Disallow) = (row.line, access) {
                let _ = write!(name, " (line {line})");
            }
            if row.ignores_robots && access == Access::Disallow {
                name.push_str(" (ignores robots.txt)");
            }
            name
        };
        let names: Vec<_> = rows.iter().take(shown).map(name).collect();
        match rows.len() {
            0 => "-".to_owned(),
            all if page.has_rules => match all - names.len() {
                0 => names.join(", "),
                more => format!("{}, and {more} more", names.join(", ")),
            },
            all => format!("all {all}"),
        }
    };
    (side(Access::Allow, NAMES.0), side(Access::Disallow, NAMES.1))
}

impl CheckOutput<'_> {
    /// Checks a site, and writes the findings. `is_wanted` reports whether findings with a code are
    /// requested.
    pub(in crate::commands::check) fn site(
        &mut self,
        out: &mut impl Write,
        live: &LiveCheck<'_>,
        word: &str,
        is_wanted: impl Fn(&str) -> bool,
    ) -> io::Result<()> {
        let mut report = match live.check(word) {
            Ok(report) => report,
            Err(error) => {
                self.unread(&shown_url(word), &error);
                return Ok(());
            }
        };
        report.findings.retain(|finding| is_wanted(finding.code));
        self.answers(out, &report)?;
        if let Some(evaluator) = &report.evaluator {
            self.checked(out, Checked { name: &report.name, robots: evaluator.robots(), report: evaluator.check() })?;
        }
        self.end(out, &report)?;
        if let Some(reason) = &report.unreached {
            self.unread(&report.name, reason);
        }
        Ok(())
    }

    fn answers(&mut self, out: &mut impl Write, report: &LiveReport) -> io::Result<()> {
        let LiveReport { name, findings, .. } = report;
        let is_file = report.evaluator.is_some() || report.unreached.is_some();
        self.summary.add_answers(name, findings, is_file);
        if self.form == FindingFormat::Text {
            writeln!(out, "{}", AnswersText { report })?;
        }
        let form = if self.detail == Detail::Lines { FindingFormat::Concise } else { self.form };
        // Findings are sorted by severity, the worst first.
        let shown = match self.notes {
            ShownNotes::Each => findings.len(),
            ShownNotes::Counted => findings.partition_point(|finding| finding.severity != Severity::Note),
        };
        let (shown, counted) = findings.split_at(shown);
        render::answer_findings(out, form, &mut self.sarif, name, shown)?;
        write_counted(out, counted)
    }

    fn end(&self, out: &mut impl Write, report: &LiveReport) -> io::Result<()> {
        if self.form == FindingFormat::Text && self.detail == Detail::Lines {
            writeln!(out)?;
        }
        match self.form {
            FindingFormat::Json => render::write_json(out, report),
            _ if report.front_page.rows.is_empty() => Ok(()),
            FindingFormat::Text => writeln!(out, "{}\n", FrontPageText { report }),
            FindingFormat::Markdown => writeln!(out, "{}\n", FrontPageMarkdown { report }),
            FindingFormat::Concise | FindingFormat::Github | FindingFormat::Sarif => Ok(()),
        }
    }
}
