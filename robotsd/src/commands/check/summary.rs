//! Formats findings for people. The findings of one file are grouped by code, because a file may
//! repeat the same mistake in every line.

use std::io::{self, Write};

use askama::Template;
use tower_robots::check::{Finding, Report, Safety, Severity};

use crate::commands::output::filters;
use crate::render::{self, Checked, FoundProblem, finding_line, plural, printable};

/// Maximum number of files in the table.
const MAX_LISTED: usize = 100;

/// Minimum and maximum width of the column with file names, in characters.
const NAME: std::ops::RangeInclusive<usize> = 4..=60;

#[derive(Debug, Default)]
pub(super) struct CheckSummary {
    files: usize,
    pub(super) unread: usize,
    /// Whether the check fails because of `--diff`, or because of `deny` in a settings file.
    pub(super) is_denied: bool,
    pub(super) is_cut: bool,
    /// Numbers of findings with a safe fix and with an unsafe fix, in this order.
    fixable: [usize; 2],
    /// Whether some findings were only counted. It is unknown whether these findings can be fixed.
    has_omitted: bool,
    /// Number of findings by severity, in the order of [`Severity::ALL`].
    found: [usize; 3],
    rows: Vec<FileSummary>,
}

#[derive(Debug)]
struct FileSummary {
    name: String,
    found: [usize; 3],
    most_frequent: Option<(&'static str, usize)>,
}

impl CheckSummary {
    pub(super) fn add(&mut self, name: &str, report: &Report, groups: &FindingGroups<'_>) {
        self.files += 1;
        self.has_omitted |= report.omitted() > 0;
        let fixable = [Safety::Safe, Safety::Unsafe].map(|safety| report.fixes.count(safety));
        self.fixable = [self.fixable[0] + fixable[0], self.fixable[1] + fixable[1]];
        let found = Severity::ALL.map(|severity| report.count(severity));
        self.add_row(printable(name), found, groups.most_frequent());
    }

    /// Adds findings about responses. `is_counted` is true if the URL is already counted as a
    /// checked file, or as a file that could not be read.
    pub(super) fn add_answers(&mut self, name: &str, findings: &[FoundProblem], is_counted: bool) {
        self.files += usize::from(!is_counted);
        let first = findings.first().and_then(|first| Some((first.code?, 1)));
        self.add_row(format!("{} answers", printable(name)), FoundProblem::count(findings), first);
    }

    fn add_row(&mut self, name: String, found: [usize; 3], most_frequent: Option<(&'static str, usize)>) {
        for (all, count) in self.found.iter_mut().zip(found) {
            *all += count;
        }
        if most_frequent.is_some() {
            self.rows.push(FileSummary { name, found, most_frequent });
        }
    }

    pub(super) fn reaches(&self, threshold: Severity) -> bool {
        self.found.iter().zip(Severity::ALL).any(|(count, severity)| *count > 0 && severity >= threshold)
    }

    pub(super) fn write(&self, out: &mut impl Write, notes: ShownNotes) -> io::Result<()> {
        // The files with the most severe findings come first.
        let mut rows: Vec<&FileSummary> = self.rows.iter().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.found));
        rows.truncate(MAX_LISTED);
        let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        let width = width.clamp(*NAME.start(), *NAME.end());
        writeln!(out, "{}", SummaryText { summary: self, rows, width, notes })
    }

    /// Writes the verdict, such as `**Fails**: 1 error, 2 notes`.
    pub(super) fn write_verdict(&self, out: &mut impl Write, is_denied: bool) -> io::Result<()> {
        let verdict = if is_denied || self.unread > 0 || self.is_cut { "Fails" } else { "Passes" };
        let unread = match self.unread {
            0 => String::new(),
            count => format!("; {files} could not be read", files = plural(count, "file")),
        };
        writeln!(out, "**{verdict}**: {}{unread}\n", self.found())
    }

    fn found(&self) -> String {
        let found = render::found(self.found);
        if found.is_empty() { "nothing found".to_owned() } else { found }
    }
}

#[derive(Template)]
#[template(path = "commands/check/summary.txt", whitespace = "preserve")]
struct SummaryText<'a> {
    summary: &'a CheckSummary,
    rows: Vec<&'a FileSummary>,
    width: usize,
    notes: ShownNotes,
}

/// Maximum number of findings of one code that are shown in full. If a code has more findings, only
/// its first finding is shown in full.
const MAX_IN_FULL: usize = 3;

/// Maximum number of line numbers that are listed for findings that are not shown in full.
const MAX_LINES: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShownNotes {
    Counted,
    Each,
}

/// The findings of a file, grouped by code. Errors come first, and groups of equal severity are
/// sorted by position.
#[derive(Debug)]
pub(super) struct FindingGroups<'r>(Vec<FindingGroup<'r>>);

