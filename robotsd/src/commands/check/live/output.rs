//! Writes the results for a site, in the requested format. The text format has one line for each
//! URL of the site, and shows which crawlers may fetch the front page.

use std::io::{self, Write};

use askama::Template;
use tower_robots::check::Severity;

use super::report::{AnswerSummary, LiveReport, SameFile};
use super::{LiveCheck, answers};
use crate::commands::check::summary::ShownNotes;
use crate::commands::check::{CheckOutput, Detail};
use crate::commands::output::filters;
use crate::evaluator::Evaluator;
use crate::fetch::{AnswerKind, CrawlerAccess, shown_url};
use crate::render::{self, Checked, FindingFormat, FoundProblem, printable};

#[derive(Template)]
#[template(path = "commands/check/live/answers.txt", whitespace = "preserve")]
struct AnswersText<'a> {
    report: &'a LiveReport,
}

impl AnswersText<'_> {
    /// Reports whether the output may omit how crawlers interpret the response: a finding already
    /// states it, or the file is not a robots.txt and therefore has no rules.
    fn is_already_stated(&self, answer: &AnswerSummary) -> bool {
        let lint = answers::lint_of(answer.kind).map(|(lint, _)| lint.code);
        let is_other_file = || self.report.evaluator.as_ref().is_some_and(Evaluator::is_other_file);
        answer.kind.access() == CrawlerAccess::Rules && is_other_file()
            || self.report.findings.iter().any(|finding| finding.code == lint && finding.severity != Severity::Note)
    }
}

fn outcome(answer: &AnswerSummary) -> String {
    match (answer.kind, &answer.detail) {
        (AnswerKind::Failed(_) | AnswerKind::Unreachable(_), Some(detail)) => detail.clone(),
        (kind, _) => kind.to_string(),
    }
}

fn write_counted(out: &mut impl Write, notes: &[FoundProblem]) -> io::Result<()> {
    let mut codes: Vec<(&str, usize)> = Vec::new();
    for note in notes.iter().filter_map(|note| note.code) {
        match codes.iter_mut().find(|(code, _)| *code == note) {
            Some((_, count)) => *count += 1,
            None => codes.push((note, 1)),
        }
    }
    let codes: Vec<_> = codes.iter().map(|(code, count)| format!("{count} × {code}")).collect();
    match codes.is_empty() {
        true => Ok(()),
        false => {
            writeln!(out, "notes about the answers (add --notes to show them): {codes}\n", codes = codes.join(", "))
        }
    }
}

fn front_page_url(report: &LiveReport) -> String {
    printable(report.name.trim_end_matches("robots.txt"))
}

impl CheckOutput<'_> {
    /// Checks a site. `is_wanted` reports whether findings with a given code are requested.
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
                self.report_unread(&shown_url(word), &error);
                return Ok(());
            }
        };
        report.findings.retain(|finding| finding.code.is_none_or(&is_wanted));
        self.answers(out, &report)?;
        if let Some(evaluator) = &report.evaluator {
            self.checked(out, Checked { name: &report.name, robots: evaluator.robots(), report: evaluator.check() })?;
        }
        self.end(out, &report)?;
        if let Some(reason) = &report.unreached {
            self.report_unread(&report.name, reason);
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
        // The findings are sorted by severity, the worst first.
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
        if self.form == FindingFormat::Json {
            return render::write_json(out, report);
        }
        report.front_page.write(out, self.form, &front_page_url(report))
    }
}
