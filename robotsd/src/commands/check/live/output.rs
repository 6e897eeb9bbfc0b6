//! The output about a site in the format of the command; for people, a line for each of its names, and who may fetch the
//! front page.

use std::fmt::Write as _;
use std::io::{self, Write};

use tower_robots::check::Severity;
use tower_robots::rules::Access;

use super::report::{AnswerSummary, CrawlerKind, FrontPage, FrontPageRow, LiveReport, RedirectSummary, SameFile};
use super::sitemaps::SitemapSummary;
use super::{LiveCheck, answers};
use crate::commands::check::summary::ShownNotes;
use crate::commands::check::{CheckOutput, Detail};
use crate::html::{counted, grouped};
use crate::render::{self, AnswerFinding, Checked, FindingFormat, printable};
use crate::retrieval::{AnswerKind, CrawlerAccess, shown_url};

/// Names of crawlers that are shown of those that may, and of those that may not.
const NAMES: (usize, usize) = (6, 12);

/// The answers, before what was found about them.
fn write_answers(out: &mut impl Write, report: &LiveReport) -> io::Result<()> {
    for answer in &report.answers {
        match answer.same {
            SameFile::Named => {
                writeln!(out, "{}", whole(answer))?;
                // A finding that is shown has it too.
                let lint = answers::lint_of(answer.kind).map(|(lint, _)| lint.code);
                let is_said =
                    |finding: &AnswerFinding| Some(finding.code) == lint && finding.severity != Severity::Note;
                if !report.findings.iter().any(is_said) {
                    writeln!(out, "  {}", answers::meaning(answer.kind))?;
                }
            }
            SameFile::Same => {
                let file = if answer.kind.access() == CrawlerAccess::Rules { " file" } else { "" };
                writeln!(out, "{}: the same{file}", way(answer))?;
            }
            SameFile::Differs => match answer.kind.access() {
                CrawlerAccess::Rules => writeln!(out, "{}: another file", way(answer))?,
                access => writeln!(out, "{}: crawlers {access}", way(answer))?,
            },
            SameFile::NoSite => writeln!(out, "{}: there is no such name", printable(&answer.url))?,
        }
    }
    for sitemap in &report.sitemaps {
        writeln!(out, "sitemap {}", of_sitemap(sitemap))?;
    }
    writeln!(out)
}

/// Notes about answers that are not shown.
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
        false => writeln!(out, "notes about the answers, which --notes shows: {}\n", codes.join(", ")),
    }
}

/// As a table in Markdown.
fn write_markdown(out: &mut impl Write, report: &LiveReport) -> io::Result<()> {
    if report.front_page.rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "| front page of `{}` | may | may not |\n| --- | --- | --- |", front_page(report))?;
    for kind in CrawlerKind::ALL {
        let (may, may_not) = sides(&report.front_page, kind);
        writeln!(out, "| {} | {may} | {may_not} |", kind.as_str())?;
    }
    writeln!(out)
}

/// The crawlers that may fetch the front page.
fn write_front_page(out: &mut impl Write, report: &LiveReport) -> io::Result<()> {
    if report.front_page.rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "the front page, {}:", front_page(report))?;
    for kind in CrawlerKind::ALL {
        let (may, may_not) = sides(&report.front_page, kind);
        let sides = [("may", may), ("may not", may_not)].into_iter().filter(|(_, names)| names != "-");
        for (at, (word, names)) in sides.enumerate() {
            writeln!(out, "  {:14}  {word:7}  {names}", if at == 0 { kind.as_str() } else { "" })?;
        }
    }
    writeln!(out)
}

/// Its URL.
fn front_page(report: &LiveReport) -> String {
    printable(report.name.trim_end_matches("robots.txt"))
}

/// Those of a kind that may, and those that may not.
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
                name.push_str(" (does not go by robots.txt)");
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

/// As in `https://example.com/robots.txt: 200 OK, text/plain, 1,234 octets, from 192.0.2.7:443`.
fn whole(answer: &AnswerSummary) -> String {
    let octets = answer.octets_sent.zip(answer.octets).map(|(sent, decoded)| {
        let more = if answer.is_cut { "more than " } else { "" };
        let octets = format!("{more}{}", counted(decoded as u64, "octet"));
        match answer.codings.is_empty() {
            true => octets,
            false => format!("{octets} ({}, {} as sent)", printable(answer.codings.join(", ")), grouped(sent as u64)),
        }
    });
    let parts = [
        Some(way(answer)),
        answer.content_type.as_ref().map(printable),
        octets,
        answer.cache_control.as_ref().map(|control| format!("Cache-Control: {}", printable(control))),
        answer.address.as_ref().map(|address| format!("from {address}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// As in `http://example.com/robots.txt: 301 to https://example.com/robots.txt, 200 OK`.
fn way(answer: &AnswerSummary) -> String {
    let mut text = format!("{}: ", answer.url);
    for RedirectSummary { status, to } in &answer.redirects {
        let _ = write!(text, "{status} to {to}, ");
    }
    match (answer.kind, &answer.detail) {
        (AnswerKind::Failed(_) | AnswerKind::Unreachable(_), Some(detail)) => text.push_str(detail),
        (kind, _) => {
            let _ = write!(text, "{kind}");
        }
    }
    printable(&text)
}

fn of_sitemap(sitemap: &SitemapSummary) -> String {
    let mut text = printable(format!("{}: {}", sitemap.url, sitemap.answer));
    if let Some(urls) = sitemap.urls {
        let _ = write!(text, ", {}", counted(urls, if sitemap.is_index { "sitemap" } else { "URL" }));
    }
    text
}

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
            write_answers(out, report)?;
        }
        let form = if self.detail == Detail::Lines { FindingFormat::Concise } else { self.form };
        // The worst come first.
        let shown = match self.notes {
            ShownNotes::Each => findings.len(),
            ShownNotes::Counted => findings.partition_point(|finding| finding.severity != Severity::Note),
        };
        let (shown, counted) = findings.split_at(shown);
        render::answer_findings(out, form, &mut self.sarif, name, shown)?;
        write_counted(out, counted)
    }

    fn end(&self, out: &mut impl Write, report: &LiveReport) -> io::Result<()> {
        match self.form {
            FindingFormat::Text => {
                if self.detail == Detail::Lines {
                    writeln!(out)?;
                }
                write_front_page(out, report)
            }
            FindingFormat::Json => render::write_json(out, report),
            FindingFormat::Markdown => write_markdown(out, report),
            FindingFormat::Concise | FindingFormat::Github | FindingFormat::Sarif => Ok(()),
        }
    }
}
