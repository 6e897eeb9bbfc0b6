//! The findings of all checked files, as a table and a last line.

use std::io::{self, Write};

use tower_robots::check::{Report, Safety, Severity};

use super::finding_groups::{FindingGroups, ShownNotes};
use crate::render::{AnswerFinding, printable};

/// Files that the table lists.
const LISTED: usize = 100;

/// Columns of a name in the table.
const NAME: std::ops::RangeInclusive<usize> = 4..=60;

/// Counts over all files.
#[derive(Debug, Default)]
pub(super) struct CheckSummary {
    files: usize,
    unread: usize,
    /// Whether something fails that is not counted here.
    denied: bool,
    /// Findings that a safe fix corrects, and those that an unsafe one does.
    fixable: [usize; 2],
    /// Whether findings are only counted, so that their fixes are not known.
    has_omitted: bool,
    /// Findings by severity, in the order of [`Severity::ALL`].
    found: [usize; 3],
    /// The files with findings.
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
        let fixable = [Safety::Safe, Safety::Unsafe].map(|safety| report.fixes().count(safety));
        self.fixable = [self.fixable[0] + fixable[0], self.fixable[1] + fixable[1]];
        let found = Severity::ALL.map(|severity| report.count(severity));
        for (all, count) in self.found.iter_mut().zip(found) {
            *all += count;
        }
        if found != [0; 3] {
            let name = printable(name.as_bytes());
            self.rows.push(FileSummary { name, found, most_frequent: groups.most_frequent() });
        }
    }

    /// Adds what was found about the answers of a URL. `is_counted` says whether it counts elsewhere: as a file that is
    /// checked, or as one that could not be read.
    pub(super) fn add_answers(&mut self, name: &str, findings: &[AnswerFinding], is_counted: bool) {
        self.files += usize::from(!is_counted);
        let count = |severity| findings.iter().filter(|finding| finding.severity() == severity).count();
        let found = Severity::ALL.map(count);
        for (all, count) in self.found.iter_mut().zip(found) {
            *all += count;
        }
        if let Some(first) = findings.first() {
            let name = format!("{} answers", printable(name.as_bytes()));
            self.rows.push(FileSummary { name, found, most_frequent: Some((first.lint().code, 1)) });
        }
    }

    pub(super) fn add_unread(&mut self) {
        self.unread += 1;
    }

    /// Makes the check fail whatever is counted.
    pub(super) const fn deny(&mut self) {
        self.denied = true;
    }

    pub(super) const fn is_denied(&self) -> bool {
        self.denied
    }

    pub(super) const fn unread(&self) -> usize {
        self.unread
    }

    /// Whether there is a finding of this severity, or a worse one.
    pub(super) fn reaches(&self, threshold: Severity) -> bool {
        self.found.iter().zip(Severity::ALL).any(|(count, severity)| *count > 0 && severity >= threshold)
    }

    pub(super) fn write(&self, out: &mut impl Write, notes: ShownNotes) -> io::Result<()> {
        if self.files == 0 {
            return writeln!(out, "no file was checked");
        }
        if self.files > 1 && !self.rows.is_empty() {
            self.write_table(out)?;
        }
        let found: Vec<String> = self
            .found
            .iter()
            .zip(Severity::ALL)
            .filter(|(count, _)| **count > 0)
            .map(|(count, severity)| counted(*count, severity.as_str()))
            .collect();
        let found = if found.is_empty() { "nothing found".to_owned() } else { found.join(", ") };
        let hint = match (notes, self.files, self.found) {
            (ShownNotes::Counted, 2.., [_, _, notes]) if notes > 0 => " (--notes shows the notes)",
            _ => "",
        };
        writeln!(out, "{} checked: {found}{hint}", counted(self.files, "file"))?;
        let or_more = if self.has_omitted { " or more" } else { "" };
        match self.fixable {
            [0, _] => Ok(()),
            [safe, 0] => writeln!(out, "--fix corrects {safe} of them{or_more}"),
            [safe, more] => writeln!(out, "--fix corrects {safe} of them{or_more}, with --unsafe-fixes {more} more"),
        }
    }

    /// The files with findings, the worst first.
    fn write_table(&self, out: &mut impl Write) -> io::Result<()> {
        let mut rows: Vec<&FileSummary> = self.rows.iter().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.found));
        rows.truncate(LISTED);
        let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        let width = width.clamp(*NAME.start(), *NAME.end());
        writeln!(out, "\n{:width$}  {:>7}  {:>8}  {:>7}  most often", "file", "errors", "warnings", "notes")?;
        for FileSummary { name, found: [errors, warnings, notes], most_frequent } in rows {
            write!(out, "{name:width$}  {errors:>7}  {warnings:>8}  {notes:>7}")?;
            match most_frequent {
                Some((code, 1)) => writeln!(out, "  {code}")?,
                Some((code, count)) => writeln!(out, "  {count} × {code}")?,
                None => writeln!(out)?,
            }
        }
        if self.rows.len() > LISTED {
            writeln!(out, "and {} more files with findings", self.rows.len() - LISTED)?;
        }
        writeln!(out)
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
