//! What is written about a site, in the format of the command.

use std::io::{self, Write};

use tower_robots::check::Severity;

use super::super::finding_groups::{FindingGroups, ShownNotes};
use super::super::{CheckOutput, Detail};
use super::report::LiveReport;
use super::{LiveCheck, record, text};
use crate::evaluator::Evaluator;
use crate::render::{self, AnswerFinding, Checked, FindingFormat};
use crate::retrieval::shown_url;

impl CheckOutput<'_> {
    /// Checks what a site answers, and writes what is found. `is_wanted` says whether findings with a code are.
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
        report.findings.retain(|finding| is_wanted(finding.lint().code));
        self.answers(out, &report)?;
        if let Some(evaluator) = &report.evaluator {
            self.file(out, &report.name, evaluator)?;
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
        match self.detail {
            Detail::All(FindingFormat::Text(colour)) => {
                text::write_answers(out, report)?;
                render::answer_findings(out, FindingFormat::Text(colour), name, findings)
            }
            Detail::Snippets(colour, notes) => {
                text::write_answers(out, report)?;
                let (shown, counted) = split(findings, notes);
                render::answer_findings(out, FindingFormat::Text(colour), name, shown)?;
                text::write_counted(out, counted)
            }
            Detail::Lines(notes) => {
                text::write_answers(out, report)?;
                let (shown, counted) = split(findings, notes);
                render::answer_findings(out, FindingFormat::Concise, name, shown)?;
                text::write_counted(out, counted)
            }
            Detail::All(form) => render::answer_findings(out, form, name, findings),
            Detail::Sarif => {
                self.sarif.add_answer(findings);
                Ok(())
            }
        }
    }

    fn end(&self, out: &mut impl Write, report: &LiveReport) -> io::Result<()> {
        match self.detail {
            Detail::All(FindingFormat::Text(_)) | Detail::Snippets(..) => text::write_front_page(out, report),
            Detail::Lines(_) => {
                writeln!(out)?;
                text::write_front_page(out, report)
            }
            Detail::All(FindingFormat::Json) => record::write(out, report),
            Detail::All(FindingFormat::Markdown) => text::write_markdown(out, report),
            Detail::All(FindingFormat::Concise | FindingFormat::Github) | Detail::Sarif => Ok(()),
        }
    }

    /// The file, as one that was read.
    fn file(&mut self, out: &mut impl Write, name: &str, evaluator: &Evaluator) -> io::Result<()> {
        let report = evaluator.check();
        let groups = FindingGroups::of(&report);
        self.summary.add(name, &report, &groups);
        self.write_findings(out, Checked { name, robots: evaluator.robots(), report: &report }, &groups)
    }
}

/// The findings that are shown, and the notes that are only counted. The worst come first.
fn split(findings: &[AnswerFinding], notes: ShownNotes) -> (&[AnswerFinding], &[AnswerFinding]) {
    let shown = match notes {
        ShownNotes::Each => findings.len(),
        ShownNotes::Counted => findings.partition_point(|finding| finding.severity() != Severity::Note),
    };
    findings.split_at(shown)
}