/// The findings of one code and one severity.
#[derive(Debug)]
pub(super) struct FindingGroup<'r> {
    first: &'r Finding,
    others: Vec<&'r Finding>,
    /// Number of findings, including those that the report only counts.
    count: usize,
}

impl<'r> FindingGroups<'r> {
    pub(super) fn of(report: &'r Report) -> Self {
        let mut groups: Vec<FindingGroup<'r>> = Vec::new();
        for finding in report {
            let is_same = |group: &&mut FindingGroup<'_>| {
                (group.first.code, group.first.severity) == (finding.code, finding.severity)
            };
            match groups.iter_mut().find(is_same) {
                Some(group) => group.others.push(finding),
                None => {
                    let count = report.count_of(finding.code, finding.severity);
                    groups.push(FindingGroup { first: finding, others: Vec::new(), count });
                }
            }
        }
        groups.sort_by_key(|group| std::cmp::Reverse(group.first.severity));
        Self(groups)
    }

    pub(super) fn most_frequent(&self) -> Option<(&'static str, usize)> {
        self.0.iter().rev().max_by_key(|group| group.count).map(|group| (group.first.code, group.count))
    }

    /// Writes a snippet for each finding, but only one snippet per code if the code has more than
    /// [`MAX_IN_FULL`] findings.
    pub(super) fn write_snippets(
        &self,
        out: &mut impl Write,
        checked: Checked<'_>,
        notes: ShownNotes,
    ) -> io::Result<()> {
        for group in self.shown(notes) {
            render::snippet(out, checked, group.first)?;
            if group.count > MAX_IN_FULL {
                let indent = group.first.line.to_string().len();
                writeln!(out, "{:indent$} = {}; --verbose shows each", "", group.further())?;
            } else {
                for finding in &group.others {
                    writeln!(out)?;
                    render::snippet(out, checked, finding)?;
                }
            }
            writeln!(out)?;
        }
        let counted: Vec<_> = self.counted(notes).collect();
        if counted.is_empty() {
            return Ok(());
        }
        writeln!(out, "notes (add --notes to show them):")?;
        let name = printable(checked.name);
        let width = counted.iter().map(|group| group.count.to_string().len()).max().unwrap_or(0);
        for group in counted {
            let place = format!("{name}:{}:{}", group.first.line, group.first.column);
            writeln!(out, "  {:>width$} × {}, {} {place}", group.count, group.first.code, group.at())?;
        }
        writeln!(out)
    }

    /// Writes one line for each code, and one line for all notes together.
    pub(super) fn write_lines(&self, out: &mut impl Write, name: &str, notes: ShownNotes) -> io::Result<()> {
        for group in self.shown(notes) {
            let (line, code) = (finding_line(name, group.first), group.first.code);
            match group.count {
                1 => writeln!(out, "{line} [{code}]")?,
                _ => writeln!(out, "{line} [{code}; {}]", group.further())?,
            }
        }
        let counted = |group: &FindingGroup<'_>| {
            let (line, column) = (group.first.line, group.first.column);
            format!("{} × {}, {} {line}:{column}", group.count, group.first.code, group.at())
        };
        let counted: Vec<_> = self.counted(notes).map(counted).collect();
        match counted.is_empty() {
            true => Ok(()),
            false => writeln!(out, "{}: notes: {}", printable(name), counted.join("; ")),
        }
    }

    fn shown(&self, notes: ShownNotes) -> impl Iterator<Item = &FindingGroup<'r>> {
        self.0.iter().filter(move |group| notes == ShownNotes::Each || group.first.severity != Severity::Note)
    }

    fn counted(&self, notes: ShownNotes) -> impl Iterator<Item = &FindingGroup<'r>> {
        self.0.iter().filter(move |group| notes == ShownNotes::Counted && group.first.severity == Severity::Note)
    }
}

impl FindingGroup<'_> {
    const fn at(&self) -> &'static str {
        if self.count == 1 { "at" } else { "first at" }
    }

    /// Describes the findings that are not shown in full, such as `427 more, in lines 13, 14 and
    /// others`.
    fn further(&self) -> String {
        let mut lines: Vec<usize> = self.others.iter().map(|finding| finding.line).collect();
        lines.dedup();
        let named: Vec<_> = lines.iter().take(MAX_LINES).map(ToString::to_string).collect();
        let more = self.count - 1;
        let others = if lines.len() > MAX_LINES || more > self.others.len() { " and others" } else { "" };
        let plural = if lines.len() == 1 && others.is_empty() { "" } else { "s" };
        format!("{more} more, in line{plural} {}{others}", named.join(", "))
    }
}
